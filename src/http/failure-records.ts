import type { FastifyInstance } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Services } from '../graphql/context.ts';
import { entryOfRequest } from './root-field.ts';

/**
 * Records failed façade requests of known callers after the response, when their status is known, whatever the failure
 * was (invalid input, missing permission, internal error). The schema has recorded the successful ones.
 */
export function addFailureRecords(server: FastifyInstance, { activity }: Services, schema: GraphQLSchema): void {
  server.addHook('onResponse', (request, { statusCode, errorCode }, done) => {
    const { caller } = request;
    const isOpen = statusCode >= 400 && caller?.principal && !caller.request.recorded;
    const entry = isOpen ? entryOfRequest(schema, request) : null;
    if (entry) activity.record(caller, entry, { statusCode, errorCode: errorCode ?? null });
    done();
  });
}
