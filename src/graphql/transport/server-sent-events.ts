import { Readable } from 'node:stream';
import { callbackify } from 'node:util';
import type { FastifyRequest } from 'fastify';
import type { Plugin } from 'graphql-yoga';
import { Wheel } from '../../core/wheel.ts';
import type { Context } from '../context.ts';
import type { Frame } from './frames.ts';

/** Comments that keep an idle stream's connection open, at the same interval as yoga's own. */
const pings = new Wheel(12_000);
const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');
const MEDIA_TYPE = 'text/event-stream';

/** The properties of yoga's context; over WebSocket there is no `request`. */
interface YogaContext {
  context: Context;
  request?: Request;
}

const bodies = new WeakMap<FastifyRequest, Readable>();

/** The body of a streaming answer. It goes to the client directly, without a web stream in between. */
export const streamOf = (request: FastifyRequest): Readable | undefined => bodies.get(request);

/**
 * Subscriptions over SSE (the "distinct connections" mode of GraphQL over SSE) that can be resumed: the frame of an
 * event carries its cursor as `id`, and `Last-Event-ID` is where the stream continues. Yoga answers everything that is
 * not a stream.
 */
export function resumableStreams(): Plugin {
  const contexts = new WeakMap<Request, Context>();
  return {
    onSubscribe({ args }) {
      const { context, request } = args.contextValue as unknown as YogaContext;
      if (!request) return;
      // an empty header comes from a client that has seen no event
      context.lastEventId = request.headers.get('last-event-id') || undefined;
      contexts.set(request, context);
    },
    async onResultProcess(hook) {
      const { request, serverContext } = hook;
      const live = contexts.get(request)?.live;
      if (!live) return;
      // it has started, and nobody would read it
      if (!accepts(request.headers.get('accept'))) return void (await live.return());
      const { req } = serverContext as unknown as { req: FastifyRequest };
      bodies.set(req, new EventBody(live));
      hook.setResultProcessor((_results, { Response }) => new Response(null, { headers: STREAM_HEADERS }), MEDIA_TYPE);
    },
  };
}

/** The headers of every stream. */
export const STREAM_HEADERS = {
  'content-type': MEDIA_TYPE,
  'cache-control': 'no-cache, no-transform',
  'content-encoding': 'none',
  'x-accel-buffering': 'no',
  connection: 'keep-alive',
};

const accepts = (header: string | null): boolean => /(?:text\/event-stream|text\/\*|\*\/\*)/i.test(header ?? '*/*');

/** The frames of a subscription, until there are no more. */
interface Frames {
  take(): Promise<Frame | null>;
  /** Ends them: nobody reads any longer. */
  return(): Promise<unknown>;
}

/** The body of a streaming answer. */
export const bodyOf = (frames: Frames): Readable => new EventBody(frames);

/**
 * The stream as bytes. It takes the next event only while the client reads, and closes its source when the client is
 * gone.
 */
class EventBody extends Readable {
  readonly #live: Frames;
  readonly #endPings: () => void;
  #isReading = false;
  #isOver = false;

  constructor(live: Frames) {
    super();
    this.#live = live;
    this.#endPings = pings.add(() => {
      // a client that does not read gets no pings either, because they would pile up
      if (this.readableLength === 0 && !this.#isOver) this.push(PING);
    });
    // some clients do not process the headers before the first byte
    this.push(PING);
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#pump().catch((error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#isOver = true;
    this.#endPings();
    const release = callbackify(() => this.#live.return());
    release((failure) => done(error ?? failure));
  }

  async #pump(): Promise<void> {
    for (;;) {
      const frame = await this.#live.take();
      if (this.#isOver) return;
      if (!frame) {
        this.#isOver = true;
        this.push(COMPLETE);
        this.push(null);
        return;
      }
      if (!this.push(frame.serverSent)) break;
    }
    this.#isReading = false;
  }
}
