import type { GraphQLInputObjectType, GraphQLInputType } from 'graphql';
import {
  getNamedType,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isScalarType,
} from 'graphql';
import { type Constraints, constraintsOf } from '../src/kernel/constraints.ts';
import { restFields, restValues } from './names.ts';
import type { CompiledOperation } from './operation.ts';

/** What is derived of a group: the name of its file in words, and what its operations create. */
export function derivedGroup(
  file: string,
  operations: readonly Pick<CompiledOperation, 'method' | 'response'>[],
): { file: string; name: string; description?: string } {
  const words = file.replaceAll('-', ' ');
  const name = words.charAt(0).toUpperCase() + words.slice(1);
  const created = operations.find(({ method, response }) => method === 'POST' && response.kind === 'value');
  const type = created && getNamedType(created.response.type);
  return type && !isLeafType(type) && type.description ? { file, name, description: type.description } : { file, name };
}

/**
 * An example of a body: its required fields, and the optional ones that a plain value fits.
 * @returns `null` when a required field has a form that only somebody who knows it can fill in
 */
export function derivedExample(type: GraphQLInputObjectType): Record<string, unknown> | null {
  const example: Record<string, unknown> = {};
  for (const [name, field] of restFields(type)) {
    const value = exampleOf(name, field.type, constraintsOf(field));
    if (value !== undefined) example[name] = value;
    else if (isNonNullType(field.type) && field.defaultValue === undefined) return null;
  }
  return example;
}

function exampleOf(name: string, type: GraphQLInputType, constraints: Constraints): unknown {
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    if ((constraints.minItems ?? 1) > 1) return undefined;
    const item = exampleOf(name.replace(/s$/, ''), nullable.ofType, constraints.item ?? {});
    return item === undefined ? undefined : [item];
  }
  if (isEnumType(nullable)) return (constraints.oneOf ?? [...restValues(nullable).keys()])[0];
  if (!isScalarType(nullable)) return undefined;
  switch (nullable.name) {
    case 'String':
      return textOf(name, constraints);
    // an identifier of something that must be there: an optional one would need a reason
    case 'ID':
      return isNonNullType(type) ? `{${name}}` : undefined;
    case 'Boolean':
      return true;
    case 'Int':
    case 'Int53':
    case 'Float':
      return Math.min(Math.max(1, constraints.min ?? 1), constraints.max ?? Number.MAX_SAFE_INTEGER);
    case 'JSONObject':
      return constraints.shape ? undefined : { note: 'Any JSON.' };
    default:
      return undefined;
  }
}

function textOf(name: string, { oneOf, format, pattern, minLength = 0, maxLength = Infinity }: Constraints): unknown {
  if (oneOf) return oneOf[0];
  if (format === 'email') return 'ann@example.com';
  if (format === 'uri') return 'https://example.com';
  if (pattern !== undefined) return undefined;
  const text = `Example ${name.replaceAll('_', ' ')}`.slice(0, maxLength);
  return text.length < minLength ? undefined : text;
}
