import { type OutboundCode, OutboundError } from './outbound-error.ts';

/**
 * What a failure of a call is for its caller. The original error names addresses and ports, so it is not kept.
 * @param signal the signal of the call; its reason explains everything that broke because of it
 * @returns null for an error that is none of a connection: a fault of ours
 */
export function failureOf(error: unknown, signal: AbortSignal): OutboundError | null {
  if (error instanceof OutboundError) return error;
  if (signal.aborted) return signal.reason instanceof OutboundError ? signal.reason : new OutboundError('aborted');
  const code = reasonOf(error);
  return code === null ? null : new OutboundError(CODES.find(([pattern]) => pattern.test(code))?.[1] ?? 'network');
}

/** The code of an error of the system, of TLS or of the HTTP client, like `ECONNREFUSED`; null for other errors. */
export function reasonOf(error: unknown): string | null {
  if (!(error instanceof Error) || error instanceof OutboundError) return null;
  if ('code' in error && typeof error.code === 'string' && !error.code.startsWith('ERR_INVALID_')) return error.code;
  return error.name === 'HTTPParserError' ? error.name : null; // some of these lack a code
}

/** Codes of the HTTP client, of its parser and of TLS. What is not here is trouble of the network. */
const CODES: readonly (readonly [RegExp, OutboundCode])[] = [
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'too_large'],
  [/^(HPE_.*|HTTPParserError|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/, 'bad_response'],
  [/^(UND_ERR_INVALID_ARG|UND_ERR_REQ_CONTENT_LENGTH_MISMATCH)$/, 'invalid_request'],
  [/^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_CERT|HOSTNAME_MISMATCH|EPROTO$)/, 'tls'],
];
