import { type GraphQLField, GraphQLID, getNamedType, isNonNullType } from 'graphql';
import type { CursorScope, Cursors } from '../../data/cursors.ts';
import { constraintsOf } from '../../kernel/constraints.ts';

type ListField = GraphQLField<unknown, unknown>;
type ArgumentValues = Readonly<Record<string, unknown>>;

/** The field that a cursor belongs to, with its parent. */
interface Call {
  cursors: Cursors;
  field: ListField;
  parentType: string;
  parent: unknown;
}

/** What a cursor was opened to: the position in its list. */
interface Opened {
  scope: CursorScope;
  position: string | null;
}

/** By the arguments that the cursor is one of: a cursor is opened once. */
const opened = new WeakMap<object, Opened>();

/** The name of the argument that takes a cursor, if a field has one. */
export const cursorArgument = (field: ListField): string | undefined =>
  field.args.find(({ extensions }) => extensions.isCursor)?.name;

/** Opens the cursor of a list field, once for the same arguments. @throws InputError at the argument */
export function openCursor({ cursors, field, parentType, parent }: Call, args: ArgumentValues): Opened {
  const known = opened.get(args);
  if (known) return known;
  const argument = cursorArgument(field)!;
  const scope = listScope(field, parentType, parent, args);
  const position = cursors.decode(scope, args[argument] as string | null | undefined, argument);
  const cursor = { scope, position };
  opened.set(args, cursor);
  return cursor;
}

/** The cursor that was opened with some arguments is that of others, which have the same values. */
export function passCursor(from: object, to: object): void {
  const cursor = opened.get(from);
  if (cursor) opened.set(to, cursor);
}

/**
 * Identifies a list by its field, arguments and parent: what it lists, below which parent, and with which filters. A
 * root field and the field of the object that its arguments name have the same scope.
 */
function listScope(
  field: GraphQLField<unknown, unknown>,
  parentType: string,
  parent: unknown,
  args: ArgumentValues,
): CursorScope {
  const above = idsOf(parentType, (parent ?? {}) as ArgumentValues);
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
function idsOf(type: string, { orgId, workspaceId, id }: ArgumentValues): string[] {
  if (type === 'Organization') return [String(id)];
  return typeof orgId === 'string' ? [orgId, workspaceId, id].filter((part) => typeof part === 'string') : [];
}
