import { isDeepStrictEqual } from 'node:util';
import {
  type GraphQLInputType,
  getNamedType,
  isInputObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql';
import type { Constraints } from '../../../src/kernel/constraints.ts';
import type { RootField } from '../root-fields.ts';
import { constraintsOf } from '../samples.ts';

type Json = Record<string, unknown>;

/** An argument of a mutation, or a field of its input, that takes a plain value. Free JSON is one value. */
export interface InputLeaf {
  /** `input.targets.weight`: no index tells the elements of a list apart. */
  path: string;
  type: GraphQLInputType;
  constraints: Constraints;
  isRequired: boolean;
}

interface Element {
  name: string;
  type: GraphQLInputType;
  extensions: Readonly<Record<string, unknown>>;
}

/** Everything that a mutation can be given, down to the leaves. */
export const leavesOf = ({ field }: RootField): InputLeaf[] =>
  field.args.flatMap((argument) => leavesBelow(argument.name, argument, isRequiredArgument(argument)));

function leavesBelow(path: string, element: Element, isRequired: boolean): InputLeaf[] {
  const named = getNamedType(element.type);
  if (!isInputObjectType(named)) return [{ path, type: element.type, constraints: constraintsOf(element), isRequired }];
  return Object.values(named.getFields()).flatMap((field) =>
    leavesBelow(`${path}.${field.name}`, field, isRequired && isRequiredInputField(field)),
  );
}

/** The value at a path, in the first element of each list on the way. `undefined` where there is none. */
export function valueAt(value: unknown, path: string): unknown {
  let current = value;
  for (const name of path.split('.')) {
    const inner: unknown = Array.isArray(current) ? current[0] : current;
    if (typeof inner !== 'object' || inner === null) return undefined;
    current = (inner as Json)[name];
  }
  return current;
}

/** What was read under the name of an input's field: in the answer itself, or in an object that the answer wraps. */
export function found(read: unknown, path: string): unknown {
  const name = path.replace(/^input\./, '');
  const own = valueAt(read, name);
  if (own !== undefined || typeof read !== 'object' || read === null) return own;
  const inner = Object.values(read).filter((value) => typeof value === 'object' && !Array.isArray(value));
  return inner.map((value) => valueAt(value, name)).find((value) => value !== undefined);
}

/** Whether a value that was read has all of a value that was given: what was read may have more keys. */
export function holds(read: unknown, given: unknown): boolean {
  if (Array.isArray(given))
    return (
      Array.isArray(read) && read.length === given.length && given.every((item, index) => holds(read[index], item))
    );
  if (typeof given !== 'object' || given === null) return isDeepStrictEqual(read, given);
  if (typeof read !== 'object' || read === null) return false;
  return Object.entries(given).every(([key, inner]) => holds((read as Json)[key], inner));
}
