import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import { Expectation } from '../../kernel/expectation.ts';
import type { Context } from '../context.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      versions: VersionsPlugin<Types>;
    }
  }
}

/** The argument for the version that the resource of a mutation must have. */
export const EXPECTED_VERSION = 'expectedVersion';

/**
 * Passes the `expectedVersion` of a mutation to its changes, which must check it. Over REST it comes with `If-Match`. A
 * mutation that made no change, or whose change did not check it, fails: it cannot be ignored.
 */
export class VersionsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  /** The façade finds the argument by `extensions.versionArgument`. */
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    if (!takesVersion(fieldConfig)) return fieldConfig;
    return { ...fieldConfig, extensions: { ...fieldConfig.extensions, versionArgument: EXPECTED_VERSION } };
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    if (!takesVersion(fieldConfig)) return resolver;
    return async (parent, args, context, info) => {
      const { expectedVersion, ...others } = args as { expectedVersion?: number | null };
      const { request } = (context as unknown as Context).anyCaller;
      // mutations of a document run one after the other, so no other one uses the request meanwhile
      if (expectedVersion !== undefined && expectedVersion !== null)
        request.expectation = new Expectation([expectedVersion]);
      const { expectation } = request;
      try {
        const result: unknown = await resolver(parent, others, context, info);
        if (expectation && !expectation.isMet) throw new Error(`${fieldConfig.name} did not look at expectedVersion.`);
        return result;
      } finally {
        request.expectation = undefined;
      }
    };
  }
}

const takesVersion = <Types extends SchemaTypes>({ parentType, args }: PothosOutputFieldConfig<Types>): boolean =>
  parentType === 'Mutation' && EXPECTED_VERSION in args;

SchemaBuilder.registerPlugin('versions', VersionsPlugin);
