import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import type { Context } from '../context.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      freshReads: FreshReadsPlugin<Types>;
    }
  }
}

/**
 * Rows that were loaded before a change are not used after it. The mutations of one request share a context and run one
 * after the other, and so do the events of a subscription: each starts with an empty request cache.
 */
export class FreshReadsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    { parentType }: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (parentType !== 'Mutation' && parentType !== 'Subscription') return resolver;
    return async (parent, args, context, info) => {
      try {
        return await resolver(parent, args, context, info);
      } finally {
        (context as unknown as Context).forget();
      }
    };
  }
}

SchemaBuilder.registerPlugin('freshReads', FreshReadsPlugin);
