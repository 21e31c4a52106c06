import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Frame, Frames } from '../src/engine/live/frames.ts';
import { type SentFrames, sendFrames } from '../src/engine/live/send-frames.ts';

const RETRY = Buffer.from('retry: 3000\n\n');
const PING = Buffer.from(': ping\n\n');

/** How frames are written. */
interface StreamFormat {
  mediaType: string;
  beginning: Buffer;
  ping: Buffer;
  /** A value as a frame. @param eventId the key of its id */
  write: (value: unknown, eventId: string | null) => string;
  /** The last frame of a stream whose source has failed. */
  writeError: (body: unknown) => string;
}

const NOTHING = Buffer.alloc(0);

export const formats: Readonly<Record<'events' | 'lines', StreamFormat>> = {
  events: {
    mediaType: 'text/event-stream; charset=utf-8',
    beginning: RETRY,
    ping: PING,
    write: frameOf,
    writeError: (body) => `event: error\ndata: ${JSON.stringify(body)}\n\n`,
  },
  lines: {
    mediaType: 'application/x-ndjson',
    beginning: NOTHING,
    // not every reader of lines takes one that is empty: this is a blank before the next one, which JSON allows
    ping: Buffer.from(' '),
    write: (value) => `${JSON.stringify(value ?? null)}\n`,
    writeError: (body) => `${JSON.stringify(body)}\n`,
  },
};

interface EventSourceOptions {
  format?: StreamFormat;
  status: number;
  /** The bytes of one frame. Throws when its result has errors. */
  bytesOf: (frame: Frame) => Buffer;
  /** The bytes that end a stream whose source failed after the first byte. */
  farewell: (error: unknown) => Buffer;
  /** Called when the source could not be closed. */
  onFault: (error: unknown) => void;
}

/** The open event streams of a server. */
export class EventStreams {
  readonly #open = new Map<ServerResponse, SentFrames>();

  /**
   * Answers with server-sent events, past Fastify's own way of sending, which costs more than everything else of a
   * stream. The next event is asked for only while the client reads.
   */
  send(
    reply: FastifyReply,
    source: Frames,
    { format = formats.events, status, bytesOf, farewell, onFault }: EventSourceOptions,
  ): FastifyReply {
    const { mediaType, beginning, ping } = format;
    reply.headers({
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'content-type': mediaType,
    });
    reply.hijack();
    const response = reply.raw;
    const onClose = () => this.#open.delete(response);
    const sending = sendFrames(response, source, {
      status,
      headers: reply.getHeaders() as OutgoingHttpHeaders,
      beginning,
      ping,
      end: null,
      bytesOf,
      farewell,
      onFault,
      onClose,
    });
    if (!response.closed) this.#open.set(response, sending);
    return reply;
  }

  /** Resolves when all streams that are open now are over. */
  async over(): Promise<void> {
    await Promise.all(
      [...this.#open.keys()].map((response) => new Promise((resolve) => response.once('close', resolve))),
    );
  }

  /** Ends each of them after everything that is already written. */
  close(): void {
    for (const sending of this.#open.values()) sending.close();
  }
}

/** One event. `eventId` is the key of the frame's id. A key `type` in the value names the event. */
export function frameOf(value: unknown, eventId: string | null): string {
  const isObject = typeof value === 'object' && value !== null;
  const key = eventId ?? '';
  const { [key]: id, ...rest } = (isObject ? value : {}) as Record<string, unknown>;
  const line = (name: string, content: unknown) =>
    isWord(content) ? `${name}: ${String(content).replace(/[\r\n\0]/g, ' ')}\n` : '';
  const data = isObject && eventId !== null ? rest : (value ?? null);
  return `${line('id', id)}${line('event', rest.type)}data: ${JSON.stringify(data)}\n\n`;
}

const isWord = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';
