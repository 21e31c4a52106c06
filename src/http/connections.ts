import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

// Which connections are ended: those of clients that do not read, those whose bodies arrive too slowly, and, while the
// server closes, those without a request. Each is looked at again and again, because none of them makes itself known.

const SWEEP_MS = 1_000;
/** While the server closes, which should not take long. */
const CLOSING_SWEEP_MS = 100;
/** What a busy proxy may need between taking a connection and sending its request. */
const NEXT_REQUEST_MS = 2_000;

/**
 * How many requests a connection may send before the first is answered. Nobody needs more, and their responses wait in
 * memory.
 */
const MAX_PIPELINED = 16;
/** How many bytes all clients together may leave unread in this process. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;

interface SlowReaderOptions {
  /** How long a client may read nothing of what waits for it. */
  timeoutMs: number;
  /** Lower in tests. */
  maxUnreadBytes?: number;
}

/** The bytes that wait for a client, and since when it has read none of them. */
interface Unread {
  sent: number;
  queued: number;
  bytes: number;
  since: number;
}

/**
 * Disconnects clients that do not read. Responses, event streams and WebSockets are treated alike: each is a connection
 * with unread bytes. When all unread bytes together exceed the limit, the client with the most of them is disconnected
 * first.
 */
export function cutOffSlowReaders(server: FastifyInstance, { timeoutMs, maxUnreadBytes }: SlowReaderOptions): void {
  const open = new Set<Socket>();
  const answers = new Map<Socket, Set<ServerResponse>>();
  const unread = new Map<Socket, Unread>();
  const limit = maxUnreadBytes ?? MAX_UNREAD_BYTES;
  server.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      unread.delete(socket);
      answers.delete(socket);
    });
  });
  server.server.prependListener('request', ({ socket }: IncomingMessage, answer: ServerResponse) => {
    const waiting = answers.get(socket) ?? new Set();
    answers.set(socket, waiting.add(answer));
    answer.once('close', () => waiting.delete(answer));
    if (waiting.size > MAX_PIPELINED) socket.destroy();
  });
  const sweep = () => {
    const now = Date.now();
    const before = new Set(unread.keys());
    for (const socket of open) if (isStuck(socket, now)) socket.destroy();
    // bytes that were not there at the last check had no time to be read yet
    const waiting = [...unread].filter(([socket]) => before.has(socket));
    let bytes = waiting.reduce((sum, [, state]) => sum + state.bytes, 0);
    if (bytes <= limit) return;
    for (const [socket, state] of waiting.sort(([, a], [, b]) => b.bytes - a.bytes)) {
      if (bytes <= limit) return;
      bytes -= state.bytes;
      socket.destroy();
    }
  };
  const isStuck = (socket: Socket, now: number): boolean => {
    if (socket.writableLength === 0) {
      unread.delete(socket);
      return false;
    }
    const state = stateOf(socket, answers.get(socket), now);
    const known = unread.get(socket);
    const hasMoved = !known || known.sent !== state.sent || known.queued !== state.queued;
    unread.set(socket, hasMoved ? state : { ...known, bytes: state.bytes });
    return !hasMoved && now - known.since >= timeoutMs;
  };
  const timer = setInterval(sweep, Math.min(SWEEP_MS, timeoutMs / 2)).unref();
  server.addHook('onClose', async () => clearInterval(timer));
}

/** The state of a connection's writes. Only the handle knows how much is left of a write in progress. */
function stateOf(socket: Socket, answers: ReadonlySet<ServerResponse> | undefined, now: number): Unread {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  let bytes = socket.writableLength;
  // only the first of pipelined requests has the connection: the responses to the others wait behind it
  for (const answer of answers ?? []) if (!answer.socket) bytes += answer.writableLength;
  return {
    sent: socket.bytesWritten - socket.writableLength,
    queued: handle?.writeQueueSize ?? 0,
    bytes,
    since: now,
  };
}

interface SlowSenderOptions {
  /** Within this time a body must have arrived; of a file, some bytes must arrive in each such time. */
  timeoutMs: number;
}

interface BodyProgress {
  isFile: boolean;
  /** Bytes of the connection at the last check at which there were new ones. */
  bytes: number;
  since: number;
}

/** The longest time that a request may take to arrive, with its file. */
export const UPLOAD_TIMEOUT_MS = 3_600_000;

/**
 * Ends requests whose body arrives too slowly, with 408. Node has one limit for all requests, and that is the one for
 * files, which take longer than other bodies.
 */
export function cutOffSlowSenders(server: FastifyInstance, { timeoutMs }: SlowSenderOptions): void {
  const sending = new Map<IncomingMessage, BodyProgress>();
  server.addHook('onRequest', (request, _reply, done) => {
    const { raw } = request;
    const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length'] ?? 0) > 0;
    // what is injected has no connection
    if (hasBody && (raw.socket as { bytesRead?: number }).bytesRead !== undefined) {
      const isFile = request.routeOptions.config.takesFile ?? false;
      sending.set(raw, { isFile, bytes: raw.socket.bytesRead, since: Date.now() });
      raw.once('close', () => sending.delete(raw));
    }
    done();
  });
  const sweep = () => {
    const now = Date.now();
    for (const [request, state] of sending) {
      if (request.complete) sending.delete(request);
      else if (state.isFile && request.socket.bytesRead !== state.bytes) {
        state.bytes = request.socket.bytesRead;
        state.since = now;
      } else if (now - state.since >= timeoutMs) cutOff(server, request);
    }
  };
  const timer = setInterval(sweep, Math.min(SWEEP_MS, timeoutMs / 2)).unref();
  server.addHook('onClose', async () => clearInterval(timer));
}

/** As Node itself does. */
function cutOff({ server }: FastifyInstance, { socket }: IncomingMessage): void {
  const error = Object.assign(new Error('the body arrives too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  server.emit('clientError', error, socket);
}

/**
 * While the server closes, ends the connections without a request: one that a client has opened in advance would delay
 * the shutdown until its timeout (Node itself ends only those that carried a request before), and one whose answer
 * began before could carry further requests. Each has time for one more request, whose answer says that it is the last:
 * a proxy may have sent it already, and must not repeat it over another connection.
 */
export function endUnusedConnections(server: FastifyInstance): void {
  /** Since when a connection has been open, or without a request. */
  const since = new Map<Socket, number>();
  /** How many requests are under way. */
  const busy = new Map<Socket, number>();
  const count = (socket: Socket, change: 1 | -1) => busy.set(socket, (busy.get(socket) ?? 0) + change);
  let timer: NodeJS.Timeout | undefined;
  server.server
    .on('connection', (socket: Socket) => {
      since.set(socket, performance.now());
      socket.once('close', () => {
        since.delete(socket);
        busy.delete(socket);
      });
    })
    .on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      count(socket, 1);
      response.once('close', () => {
        if (!since.has(socket)) return;
        count(socket, -1);
        since.set(socket, performance.now());
      });
    })
    // a connection that became a WebSocket is closed by its own code
    .prependListener('upgrade', ({ socket }: IncomingMessage) => count(socket, 1));
  const sweep = () => {
    const longAgo = performance.now() - NEXT_REQUEST_MS;
    const unused = [...since].filter(([socket, then]) => !busy.get(socket) && then < longAgo);
    // what has arrived while the process had no time is read before this
    setImmediate(() => {
      for (const [socket] of unused) if (!busy.get(socket)) socket.destroy();
    });
  };
  server.addHook('preClose', async () => {
    timer = setInterval(sweep, CLOSING_SWEEP_MS);
  });
  server.addHook('onClose', async () => clearInterval(timer));
}
