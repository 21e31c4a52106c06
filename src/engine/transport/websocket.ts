import type { WebsocketHandler } from '@fastify/websocket';
import { GraphQLError } from 'graphql';
import { CloseCode, makeServer } from 'graphql-ws';
import type { Admission } from '../../access/admission.ts';
import type { CallerLimit } from '../../access/caller-limit.ts';
import type { Services } from '../../graphql/context.ts';
import { Context } from '../../graphql/context.ts';
import { type AnyCaller, SOCKET_METHOD } from '../../kernel/caller.ts';
import { rateLimited, unauthenticated } from '../../kernel/errors.ts';
import type { Principal } from '../../kernel/principal.ts';
import { Wheel } from '../../kernel/wheel.ts';
import { callerError } from '../../platform/postgres/faults.ts';
import type { Tracing } from '../../platform/tracing/tracing.ts';
import type { OperationContext } from '../path/operations.ts';
import type { PersistedDocuments } from '../path/persisted-documents.ts';
import { type GraphQLEndpoint, type PreparedOperation, prepared } from './endpoint.ts';
import { sentBy } from './socket-frames.ts';
import { SocketSlots } from './socket-slots.ts';
import { type SocketOrigin, send, TRY_AGAIN_LATER, transportOf } from './socket-transport.ts';

/** Maximum number of concurrent operations on one socket. */
const MAX_OPERATIONS = 20;
/** How often the session or token of an idle socket is checked; each of its operations is checked too. */
const rechecks = new Wheel(5_000);

interface SocketExtra extends SocketOrigin {
  /** Returns the socket's slot: that of its address, later that of its user. */
  leave?: () => void;
  operations?: Set<string>;
  endRechecks?: () => void;
}

interface SocketOptions {
  endpoint: GraphQLEndpoint;
  services: Services;
  admission: Admission;
  limit: CallerLimit;
  persisted: PersistedDocuments;
  maxSocketsPerUser: number;
  tracing: Tracing;
  onFault: (error: unknown, traceId: string) => void;
}

/**
 * `/graphql` over WebSocket (the `graphql-transport-ws` protocol). The token comes in the payload of `connection_init`
 * as `authorization`, or in the header of the upgrade; without a valid one, or once its session or token is over, the
 * socket is closed with 4403. Operations pass the same limits as over HTTP: each message with an operation counts as a
 * request, whatever its result.
 */
export function socketHandler({
  endpoint,
  services,
  admission,
  limit,
  persisted,
  maxSocketsPerUser,
  tracing,
  onFault,
}: SocketOptions): WebsocketHandler {
  const slots = new SocketSlots(maxSocketsPerUser);
  /** The current caller of the socket. A socket whose session or token is over is closed. */
  const renewed = async ({ caller, socket }: SocketExtra): Promise<Principal | null> => {
    const principal = caller?.principal ? await services.authentication.renew(caller.principal) : null;
    if (!principal) socket.close(CloseCode.Forbidden, 'Forbidden');
    return principal;
  };
  /** All sockets of a turn are checked at once. If the database is unreachable, the next turn decides. */
  const recheck = ({ caller, socket }: SocketExtra): void => {
    const close = (lives: boolean) => lives || socket.close(CloseCode.Forbidden, 'Forbidden');
    const lives = caller?.principal ? services.authentication.livesStill(caller.principal) : false;
    if (lives instanceof Promise) lives.then(close, () => undefined);
    else close(lives);
  };
  const server = makeServer<Record<string, unknown>, SocketExtra>({
    connectionInitWaitTimeout: 3_000,
    onConnect: async ({ connectionParams, extra }) => {
      const upgrade = extra.request.caller;
      const given = connectionParams?.authorization ?? connectionParams?.Authorization;
      const { socket } = extra;
      const caller: AnyCaller = { ...upgrade, request: { ...upgrade.request, method: SOCKET_METHOD, socket } };
      if (typeof given === 'string') {
        caller.principal = null;
        const bucket = await admission.identify(caller, given);
        if (bucket && !bucket.allowed) return refuse(extra, 'Too many requests');
      }
      // the socket may be gone by now, and would never return its slot
      if (!caller.principal || socket.readyState !== socket.OPEN) return false;
      extra.leave?.();
      const leave = slots.ofUser(caller.principal.userId);
      if (!leave) return refuse(extra, 'Too many sockets of this user are open');
      extra.leave = leave;
      extra.caller = caller;
      extra.operations = new Set();
      extra.endRechecks = rechecks.add(() => recheck(extra));
      return true;
    },
    onClose: ({ extra }) => {
      extra.endRechecks?.();
      extra.leave?.();
    },
    onSubscribe: async ({ extra }, id, payload) => {
      const { caller, operations = new Set(), request } = extra;
      const taken = caller && limit.take(caller, 1);
      const bucket = taken instanceof Promise ? await taken : taken;
      if (bucket && !bucket.allowed) return [rateLimited(bucket.retryAfter)];
      // counted before anything else is awaited, because many may arrive at once
      if (operations.size >= MAX_OPERATIONS)
        return [new GraphQLError(`A socket may hold ${MAX_OPERATIONS} operations at a time.`)];
      operations.add(id);
      let hasStarted = false;
      try {
        // the socket outlives its access token: the session decides
        const principal = await renewed(extra);
        if (!caller || !principal) return [unauthenticated()];
        const context = new Context(operationCaller({ ...caller, principal }, tracing.newTraceId()), services);
        const query = (await persisted.textOf(payload, { headers: request.headers, caller: context.anyCaller })) ?? '';
        const operation = await prepared(endpoint, { ...payload, query }, request, context);
        hasStarted = 'document' in operation;
        return operation;
      } catch (error) {
        // an operation that nobody can check now is refused; the others of the socket go on
        const shown = callerError(error);
        if (shown instanceof GraphQLError) return [withoutStatus(shown)];
        throw error;
      } finally {
        // an operation that did not start does not complete either
        if (!hasStarted) operations.delete(id);
      }
    },
    execute: (args) => (args as PreparedOperation).execute(args as PreparedOperation),
    subscribe: (args) => (args as PreparedOperation).subscribe(args as PreparedOperation),
    onOperation: ({ extra }, id, _payload, { contextValue }) => {
      const { live } = contextValue as OperationContext;
      return live && sentBy(live, id, (text) => send(extra.socket, text));
    },
    onComplete: ({ extra }, id) => {
      extra.operations?.delete(id);
    },
  });
  const open = transportOf(server, onFault);
  return (socket, request) => {
    const leave = slots.ofAddress(request.caller.request.ip);
    if (leave) open({ socket, request, leave });
    else socket.close(TRY_AGAIN_LATER, 'Too many sockets of this address are open');
  };
}

/** A status is for HTTP: no client of a socket is told one. */
function withoutStatus(error: GraphQLError): GraphQLError {
  const { http, ...extensions } = error.extensions;
  return http === undefined ? error : new GraphQLError(error.message, { extensions });
}

function refuse({ socket }: SocketExtra, reason: string): false {
  socket.close(TRY_AGAIN_LATER, reason);
  return false; // this would close it with 4403 if it were not closed already
}

/** Each operation of a socket has a trace and a record of its own. */
function operationCaller(caller: AnyCaller, traceId: string): AnyCaller {
  return {
    ...caller,
    request: { ...caller.request, traceId, startedAt: performance.now(), recorded: false, left: undefined },
  };
}
