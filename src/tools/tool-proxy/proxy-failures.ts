import { ApiError, conflict } from '../../kernel/errors.ts';
import { type OutboundCode, OutboundError } from '../../platform/outbound/outbound-error.ts';
import { ConnectionUnusable } from '../connections/connection-credentials.ts';
import { UnusableAction } from '../tool-instances/action-request.ts';

/** How a call is answered of which nothing was sent yet. @param upstream the host that was called, as it is shown */
export function failureOf(error: unknown, instanceId: string, upstream: string): unknown {
  if (error instanceof ConnectionUnusable) {
    const reason = error.code === 'expired' ? 'token_expired' : error.code;
    return conflict('tool_instance', instanceId, reason, error.message);
  }
  if (error instanceof UnusableAction) return conflict('tool_instance', instanceId, error.code, error.message);
  const outbound = OutboundError.in(error);
  if (!outbound) return error;
  const { code, message } = outbound;
  switch (code) {
    case 'timeout':
      return new ApiError('UPSTREAM_TIMEOUT', { upstream, reason: code }, message);
    case 'invalid_request':
      return new ApiError('INVALID_REQUEST', { reason: code }, message);
    case 'busy':
    case 'aborted':
      return new ApiError('SERVICE_UNAVAILABLE', { retry_after: 1 }, message);
    case 'answer_not_read':
    case 'bad_response':
    case 'blocked_address':
    case 'blocked_port':
    case 'insecure_url':
    case 'invalid_url':
    case 'network':
    case 'redirect':
    case 'tls':
    case 'too_complex':
    case 'too_large':
      return new ApiError('UPSTREAM_ERROR', { upstream, reason: code }, message);
  }
}

/** How a call ended, in a word: `answered`, or why it was cut. */
export type ProxyOutcome = 'answered' | OutboundCode | 'fault';

/** What an error at the end of an answer is called. */
export const outcomeOf = (error: Error | null): ProxyOutcome =>
  error === null ? 'answered' : (OutboundError.in(error)?.code ?? 'fault');
