import { once } from 'node:events';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { WebSocket } from 'ws';
import { waitUntil } from './wait.ts';

/** One message of the `graphql-transport-ws` protocol. */
export interface SocketMessage {
  type: string;
  id?: string;
  payload?: unknown;
}

/** A raw socket to `/graphql`: tests say what goes over it, so that wrong things can be said too. */
export interface RawSocket {
  readonly messages: readonly SocketMessage[];
  send(message: object | string): void;
  /** The first message that fits, as soon as it is there. */
  next(fits: (message: SocketMessage) => boolean): Promise<SocketMessage>;
  /** Code with which the server closed. */
  closed(): Promise<number>;
  /** The same, at once; `null` while it is open. */
  readonly code: number | null;
  /** The reason that came with it. */
  readonly closeReason: string;
  close(): void;
}

export async function openSocket(url: string, headers: Record<string, string> = {}): Promise<RawSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/graphql`, GRAPHQL_TRANSPORT_WS_PROTOCOL, { headers });
  const messages: SocketMessage[] = [];
  let code: number | null = null;
  let closeReason = '';
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString()) as SocketMessage));
  socket.on('close', (closeCode, reason) => {
    code = closeCode;
    closeReason = reason.toString();
  });
  await once(socket, 'open');
  return {
    messages,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    next: (fits) =>
      waitUntil(() => messages.find(fits), {
        what: () => `a message that fits, among ${JSON.stringify(messages)}; closed with ${code}`,
      }),
    closed: () => waitUntil(() => code, { what: 'the server to close the socket' }),
    get code() {
      return code;
    },
    get closeReason() {
      return closeReason;
    },
    close: () => socket.close(),
  };
}

/** The code with which the server closes when the first message comes too late, as on a machine that stood still. */
export const INITIALISED_LATE = 4408;

/** A socket that was let in. @throws Error with the code, as soon as the server has closed it instead */
export async function openAcknowledged(url: string, authorization: string): Promise<RawSocket> {
  const socket = await openSocket(url);
  socket.send({ type: 'connection_init', payload: { authorization } });
  const isIn = () => socket.messages.some(({ type }) => type === 'connection_ack');
  const told = () => `among ${JSON.stringify(socket.messages)}; closed with ${socket.code}`;
  await waitUntil(() => isIn() || socket.code, { what: () => `the socket to be let in, ${told()}` });
  if (isIn()) return socket;
  if (socket.code === INITIALISED_LATE) return openAcknowledged(url, authorization);
  throw new Error(`The socket was not let in, ${told()}`);
}

/** A frame of a stream. */
export interface SentEvent {
  event: string;
  data: string;
  id: string | undefined;
}

/** An open stream of server-sent events. */
export interface EventSource {
  readonly events: readonly SentEvent[];
  /** The first event that fits, as soon as it is there. */
  next(fits: (event: SentEvent) => boolean): Promise<SentEvent>;
  /** The server ended the stream. */
  ended: Promise<void>;
  close(): void;
}

/** Opens a stream and reads it in the background. @throws Error with status and body when it is refused */
export async function openEvents(url: string, init: RequestInit): Promise<EventSource> {
  const abort = new AbortController();
  const response = await fetch(url, { ...init, signal: abort.signal });
  if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream'))
    throw new Error(`${response.status} ${await response.text()}`);
  const events: SentEvent[] = [];
  const ended = (async () => {
    let rest = '';
    try {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        const parts = `${rest}${chunk}`.split('\n\n');
        rest = parts.pop()!;
        for (const part of parts) {
          const value = (name: string) => part.match(new RegExp(`^${name}: ?(.*)$`, 'm'))?.[1];
          const data = value('data');
          if (data !== undefined || value('event') !== undefined)
            events.push({ event: value('event') ?? 'message', data: data ?? '', id: value('id') });
        }
      }
    } catch (error) {
      if (!abort.signal.aborted) throw error;
    }
  })();
  return {
    events,
    next: (fits) =>
      waitUntil(() => events.find(fits), { what: () => `an event that fits, among ${JSON.stringify(events)}` }),
    ended,
    close: () => abort.abort(),
  };
}
