import { ApiError, type InputIssue, type Refusal } from './api-error.ts';
import { AuthenticationFailedError, errorsByCode, errorsByStatus } from './generated/errors.ts';
import type { components } from './generated/rest.ts';

/** The body of a refusal: of REST, of invalid input, or of OAuth. */
type Schemas = components['schemas'];
type Body = Partial<Schemas['Error'] & Schemas['ValidationError'] & { error_description: string }>;

/** What GraphQL answers. A problem of an input has its place in the arguments. */
type Details = Record<string, unknown> & { issues?: (Omit<InputIssue, 'loc'> & { path: InputIssue['loc'] })[] };
type Fault = { message: string; extensions?: { code?: string; details?: Details; trace_id?: string } };
export type Answered<Result> = { data?: Result | null; errors?: Fault[] };

/** The error for a refusal, by its code, and where that says nothing, by its status. */
export function apiError(refusal: Refusal): ApiError {
  // a grant that has ended: whoever asks signs in again
  if (refusal.code === 'invalid_grant')
    return new AuthenticationFailedError({ ...refusal, code: 'AUTHENTICATION_FAILED' });
  return new (errorsByCode[refusal.code] ?? errorsByStatus[refusal.status] ?? ApiError)(refusal);
}

/** What an answer says without its body. */
function knownOf({ status, headers }: Response) {
  const wait = headers.get('retry-after') ?? '';
  const retryAfterSeconds = /^\d+$/.test(wait) ? Number(wait) : null;
  return { status, traceId: headers.get('x-trace-id'), retryAfterSeconds };
}

/** The error for an answer that is not a success. Reads its body. */
export async function errorOf(response: Response): Promise<ApiError> {
  const known = knownOf(response);
  const body = ((await response.json().catch(() => null)) ?? {}) as Body;
  const issues = Array.isArray(body.detail) ? body.detail : [];
  const problems = issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
  // a proxy in front of the service answers in its own words
  const code = typeof body.error === 'string' ? body.error : problems ? 'VALIDATION_ERROR' : `HTTP_${known.status}`;
  const message = body.message ?? body.error_description ?? (problems || `The answer has the status ${known.status}.`);
  return apiError({ ...known, code, message, details: { ...body.details }, issues });
}

/** @throws ApiError for an answer that is not a success */
export async function success(response: Response): Promise<Response> {
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** What GraphQL answers, if it is whole. @throws ApiError */
export function resultOf<Result>({ data, errors }: Answered<Result>, response?: Response): Result {
  const fault = errors?.[0];
  if (!fault && data) return data;
  const known = knownOf(response ?? new Response());
  const { message, extensions = {} } = fault ?? { message: 'The answer has no data.' };
  const { code = 'GRAPHQL_ERROR', details = {}, trace_id: traceId = known.traceId } = extensions;
  const issues = (details.issues ?? []).map(({ path, ...issue }) => ({ ...issue, loc: path }));
  throw apiError({ ...known, code, message, details, traceId, issues });
}
