import type { GraphQLInputObjectType, GraphQLInputType } from 'graphql';
import {
  GraphQLInt,
  GraphQLString,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
} from 'graphql';
import type { Constraints } from '../src/kernel/constraints.ts';
import { checkConstraints, constraintsOf, expectation } from '../src/kernel/constraints.ts';
import { jsonTypeOf } from '../src/kernel/json-type.ts';
import { at, type ValueReader } from './issues.ts';
import { fieldOfUnknownKeys, isWords, restFields, restValues } from './names.ts';
import { readScalar } from './scalars.ts';

/** The reader of a type. It reads texts of the URL and values of a body alike: pydantic's lax mode. */
export function readerOf(type: GraphQLInputType, constraints: Constraints): ValueReader {
  const read = nonNullReaderOf(getNullableType(type), constraints);
  // a null for a non-null type, or for a field that cannot be cleared, fails as a wrong type
  return isNonNullType(type) || constraints.notNull
    ? read
    : (value, where, issues) => (value === null ? null : read(value, where, issues));
}

function nonNullReaderOf(type: GraphQLInputType, constraints: Constraints): ValueReader {
  if (isListType(type))
    return listReader(readerOf(type.ofType as GraphQLInputType, constraints.item ?? {}), constraints);
  if (isInputObjectType(type)) return objectReader(type);
  if (isEnumType(type)) {
    const values = restValues(type);
    if (!isWords(type)) return literalReader(values);
    return bounded(readScalar(GraphQLString), { oneOf: [...values.keys()], ...constraints });
  }
  return bounded(readScalar(type), withinType(type, constraints));
}

/**
 * Bounds that the type and the database impose: the range of GraphQL's Int, and the range of counters that JSON keeps
 * exact.
 */
export function withinType(type: GraphQLInputType, constraints: Constraints): Constraints {
  if (type === GraphQLInt) return { min: -(2 ** 31), max: 2 ** 31 - 1, ...constraints };
  const isInt53 = isScalarType(type) && jsonTypeOf(type) === 'int53';
  return isInt53 ? { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, ...constraints } : constraints;
}

/** Applies the schema's constraints to the value that the reader returns, in pydantic's order: type, then bounds. */
function bounded(read: ValueReader, constraints: Constraints): ValueReader {
  return (value, where, issues) => {
    const before = issues.items.length;
    const result = read(value, where, issues);
    if (issues.items.length > before) return undefined;
    for (const issue of checkConstraints(result, constraints)) {
      // shown as it was sent: "0", not 0. In an object, the input of checkConstraints is more precise (it may replace
      // the value)
      const input = typeof value === 'object' ? issue.input : value;
      issues.add(where, issue.type, issue.msg, input, issue.ctx, issue.path);
    }
    return result;
  };
}

function literalReader(values: ReadonlyMap<string, string>): ValueReader {
  const expected = expectation([...values.keys()]);
  return (value, where, issues) => {
    const meant = typeof value === 'string' ? values.get(value) : undefined;
    if (meant !== undefined) return meant;
    issues.add(where, 'literal_error', `Input should be ${expected}`, value, { expected });
    return undefined;
  };
}

function listReader(item: ValueReader, { minItems, maxItems }: Constraints): ValueReader {
  const isBounded = minItems !== undefined || maxItems !== undefined;
  return (value, where, issues) => {
    if (!Array.isArray(value)) {
      issues.add(where, 'list_type', 'Input should be a valid list', value);
      return undefined;
    }
    if (isBounded) {
      // the item reader checks the items
      const [wrong] = checkConstraints(value, { minItems, maxItems }).filter((issue) => issue.path.length === 0);
      if (wrong) {
        issues.add(where, wrong.type, wrong.msg, value, wrong.ctx);
        return undefined;
      }
    }
    return value.map((element: unknown, index) => item(element, at(where, index), issues));
  };
}

function objectReader(type: GraphQLInputObjectType): ValueReader {
  const fields = [...restFields(type)].map(([key, field]) => ({
    key,
    name: field.name,
    isRequired: isNonNullType(field.type) && field.defaultValue === undefined,
    read: readerOf(field.type, constraintsOf(field)),
  }));
  const known = new Set(fields.map(({ key }) => key));
  const others = fieldOfUnknownKeys(type);
  const readOthers = others && readerOf(others.type, constraintsOf(others));
  return (value, where, issues) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      issues.add(
        where,
        'model_attributes_type',
        'Input should be a valid dictionary or object to extract fields from',
        value,
      );
      return undefined;
    }
    const given = value as Record<string, unknown>;
    const result: Record<string, unknown> = {};
    for (const { key, name, isRequired, read } of fields) {
      // an omitted field stays omitted: a resolver must be able to distinguish it from null
      if (Object.hasOwn(given, key)) result[name] = read(given[key], at(where, key), issues);
      else if (isRequired) issues.add(at(where, key), 'missing', 'Field required', value);
    }
    if (others && readOthers) {
      const unknown = Object.entries(given).filter(([key]) => !known.has(key));
      if (unknown.length > 0) result[others.name] = readOthers(Object.fromEntries(unknown), where, issues);
    }
    return result;
  };
}
