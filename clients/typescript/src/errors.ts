/** One problem of an input. */
export interface InputIssue {
  type: string;
  /** Where the problem is, such as `['body', 'name']`. */
  loc: (string | number)[];
  msg: string;
  input?: unknown;
}

interface Refusal {
  status: number;
  code: string;
  message: string;
  details?: Record<string, unknown>;
  /** The id under which the logs and the activity records of the service know the request. */
  traceId?: string | null;
  retryAfterSeconds?: number | null;
}

/** A request that the service refused, or could not carry out. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly status: number;
  /** The code of the error, such as `RESOURCE_NOT_FOUND`: it never changes its meaning. */
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly traceId: string | null;
  /** How long to wait before the request is sent again; `null` if the service does not say. */
  readonly retryAfterSeconds: number | null;

  constructor({ status, code, message, details = {}, traceId = null, retryAfterSeconds = null }: Refusal) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.traceId = traceId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** 401: the credentials are missing, wrong or no longer valid. */
export class AuthenticationFailedError extends ApiError {
  override readonly name = 'AuthenticationFailedError';
}
/** 403: `details.required_permission` names the permission that is missing. */
export class ForbiddenError extends ApiError {
  override readonly name = 'ForbiddenError';
}
/** 404: there is no such resource, or the caller may not see it. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}
/** 409: the state of the service does not allow the request. `details.reason` says why. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError';
}
/** 412: the resource was changed since it was read. `details.current_version` is its version. */
export class PreconditionFailedError extends ApiError {
  override readonly name = 'PreconditionFailedError';
}
/** 422: the input has problems. */
export class InvalidInputError extends ApiError {
  override readonly name = 'InvalidInputError';
  /** All problems at once. */
  readonly issues: readonly InputIssue[];

  constructor(refusal: Refusal, issues: readonly InputIssue[]) {
    super(refusal);
    this.issues = issues;
  }
}
/** 429: too many requests. */
export class RateLimitedError extends ApiError {
  override readonly name = 'RateLimitedError';
}
/** 502, 503 and 504: the service, or a provider behind it, cannot answer now. */
export class UnavailableError extends ApiError {
  override readonly name = 'UnavailableError';
}

const byCode: Readonly<Record<string, new (refusal: Refusal) => ApiError>> = {
  AUTHENTICATION_FAILED: AuthenticationFailedError,
  FORBIDDEN: ForbiddenError,
  RESOURCE_NOT_FOUND: NotFoundError,
  RESOURCE_ALREADY_EXISTS: ConflictError,
  RESOURCE_CONFLICT: ConflictError,
  IDEMPOTENCY_CONFLICT: ConflictError,
  PRECONDITION_FAILED: PreconditionFailedError,
  RATE_LIMIT_EXCEEDED: RateLimitedError,
  UPSTREAM_ERROR: UnavailableError,
  UPSTREAM_TIMEOUT: UnavailableError,
  SERVICE_UNAVAILABLE: UnavailableError,
};

/** What a proxy before the service answers has a status alone. */
const byStatus: Readonly<Record<number, new (refusal: Refusal) => ApiError>> = {
  401: AuthenticationFailedError,
  403: ForbiddenError,
  404: NotFoundError,
  429: RateLimitedError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** The error for a refusal, by its code, and where that says nothing, by its status. */
export const apiError = (refusal: Refusal): ApiError =>
  new (byCode[refusal.code] ?? byStatus[refusal.status] ?? ApiError)(refusal);

/** Seconds in `Retry-After`, which is a number of seconds at this service; `null` without any. */
export function retryAfterOf(response: Response): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}

/** The error for an answer of REST that is not a success. Reads its body. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const known = { status, traceId: response.headers.get('x-trace-id'), retryAfterSeconds: retryAfterOf(response) };
  const body = objectIn(await response.text());
  if (Array.isArray(body.detail)) {
    const issues = body.detail as InputIssue[];
    const message = issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return new InvalidInputError({ ...known, code: 'VALIDATION_ERROR', message }, issues);
  }
  const { error, message, details } = body;
  return apiError({
    ...known,
    // a proxy in front of the service answers in its own words
    code: typeof error === 'string' ? error : `HTTP_${status}`,
    message: typeof message === 'string' ? message : `The answer has the status ${status}.`,
    details: typeof details === 'object' && details !== null ? (details as Record<string, unknown>) : {},
  });
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {}; // not from the service: the status says what there is to say
  }
}
