import type { FastifyRequest } from 'fastify';
import type { DocumentNode, Source } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { Context, type Services } from '../../graphql/context.ts';
import type { OperationRequest } from './operation-request.ts';
import type { Operations } from './operations.ts';

/** What is known of an operation before it is parsed. */
export interface Incoming {
  req: FastifyRequest;
  params: Omit<OperationRequest, 'document'>;
  /** Given for an operation of a socket; else made here. */
  context?: Context | undefined;
}

/**
 * The way of an operation as a plugin of Yoga. Every transport takes its functions from Yoga (`getEnveloped`), and so
 * comes through here.
 */
export function requestPath(operations: Operations, services: Services): Plugin<Incoming> {
  return {
    onEnveloped({ context, extendContext }) {
      if (context?.req && !context.context) extendContext({ context: contextOf(context.req, services) });
    },
    onParse: ({ setParseFn }) =>
      setParseFn((text: string | Source) => operations.parse(typeof text === 'string' ? text : text.body)),
    onValidate: ({ context: { params, context }, setValidationFn }) =>
      setValidationFn((_schema, document: DocumentNode) =>
        operations.validate({ document, operationName: params.operationName, variables: params.variables }, context!),
      ),
    onExecute: ({ setExecuteFn }) => setExecuteFn((args) => operations.execute(args)),
    onSubscribe: ({ setSubscribeFn }) => setSubscribeFn((args) => operations.subscribe(args)),
  };
}

function contextOf({ caller, headers }: FastifyRequest, services: Services): Context {
  const context = new Context(caller, services);
  const resumed = headers['last-event-id'];
  // an empty header comes from a client that has seen no event
  context.lastEventId = (Array.isArray(resumed) ? resumed[0] : resumed) || undefined;
  return context;
}
