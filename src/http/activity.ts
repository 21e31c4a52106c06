import type { FastifyInstance } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { type ActivityLabel, entryOf } from '../graphql/activity-plugin.ts';
import type { Services } from '../services.ts';
import { rootArgumentsOf } from './root-arguments.ts';

/**
 * Records façade requests of known callers that failed, when they were answered: whatever the failure was (invalid input, missing
 * permission, fault), its status is known then. What succeeded was recorded by the schema.
 */
export function addFailureRecords(server: FastifyInstance, services: Services, schema: GraphQLSchema): void {
  const fields = { ...schema.getQueryType()?.getFields(), ...schema.getMutationType()?.getFields() };
  server.addHook('onResponse', async (request, reply) => {
    const { rootField } = request.routeOptions.config;
    const { caller } = request;
    if (!rootField || reply.statusCode < 400 || !caller?.principal || caller.request.recorded) return;
    const label = fields[rootField]?.extensions.activity as ActivityLabel | null | undefined;
    if (!label) return;
    services.activity.record(caller, entryOf(label, caller, rootArgumentsOf(request)), {
      statusCode: reply.statusCode,
      errorCode: reply.errorCode ?? null,
    });
  });
}
