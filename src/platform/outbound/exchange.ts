import type { LookupFunction, Socket } from 'node:net';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { buildConnector, Client, Dispatcher } from 'undici';
import { OutboundError } from './outbound-error.ts';

const MAX_HEADER_BYTES = 16 * 1024;
/** How long one address of several may take to accept a connection before the next one is tried as well. */
const NEXT_ADDRESS_AFTER_MS = 500;

/** A connection of its own for one request. */
export interface ConnectionOfCall {
  url: URL;
  /** Where to connect: what was checked, and nothing else. */
  addresses: readonly string[];
  /** Certificates that are trusted instead of Node's own. */
  ca?: string | undefined;
  signal: AbortSignal;
  /** Called when the connection stands. */
  onConnected: () => void;
}

/** One request over a connection of its own. */
export interface Exchange extends ConnectionOfCall {
  method: string;
  headers: Readonly<Record<string, string>>;
  body?: string | Uint8Array | undefined;
  /** Limit of the body, as sent and after decompression. */
  maxBytes: number;
  larger?: LargerAnswers | undefined;
  reader?: BodyReader | undefined;
}

/** What an answer of more than the usual bytes needs: it is in memory as a whole. */
export interface LargerAnswers {
  /** In place of the usual limit. */
  maxBytes: number;
  /** Waits until there is room; the rest of the body is not read meanwhile. */
  room: (signal: AbortSignal) => Promise<void>;
}

/** Gives for the head of an answer what takes the pieces of its body, until it has enough; `null` for all of it. */
export type BodyReader = (head: Omit<RawResponse, 'body'>) => ((piece: Buffer) => boolean) | null;

/** The answer to one request. */
export interface RawResponse {
  status: number;
  headers: Headers;
  body: Buffer;
}

/** Loads the HTTP client, once. It takes a tenth of a second, which a start does not need to wait for. */
export const loadHttpClient = (): Promise<typeof import('undici')> => {
  httpClient ??= import('undici');
  return httpClient;
};
let httpClient: Promise<typeof import('undici')> | undefined;

/** The reason for the end of a connection whose call is over. Made once: each error has its stack written down. */
export const OVER = new Error('The call is over.');

/**
 * Sends a request to one of the addresses and reads the whole answer.
 * @throws OutboundError for what a limit cut off; errors of the socket, of TLS and of the parser
 */
export async function exchange(options: Exchange): Promise<RawResponse> {
  const { url, method, headers, body, signal, reader } = options;
  const limit = new BodyLimit(options);
  const client = await clientOf(options);
  try {
    const answer = await client.request({
      path: `${url.pathname}${url.search}`,
      method: method as Dispatcher.HttpMethod,
      headers: { ...headers },
      body: body ?? null,
      signal,
      reset: true,
    });
    const received = headersOf(answer.headers);
    const isEnough = reader?.({ status: answer.statusCode, headers: received }) ?? null;
    const bytes = await readBody(answer.body, limit, isEnough);
    return { status: answer.statusCode, headers: received, body: await decompressed(bytes, received, limit) };
  } finally {
    await client.destroy(OVER);
  }
}

/** A client that connects once. */
export async function clientOf(options: ConnectionOfCall): Promise<Client> {
  const { Client, buildConnector } = await loadHttpClient();
  return new Client(options.url.origin, {
    connect: connectorTo(options, buildConnector),
    maxHeaderSize: MAX_HEADER_BYTES,
    // the signal ends the call; these would only count the pauses of a target that drips
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Connects to the checked addresses, whatever the name means by now. */
function connectorTo(
  { addresses, ca, signal, onConnected }: ConnectionOfCall,
  build: typeof buildConnector,
): buildConnector.connector {
  const pinned = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const lookup: LookupFunction = (_host, { all }, done) => {
    const [first] = pinned;
    if (all) done(null, pinned);
    else done(first ? null : new Error('no address'), first?.address ?? '', first?.family);
  };
  const connect = build({
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_AFTER_MS,
    maxCachedSessions: 0,
    timeout: 0, // the signal's
    signal,
    ...(ca === undefined ? {} : { ca }),
  } as buildConnector.BuildOptions);
  return (target, done) =>
    connect(target, (...result) => {
      const [error, socket] = result;
      if (error === null) onConnected();
      if (socket) endWithOver(socket);
      done(...result);
    });
}

/** After an answer, the client ends the connection with a new error, whose stack Node would write down each time. */
function endWithOver(socket: Socket): void {
  const destroy = socket.destroy.bind(socket);
  socket.destroy = (error) => destroy(error && 'code' in error && error.code === 'UND_ERR_INFO' ? OVER : error);
}

/** Values are bytes: what is not ASCII is kept as `fetch` keeps it. */
function headersOf(received: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(received))
    for (const value of [values ?? []].flat()) headers.append(name, Buffer.from(value).toString('latin1'));
  return headers;
}

/** How many bytes a body may have: as sent, and after decompression. */
class BodyLimit {
  #bytes: number;
  #larger: LargerAnswers | null;
  readonly #signal: AbortSignal;

  constructor({ maxBytes, larger, signal }: Pick<Exchange, 'maxBytes' | 'larger' | 'signal'>) {
    this.#bytes = maxBytes;
    this.#larger = larger ?? null;
    this.#signal = signal;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Waits for room for a body that has more. @throws OutboundError if it may not */
  async raise(): Promise<void> {
    const larger = this.#larger;
    if (!larger) throw OutboundError.tooLarge(this.#bytes);
    this.#larger = null;
    await larger.room(this.#signal);
    this.#bytes = larger.maxBytes;
  }
}

async function readBody(
  body: AsyncIterable<Buffer>,
  limit: BodyLimit,
  isEnough: ((piece: Buffer) => boolean) | null,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    while (size > limit.bytes) await limit.raise();
    chunks.push(chunk);
    if (isEnough?.(chunk)) break;
  }
  return Buffer.concat(chunks);
}

const decoders: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  'x-gzip': promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  deflate: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate),
  br: promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
};

/** The encodings that answers may have. */
export const ACCEPT_ENCODING = 'gzip, deflate, br';

/** Undoes the one encoding that an answer may have, and takes the headers away that described it. */
async function decompressed(bytes: Buffer, headers: Headers, limit: BodyLimit): Promise<Buffer> {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (encoding === 'identity' || bytes.length === 0) return bytes;
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined;
  if (!decode) throw new OutboundError('bad_response');
  headers.delete('content-encoding');
  headers.delete('content-length');
  for (;;) {
    try {
      return await decode(bytes, { maxOutputLength: limit.bytes });
    } catch (error) {
      const isTooLarge = error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
      if (!isTooLarge) throw new OutboundError('bad_response');
      await limit.raise();
    }
  }
}
