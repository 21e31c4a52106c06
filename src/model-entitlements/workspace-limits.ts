import { invalidInput } from '../core/errors.ts';
import { snakeCase } from '../core/snake-case.ts';

/** What a workspace may use of a model; null is no limit. Periods are those of UTC. */
export interface WorkspaceLimits {
  maxTokensPerMonth: number | null;
  maxRequestsPerDay: number | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  /** Keys that the service does not know, as they were given. */
  more?: Record<string, unknown>;
}

export type WorkspaceLimitsInput = { [Key in Exclude<keyof WorkspaceLimits, 'more'>]?: number | null } & {
  more?: Record<string, unknown> | null;
};

/** All limits, as they are stored. @throws InputError for a limit that hides among the others */
export function storedLimits(input: WorkspaceLimitsInput | null | undefined): WorkspaceLimits {
  const known = {
    maxTokensPerMonth: input?.maxTokensPerMonth ?? null,
    maxRequestsPerDay: input?.maxRequestsPerDay ?? null,
    requestsPerMinute: input?.requestsPerMinute ?? null,
    tokensPerMinute: input?.tokensPerMinute ?? null,
  };
  const more = input?.more ?? {};
  for (const key of Object.keys(known).map(snakeCase)) {
    if (Object.hasOwn(more, key))
      throw invalidInput(['input', 'workspaceLimits', 'more', key], 'this limit has a field of its own');
  }
  return { ...known, more };
}

/** Those that are set, by their names in REST. */
export function limitsByName({ more, ...known }: WorkspaceLimits): Record<string, unknown> {
  const set = Object.entries(known).filter(([, limit]) => limit !== null);
  return { ...Object.fromEntries(set.map(([key, limit]) => [snakeCase(key), limit])), ...more };
}
