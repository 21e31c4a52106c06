import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Plugin } from 'graphql-yoga';
import type { Frames } from '../live/frames.ts';
import { sendFrames } from '../live/send-frames.ts';
import type { OperationContext } from '../path/operations.ts';

const PING = Buffer.from(':\n\n');
const COMPLETE = Buffer.from('event: complete\ndata:\n\n');
const MEDIA_TYPE = 'text/event-stream';

const streams = new WeakMap<FastifyRequest, Frames>();

/** The frames of a streaming answer. They go to the client directly, without a web stream in between. */
export const framesOf = (request: FastifyRequest): Frames | undefined => streams.get(request);

/**
 * Subscriptions over SSE (the "distinct connections" mode of GraphQL over SSE) that can be resumed: the frame of an
 * event carries its cursor as `id`, and `Last-Event-ID` is where the stream continues. Yoga answers everything that is
 * not a stream.
 */
export function resumableStreams(): Plugin<object, OperationContext & { req: FastifyRequest }> {
  return {
    async onResultProcess(hook) {
      const { live, req } = hook.serverContext;
      if (!live) return;
      // it has started, and nobody would read it
      if (!accepts(hook.request.headers.get('accept'))) return void (await live.return());
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
};

/** The headers of a stream that answers a request, with those that its answer has already. */
export const streamHeadersOf = (reply: FastifyReply): OutgoingHttpHeaders => ({
  ...(reply.getHeaders() as OutgoingHttpHeaders),
  ...STREAM_HEADERS,
});

const accepts = (header: string | null): boolean => /(?:text\/event-stream|text\/\*|\*\/\*)/i.test(header ?? '*/*');

/**
 * Answers with the frames, past Fastify's own way of sending: the listeners that it keeps for as long as a stream is
 * open take more memory than everything else of a silent one.
 */
export function answerWithFrames(reply: FastifyReply, frames: Frames): FastifyReply {
  reply.hijack();
  const onFault = (error: unknown) => reply.log.error({ err: error }, 'an event stream was interrupted by an error');
  sendFrames(reply.raw, frames, {
    status: 200,
    headers: streamHeadersOf(reply),
    beginning: PING,
    ping: PING,
    end: COMPLETE,
    bytesOf: (frame) => frame.serverSent,
    farewell(error) {
      onFault(error);
      return null;
    },
    onFault,
  });
  return reply;
}
