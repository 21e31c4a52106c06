import { type GraphQLField, GraphQLID, getNamedType, isNonNullType } from 'graphql';
import { constraintsOf } from '../../core/constraints.ts';
import type { CursorScope } from '../../data/cursors.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * What a list is, as its field, its arguments and its parent tell: what it lists, below what, and the filters that were
 * given. The same for a field of the root and for one of the object that the root's arguments name.
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
    // how long a page is changes nothing of the list, nor does what only repeats another argument
    if (value === null || value === undefined || name === 'first' || extensions.isCursor) continue;
    if (constraintsOf({ extensions }).sameAs) continue;
    if (isNonNullType(type) && type.ofType === GraphQLID && typeof value === 'string') above.push(value);
    else filters.push(name, value);
  }
  return { list: getNamedType(field.type).name, filters: [above.sort(), ...filters] };
}

/**
 * The ids that lead to an object of a tenant; the lists of others, such as users, are told apart by the service alone.
 */
function idsOf(type: string, { orgId, workspaceId, id }: Values): string[] {
  if (type === 'Organization') return [String(id)];
  return typeof orgId === 'string' ? [orgId, workspaceId, id].filter((part) => typeof part === 'string') : [];
}
