import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { Dispatcher } from 'undici';
import { type ConnectionOfCall, type HttpConnection, overConnection } from './http-connection.ts';
import { OutboundError } from './outbound-error.ts';

/** One request, and how its answer is read. */
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

/**
 * Sends a request to one of the addresses and reads the whole answer.
 * @throws OutboundError for what a limit cut off; errors of the socket, of TLS and of the parser
 */
export const exchange = (options: Exchange): Promise<RawResponse> =>
  overConnection(options, (connection) => exchangeOver(connection, options));

async function exchangeOver(connection: HttpConnection, options: Exchange): Promise<RawResponse> {
  const { url, method, headers, body, signal, reader } = options;
  const limit = new BodyLimit(options);
  let whole: number | null = null;
  try {
    const answer = await connection.client.request({
      path: `${url.pathname}${url.search}`,
      method: method as Dispatcher.HttpMethod,
      headers: { ...headers },
      body: body ?? null,
      signal,
      reset: connection.isForOne,
    });
    const received = headersOf(answer.headers);
    const isEnough = reader?.({ status: answer.statusCode, headers: received }) ?? null;
    const bytes = await readBody(answer.body, limit, isEnough);
    if (isEnough === null) whole = answer.statusCode;
    return { status: answer.statusCode, headers: received, body: await decompressed(bytes, received, limit) };
  } finally {
    await connection.release(whole);
  }
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
