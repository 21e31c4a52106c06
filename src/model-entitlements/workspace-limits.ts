import { invalidInput } from '../core/errors.ts';
import { snakeCase } from '../core/snake-case.ts';
import { withoutNull } from '../data/given.ts';

type Limit = number | null;
const noLimits = {
  maxTokensPerMonth: null as Limit,
  maxRequestsPerDay: null as Limit,
  requestsPerMinute: null as Limit,
  tokensPerMinute: null as Limit,
};

/** What a workspace may use of a model; null is no limit. Periods are those of UTC. */
export type WorkspaceLimits = typeof noLimits & {
  /** Keys that the service does not know, as they were given. */
  more?: Record<string, unknown>;
};

export type WorkspaceLimitsInput = { [Key in keyof WorkspaceLimits]?: WorkspaceLimits[Key] | null };

/** All limits, as they are stored. @throws InputError for a limit that hides among the others */
export function storedLimits(input: WorkspaceLimitsInput | null | undefined): WorkspaceLimits {
  const more = input?.more ?? {};
  for (const key of Object.keys(noLimits).map(snakeCase)) {
    if (Object.hasOwn(more, key))
      throw invalidInput(['input', 'workspaceLimits', 'more', key], 'this limit has a field of its own');
  }
  return { ...noLimits, ...withoutNull(input), more };
}

/** Those that are set, by their names in REST. */
export function limitsByName({ more, ...known }: WorkspaceLimits): Record<string, unknown> {
  const set = Object.entries(known).filter(([, limit]) => limit !== null);
  return { ...Object.fromEntries(set.map(([key, limit]) => [snakeCase(key), limit])), ...more };
}
