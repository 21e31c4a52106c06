import { randomUUID } from 'node:crypto';
import type { WebsocketHandler } from '@fastify/websocket';
import type { FastifyRequest } from 'fastify';
import { type ExecutionArgs, GraphQLError } from 'graphql';
import { makeHandler } from 'graphql-ws/use/@fastify/websocket';
import type { Caller } from '../access/caller.ts';
import type { Services } from '../services.ts';
import { Context } from './context.ts';
import type { GraphQLEndpoint } from './endpoint.ts';
import { unauthenticated } from './errors.ts';

/** One socket may hold so many subscriptions. */
const MAX_SUBSCRIPTIONS = 20;

interface SocketExtra extends Record<PropertyKey, unknown> {
  request: FastifyRequest;
  caller?: Caller;
  subscriptions?: Set<string>;
}

type EnvelopedArgs = ExecutionArgs & Pick<ReturnType<GraphQLEndpoint['getEnveloped']>, 'execute' | 'subscribe'>;

/**
 * `/graphql` over WebSocket (the `graphql-transport-ws` protocol). The token comes in the payload of `connection_init` as `authorization`, or
 * in the header of the upgrade; without a valid one the socket is closed with 4403. Operations pass the same limits as over HTTP.
 */
export function socketHandler(endpoint: GraphQLEndpoint, services: Services): WebsocketHandler {
  return makeHandler<Record<string, unknown>, SocketExtra>({
    connectionInitWaitTimeout: 3_000,
    onConnect: async ({ connectionParams, extra }) => {
      const { caller } = extra.request;
      const given = connectionParams?.authorization ?? connectionParams?.Authorization;
      const principal = typeof given === 'string' ? await services.authentication.authenticate(given) : caller.principal;
      if (!principal) return false;
      extra.caller = { principal, request: { ...caller.request, method: 'WS' } };
      extra.subscriptions = new Set();
      return true;
    },
    onSubscribe: async ({ extra }, id, payload) => {
      const { caller, subscriptions, request } = extra;
      if (!caller?.principal || !(await services.authentication.isAlive(caller.principal))) return [unauthenticated()];
      if (subscriptions!.size >= MAX_SUBSCRIPTIONS) return [new GraphQLError(`A socket may hold ${MAX_SUBSCRIPTIONS} operations at a time.`)];
      subscriptions!.add(id);
      const context = new Context({ ...caller, request: { ...caller.request, traceId: randomUUID(), startedAt: performance.now(), recorded: false } }, services);
      const enveloped = endpoint.getEnveloped({ req: request, request: undefined, params: payload, context });
      const { schema, execute, subscribe, contextFactory, parse, validate } = enveloped;
      try {
        const document = parse(payload.query);
        const errors = validate(schema, document);
        if (errors.length > 0) return errors;
        const contextValue = { ...(await contextFactory()), context };
        const args = { schema, operationName: payload.operationName, document, variableValues: payload.variables, contextValue, execute, subscribe };
        return args as unknown as EnvelopedArgs;
      } catch (error) {
        if (error instanceof GraphQLError) return [error];
        throw error;
      }
    },
    execute: (args) => (args as EnvelopedArgs).execute(args),
    subscribe: (args) => (args as EnvelopedArgs).subscribe(args),
    onComplete: ({ extra }, id) => {
      extra.subscriptions?.delete(id);
    },
  });
}
