import type { createMcpHandler, ServerEvent } from '@modelcontextprotocol/server';
import type { FastifyReply } from 'fastify';
import { parse } from 'graphql';
import type { Frame, Frames } from '../engine/live/frames.ts';
import { sendFrames } from '../engine/live/send-frames.ts';
import type { OwnDocuments } from '../engine/transport/own-documents.ts';
import { streamHeadersOf } from '../engine/transport/server-sent-events.ts';
import type { Context } from '../graphql/context.ts';
import type { Workspace } from './workspace-actions.ts';

const CHANGES = parse(`
  subscription McpListChanges($orgId: ID!, $workspaceId: ID!, $types: [String!]) {
    events: workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, types: $types) { type }
  }`);
/** What may change which actions a workspace has, or what they say. */
const TYPES = ['tool_instance.*', 'tool.*', 'connection.*'];

const PING = Buffer.from(':\n\n');
const CHANGED = Buffer.from(
  `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })}\n\n`,
);

/** Has {@link changesOf} run its document. */
export const addListChanges = (documents: OwnDocuments): void => documents.add(CHANGES);

/**
 * Follows what may change the tools of a workspace, in the stream that all clients read: it ends with the token, and is
 * one of the streams that a user may have.
 * @throws what the stream was refused for
 */
export async function changesOf(documents: OwnDocuments, context: Context, workspace: Workspace): Promise<Frames> {
  const started = await documents.subscribe(CHANGES, context, { ...workspace, types: TYPES });
  if ('take' in started) return started;
  const [error] = started.errors ?? [];
  throw error?.originalError ?? error ?? new Error('A subscription answered without an event.');
}

/** Whether a frame is about a change. A stream that is closed says so by an event, too. */
function isChange({ result: { data } }: Frame): boolean {
  const type = (data as { events?: { type: string } } | null | undefined)?.events?.type;
  return type !== undefined && type !== 'stream.closing';
}

/** Answers the GET of clients of 2025 with notifications, one for each change. */
export function sendChanges(reply: FastifyReply, frames: Frames): FastifyReply {
  reply.hijack();
  const onFault = (error: unknown) =>
    reply.log.error({ err: error }, 'a stream of changes was interrupted by an error');
  sendFrames(reply.raw, frames, {
    status: 200,
    headers: streamHeadersOf(reply),
    beginning: PING,
    ping: PING,
    end: null,
    bytesOf: (frame) => (isChange(frame) ? CHANGED : PING),
    farewell(error) {
      onFault(error);
      return null;
    },
    onFault,
  });
  return reply;
}

type HandlerOptions = NonNullable<Parameters<typeof createMcpHandler>[1]>;

/** The changes of one list as the library takes them: for the one subscription that they were opened for. */
export class ListChangeBus {
  readonly bus: NonNullable<HandlerOptions['bus']>;
  readonly #frames: Frames;
  readonly #onEnd: (error: unknown) => void;
  #isTaken = false;

  /** @param onEnd called when there will be no more changes, with what went wrong, or `null` */
  constructor(frames: Frames, onEnd: (error: unknown) => void) {
    this.#frames = frames;
    this.#onEnd = onEnd;
    this.bus = {
      publish: () => undefined,
      subscribe: (listener) => {
        this.#isTaken = true;
        void this.#pass(listener);
        return () => void this.#frames.return().catch(onEnd);
      },
    };
  }

  /** Ends what nobody subscribed to: the library refused the request. */
  async endUnlessTaken(): Promise<void> {
    if (!this.#isTaken) await this.#frames.return();
  }

  async #pass(listener: (event: ServerEvent) => void): Promise<void> {
    try {
      for (let frame = await this.#frames.take(); frame; frame = await this.#frames.take())
        if (isChange(frame)) listener({ kind: 'tools_list_changed' });
      this.#onEnd(null);
    } catch (error) {
      this.#onEnd(error);
    }
  }
}
