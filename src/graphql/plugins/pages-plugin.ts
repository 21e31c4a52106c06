import SchemaBuilder, {
  BasePlugin,
  type PothosInputFieldConfig,
  type PothosOutputFieldConfig,
  type SchemaTypes,
} from '@pothos/core';
import {
  type FieldNode,
  type GraphQLFieldResolver,
  type GraphQLResolveInfo,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { Page } from '../../data/page.ts';
import type { Context } from '../context.ts';
import { openCursor } from './page-cursor.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      pages: PagesPlugin<Types>;
    }
    export interface InputFieldOptions {
      /** The argument takes the cursor of a page: the field returns a connection. */
      isCursor?: boolean;
    }
  }
}

/**
 * Seals the cursors of every page for the list and the filters of its field, so that they can be validated from the
 * input alone. Inside is the position in the service's list, which is bound to what only the service knows, such as who
 * may see what.
 */
export class PagesPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onInputFieldConfig(fieldConfig: PothosInputFieldConfig<Types>): PothosInputFieldConfig<Types> {
    const { isCursor } = fieldConfig.pothosOptions as { isCursor?: boolean };
    return isCursor ? { ...fieldConfig, extensions: { ...fieldConfig.extensions, isCursor } } : fieldConfig;
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    const argument = Object.values(fieldConfig.args).find(
      ({ pothosOptions }) => (pothosOptions as { isCursor?: boolean }).isCursor,
    )?.name;
    if (argument === undefined) return resolver;
    return async (parent, args, context, info) => {
      const { cursors } = (context as unknown as Context).services;
      const field = info.parentType.getFields()[info.fieldName]!;
      const call = { cursors, field, parentType: info.parentType.name, parent };
      const { scope, position } = openCursor(call, args as Record<string, unknown>);
      const counted = asksForTotal(info);
      const page = (await resolver(
        parent,
        { counted, ...args, [argument]: position },
        context,
        info,
      )) as Page<unknown> | null;
      return page && { ...page, cursorOf: (row: unknown) => cursors.encode(scope, page.cursorOf(row)) };
    };
  }
}

const asking = new WeakMap<FieldNode, boolean>();

/** Whether the selection of a page names its total, perhaps under a condition. */
function asksForTotal({ fieldNodes, fragments }: GraphQLResolveInfo): boolean {
  const within = ({ selections }: SelectionSetNode): boolean =>
    selections.some((node) => {
      if (node.kind === Kind.FIELD) return node.name.value === 'totalCount';
      const set = node.kind === Kind.FRAGMENT_SPREAD ? fragments[node.name.value]?.selectionSet : node.selectionSet;
      return set !== undefined && within(set);
    });
  return fieldNodes.some((node) => {
    const known = asking.get(node) ?? (node.selectionSet !== undefined && within(node.selectionSet));
    asking.set(node, known);
    return known;
  });
}

SchemaBuilder.registerPlugin('pages', PagesPlugin);
