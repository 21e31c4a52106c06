import type { ExecutionResult } from 'graphql';
import type { FetchAPI, Plugin } from 'graphql-yoga';
import type { Context } from './context.ts';

/** Comments that keep an idle stream's connection open, as often as yoga's own. */
const PING_MS = 12_000;
const MEDIA_TYPE = 'text/event-stream';

/** What yoga's context holds of an operation; over WebSocket there is no `request`. */
interface YogaContext {
  context: Context;
  request?: Request;
}

/** Survives where a result is copied, and never reaches the client as part of it. */
const EVENT_ID = Symbol('the id of a frame');
type Identified = ExecutionResult & { [EVENT_ID]?: string | undefined };

/**
 * Subscriptions over SSE (the "distinct connections" mode of GraphQL over SSE) that can be resumed: the frame of an event carries its cursor as
 * `id`, and `Last-Event-ID` is where the stream goes on. What is no stream is answered by yoga as ever.
 */
export function resumableStreams(): Plugin {
  return {
    onSubscribe({ args }) {
      const { context, request } = args.contextValue as unknown as YogaContext;
      // an empty one is that of a client that has seen nothing
      context.lastEventId = request?.headers.get('last-event-id') || undefined;
      return {
        onSubscribeResult: () => ({
          onNext({ result, setResult }) {
            // the next event is asked for when this one was answered: it is still the one that was resolved last
            setResult({ ...result, [EVENT_ID]: context.eventId } as ExecutionResult);
          },
        }),
      };
    },
    onResultProcess(hook) {
      if (!isStream(hook.result) || !accepts(hook.request.headers.get('accept'))) return;
      hook.setResultProcessor(
        (stream, fetchApi) => answerOf(stream as AsyncIterable<Identified>, fetchApi),
        MEDIA_TYPE,
      );
    },
  };
}

const isStream = (result: unknown): result is AsyncIterable<Identified> =>
  typeof result === 'object' && result !== null && Symbol.asyncIterator in result;

const accepts = (header: string | null): boolean => /(?:text\/event-stream|text\/\*|\*\/\*)/i.test(header ?? '*/*');

function answerOf(results: AsyncIterable<Identified>, { ReadableStream, Response, TextEncoder }: FetchAPI): Response {
  const iterator = results[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let ping: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // some clients take no notice of the headers before a first byte
      controller.enqueue(encoder.encode(':\n\n'));
      ping = setInterval(() => {
        // a client that does not read gets no pings either: they would only pile up
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(':\n\n'));
      }, PING_MS);
    },
    async pull(controller) {
      try {
        const step = await iterator.next();
        controller.enqueue(encoder.encode(step.done ? 'event: complete\ndata:\n\n' : frameOf(step.value)));
        if (!step.done) return;
        clearInterval(ping);
        controller.close();
      } catch (error) {
        clearInterval(ping);
        throw error;
      }
    },
    async cancel() {
      clearInterval(ping);
      await iterator.return?.();
    },
  });
  return new Response(body, {
    headers: {
      'content-type': MEDIA_TYPE,
      'cache-control': 'no-cache, no-transform',
      'content-encoding': 'none',
      'x-accel-buffering': 'no',
      connection: 'keep-alive',
    },
  });
}

function frameOf(result: Identified): string {
  const id = result[EVENT_ID] === undefined ? '' : `id: ${result[EVENT_ID]}\n`;
  return `event: next\n${id}data: ${JSON.stringify(result)}\n\n`;
}
