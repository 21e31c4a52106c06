import type { CombinedError } from 'urql';
import { faultOf } from './problem';

/** How long what did not come is left alone. */
export const AGAIN_MS = 5_000;

/** What is said by a service that is busy, or lacks something for a while. */
const passingCodes = new Set(['SERVICE_UNAVAILABLE', 'RATE_LIMIT_EXCEEDED']);

/** How a proxy answers that does not reach the service, or takes no more. */
const proxyFaults = new Set([429, 502, 503, 504]);

/** Whether the service said why it will not; `code` is that of its answer, if one came. */
export const isRefusal = (code: string | undefined): boolean => code !== undefined && !passingCodes.has(code);

/** Of the answer; `undefined` without one. */
export const statusOf = ({ response }: CombinedError) => (response as { status: number } | undefined)?.status;

/** Whether an answer only did not come now, because the service was away or busy. A refusal is none of these. */
export function isPassing(error: CombinedError): boolean {
  if (error.graphQLErrors.length > 0) return !isRefusal(faultOf(error).code);
  const status = statusOf(error);
  return status === undefined || proxyFaults.has(status);
}
