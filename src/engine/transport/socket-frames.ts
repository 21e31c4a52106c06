import type { ExecutionResult } from 'graphql';
import type { LiveStream } from '../live/live-stream.ts';

/**
 * Sends the results of a subscription as `next` messages directly, so that the protocol's server does not serialise
 * each of them again. The server gets only results with errors, which it formats, and the end.
 * @param send resolves when the text was accepted: the next event is taken then
 */
export function sentBy(
  live: LiveStream,
  operationId: string,
  send: (text: string) => Promise<void>,
): AsyncGenerator<ExecutionResult, undefined, undefined> {
  const start = `{"id":${JSON.stringify(operationId)},"type":"next","payload":`;
  return {
    async next() {
      for (;;) {
        const frame = await live.take();
        if (!frame) return { done: true, value: undefined };
        if (frame.result.errors) return { done: false, value: frame.result };
        await send(`${start}${frame.text}}`);
      }
    },
    return: () => live.return(),
    throw: (error: unknown) => live.throw(error),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
