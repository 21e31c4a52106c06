import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema, OperationTypeNode } from 'graphql';
import type { Context } from '../graphql/context.ts';
import type { FindPlace, Gate, Requirement } from '../graphql/plugins/access-plugin.ts';
import { type ActivityLabel, entryOf } from '../graphql/plugins/activity-label.ts';

/** What the schema keeps with a root field; nothing if the request has none. */
type Declared = { access?: Requirement; gate?: Gate | null; placeOf?: FindPlace; activity?: ActivityLabel | null };

function declaredOf(schema: GraphQLSchema, { routeOptions }: FastifyRequest): Declared {
  const { operationType, rootField = '' } = routeOptions.config;
  if (!operationType) return {};
  return schema.getRootType(operationType as OperationTypeNode)?.getFields()[rootField]?.extensions ?? {};
}

/** The arguments that a façade request names in its path and query, not validated, if they are a single string. */
export type NamedArguments = Record<string, string | undefined>;

function namedArgumentsOf({ params, query, routeOptions }: FastifyRequest): NamedArguments {
  const parts = { params, query } as Record<'params' | 'query', Record<string, unknown>>;
  const sources = Object.entries(routeOptions.config.rootArguments ?? {});
  return Object.fromEntries(
    sources.map(([argument, { in: part, name }]) => {
      const value = parts[part][name];
      return [argument, typeof value === 'string' ? value : undefined];
    }),
  );
}

/**
 * Checks, before any resolver runs in this context, what the root field of a façade request requires of the caller in
 * the place that the request names.
 * @throws as the operation itself would
 * @returns `left`: the permission that the field leaves to its service; `findPlace`: what the request is about
 */
export async function authorizeRootField(schema: GraphQLSchema, context: Context, request: FastifyRequest) {
  const { access, gate, placeOf } = declaredOf(schema, request);
  const named = namedArgumentsOf(request);
  const permit = await gate?.(context, {}, named);
  const left = typeof access === 'object' && 'service' in access ? access.service : undefined;
  return { named, left, findPlace: async () => placeOf!(context, named, permit) };
}

/** What a façade request leaves in the audit trail; `null` if its root field leaves nothing. */
export function entryOfRequest(schema: GraphQLSchema, request: FastifyRequest) {
  const { activity } = declaredOf(schema, request);
  return activity ? entryOf(activity, request.caller, namedArgumentsOf(request)) : null;
}
