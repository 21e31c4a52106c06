import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type ResponsePath,
} from 'graphql';
import { printedValue } from './printed-value.ts';
import { type Complete, type Execution, type Field, isPromise } from './types.ts';

const known = new WeakMap<GraphQLOutputType, Complete>();

/** Completes values of a type. What graphql-js decides for each value is decided here once, for the type. */
export function completerOf(type: GraphQLOutputType): Complete {
  let completer = known.get(type);
  if (!completer) {
    completer = isNonNullType(type) ? requiredCompleterOf(type.ofType) : nullableCompleterOf(type);
    known.set(type, completer);
  }
  return completer;
}

function nullableCompleterOf(type: GraphQLOutputType): Complete {
  const complete = presentCompleterOf(type);
  return (execution, field, info, path, value) => {
    if (value instanceof Error) throw value;
    return value === null || value === undefined ? null : complete(execution, field, info, path, value);
  };
}

function requiredCompleterOf(type: GraphQLOutputType): Complete {
  const complete = presentCompleterOf(type);
  return (execution, field, info, path, value) => {
    if (value instanceof Error) throw value;
    if (value === null || value === undefined) throw nullError(field);
    const completed = complete(execution, field, info, path, value);
    if (completed === null) throw nullError(field);
    return completed;
  };
}

/** The error for a null in a field that is not nullable. */
export const nullError = ({ parentType, definition }: Field): Error =>
  new Error(`Cannot return null for non-nullable field ${parentType.name}.${definition.name}.`);

function presentCompleterOf(type: GraphQLOutputType): Complete {
  if (isLeafType(type)) return (_run, _field, _info, _path, value) => completeLeaf(type, value);
  if (isListType(type)) return listCompleterOf(type);
  if (isAbstractType(type)) return abstractCompleterOf(type);
  if (isObjectType(type))
    return (execution, field, info, path, value) => completeObject(execution, field, type, info, path, value);
  throw new Error(`No value can be of the type ${printedValue(type)}.`);
}

/** @throws Error for a value that the type cannot represent */
export function completeLeaf(type: GraphQLLeafType, value: unknown): unknown {
  const serialized: unknown = type.serialize(value);
  if (serialized === null || serialized === undefined)
    throw new Error(
      `Expected \`${printedValue(type)}.serialize(${printedValue(value)})\` to return non-nullable value, ` +
        `returned: ${printedValue(serialized)}`,
    );
  return serialized;
}

function listCompleterOf(type: GraphQLList<GraphQLOutputType>): Complete {
  const itemType = type.ofType;
  const completeItem = completerOf(itemType);
  const isNonNull = isNonNullType(itemType);
  const depth = depthOf(type);
  const itemOf = (
    execution: Execution,
    field: Field,
    info: GraphQLResolveInfo,
    path: ResponsePath,
    item: unknown,
  ): unknown => {
    try {
      const result = isPromise(item)
        ? item.then((resolved) => completeItem(execution, field, info, path, resolved))
        : completeItem(execution, field, info, path, item);
      return isPromise(result)
        ? result.then(undefined, (error: unknown) => execution.failed(field, isNonNull, path, error))
        : result;
    } catch (error) {
      return execution.failed(field, isNonNull, path, error);
    }
  };
  return (execution, field, info, path, value) => {
    if (!isIterable(value))
      throw new GraphQLError(
        `Expected Iterable, but did not find one for field "${field.parentType.name}.${field.definition.name}".`,
      );
    let containsPromise = false;
    const completed: unknown[] = [];
    try {
      for (const item of value) {
        const itemPath: ResponsePath = { prev: path, key: completed.length, typename: undefined };
        const result = itemOf(execution, field, info, itemPath, item);
        if (isPromise(result)) containsPromise = true;
        completed.push(result);
      }
    } catch (error) {
      for (const result of completed) silence(result, 0);
      silence(value, depth);
      throw error;
    }
    return containsPromise ? Promise.all(completed) : completed;
  };
}

/** Lets a value take one more microtask, as it does with graphql-js. */
export const oneMoreStep = <T>(value: T): T => value;

/** Fails after the values of other fields, as late as graphql-js: they may fail, too. */
export const failedAfter = (values: readonly unknown[], error: unknown): Promise<unknown> =>
  Promise.all(values)
    .then(oneMoreStep)
    .finally(() => {
      throw error;
    });

/**
 * Handles the rejections of a value, and of lists in lists of this depth, that nothing waits for: a rejection without a
 * handler ends the process. An iterable that makes its items on demand has none.
 */
export function silence(value: unknown, depth: number): void {
  if (isPromise(value))
    value.then(
      (found) => silence(found, depth),
      () => undefined,
    );
  else if (depth > 0 && (Array.isArray(value) || value instanceof Set))
    for (const item of value) silence(item, depth - 1);
}

/** Number of lists around a type. */
export function depthOf(type: GraphQLOutputType): number {
  if (isNonNullType(type)) return depthOf(type.ofType);
  return isListType(type) ? 1 + depthOf(type.ofType) : 0;
}

const isIterable = (value: unknown): value is Iterable<unknown> =>
  typeof value === 'object' &&
  value !== null &&
  Symbol.iterator in value &&
  typeof value[Symbol.iterator] === 'function';

function abstractCompleterOf(type: GraphQLAbstractType): Complete {
  const resolveType = type.resolveType ?? defaultTypeResolver;
  return (execution, field, info, path, value) => {
    const name: unknown = resolveType(value, execution.contextValue, info, type);
    const complete = (found: unknown) =>
      completeObject(
        execution,
        field,
        runtimeTypeOf(execution.operation.schema, field, type, found, value),
        info,
        path,
        value,
      );
    return isPromise(name) ? name.then(complete) : complete(name);
  };
}

/** @throws GraphQLError with the message of graphql-js, when an abstract type did not resolve to one of its types */
function runtimeTypeOf(
  schema: GraphQLSchema,
  { parentType, definition, nodes }: Field,
  type: GraphQLAbstractType,
  name: unknown,
  value: unknown,
): GraphQLObjectType {
  const place = `field "${parentType.name}.${definition.name}"`;
  if (name === null || name === undefined)
    throw new GraphQLError(
      `Abstract type "${type.name}" must resolve to an Object type at runtime for ${place}. ` +
        `Either the "${type.name}" type should provide a "resolveType" function ` +
        'or each possible type should provide an "isTypeOf" function.',
      { nodes },
    );
  if (isObjectType(name))
    throw new GraphQLError(
      'Support for returning GraphQLObjectType from resolveType was removed in graphql-js@16.0.0 ' +
        'please return type name instead.',
    );
  if (typeof name !== 'string')
    throw new GraphQLError(
      `Abstract type "${type.name}" must resolve to an Object type at runtime for ${place} ` +
        `with value ${printedValue(value)}, received "${printedValue(name)}".`,
    );
  const found = schema.getType(name);
  if (!found)
    throw new GraphQLError(
      `Abstract type "${type.name}" was resolved to a type "${name}" that does not exist inside the schema.`,
      { nodes },
    );
  if (!isObjectType(found))
    throw new GraphQLError(`Abstract type "${type.name}" was resolved to a non-object type "${name}".`, { nodes });
  if (!schema.isSubType(type, found))
    throw new GraphQLError(`Runtime Object type "${found.name}" is not a possible type for "${type.name}".`, { nodes });
  return found;
}

function completeObject(
  execution: Execution,
  field: Field,
  type: GraphQLObjectType,
  info: GraphQLResolveInfo,
  path: ResponsePath,
  value: unknown,
): unknown {
  const selection = field.selectionOf(type);
  if (!type.isTypeOf) return execution.fieldsOf(selection, value, path);
  const complete = (isTypeOf: boolean): unknown => {
    if (isTypeOf) return execution.fieldsOf(selection, value, path);
    throw new GraphQLError(`Expected value of type "${type.name}" but got: ${printedValue(value)}.`, {
      nodes: field.nodes,
    });
  };
  const isTypeOf = type.isTypeOf(value, execution.contextValue, info);
  return isPromise(isTypeOf) ? isTypeOf.then(complete) : complete(isTypeOf);
}
