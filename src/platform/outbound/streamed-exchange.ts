import { Readable, Transform } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type ConnectionOfCall, type HttpConnection, overConnection } from './http-connection.ts';
import { OutboundError } from './outbound-error.ts';

/** What is read ahead of whoever reads an answer. */
const READ_AHEAD_BYTES = 64 * 1024;
/** What may wait for its reader when the room of its call is given back. */
const MAX_WHOLE_BYTES = 16 * 1024;

/** Limits of a call whose bodies pass through. */
export interface StreamLimits {
  /** From the end of the request to the head of the answer. */
  headMs: number;
  /** Between two pieces of a body, in either direction. */
  idleMs: number;
  /** Of the whole call. */
  wholeMs: number;
  /** Of each body. */
  maxBytes: number;
}

/** One request whose bodies pass through. */
export interface StreamedExchange extends ConnectionOfCall {
  method: string;
  headers: Readonly<Record<string, string>>;
  /** Read as fast as the target takes it. */
  body: Readable | null;
  /** The length of the body, if it is known. */
  contentLength: number | null;
  limits: Omit<StreamLimits, 'wholeMs'>;
  /** Ends the call for a reason of its own. */
  fail: (error: OutboundError) => void;
  /** What an error of the socket, of TLS or of the parser is for the reader. */
  errorOf: (error: unknown) => Error;
}

/** The answer to one request, while its body arrives. */
export interface StreamedAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As it was sent: not decompressed. It ends with an error if the answer is cut, maybe before anybody listens. */
  body: Readable;
  /** All of the body, if it is small, has come to its end and nobody has read any of it; else `null`. */
  takeWhole: () => Buffer | null;
  /** Bytes of the bodies so far. */
  readonly sizes: { readonly sent: number; readonly received: number };
  /** Resolves when all is over: with what went wrong, or `null`. */
  ended: Promise<Error | null>;
}

/**
 * Sends a request to one of the addresses. Nothing is kept: what the reader of the answer does not take is not read
 * from the target, and what the target does not take is not read from the sender.
 * @throws OutboundError, and what {@link StreamedExchange.errorOf} makes of other errors
 */
export const openExchange = (options: StreamedExchange): Promise<StreamedAnswer> =>
  overConnection(
    options,
    (connection) => opened(connection, options),
    ({ body }) => body.destroy(),
  );

function opened(connection: HttpConnection, options: StreamedExchange): Promise<StreamedAnswer> {
  const { url, method, headers, contentLength, signal } = options;
  const call = new StreamedCall(options, connection);
  const cancel = () => call.fail(signal.reason);
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  void call.ended.then(() => signal.removeEventListener('abort', cancel));
  try {
    connection.client.dispatch(
      {
        path: `${url.pathname}${url.search}`,
        method: method as Dispatcher.HttpMethod,
        headers: { ...headers, ...(contentLength === null ? {} : { 'content-length': String(contentLength) }) },
        body: call.requestBody,
        reset: connection.isForOne,
      },
      call,
    );
  } catch (error) {
    call.fail(error);
  }
  return call.answer;
}

/** What happens to one request, told by the HTTP client. */
class StreamedCall implements Dispatcher.DispatchHandler {
  readonly answer: Promise<StreamedAnswer>;
  readonly ended: Promise<Error | null>;
  readonly requestBody: Transform | null;
  readonly #options: StreamedExchange;
  readonly #connection: HttpConnection;
  readonly #sizes = { sent: 0, received: 0 };
  #body: Readable | undefined;
  #pace: NodeJS.Timeout | undefined;
  /** Whether the answer has come to its end; it may not have been read yet. */
  #hasCome = false;
  #isOver = false;
  #status = 0;
  #answered!: (answer: StreamedAnswer) => void;
  #refused!: (error: Error) => void;
  #end!: (error: Error | null) => void;

  constructor(options: StreamedExchange, connection: HttpConnection) {
    this.#options = options;
    this.#connection = connection;
    this.answer = new Promise((resolve, reject) => {
      this.#answered = resolve;
      this.#refused = reject;
    });
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.requestBody = options.body && this.#counted(options.body);
    this.#within(options.body ? options.limits.idleMs : options.limits.headMs);
  }

  /** Its name tells the client which kind of handler this is. */
  onRequestStart(): void {
    // nothing has to be done: the signal ends the call
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 100 || status === 101 || status > 599) this.fail(new OutboundError('bad_response'));
    if (this.#isOver || status < 200) return;
    this.#status = status;
    const { idleMs } = this.#options.limits;
    this.#within(idleMs);
    const body = new Readable({
      highWaterMark: READ_AHEAD_BYTES,
      read: () => controller.resume(),
      destroy: (error, done) => {
        // whoever reads it has gone, or it has ended
        this.#over(error ?? (body.readableEnded ? null : new OutboundError('aborted')));
        done(error);
      },
    });
    // it may fail before its reader has come, who looks at `errored`; an error that nobody hears ends the process
    body.on('error', () => undefined);
    this.#body = body;
    const takeWhole = () => this.#takeWhole(body);
    this.#answered({ status, headers, body, takeWhole, sizes: this.#sizes, ended: this.ended });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#pace?.refresh();
    this.#sizes.received += chunk.length;
    if (this.#sizes.received > this.#options.limits.maxBytes) this.fail(new OutboundError('too_large'));
    else if (!this.#body!.push(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    clearTimeout(this.#pace);
    this.#hasCome = true;
    this.#body?.push(null);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.fail(error);
  }

  /** Ends the call. What has arrived is cut off: nobody takes it for the whole. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    const shown = this.#options.errorOf(error);
    this.#refused(shown);
    if (this.#body) this.#body.destroy(shown);
    else this.#over(shown);
  }

  #takeWhole(body: Readable): Buffer | null {
    if (!this.#hasCome || this.#isOver || body.readableDidRead) return null;
    if (body.readableLength > MAX_WHOLE_BYTES) return null;
    return (body.read() as Buffer | null) ?? Buffer.alloc(0);
  }

  #over(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#pace);
    this.requestBody?.destroy();
    // without an error, the answer was read to its end
    void this.#connection.release(error === null ? this.#status : null);
    this.#end(error);
  }

  /** Gives the next step so much time. */
  #within(ms: number): void {
    clearTimeout(this.#pace);
    this.#pace = setTimeout(() => this.#options.fail(new OutboundError('timeout')), ms);
  }

  /** The body of the request. It leaves its source open when it is destroyed: an answer may still go there. */
  #counted(source: Readable): Transform {
    const { headMs, maxBytes } = this.#options.limits;
    const counted = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#pace?.refresh();
        this.#sizes.sent += chunk.length;
        if (this.#sizes.sent <= maxBytes) return done(null, chunk);
        this.fail(new OutboundError('too_large'));
      },
      flush: (done) => {
        if (!this.#body) this.#within(headMs);
        done();
      },
    });
    const cut = () => {
      if (!source.readableEnded) this.fail(new OutboundError('aborted'));
    };
    source.once('error', cut).once('close', cut).pipe(counted);
    counted.on('error', () => undefined).once('close', () => source.off('close', cut).unpipe(counted));
    return counted;
  }
}
