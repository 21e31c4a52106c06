import { EventSourceParserStream } from 'eventsource-parser/stream';
import { errorOf } from './errors.ts';
import type { paths } from './generated/rest.ts';
import { isPassing, pause } from './resilient-fetch.ts';

type StreamPath = '/v1/orgs/{org_id}/workspaces/{workspace_id}/sync/stream';
/** An event of a workspace. Ignore types that you do not know: later versions of the service have more. */
export type WorkspaceEvent = paths[StreamPath]['get']['responses'][200]['content']['text/event-stream'];

/** An event with its position in the stream. */
export interface ReceivedEvent {
  /** The position: `after` goes on behind it. */
  id: string;
  event: WorkspaceEvent;
}

export interface EventsOptions {
  /** Where to go on: the `id` of the last event that was handled. Without it, the stream begins with what is new. */
  after?: string;
  signal?: AbortSignal;
}

/** Reasons of `stream.closing` after which no other connection would get an event. */
const FINAL = new Set(['token_revoked', 'membership_revoked', 'workspace_deleted', 'organization_deleted']);
const LONGEST_PAUSE_MS = 30_000;

/**
 * The events of a stream, over as many connections as it takes. Each connection goes on where the one before it ended.
 * Ends when the service says that no connection gets events any more; that event is the last one.
 */
export async function* eventsOf(
  send: (request: Request) => Promise<Response>,
  url: URL,
  { after, signal }: EventsOptions,
): AsyncGenerator<ReceivedEvent, void, undefined> {
  let last = after;
  let retryMs = 1_000;
  for (let failures = 0; ; ) {
    try {
      for await (const received of connection(send, url, last, signal, (ms) => (retryMs = ms))) {
        failures = 0;
        last = received.id || last;
        yield received;
        if (isFinal(received.event)) return;
      }
    } catch (error) {
      if (signal?.aborted || !isPassing(error)) throw error;
    }
    await pause(Math.min(retryMs * 2 ** failures++, LONGEST_PAUSE_MS), signal);
  }
}

const isFinal = ({ type, data }: WorkspaceEvent): boolean =>
  type === 'stream.closing' && FINAL.has(String((data as { reason?: unknown }).reason));

async function* connection(
  send: (request: Request) => Promise<Response>,
  url: URL,
  last: string | undefined,
  signal: AbortSignal | undefined,
  onRetry: (ms: number) => void,
): AsyncGenerator<ReceivedEvent, void, undefined> {
  const headers = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) };
  const response = await send(new Request(url, { headers, ...(signal && { signal }) }));
  if (!response.ok || !response.body) throw await errorOf(response);
  const frames = response.body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .pipeThrough(new EventSourceParserStream({ onRetry }));
  const reader = frames.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield { id: value.id ?? '', event: JSON.parse(value.data) as WorkspaceEvent };
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it was closed already
  }
}
