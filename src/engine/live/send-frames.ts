import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Wheel } from '../../kernel/wheel.ts';
import type { Frame, Frames } from './frames.ts';

/** Comments that keep proxies from closing an idle stream, every 15 seconds (defaults §10). */
const pings = new Wheel(15_000);

/**
 * The bytes of frames as chunks of HTTP/1.1, made once for all streams. Written straight to the connection, because the
 * response would write four pieces for each stream.
 */
const chunks = new WeakMap<Buffer, Buffer>();

function chunkOf(bytes: Buffer): Buffer {
  const known = chunks.get(bytes);
  if (known) return known;
  const chunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  chunks.set(bytes, chunk);
  return chunk;
}

/** A stream of server-sent events as one of the transports writes it. */
export interface SentStream {
  status: number;
  headers: OutgoingHttpHeaders;
  /** Sent before all frames, because some clients do not process the headers before the first byte. */
  beginning: Buffer;
  ping: Buffer;
  /** Sent after the last frame; `null` for nothing. */
  end: Buffer | null;
  /** The bytes of a frame. They should be made once for all streams. */
  bytesOf: (frame: Frame) => Buffer;
  /**
   * Called when the source failed, or `bytesOf`.
   * @returns what the client is told before the stream ends; `null` breaks the connection off
   */
  farewell: (error: unknown) => Buffer | null;
  /** Called when the source could not be closed. */
  onFault: (error: unknown) => void;
  /** Called when the response is over, for whatever reason. */
  onClose?: () => void;
  /** Whether Node writes the chunks. Otherwise they are written straight to the connection, which costs less. */
  isPlain?: boolean;
}

/** A stream that is being sent. */
export interface SentFrames {
  /** Ends it after everything that has been written. */
  close(): void;
}

/**
 * Sends frames as the body of a response that nothing else writes to. The next frame is taken only while the client
 * reads, and the source of the frames is closed when the client is gone.
 */
export function sendFrames(response: ServerResponse, frames: Frames, stream: SentStream): SentFrames {
  const sender = new FrameSender(response, frames, stream);
  sender.start();
  return sender;
}

/** One object per stream: what it holds, thousands of silent streams hold. */
class FrameSender implements SentFrames {
  readonly #response: ServerResponse;
  readonly #frames: Frames;
  readonly #stream: SentStream;
  readonly #send = (frame: Frame | null): void => this.#write(frame);
  readonly #fail = (error: unknown): void => this.#bidFarewell(error);

  constructor(response: ServerResponse, frames: Frames, stream: SentStream) {
    this.#response = response;
    this.#frames = frames;
    this.#stream = stream;
  }

  start(): void {
    const response = this.#response;
    const { status, headers, beginning, ping } = this.#stream;
    // the client left meanwhile
    if (response.closed) {
      this.#release();
      return;
    }
    // a stream may end because the service stops: a proxy must not use its connection again
    response.shouldKeepAlive = false;
    response.writeHead(status, headers);
    response.flushHeaders(); // written alone, they are kept as one text instead of as their many parts
    response.write(beginning);
    const endPings = pings.add(() => {
      // a client that does not read gets no pings either, because they would pile up
      if (response.writableLength === 0 && !response.writableEnded) response.write(ping);
    });
    response.once('close', () => {
      endPings();
      this.#release();
    });
    this.#next();
  }

  close(): void {
    if (!this.#response.writableEnded) this.#response.end();
  }

  #release(): void {
    const { onFault, onClose } = this.#stream;
    this.#frames.return().catch(onFault);
    onClose?.();
  }

  #next(): void {
    this.#frames.take().then(this.#send).catch(this.#fail);
  }

  #write(frame: Frame | null): void {
    const response = this.#response;
    const { bytesOf, end } = this.#stream;
    if (response.destroyed || response.writableEnded) return;
    if (!frame) return void response.end(end ?? undefined);
    const socket = this.#stream.isPlain ? null : straightTo(response);
    const isTaken = socket ? socket.write(chunkOf(bytesOf(frame))) : response.write(bytesOf(frame));
    if (isTaken) this.#next();
    else (socket ?? response).once('drain', () => this.#next());
  }

  #bidFarewell(error: unknown): void {
    const response = this.#response;
    const text = this.#stream.farewell(error);
    if (response.destroyed || response.writableEnded) return;
    if (text) response.end(text);
    else response.destroy();
  }
}

/**
 * The connection of a response, if its chunks can be written there. It has none yet while an earlier response to the
 * same client is sent, and no chunks for a client of HTTP/1.0. Requests that were injected have a stream in its place,
 * which does not count bytes.
 */
function straightTo({ socket, chunkedEncoding }: ServerResponse): Socket | null {
  return socket !== null && 'bytesWritten' in socket && chunkedEncoding ? socket : null;
}
