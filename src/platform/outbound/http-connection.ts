import type { LookupFunction, Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import { WITHOUT_BODY } from './outbound-response.ts';

const MAX_HEADER_BYTES = 16 * 1024;
/** How long one address of several may take to accept a connection before the next one is tried as well. */
const NEXT_ADDRESS_AFTER_MS = 500;
/** How long a connection waits for its next request. Most servers keep one for five seconds or more. */
const IDLE_MS = 4_000;
/** How much earlier than a target says (`Keep-Alive: timeout=…`) a connection ends. */
const BEFORE_TARGET_MS = 1_000;
/** How old a connection may become: a certificate is checked when one is opened. */
const MAX_AGE_MS = 300_000;
/** A target that closes an idle connection does so at once. What ran for longer may have been carried out. */
const LOST_WITHIN_MS = 5_000;

/** What a call needs of its connection. */
export interface ConnectionOfCall {
  url: URL;
  /** Where to connect: what was checked for this call, and nothing else. */
  addresses: readonly string[];
  /** Certificates that are trusted instead of Node's own. */
  ca?: string | undefined;
  signal: AbortSignal;
  /** The time that the call has to connect. */
  connecting: ConnectTime;
  /** Where it may take a connection from, and leave its own; without it, it has one that nobody else uses. */
  kept?: ConnectionsOfOwner | undefined;
}

/** The connections that calls of one owner may share. */
export interface ConnectionsOfOwner {
  /** One that leads to where a call goes; `undefined` if there is none. */
  take: (call: ConnectionOfCall) => HttpConnection | undefined;
  /** Keeps one whose call is over, or closes it. */
  keep: (connection: HttpConnection) => Promise<void>;
}

/** Counts the time to find the addresses and to connect, each time that a call does so. */
export interface ConnectTime {
  begin: () => void;
  end: () => void;
}

/** Loads the HTTP client, once. It takes a tenth of a second, which a start does not need to wait for. */
export const loadHttpClient = (): Promise<typeof import('undici')> => {
  httpClient ??= import('undici');
  return httpClient;
};
let httpClient: Promise<typeof import('undici')> | undefined;

/**
 * The reason for the end of a connection whose call is over. Made once: each error has its stack written down. By its
 * code, the client knows that it is no fault of a request that waits.
 */
const OVER = Object.assign(new Error('The call is over.'), { code: 'UND_ERR_INFO' });

/** What a request fails with that finds its connection closed: nothing of it was sent. */
const LOST = new Error('The connection was closed before the request.');

/** A connection to a checked address. It connects once, and one call uses it at a time. */
export class HttpConnection {
  /** Sends the request, and connects for the first. */
  readonly client: Client;
  /** The origin that it was made for: scheme, name in the certificate, and port. */
  readonly origin: string;
  readonly #ca: string | undefined;
  #call: ConnectionOfCall | null;
  #socket: Socket | undefined;
  /** What the socket had received before the call that took it; `undefined` if it was opened for this one. */
  #receivedBefore: number | undefined;
  readonly #openedAt = performance.now();
  #usedAt = 0;
  #onClosed: (() => void) | undefined;

  private constructor({ Client, buildConnector }: typeof import('undici'), call: ConnectionOfCall) {
    this.origin = call.url.origin;
    this.#ca = call.ca;
    this.#call = call;
    this.client = new Client(this.origin, {
      connect: (target, done) => this.#connect(buildConnector, target, done),
      maxHeaderSize: MAX_HEADER_BYTES,
      // the signal ends the call; these would only count the pauses of a target that drips
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: BEFORE_TARGET_MS,
    });
    this.client.on('disconnect', () => this.#onClosed?.());
  }

  /** One that connects with the first request. */
  static async opened(call: ConnectionOfCall): Promise<HttpConnection> {
    return new HttpConnection(await loadHttpClient(), call);
  }

  /** Where it leads to; `undefined` before it stands. */
  get address(): string | undefined {
    return this.#socket?.remoteAddress;
  }

  /** Whether it ends with the answer of its call. */
  get isForOne(): boolean {
    return this.#call?.kept === undefined;
  }

  /** Whether it has ended because it was kept: it stood before the call, and not a byte has come since. */
  isUnanswered(error: unknown): boolean {
    if (error === LOST) return true;
    return this.isJustTaken() && this.#socket?.bytesRead === this.#receivedBefore;
  }

  /** Whether its call has taken it a moment ago. */
  isJustTaken(): boolean {
    return this.#receivedBefore !== undefined && performance.now() - this.#usedAt < LOST_WITHIN_MS;
  }

  /** Gives it to a call. */
  use(call: ConnectionOfCall): void {
    this.#call = call;
    this.#onClosed = undefined;
    this.#receivedBefore = this.#socket?.bytesRead;
    this.#usedAt = performance.now();
    call.connecting.end();
  }

  /**
   * Its call is over.
   * @param status of an answer that was read to its end, else `null`. What is left of an answer would be taken for that
   * to the next call, and so would a body that comes after a status without one
   */
  async release(status: number | null): Promise<void> {
    const isWhole = status !== null && !WITHOUT_BODY.has(status);
    const kept = this.#call?.kept;
    this.#call = null;
    const isUsable = this.#socket?.destroyed === false && performance.now() - this.#openedAt < MAX_AGE_MS;
    if (isWhole && kept && isUsable) await kept.keep(this);
    else await this.close();
  }

  /** Tells of its end while no call uses it. */
  whenClosed(onClosed: () => void): void {
    this.#onClosed = onClosed;
  }

  async close(): Promise<void> {
    this.#onClosed = undefined;
    await this.client.destroy(OVER);
  }

  /** Connects to the checked addresses, whatever the name means by now. */
  #connect(
    build: typeof buildConnector,
    target: buildConnector.Options,
    done: Parameters<buildConnector.connector>[1],
  ): void {
    const call = this.#call;
    // what its call has checked is not what another one has
    if (!call || this.#socket) {
      done(LOST, null);
      return;
    }
    const { addresses, signal, connecting } = call;
    const pinned = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    const lookup: LookupFunction = (_host, { all }, found) => {
      const [first] = pinned;
      if (all) found(null, pinned);
      else found(first ? null : new Error('no address'), first?.address ?? '', first?.family);
    };
    // a connection that stands may have another call than the one that it was opened for
    const ending = new AbortController();
    const cancel = () => ending.abort(signal.reason);
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
    connecting.begin();
    const connect = build({
      lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
      maxCachedSessions: 0,
      timeout: 0, // the signal's
      signal: ending.signal,
      ...(this.#ca === undefined ? {} : { ca: this.#ca }),
    } as buildConnector.BuildOptions);
    connect(target, (...result) => {
      const [error, socket] = result;
      signal.removeEventListener('abort', cancel);
      if (error === null) connecting.end();
      if (socket) {
        this.#socket = socket;
        endWithOver(socket);
      }
      done(...result);
    });
  }
}

/**
 * Makes a request over a connection that is kept, or over a new one. A target may close a kept one at the very moment
 * when it is asked: a request that had no answer at all, or is told that the connection had waited too long (408), is
 * made again over a new one, unless it has run for a while. Only requests that change nothing have a kept one.
 * @param make makes the request, and releases its connection
 * @param drop throws an answer away
 */
export async function overConnection<Answer extends { status: number }>(
  call: ConnectionOfCall,
  make: (connection: HttpConnection) => Promise<Answer>,
  drop: (answer: Answer) => void = () => undefined,
): Promise<Answer> {
  const kept = call.kept?.take(call);
  if (kept) {
    try {
      const answer = await make(kept);
      if (answer.status !== 408 || !kept.isJustTaken()) return answer;
      drop(answer);
    } catch (error) {
      if (call.signal.aborted || !kept.isUnanswered(error)) throw error;
    }
  }
  return make(await HttpConnection.opened(call));
}

/** After an answer, the client ends the connection with a new error, whose stack Node would write down each time. */
function endWithOver(socket: Socket): void {
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => destroy(error && 'code' in error && error.code === 'UND_ERR_INFO' ? OVER : error);
}
