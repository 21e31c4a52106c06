import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type EventSource, INITIALISED_LATE, openEvents, type SocketMessage } from './sockets.ts';
import { waitUntil } from './wait.ts';

/** A client of events that comes back whenever it was cut off, with the last event that it has seen. */
export interface Follower {
  /** The ids of the updates of the workspace that somebody made, as they came. */
  readonly seen: readonly string[];
  /** How often it was told that it missed events which are no longer there. */
  readonly resyncs: number;
  /** How often it was cut off. */
  readonly cuts: number;
  /** Why it could not come back, each time. */
  readonly refusals: readonly string[];
  stop(): Promise<void>;
}

interface Place {
  url: string;
  orgId: string;
  workspaceId: string;
  headers: { authorization: string };
}

interface Noted {
  id: string;
  type: string;
  data: { bucket_status?: string };
}

/** One connection, from its opening to its end. */
interface Connection {
  /** Those that have come so far, each with the position after which to go on. */
  events(): { event: Noted; cursor: string }[];
  ended: Promise<unknown>;
  close(): void;
}
type Connect = (after: string | undefined) => Promise<Connection>;

/** The service itself tells of the storage of a new workspace: that is nobody's update. */
const isUpdate = ({ type, data }: Noted): boolean => type === 'workspace.updated' && data.bucket_status === undefined;

async function follow(connect: Connect): Promise<Follower> {
  const refusals: string[] = [];
  let isStopped = false;
  const connections = [await connect(undefined)];
  const events = () => connections.flatMap((connection) => connection.events());
  const cursor = () => events().findLast((one) => one.cursor !== '')?.cursor;
  const comeBack = async (): Promise<Connection | 'stopped'> => {
    if (isStopped) return 'stopped';
    try {
      return await connect(cursor());
    } catch (error) {
      refusals.push(String(error));
      throw error; // it is tried again
    }
  };
  const running = (async () => {
    for (;;) {
      await connections.at(-1)!.ended;
      const next = await waitUntil(comeBack);
      if (next === 'stopped') return;
      connections.push(next);
    }
  })();
  return {
    refusals,
    get seen() {
      return events().flatMap(({ event }) => (isUpdate(event) ? event.id : []));
    },
    get resyncs() {
      return events().filter(({ event }) => event.type === 'resync').length;
    },
    get cuts() {
      return connections.length - 1;
    },
    stop: async () => {
      isStopped = true;
      connections.at(-1)!.close();
      await running;
    },
  };
}

/** Over the stream of REST. */
export const followStream = ({ url, orgId, workspaceId, headers }: Place): Promise<Follower> =>
  follow(async (after) => {
    const at = `${url}/v1/orgs/${orgId}/workspaces/${workspaceId}/sync/stream`;
    const source: EventSource = await openEvents(at, {
      headers: { ...headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
    });
    const noted = (data: string): Noted => {
      const { event_id: id, ...event } = JSON.parse(data) as Omit<Noted, 'id'> & { event_id: string };
      return { ...event, id };
    };
    return {
      events: () => source.events.map(({ data, id }) => ({ event: noted(data), cursor: id ?? '' })),
      ended: source.ended.catch(() => undefined), // cut off
      close: () => source.close(),
    };
  });

const QUERY = `subscription ($orgId: ID!, $workspaceId: ID!, $after: String) {
  workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, after: $after, join: true) { cursor type id data } }`;

/** Over a WebSocket of GraphQL. */
export const followSocket = (place: Place): Promise<Follower> =>
  follow(async (after) => {
    for (;;) {
      const source = await openedSocket(place, after);
      // on a machine that stood still, the server has waited too long for the first message
      if (source !== 'initialised late') return source;
    }
  });

async function openedSocket(
  { url, orgId, workspaceId, headers }: Place,
  after: string | undefined,
): Promise<Connection | 'initialised late'> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/graphql`, GRAPHQL_TRANSPORT_WS_PROTOCOL);
  const events: { event: Noted; cursor: string }[] = [];
  const ended = new Promise<unknown>((resolve) => socket.once('close', resolve));
  const isLate = await new Promise<boolean>((resolve, reject) => {
    socket.on('error', reject).on('close', (code, reason) => {
      if (code === INITIALISED_LATE) resolve(true);
      else reject(new Error(`${code} ${reason.toString()}`));
    });
    socket.on('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: headers })));
    socket.on('message', (text: Buffer) => {
      const message = JSON.parse(text.toString()) as SocketMessage;
      if (message.type === 'connection_ack') {
        const payload = { query: QUERY, variables: { orgId, workspaceId, after } };
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
      } else if (message.type === 'next') {
        const { data } = message.payload as { data: { workspaceEvents: Noted & { cursor: string } } };
        events.push({ event: data.workspaceEvents, cursor: data.workspaceEvents.cursor });
        resolve(false); // with `connected`: from now on it misses nothing
      } else if (message.type === 'complete') socket.terminate(); // it comes back as after any other end
    });
  });
  return isLate ? 'initialised late' : { events: () => events, ended, close: () => socket.terminate() };
}
