import { type ExecutionResult, parse } from 'graphql';
import type { Frame, Frames } from '../engine/live/frames.ts';
import type { OwnDocuments } from '../engine/transport/own-documents.ts';
import type { Context } from '../graphql/context.ts';
import { bytesOf, MAX_RESULT_BYTES } from './tool-results.ts';

const EVENT =
  'id cursor type orgId actor { principalType principalId username } resourceType resourceId data timestamp';
const OF_WORKSPACE = parse(`
  subscription McpWorkspaceEvents($orgId: ID!, $workspaceId: ID!, $after: String, $types: [String!]) {
    events: workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, after: $after, types: $types) {
      ${EVENT} workspaceId namespaceId environmentId appId
    }
  }`);
const OF_ORGANIZATION = parse(`
  subscription McpOrganizationEvents($orgId: ID!, $after: String, $types: [String!]) {
    events: organizationEvents(orgId: $orgId, after: $after, types: $types) { ${EVENT} }
  }`);

/** A position that no database has: the stream says where it is now. */
const NO_POSITION = '0-0';
const MAX_EVENTS = 100;
/** A longer event is shown without its data. */
const LONGEST_EVENT = 5_000;
/** What is there already comes at once; after a pause as long as this, the page is complete. */
const PAUSE_MS = 200;
/** Room for the rest of the answer. */
const MAX_BYTES = MAX_RESULT_BYTES - 1_000;

export interface EventsAsked {
  orgId: string;
  workspaceId?: string | undefined;
  after?: string | undefined;
  types?: readonly string[] | undefined;
  /** How many seconds to wait for a first event. */
  wait: number;
}

interface EventShown {
  cursor: string;
  type: string;
  data: unknown;
  [name: string]: unknown;
}

/** Some events of a place, and where to go on. */
export interface EventPage {
  events: readonly EventShown[];
  /** Pass it as `after`. */
  next: string;
  note?: string;
}

type Read = EventPage | { error: ExecutionResult };

/** Reads events of a place page by page, from the stream that all clients read. */
export class EventPages {
  readonly #documents: OwnDocuments;

  constructor(documents: OwnDocuments) {
    this.#documents = documents;
    documents.add(OF_WORKSPACE);
    documents.add(OF_ORGANIZATION);
  }

  async read(context: Context, { after, wait, ...place }: EventsAsked): Promise<Read> {
    const document = place.workspaceId === undefined ? OF_ORGANIZATION : OF_WORKSPACE;
    const started = await this.#documents.subscribe(document, context, { ...place, after: after ?? NO_POSITION });
    if (!('take' in started)) return { error: started };
    const events = await eventsOf(started, wait * 1_000);
    if ('error' in events) return events;
    return pageOf(events.shown, after);
  }
}

function pageOf(events: readonly EventShown[], after: string | undefined): EventPage {
  const at = events.at(-1)?.cursor ?? after ?? NO_POSITION;
  if (events[0]?.type === 'resync' && after === undefined)
    return { events: [], next: at, note: 'This is the position now. Ask for what happens after it.' };
  if (events[0]?.type === 'resync')
    return { events: [], next: at, note: 'Events after this position are gone. Read again what you need to know.' };
  const shown = events.filter(({ type }) => type !== 'stream.closing');
  const closing = events.find(({ type }) => type === 'stream.closing');
  const next = shown.at(-1)?.cursor ?? after ?? at;
  if (closing) return { events: shown, next, note: `The stream ended: ${JSON.stringify(closing.data)}.` };
  return { events: shown, next };
}

/** The events that are there, and those that come until there is a pause. */
async function eventsOf(stream: Frames, waitMs: number): Promise<{ shown: EventShown[] } | { error: ExecutionResult }> {
  const shown: EventShown[] = [];
  let bytes = 0;
  try {
    while (shown.length < MAX_EVENTS) {
      const frame = await within(stream.take(), shown.length === 0 ? waitMs : PAUSE_MS);
      if (!frame) break;
      if (frame.result.errors) return { error: frame.result };
      const event = shortened((frame.result.data as { events: EventShown }).events);
      bytes += bytesOf(JSON.stringify(event));
      if (bytes > MAX_BYTES) break;
      shown.push(event);
      if (event.type === 'resync') break;
    }
    return { shown };
  } finally {
    await stream.return();
  }
}

function shortened(event: EventShown): EventShown {
  if (bytesOf(JSON.stringify(event.data)) <= LONGEST_EVENT) return event;
  return { ...event, data: { left_out: 'The details are long: read the resource.' } };
}

/** What comes in time; `null` for what does not, and for the end. */
async function within(taken: Promise<Frame | null>, ms: number): Promise<Frame | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([taken, late]);
  } finally {
    clearTimeout(timer);
    // who comes late finds the stream closed
    taken.catch(() => undefined);
  }
}
