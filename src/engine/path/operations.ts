import {
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
} from 'graphql';
import type { CallerLimit } from '../../access/caller-limit.ts';
import type { Config } from '../../config.ts';
import type { Context } from '../../graphql/context.ts';
import { ApiError, errorCatalogue } from '../../kernel/errors.ts';
import { callerErrorOfAny } from '../../platform/postgres/faults.ts';
import { clippedVariables, withoutValue } from './coercion-errors.ts';
import { Documents } from './documents.ts';
import { measureOperation } from './limits.ts';
import type { OperationRequest } from './operation-request.ts';
import { isOfArguments, recordRefused } from './refused-operations.ts';

/** The first few errors in variables are enough: each contains the value before it is removed. */
const MAX_VARIABLE_ERRORS = 5;

interface Options {
  schema: GraphQLSchema;
  limit: CallerLimit;
  config: Pick<
    Config,
    'graphqlIntrospection' | 'graphqlMaxAliases' | 'graphqlMaxCost' | 'graphqlMaxDepth' | 'graphqlMaxTokens'
  >;
  onFault: (error: unknown, traceId: string) => void;
}

/** The checks before an operation runs, its execution and the masking of its errors, the same for every transport. */
export class Operations {
  readonly documents: Documents;
  readonly #schema: GraphQLSchema;
  readonly #limit: CallerLimit;
  readonly #maxCost: number;
  readonly #onFault: Options['onFault'];

  constructor({ schema, limit, config, onFault }: Options) {
    this.documents = new Documents(schema, config);
    this.#schema = schema;
    this.#limit = limit;
    this.#maxCost = config.graphqlMaxCost;
    this.#onFault = onFault;
  }

  /**
   * The reasons to refuse an operation; empty if it may run. Its root fields count against the caller's rate limit,
   * except the first, which was counted when the request or the socket's message arrived, even if it contained no
   * operation. A refused operation of a known caller is recorded.
   */
  refusals(asked: OperationRequest, context: Context): readonly GraphQLError[] {
    const errors = this.#refusals(asked, context);
    if (errors[0]) recordRefused(this.#schema, asked, context, { error: errors[0], code: 'VALIDATION_ERROR' });
    return errors;
  }

  /** Records an operation of an invalid document, as far as it names one. */
  recordInvalid(asked: OperationRequest, context: Context, error: GraphQLError): void {
    recordRefused(this.#schema, asked, context, { error, code: 'INVALID_REQUEST' });
  }

  #refusals({ document, operationName, variables }: OperationRequest, { caller }: Context): readonly GraphQLError[] {
    const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? [];
    const given = variables ?? {};
    try {
      const size = measureOperation(this.#schema, document, operationName, given, this.#maxCost);
      const { errors = [] } = getVariableValues(this.#schema, definitions, clippedVariables(definitions, given), {
        maxErrors: MAX_VARIABLE_ERRORS,
      });
      if (errors.length === 0) this.#limit.demandRest(caller, size.rootFields, size.schemaRequests);
      return errors.map(withoutValue);
    } catch (error) {
      if (error instanceof GraphQLError) return [error];
      throw error;
    }
  }

  /** Runs a query or a mutation, by its plan if it has one. */
  async run({ document, operationName, variables }: OperationRequest, context: Context): Promise<ExecutionResult> {
    const plan = this.documents.planOf(document, operationName);
    if (!plan)
      return execute({
        schema: this.#schema,
        document,
        operationName,
        contextValue: context,
        variableValues: variables,
      });
    const result = await plan.run(context, variables ?? {});
    this.documents.keepGrown(document);
    return result;
  }

  /** Errors outside the catalogue are bugs: logged with their trace id, shown as an internal error. */
  masked(asked: OperationRequest, result: ExecutionResult, context: Context): ExecutionResult {
    if (!result.errors) return result;
    for (const error of result.errors.filter(isOfArguments))
      recordRefused(this.#schema, asked, context, { error, code: 'VALIDATION_ERROR', alias: error.path![0]! });
    const errors = result.errors.map((error) => this.#mask(error, context.caller.request.traceId));
    return { ...result, errors: this.documents.located(asked.document, errors) };
  }

  #mask(error: GraphQLError, traceId: string): GraphQLError {
    const { originalError, nodes, path } = error;
    if (!originalError || originalError instanceof GraphQLError) return withoutValue(error);
    const shown = callerErrorOfAny(originalError);
    if (shown instanceof ApiError)
      return new GraphQLError(shown.message, { nodes, path, extensions: shown.extensions });
    this.#onFault(originalError, traceId);
    return new GraphQLError(errorCatalogue.INTERNAL_SERVER_ERROR.message, {
      nodes,
      path,
      extensions: { code: 'INTERNAL_SERVER_ERROR', details: {}, trace_id: traceId },
    });
  }
}
