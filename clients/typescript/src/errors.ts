import { ApiError, type Refusal } from './api-error.ts';
import { AuthenticationFailedError, errorsByCode, errorsByStatus } from './generated/errors.ts';
import type { components } from './generated/rest.ts';

/** The body of a refusal: of REST, of invalid input, or of OAuth. */
type Schemas = components['schemas'];
type Body = Partial<Schemas['Error'] & Schemas['ValidationError'] & { error_description: string }>;

/** The error for a refusal, by its code, and where that says nothing, by its status. */
export function apiError(refusal: Refusal): ApiError {
  // a grant that has ended is one: whoever asks signs in again
  if (refusal.code === 'invalid_grant')
    return new AuthenticationFailedError({ ...refusal, code: 'AUTHENTICATION_FAILED' });
  return new (errorsByCode[refusal.code] ?? errorsByStatus[refusal.status] ?? ApiError)(refusal);
}

/** What an answer says without its body. */
export type Known = Pick<Refusal, 'status' | 'traceId' | 'retryAfterSeconds'>;
export function knownOf({ status, headers }: Response): Known {
  const wait = headers.get('retry-after') ?? '';
  const retryAfterSeconds = /^\d+$/.test(wait) ? Number(wait) : null;
  return { status, traceId: headers.get('x-trace-id'), retryAfterSeconds };
}

/** The error for an answer that is not a success. Reads its body. */
export async function errorOf(response: Response): Promise<ApiError> {
  const known = knownOf(response);
  const body = ((await response.json().catch(() => null)) ?? {}) as Body;
  const { detail: issues, error: code, error_description, message = error_description ?? code, details = {} } = body;
  if (Array.isArray(issues)) {
    const text = issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return apiError({ ...known, code: 'VALIDATION_ERROR', message: text, issues });
  }
  if (typeof code === 'string') return apiError({ ...known, code, message: String(message), details });
  // a proxy in front of the service answers in its own words
  return apiError({ ...known, code: `HTTP_${known.status}`, message: `The answer has the status ${known.status}.` });
}

/** @throws ApiError for an answer that is not a success */
export async function success(response: Response): Promise<Response> {
  if (!response.ok) throw await errorOf(response);
  return response;
}
