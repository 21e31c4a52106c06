import delay from 'delay';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { operations } from './generated/rest.ts';
import { isPassing } from './requests.ts';
import { RestClient } from './rest.ts';

type Stream = operations['StreamWorkspace'];
/** An event of a workspace. Ignore types that you do not know: later versions of the service have more. */
export type WorkspaceEvent = Stream['responses'][200]['content']['text/event-stream'];

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
const FINAL: unknown[] = ['token_revoked', 'membership_revoked', 'workspace_deleted', 'organization_deleted'];
const LONGEST_PAUSE_MS = 30_000;

export class EventsClient extends RestClient {
  /**
   * The events of a workspace, over as many connections as it takes. Each connection goes on where the one before it
   * ended. Ends when the service says that no connection gets events any more; that event is the last one.
   */
  async *events(place: Stream['parameters']['path'], { after: last, signal }: EventsOptions = {}) {
    const [org, workspace] = [place.org_id, place.workspace_id].map(encodeURIComponent);
    let retryMs = 1_000;
    for (let failures = 0; ; failures++) {
      try {
        const headers = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) };
        const init = { headers, signal: signal ?? null };
        const response = await this.send(`/v1/orgs/${org}/workspaces/${workspace}/sync/stream`, init);
        for await (const { id = '', data } of framesOf(response, (ms) => (retryMs = ms))) {
          const received: ReceivedEvent = { id, event: JSON.parse(data) as WorkspaceEvent };
          failures = 0;
          last = id || last;
          yield received;
          if (received.event.type === 'stream.closing' && FINAL.includes(received.event.data.reason)) return;
        }
      } catch (error) {
        if (signal?.aborted || !isPassing(error)) throw error;
      }
      await delay(Math.min(retryMs * 2 ** failures, LONGEST_PAUSE_MS), signal && { signal });
    }
  }
}

/** What a stream has, until it ends. Not every browser iterates over streams by itself. */
async function* framesOf({ body }: Response, onRetry: (ms: number) => void) {
  const text = body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>);
  const reader = text.pipeThrough(new EventSourceParserStream({ onRetry })).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined); // it was closed already
  }
}
