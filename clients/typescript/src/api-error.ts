import type { components } from './generated/rest.ts';

/** One problem of an input. `loc` says where it is, such as `['body', 'name']`. */
export type InputIssue = components['schemas']['ValidationError']['detail'][number];

/** What an error is made of. */
export type Refusal = Pick<ApiError, 'status' | 'code' | 'message'> & Partial<ApiError>;

/** A request that the service refused, or could not carry out. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  declare readonly status: number;
  /** The code of the error, such as `RESOURCE_NOT_FOUND`: it never changes its meaning. */
  declare readonly code: string;
  readonly details: Readonly<Record<string, unknown>> = {};
  /** The id under which the logs and the activity records of the service know the request. */
  readonly traceId: string | null = null;
  /** How long to wait before the request is sent again; `null` if the service does not say. */
  readonly retryAfterSeconds: number | null = null;
  /** All problems of an input at once: of an `InvalidInputError`. */
  readonly issues: readonly InputIssue[] = [];

  constructor({ message, ...given }: Refusal) {
    super(message);
    Object.assign(this, given);
  }
}
