import type { FastifyRequest } from 'fastify';
import { CloseCode, type Server } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { TokenBuckets } from '../../access/throttle.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { overloadOf } from '../../kernel/json-shape.ts';
import { Wheel } from '../../kernel/wheel.ts';
import { callerError } from '../../platform/postgres/faults.ts';
import { jsonBounds, MAX_ANSWER_LENGTH } from './bounds.ts';

/** A peer that has not answered a ping before the next one is gone. */
const pings = new Wheel(15_000);
/** While this much waits for a client, nothing more is read from it: it could send requests faster than it reads. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Messages that a client may send per second for long, of whatever kind, and at once: on a socket, and on all. */
const OF_SOCKET = { perSecond: 100, atOnce: 500 };
const OF_USER = { perSecond: 400, atOnce: 2_000 };
const TOO_MANY_MESSAGES = 4429;
/** How long a socket that is not read any more stays, so that its client learns why. */
const CLOSING_MS = 1_000;
/** RFC 6455: a message that is too big. */
const TOO_BIG = 1009;
/** RFC 6455: clients may connect again, which those of the protocol never do after one of its own codes. */
export const TRY_AGAIN_LATER = 1013;

/** What the protocol's server gets with each socket. */
export interface SocketOrigin {
  socket: WebSocket;
  request: FastifyRequest;
  /** Once the socket was let in. */
  caller?: AnyCaller;
}

/**
 * Binds the protocol to `ws`. The library's own binding prints stack traces for every client error, although `ws` has
 * already closed the socket with the right code.
 */
export function transportOf<Extra extends SocketOrigin>(
  server: Server<Extra>,
  onFault: (error: unknown, traceId: string) => void,
): (origin: Extra) => void {
  const ofSocket = new TokenBuckets(OF_SOCKET.perSecond, OF_SOCKET.atOnce);
  const ofUser = new TokenBuckets(OF_USER.perSecond, OF_USER.atOnce);
  let sockets = 0;
  return (origin) => {
    const { socket, request } = origin;
    const key = String(++sockets);
    const mayRead = (): boolean => {
      const userId = origin.caller?.principal?.userId;
      return ofSocket.take(key).allowed && (userId === undefined || ofUser.take(userId).allowed);
    };
    const fault = (error: unknown) => {
      const shown = callerError(error);
      if (shown instanceof ApiError && shown.code === 'SERVICE_UNAVAILABLE')
        return socket.close(TRY_AGAIN_LATER, shown.message);
      if (isUnexpectedMessage(error)) return socket.close(CloseCode.BadRequest, 'Invalid message received');
      onFault(error, request.id);
      socket.close(CloseCode.InternalServerError, 'Internal server error');
    };
    const stopPings = keepAlive(socket);
    const closed = server.opened(
      {
        protocol: socket.protocol,
        send: (text) => send(socket, text),
        close: (code, reason) => socket.close(code, asReason(reason ?? '')),
        // what a client sends along is not sent back to it
        onPing: () => send(socket, PONG),
        onMessage: (listen) =>
          socket.on('message', (data: Buffer) => {
            if (socket.readyState !== socket.OPEN) return;
            if (!mayRead()) return stopReading(socket);
            const text = String(data);
            if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.pause();
            // parsing a message of nothing but brackets or keys takes a hundred times as long as any other
            if (overloadOf(text, jsonBounds)) socket.close(CloseCode.BadRequest, 'Invalid message received');
            else listen(text).catch(fault);
          }),
      },
      origin,
    );
    // answered by `ws` itself, whether or not the client reads it
    socket.on('ping', () => {
      if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
    });
    socket.once('close', (code, reason) => {
      stopPings();
      closed(code, String(reason)).catch((error: unknown) => onFault(error, request.id));
    });
  };
}

/** Closes a socket, and reads nothing more of the many messages that may be on their way. */
function stopReading(socket: WebSocket): void {
  socket.close(TOO_MANY_MESSAGES, 'Too many messages');
  socket.pause();
  setTimeout(() => socket.terminate(), CLOSING_MS).unref();
}

const PONG = '{"type":"pong"}';

/** The protocol's server knows no answer to a message that only a server may send. */
const isUnexpectedMessage = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Unexpected message of type');

/** RFC 6455: the reason of a closing frame has at most 123 bytes, and `ws` throws for a longer one. */
const MAX_REASON_BYTES = 123;

/** A reason, cut where it is too long: some contain what a client sent. */
function asReason(text: string): string {
  let reason = text.slice(0, MAX_REASON_BYTES);
  while (Buffer.byteLength(reason) > MAX_REASON_BYTES) reason = reason.slice(0, -1);
  return reason.toWellFormed();
}

/** Sends a message. Resolves when it was accepted, or the socket is gone. */
export async function send(socket: WebSocket, text: string): Promise<void> {
  if (socket.readyState !== socket.OPEN) return;
  if (text.length > MAX_ANSWER_LENGTH) return socket.close(TOO_BIG, 'The answer is too long: ask for smaller pages');
  // callers only wait in order to continue; a failed socket is closed and reports that itself
  await new Promise<void>((resolve) => {
    socket.send(text, () => resolve());
  });
  if (socket.isPaused && socket.bufferedAmount <= MAX_UNREAD_BYTES) socket.resume();
}

function keepAlive(socket: WebSocket): () => void {
  let isAlive = true;
  socket.on('pong', () => {
    isAlive = true;
  });
  return pings.add(() => {
    if (socket.isPaused) return; // it cannot answer until it reads, which has a separate limit
    if (!isAlive) return socket.terminate();
    isAlive = false;
    if (socket.readyState === socket.OPEN) socket.ping();
  });
}
