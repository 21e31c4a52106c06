import { withoutNull } from '../../data/given.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { snakeCase } from '../../kernel/snake-case.ts';

type Limit = number | null;
const noLimits = {
  maxTokensPerMonth: null as Limit,
  maxRequestsPerDay: null as Limit,
  requestsPerMinute: null as Limit,
  tokensPerMinute: null as Limit,
};

/** How much a workspace may use a model; null is no limit. Periods are in UTC. */
export type WorkspaceLimits = typeof noLimits & {
  /** Keys that the service does not know, as given. */
  more?: Record<string, unknown>;
};

export type WorkspaceLimitsInput = { [Key in keyof WorkspaceLimits]?: WorkspaceLimits[Key] | null };

/** All limits as they are stored. @throws InputError if `more` contains a limit that has its own field */
export function storedLimits(input: WorkspaceLimitsInput | null | undefined): WorkspaceLimits {
  const more = input?.more ?? {};
  for (const key of Object.keys(noLimits).map(snakeCase)) {
    if (Object.hasOwn(more, key))
      throw invalidInput(['input', 'workspaceLimits', 'more', key], 'this limit has a field of its own');
  }
  return { ...noLimits, ...withoutNull(input), more };
}

/** The limits that are set, by their REST names. */
export function limitsByName({ more, ...known }: WorkspaceLimits): Record<string, unknown> {
  const set = Object.entries(known).filter(([, limit]) => limit !== null);
  return { ...Object.fromEntries(set.map(([key, limit]) => [snakeCase(key), limit])), ...more };
}

/** Limits by their REST names as they are given to an entitlement: the other way round. */
export function limitsFromNames(named: Readonly<Record<string, unknown>>): WorkspaceLimitsInput {
  const names = Object.keys(noLimits) as (keyof typeof noLimits)[];
  const known = names.map((name) => [name, named[snakeCase(name)] as Limit | undefined] as const);
  const words = new Set(names.map(snakeCase));
  const more = Object.fromEntries(Object.entries(named).filter(([name]) => !words.has(name)));
  return { ...Object.fromEntries(known), more };
}
