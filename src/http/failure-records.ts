import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLFieldMap, GraphQLSchema } from 'graphql';
import type { Services } from '../graphql/context.ts';
import { type ActivityLabel, entryOf } from '../graphql/plugins/activity-label.ts';
import { rootArgumentsOf } from './root-arguments.ts';

/**
 * Records failed façade requests of known callers after the response, when their status is known, whatever the failure
 * was (invalid input, missing permission, internal error). The schema has recorded the successful ones.
 */
export function addFailureRecords(server: FastifyInstance, services: Services, schema: GraphQLSchema): void {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = Object.assign({}, ...roots.map((root) => root?.getFields())) as GraphQLFieldMap<unknown, unknown>;
  const record = (request: FastifyRequest, reply: FastifyReply): void => {
    const { rootField } = request.routeOptions.config;
    const { caller } = request;
    if (!rootField || reply.statusCode < 400 || !caller?.principal || caller.request.recorded) return;
    const label = fields[rootField]?.extensions.activity as ActivityLabel | null | undefined;
    if (!label) return;
    services.activity.record(caller, entryOf(label, caller, rootArgumentsOf(request)), {
      statusCode: reply.statusCode,
      errorCode: reply.errorCode ?? null,
    });
  };
  server.addHook('onResponse', (request, reply, done) => {
    record(request, reply);
    done();
  });
}
