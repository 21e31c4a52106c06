import type { GraphQLField } from 'graphql';
import type { CursorScope, Cursors } from '../../data/cursors.ts';
import { listScope } from './list-scope.ts';

type Field = GraphQLField<unknown, unknown>;
type Values = Readonly<Record<string, unknown>>;

/** The field that a cursor belongs to, with its parent. */
interface Call {
  cursors: Cursors;
  field: Field;
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
export const cursorArgument = (field: Field): string | undefined =>
  field.args.find(({ extensions }) => extensions.isCursor)?.name;

/** Opens the cursor of a list field, once for the same arguments. @throws InputError at the argument */
export function openCursor({ cursors, field, parentType, parent }: Call, args: Values): Opened {
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
