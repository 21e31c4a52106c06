import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Plugin } from 'graphql-yoga';
import type { Frame, Frames } from '../../core/live/frames.ts';
import { Wheel } from '../../core/wheel.ts';
import type { Context } from '../context.ts';

/** Comments that keep an idle stream's connection open, every 15 seconds as those of REST (defaults §10). */
const pings = new Wheel(15_000);
const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');
const MEDIA_TYPE = 'text/event-stream';

/** The properties of yoga's context; over WebSocket there is no `request`. */
interface YogaContext {
  context: Context;
  request?: Request;
}

const streams = new WeakMap<FastifyRequest, Frames>();

/** The frames of a streaming answer. They go to the client directly, without a web stream in between. */
export const framesOf = (request: FastifyRequest): Frames | undefined => streams.get(request);

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
      streams.set(req, live);
      hook.setResultProcessor((_results, { Response }) => new Response(null, { headers: STREAM_HEADERS }), MEDIA_TYPE);
    },
  };
}

/** The headers of every stream. */
const STREAM_HEADERS = {
  'content-type': MEDIA_TYPE,
  'cache-control': 'no-cache, no-transform',
  'content-encoding': 'none',
  'x-accel-buffering': 'no',
  connection: 'keep-alive',
};

const accepts = (header: string | null): boolean => /(?:text\/event-stream|text\/\*|\*\/\*)/i.test(header ?? '*/*');

/**
 * Answers with the frames, past Fastify's own way of sending: the listeners that it keeps for as long as a stream is
 * open take more memory than everything else of a silent one.
 */
export function sendFrames(reply: FastifyReply, frames: Frames): FastifyReply {
  reply.hijack();
  const sender = new FrameSender(reply.raw, frames, (error) => reply.log.error({ err: error }, 'a stream broke off'));
  sender.start({ ...(reply.getHeaders() as OutgoingHttpHeaders), ...STREAM_HEADERS });
  return reply;
}

/**
 * Writes frames to a response. It takes the next one only while the client reads, and closes their source when the
 * client is gone.
 */
class FrameSender {
  readonly #response: ServerResponse;
  readonly #frames: Frames;
  readonly #onFault: (error: unknown) => void;
  readonly #send = (frame: Frame | null): void => this.#write(frame);
  readonly #fail = (error: unknown): void => {
    this.#onFault(error);
    this.#response.destroy();
  };

  constructor(response: ServerResponse, frames: Frames, onFault: (error: unknown) => void) {
    this.#response = response;
    this.#frames = frames;
    this.#onFault = onFault;
  }

  start(headers: OutgoingHttpHeaders): void {
    const response = this.#response;
    if (response.closed) return void this.#frames.return().catch(this.#onFault); // the client left meanwhile
    response.writeHead(200, headers);
    response.flushHeaders(); // written alone, they are kept as one text instead of as their many parts
    // some clients do not process the headers before the first byte
    response.write(PING);
    const endPings = pings.add(() => {
      // a client that does not read gets no pings either, because they would pile up
      if (response.writableLength === 0) response.write(PING);
    });
    response.once('close', () => {
      endPings();
      this.#frames.return().catch(this.#onFault);
    });
    this.#next();
  }

  #next(): void {
    this.#frames.take().then(this.#send).catch(this.#fail);
  }

  #write(frame: Frame | null): void {
    const response = this.#response;
    if (response.destroyed) return;
    if (!frame) response.end(COMPLETE);
    else if (response.write(frame.serverSent)) this.#next();
    else response.once('drain', () => this.#next());
  }
}
