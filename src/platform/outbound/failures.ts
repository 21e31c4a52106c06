import { errors } from 'undici';
import { OutboundError } from './outbound-error.ts';

/**
 * What a failure of a call is for its caller. The original error names addresses and ports, so it is not kept.
 * @param signal the signal of the call; its reason explains everything that broke because of it
 */
export function failureOf(error: unknown, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error;
  if (signal.aborted) return signal.reason instanceof OutboundError ? signal.reason : new OutboundError('aborted');
  if (error instanceof errors.HeadersOverflowError) return new OutboundError('too_large');
  if (error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError)
    return new OutboundError('bad_response');
  if (error instanceof errors.InvalidArgumentError) return new OutboundError('invalid_request');
  return new OutboundError(isAboutTls(error) ? 'tls' : 'network');
}

const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_MISMATCH|EPROTO$)/;

function isAboutTls(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && TLS_CODE.test(error.code);
}
