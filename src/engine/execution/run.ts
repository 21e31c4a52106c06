import { setImmediate } from 'node:timers/promises';
import {
  type GraphQLError,
  type GraphQLResolveInfo,
  locatedError,
  type ResponsePath,
  responsePathAsArray,
} from 'graphql';
import { completeLeaf, depthOf, failedAfter, nullError, oneMoreStep, silence } from './completion.ts';
import { type Execution, type Field, isPromise, type Operation, type Selection, type Values } from './types.ts';

/** Objects of nested lists that are completed at once. */
const PORTION = 500;

/** A value of an object that is not there yet. */
interface Awaited {
  key: string;
  value: Promise<unknown>;
}

/** See {@link Execution}. */
export class Run implements Execution {
  readonly operation: Operation;
  readonly contextValue: unknown;
  readonly errors: GraphQLError[] = [];
  readonly #variables: Values;
  readonly #failedAt = new Set<ResponsePath | undefined>();
  #turn: Promise<void> | null = null;
  /** Objects that are completed in this turn. */
  #inTurn = 0;

  constructor(operation: Operation, contextValue: unknown, variables: Values) {
    this.operation = operation;
    this.contextValue = contextValue;
    this.#variables = variables;
  }

  fieldsOf({ fields, blank }: Selection, source: unknown, path: ResponsePath | undefined): Values | Promise<unknown> {
    const results = blank();
    let awaited: [Awaited, ...Awaited[]] | undefined;
    try {
      for (const field of fields) {
        const { key } = field;
        const value = field.column ? this.#column(field, source, path) : this.#field(field, source, path);
        if (!isPromise(value)) results[key] = value;
        else if (awaited) awaited.push({ key, value });
        else awaited = [{ key, value }];
      }
    } catch (error) {
      if (!awaited) throw error;
      return failedAfter(
        awaited.map(({ value }) => value),
        error,
      );
    }
    if (!awaited) return results;
    return awaited.length === 1 ? oneOf(results, awaited[0]) : allOf(results, awaited);
  }

  failed(field: Field, isNonNull: boolean, path: ResponsePath, cause: unknown): null {
    const error = locatedError(cause, field.nodes, responsePathAsArray(path));
    if (isNonNull) throw error;
    this.add(error, path);
    return null;
  }

  /** Adds an error, unless an enclosing value is already null. */
  add(error: GraphQLError, path: ResponsePath | undefined): void {
    if (this.#failedAt.size > 0) {
      for (let at = path; at; at = at.prev) if (this.#failedAt.has(at)) return;
      if (this.#failedAt.has(undefined)) return;
    }
    this.#failedAt.add(path);
    this.errors.push(error);
  }

  /** A plain property of the object: needs nothing of what a resolver would get. */
  #column(field: Field, source: unknown, path: ResponsePath | undefined): unknown {
    const { column, property } = field;
    if (!column || typeof source !== 'object' || source === null) return this.#field(field, source, path);
    const value = (source as Values)[property];
    if (typeof value === 'function' || isPromise(value)) return this.#field(field, source, path);
    try {
      if (value instanceof Error) throw value;
      if (value !== null && value !== undefined) return completeLeaf(column, value);
      if (field.isNonNull) throw nullError(field);
      return null;
    } catch (error) {
      return this.failed(field, field.isNonNull, pathOf(field, path), error);
    }
  }

  #field(field: Field, source: unknown, parent: ResponsePath | undefined): unknown {
    const path = pathOf(field, parent);
    const info = this.#infoOf(field, path);
    try {
      const args = field.argumentsOf(this.#variables);
      const result: unknown = field.resolve(source, args, this.contextValue, info);
      if (!isPromise(result)) return this.#completed(field, path, field.complete(this, field, info, path, result));
      const completed = result.then((resolved) => this.#completeAwaited(field, info, path, resolved));
      return this.#completed(field, path, completed);
    } catch (error) {
      return this.failed(field, field.isNonNull, path, error);
    }
  }

  /** A completed value, which is null after a failure. */
  #completed(field: Field, path: ResponsePath, value: unknown): unknown {
    if (!isPromise(value)) return value;
    return value.then(undefined, (error: unknown) => this.failed(field, field.isNonNull, path, error));
  }

  /**
   * Lists that were read together arrive together, hundreds of them: they are completed in portions, between which
   * other requests have their turn. Only what calls no resolver can wait: what resolvers ask for together is read
   * together.
   */
  #completeAwaited(field: Field, info: GraphQLResolveInfo, path: ResponsePath, value: unknown): unknown {
    const turn = Array.isArray(value) && field.isPlain ? this.#turnFor(value.length) : null;
    if (!turn) return field.complete(this, field, info, path, value);
    silence(value, depthOf(field.definition.type));
    return turn.then(() => field.complete(this, field, info, path, value));
  }

  /** When so many more objects may be completed; `null` for now. */
  #turnFor(objects: number): Promise<void> | null {
    if (this.#inTurn > 0 && this.#inTurn + objects > PORTION) {
      this.#inTurn = 0;
      this.#turn = (this.#turn ?? Promise.resolve()).then(() => setImmediate());
    }
    this.#inTurn += objects;
    return this.#turn;
  }

  #infoOf({ definition, nodes, parentType }: Field, path: ResponsePath): GraphQLResolveInfo {
    const { schema, node, fragments } = this.operation;
    return {
      fieldName: definition.name,
      fieldNodes: nodes,
      returnType: definition.type,
      parentType,
      path,
      schema,
      fragments,
      rootValue: undefined,
      operation: node,
      variableValues: this.#variables,
    };
  }
}

/**
 * The object once its only awaited value is there. Most objects wait for one: what {@link allOf} keeps for each of
 * hundreds would be most of what lives meanwhile. Both take two steps, as many as graphql-js.
 */
const oneOf = (object: Values, { key, value }: Awaited): Promise<Values> =>
  value
    .then((resolved) => {
      object[key] = resolved;
      return object;
    })
    .then(oneMoreStep);

/** The object once all awaited values are there. */
const allOf = (object: Values, awaited: readonly Awaited[]): Promise<Values> =>
  Promise.all(awaited.map(({ value }) => value)).then((resolved) => {
    for (const [index, { key }] of awaited.entries()) object[key] = resolved[index];
    return object;
  });

const pathOf = ({ key, parentType }: Field, prev: ResponsePath | undefined): ResponsePath => ({
  prev,
  key,
  typename: parentType.name,
});
