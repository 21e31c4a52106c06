/**
 * Why an outbound call gave no answer, with the sentence for the caller. A sentence never tells what was found inside:
 * no resolved address, no part of an answer, no difference between a closed port and a silent one.
 */
const reasons = {
  invalid_url: 'The URL must be an absolute https:// URL without user name and password.',
  invalid_request: 'The method, a header or the body of the request is not allowed.',
  blocked_address: 'The target has an address that this service does not call. See its setting OUTBOUND_ALLOW.',
  blocked_port: 'The target has a port that this service does not call. See its setting OUTBOUND_ALLOW.',
  insecure_url: 'The target must be called over https. See the setting OUTBOUND_ALLOW of this service.',
  redirect: 'The target redirects to another host or too often.',
  timeout: 'The target did not answer in time.',
  network: 'The target could not be reached, or the connection broke.',
  tls: 'The certificate or the encryption of the target is not accepted.',
  too_large: 'The answer of the target is too large.',
  too_complex: 'The answer of the target takes too long to read, or too much memory.',
  answer_not_read: 'The target has answered, but its answer could not be read to its end now.',
  bad_response: 'The target did not answer in valid HTTP.',
  busy: 'Too many outbound calls are running. Try again later.',
  aborted: 'The call was cancelled.',
} as const;

/** The machine-readable reason of an {@link OutboundError}. */
export type OutboundCode = keyof typeof reasons;

/** An outbound call that gave no answer. Code and message are fit for the caller. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly code: OutboundCode;
  /** The bound that an answer is beyond; `null` for every other reason. */
  readonly limitBytes: number | null;

  constructor(code: OutboundCode, limitBytes: number | null = null) {
    super(
      limitBytes === null
        ? reasons[code]
        : `The answer of the target is too large: it has more than ${sizeText(limitBytes)}.`,
    );
    this.code = code;
    this.limitBytes = limitBytes;
  }

  /** For an answer of more bytes than it may have. */
  static tooLarge(limitBytes: number): OutboundError {
    return new OutboundError('too_large', limitBytes);
  }

  /** Whether the service refused the call and sent nothing: another try gives the same. */
  get isRefusal(): boolean {
    return REFUSALS.has(this.code);
  }

  /** The outbound error behind what a client library threw; null if there is none. */
  static in(error: unknown): OutboundError | null {
    let current = error;
    for (let depth = 0; depth < 5 && current instanceof Error; depth++, current = current.cause)
      if (current instanceof OutboundError) return current;
    return null;
  }
}

const MIB = 1024 * 1024;
const sizeText = (bytes: number): string => (bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes} bytes`);

const REFUSALS: ReadonlySet<OutboundCode> = new Set<OutboundCode>([
  'invalid_url',
  'invalid_request',
  'blocked_address',
  'blocked_port',
  'insecure_url',
]);
