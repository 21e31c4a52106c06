import { type GraphQLField, type GraphQLInputType, getNullableType, isInputObjectType } from 'graphql';
import type { Cursors } from '../../data/cursors.ts';
import { constraintsOf } from '../../kernel/constraints.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { cursorArgument, openCursor } from './page-cursor.ts';

type AnyField = GraphQLField<unknown, unknown>;
type ArgumentValues = Readonly<Record<string, unknown>>;

/**
 * Finds invalid combinations of arguments that may each be valid alone: a cursor that was made for other filters, a
 * value that must repeat another. Needs only the input, so it is reported before access is checked.
 */
export function argumentIssues(
  field: AnyField,
  parentType: string,
  parent: unknown,
  args: ArgumentValues,
  cursors: Cursors,
): InputIssue[] {
  const { cursor, twins } = linksOf(field);
  const issues: InputIssue[] = [];
  if (cursor && args[cursor]) issues.push(...issuesOf(() => openCursor({ cursors, field, parentType, parent }, args)));
  for (const { path, sameAs } of twins) {
    const value = path.reduce<unknown>((at, step) => (at as ArgumentValues | null | undefined)?.[step], args);
    const wanted = args[sameAs];
    if (typeof value === 'string' && typeof wanted === 'string' && value !== wanted)
      issues.push(valueIssue(path, `must equal the id that the request names, '${wanted}'`));
  }
  return issues;
}

/** Whether the validity of an argument depends on another one. */
export function comparesArguments(field: AnyField): boolean {
  const { cursor, twins } = linksOf(field);
  return cursor !== undefined || twins.length > 0;
}

function issuesOf(work: () => unknown): InputIssue[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof InputError) return error.issues;
    throw error;
  }
}

interface Links {
  /** The argument that takes a cursor. */
  cursor: string | undefined;
  /** Values that must equal an argument. */
  twins: { path: string[]; sameAs: string }[];
}

const known = new WeakMap<AnyField, Links>();

function linksOf(field: AnyField): Links {
  let links = known.get(field);
  if (!links) {
    const cursor = cursorArgument(field);
    links = { cursor, twins: field.args.flatMap((argument) => twinsOf(argument, [], [])) };
    known.set(field, links);
  }
  return links;
}

interface Element {
  name: string;
  type: GraphQLInputType;
  extensions: Readonly<Record<string, unknown>>;
}

function twinsOf(element: Element, above: string[], types: GraphQLInputType[]): Links['twins'] {
  const path = [...above, element.name];
  const { sameAs } = constraintsOf(element);
  const type = getNullableType(element.type);
  const inner =
    isInputObjectType(type) && !types.includes(type)
      ? Object.values(type.getFields()).flatMap((field) => twinsOf(field, path, [...types, type]))
      : [];
  return sameAs ? [{ path, sameAs }, ...inner] : inner;
}
