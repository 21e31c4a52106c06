import { type GraphQLField, GraphQLID, getNamedType, isNonNullType } from 'graphql';
import type { CursorScope } from '../../data/cursors.ts';
import { constraintsOf } from '../../kernel/constraints.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * Identifies a list by its field, arguments and parent: what it lists, below which parent, and with which filters. A
 * root field and the field of the object that its arguments name have the same scope.
 */
export function listScope(
  field: GraphQLField<unknown, unknown>,
  parentType: string,
  parent: unknown,
  args: Values,
): CursorScope {
  const above = idsOf(parentType, (parent ?? {}) as Values);
  const filters: unknown[] = [];
  for (const { name, type, extensions } of field.args) {
    const value = args[name];
    // the page size does not change the list, nor does an argument that only repeats another one
    if (value === null || value === undefined || name === 'first' || extensions.isCursor) continue;
    if (constraintsOf({ extensions }).sameAs) continue;
    if (isNonNullType(type) && type.ofType === GraphQLID && typeof value === 'string') above.push(value);
    else filters.push(name, value);
  }
  return { list: getNamedType(field.type).name, filters: [above.sort(), ...filters] };
}

/**
 * The ids that lead to an object of a tenant. Lists of other objects, such as users, are distinguished only by the
 * service.
 */
function idsOf(type: string, { orgId, workspaceId, id }: Values): string[] {
  if (type === 'Organization') return [String(id)];
  return typeof orgId === 'string' ? [orgId, workspaceId, id].filter((part) => typeof part === 'string') : [];
}
