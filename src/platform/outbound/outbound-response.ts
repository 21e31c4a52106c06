import { OutboundError } from './outbound-error.ts';

/** Statuses whose answers have no body, also by the Fetch standard. */
export const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** What a target answered, whole and decompressed. */
export class OutboundResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The URL that answered, after redirects. */
  readonly url: string;

  constructor(answer: { status: number; headers: Headers; body: Buffer; url: string }) {
    this.status = answer.status;
    this.headers = answer.headers;
    this.body = answer.body;
    this.url = answer.url;
  }

  /** Whether the status is 2xx. */
  get isOk(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** The body as UTF-8. */
  text(): string {
    return this.body.toString('utf8');
  }

  /** The body as JSON. @throws OutboundError bad_response */
  json(): unknown {
    try {
      return JSON.parse(this.text());
    } catch {
      throw new OutboundError('bad_response'); // the parser's message quotes the body
    }
  }

  /** The same as the standard class, for client libraries. */
  toResponse(): Response {
    const body = WITHOUT_BODY.has(this.status) ? null : new Uint8Array(this.body);
    return new Response(body, { status: this.status, headers: this.headers });
  }
}
