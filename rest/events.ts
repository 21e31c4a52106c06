import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import type { Frame, Frames } from '../src/core/live/frames.ts';
import { Wheel } from '../src/core/wheel.ts';

/** Interval of comments, which keep proxies from closing an idle stream. */
const pings = new Wheel(15_000);

interface EventSourceOptions {
  /** The text of one frame. Throws when its result has errors. */
  textOf(frame: Frame): string;
  /** The text that ends a stream whose source failed after the first byte. */
  farewell(error: unknown): string;
}

/**
 * Server-sent events from a GraphQL subscription. Asks the source for the next event only while the client reads (up to
 * 16 KiB are buffered), and closes the source as soon as the client disconnects.
 */
export class EventStream extends Readable {
  readonly #source: Frames;
  readonly #options: EventSourceOptions;
  readonly #endPings: () => void;
  #isReading = false;
  #isOver = false;

  constructor(source: Frames, options: EventSourceOptions) {
    super();
    this.#source = source;
    this.#options = options;
    // a client that does not read gets no pings: they would only accumulate
    this.#endPings = pings.add(() => {
      if (this.readableLength === 0 && !this.#isOver) this.push(': ping\n\n');
    });
    this.push('retry: 3000\n\n');
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#pump().catch((error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#isOver = true;
    this.#endPings();
    const release = callbackify(async () => {
      await this.#source.return();
    });
    release((failure) => done(error ?? failure));
  }

  /** Ends the stream after everything that is already buffered. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.push(null);
  }

  async #pump(): Promise<void> {
    let wantsMore = true;
    while (wantsMore) {
      const frame = await this.#next();
      if (this.#isOver) return;
      if (frame.isLast) {
        if (frame.text) this.push(frame.text);
        this.close();
        return;
      }
      wantsMore = this.push(frame.text);
    }
    this.#isReading = false;
  }

  async #next(): Promise<{ text: string; isLast: boolean }> {
    try {
      const frame = await this.#source.take();
      return frame ? { text: this.#options.textOf(frame), isLast: false } : { text: '', isLast: true };
    } catch (error) {
      return { text: this.#options.farewell(error), isLast: true };
    }
  }
}

/** One event. `eventId` is the key of the frame's id. A key `type` in the value names the event. */
export function frameOf(value: unknown, eventId: string | null): string {
  const isObject = typeof value === 'object' && value !== null;
  const { [eventId ?? '']: id, ...rest } = (isObject ? value : {}) as Record<string, unknown>;
  const line = (name: string, content: unknown) =>
    isWord(content) ? `${name}: ${String(content).replace(/[\r\n\0]/g, ' ')}\n` : '';
  const data = isObject && eventId !== null ? rest : (value ?? null);
  return `${line('id', id)}${line('event', rest.type)}data: ${JSON.stringify(data)}\n\n`;
}

const isWord = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number';
