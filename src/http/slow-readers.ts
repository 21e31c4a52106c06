import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

const SWEEP_MS = 1_000;
/**
 * Requests that one connection may have sent before the first of them is answered: nobody needs more, and their answers
 * wait in memory.
 */
const MAX_PIPELINED = 16;
/** Bytes that all clients together may leave unread in this process. */
const MAX_UNREAD_BYTES = 128 * 1024 * 1024;

interface Options {
  /** How long a client may take nothing of what waits for it. */
  timeoutMs: number;
  /** Lower in tests. */
  maxUnreadBytes?: number;
}

/** What waits for a client, and since when nothing of it was taken. */
interface Unread {
  sent: number;
  queued: number;
  bytes: number;
  since: number;
}

/**
 * Cuts off clients that do not read: answers, event streams and WebSockets alike, for to all of them it is a connection
 * whose bytes stay. When too many bytes wait in all, whoever leaves the most of them goes first.
 */
export function cutOffSlowReaders(server: FastifyInstance, { timeoutMs, maxUnreadBytes }: Options): void {
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
    // what was not there at the last look had no time to be read yet
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

/** Where a connection's writes are. Of a write under way only the handle knows how much is left of it. */
function stateOf(socket: Socket, answers: ReadonlySet<ServerResponse> | undefined, now: number): Unread {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  let bytes = socket.writableLength;
  // of pipelined requests only the first has the connection: the answers to the others wait behind it
  for (const answer of answers ?? []) if (!answer.socket) bytes += answer.writableLength;
  return {
    sent: socket.bytesWritten - socket.writableLength,
    queued: handle?.writeQueueSize ?? 0,
    bytes,
    since: now,
  };
}
