import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLSchema,
  getVariableValues,
  Kind,
  type OperationDefinitionNode,
} from 'graphql';
import { conditionKey, conditionVariables } from './conditions.ts';
import { Run } from './run.ts';
import { Selections } from './selection.ts';
import { isPromise, type Operation, type Selection, type Values } from './types.ts';
import { plainVariables } from './values.ts';

type MaybePromise<T> = T | Promise<T>;

/** Combinations of condition values that a plan keeps selections for: enough for four independent conditions. */
const MAX_CONDITIONS = 16;

interface PlanOptions {
  /** Maximum number of fields, counted per type. A plan with more is given up: {@link Plan.isTooLarge}. */
  maxFields?: number;
}

/**
 * A query with everything precomputed that is the same in each run: the fields per type, the completion of their
 * values, the arguments without variables. It is made of closures, never of generated code, because documents come from
 * clients. Its answer equals that of graphql-js' `execute`, including errors and their order, as long as what resolvers
 * promise settles in the same order: each value takes as many microtasks to complete as with graphql-js.
 */
export class Plan {
  readonly #document: DocumentNode;
  readonly #operation: Operation;
  readonly #conditions: readonly string[];
  readonly #maxFields: number;
  readonly #plainVariables: ReturnType<typeof plainVariables>;
  readonly #selections = new Map<string, { selections: Selections; root: Selection }>();

  /** @throws Error for an operation that is not a query */
  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    node: OperationDefinitionNode,
    { maxFields = Number.POSITIVE_INFINITY }: PlanOptions = {},
  ) {
    if (node.operation !== 'query') throw new Error('Only queries run by a plan.');
    const fragments: Record<string, FragmentDefinitionNode> = Object.create(null) as Record<string, never>;
    for (const definition of document.definitions)
      if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments[definition.name.value] = definition;
    this.#document = document;
    this.#operation = { schema, node, fragments };
    this.#conditions = conditionVariables(document);
    this.#maxFields = maxFields;
    this.#plainVariables = plainVariables(schema, node);
  }

  /** Number of fields in the plan so far. It grows with the types and conditions that occur. */
  get size(): number {
    let size = 0;
    for (const { selections } of this.#selections.values()) size += selections.size;
    return size;
  }

  /** Whether the plan is over its limit. It must then be dropped, and graphql-js executes the document. */
  get isTooLarge(): boolean {
    return this.size > this.#maxFields;
  }

  /** The coerced variables, if all of them are plain scalars; `undefined` where graphql-js must coerce them. */
  plainVariables(given: Values): Values | undefined {
    return this.#plainVariables(given);
  }

  /**
   * Errors in the variables are returned in `errors`, like those of resolvers.
   * @param coerced the same variables, where somebody has coerced them before
   */
  run(contextValue: unknown, variableValues: Values, coerced?: Values): MaybePromise<ExecutionResult> {
    const { schema, node } = this.#operation;
    let variables = coerced ?? this.#plainVariables(variableValues);
    if (!variables) {
      const read = getVariableValues(schema, node.variableDefinitions ?? [], variableValues, { maxErrors: 50 });
      if (read.errors) return { errors: read.errors };
      variables = read.coerced;
    }
    const root = this.#rootOf(variables);
    if (!root) {
      const operationName = node.name?.value;
      return execute({ schema, document: this.#document, contextValue, variableValues, operationName });
    }
    const run = new Run(this.#operation, contextValue, variables);
    const answered = (data: Values | null): ExecutionResult =>
      run.errors.length === 0 ? { data } : { errors: run.errors, data };
    const failed = (error: unknown): ExecutionResult => {
      run.add(error as GraphQLError, undefined); // every error that gets here has a location
      return answered(null);
    };
    try {
      const data = run.fieldsOf(root, undefined, undefined);
      return isPromise(data) ? data.then((found) => answered(found as Values), failed) : answered(data);
    } catch (error) {
      return failed(error);
    }
  }

  /** `null` for invalid conditions, and beyond the number of combinations that are kept. */
  #rootOf(variables: Values): Selection | null {
    const key = conditionKey(this.#conditions, variables);
    if (key === null) return null;
    const known = this.#selections.get(key);
    if (known) return known.root;
    if (this.#selections.size >= MAX_CONDITIONS) return null;
    const { schema, node } = this.#operation;
    const values = Object.fromEntries(this.#conditions.map((name) => [name, variables[name]]));
    const selections = new Selections(this.#operation, values);
    const type = schema.getQueryType();
    if (!type) return null;
    const root = selections.of(type, [node.selectionSet]);
    this.#selections.set(key, { selections, root });
    return root;
  }
}
