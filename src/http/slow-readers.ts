import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

const SWEEP_MS = 1_000;
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
