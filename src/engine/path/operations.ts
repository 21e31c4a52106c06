import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  OperationTypeNode,
} from 'graphql';
import type { CallerLimit } from '../../access/caller-limit.ts';
import type { Config } from '../../config.ts';
import type { Context } from '../../graphql/context.ts';
import { ApiError, errorCatalogue } from '../../kernel/errors.ts';
import type { TraceSpan } from '../../kernel/spans.ts';
import { callerErrorOfAny } from '../../platform/postgres/faults.ts';
import { noTracing, type Tracing } from '../../platform/tracing/tracing.ts';
import { CoercedArgs } from '../execution/coerced-args.ts';
import type { Plan } from '../execution/plan.ts';
import type { Values } from '../execution/types.ts';
import { LiveStream, subscribeLive } from '../live/live-stream.ts';
import { clippedVariables, withoutValue } from './coercion-errors.ts';
import { Documents } from './documents.ts';
import { measureOperation } from './limits.ts';
import { OperationCounts } from './operation-counts.ts';
import type { OperationRequest } from './operation-request.ts';
import { operationSpan, runAsSpan } from './operation-span.ts';
import { emptySelection, isOfArguments, recordRefused } from './refused-operations.ts';

/** The first few errors in variables are enough: each contains the value before it is removed. */
const MAX_VARIABLE_ERRORS = 5;

interface OperationsOptions {
  schema: GraphQLSchema;
  limit: CallerLimit;
  config: Pick<
    Config,
    'graphqlIntrospection' | 'graphqlMaxAliases' | 'graphqlMaxCost' | 'graphqlMaxDepth' | 'graphqlMaxTokens'
  >;
  onFault: (error: unknown, traceId: string) => void;
  tracing?: Tracing | undefined;
}

/** The context of an operation: that of the product is inside. */
export interface OperationContext {
  context: Context;
  /** The stream of a subscription that has started, for transports that send its frames themselves. */
  live?: LiveStream;
}

/** An operation that may run. */
interface Admitted {
  plan: Plan | null;
  /** Its variables, if they were coerced already. */
  coerced?: Values | undefined;
}

type AdmittedOrNot = Admitted | { errors: readonly GraphQLError[] };

/** @throws what is no refusal */
function refusalOr(error: unknown): { errors: readonly GraphQLError[] } {
  if (error instanceof GraphQLError) return { errors: [error] };
  throw error;
}

/**
 * The one way of an operation, whatever brings it: parse and validate within limits, refuse, run, mask. What the
 * service itself wrote, the documents of the façade, is only run: the façade reads their input and shows their errors.
 */
export class Operations {
  readonly documents: Documents;
  /** Of the documents that clients sent. */
  readonly counts = new OperationCounts();
  readonly #schema: GraphQLSchema;
  readonly #coercedArgs: CoercedArgs;
  readonly #limit: CallerLimit;
  readonly #maxCost: number;
  readonly #onFault: OperationsOptions['onFault'];
  readonly #tracing: Tracing;

  constructor({ schema, limit, config, onFault, tracing = noTracing }: OperationsOptions) {
    this.documents = new Documents(schema, config);
    this.#schema = schema;
    this.#coercedArgs = new CoercedArgs(schema);
    this.#limit = limit;
    this.#maxCost = config.graphqlMaxCost;
    this.#onFault = onFault;
    this.#tracing = tracing;
  }

  /** @throws GraphQLError for a text that is too long or not a document; nothing in it repeats a value of the text */
  parse(text: string): DocumentNode {
    try {
      return this.documents.parse(text);
    } catch (error) {
      throw error instanceof GraphQLError ? withoutValue(error) : error;
    }
  }

  /** The mistakes in a document, without the values in it. An operation of an invalid one is recorded. */
  validate(asked: OperationRequest, context: Context): readonly GraphQLError[] {
    const errors = this.documents.validate(asked.document);
    const [error] = errors;
    if (error) recordRefused(this.#schema, asked, context, { error, code: 'INVALID_REQUEST' });
    return errors.map(withoutValue);
  }

  /** Runs a query or a mutation, unless it is refused. */
  execute(args: ExecutionArgs): Promise<ExecutionResult> | ExecutionResult {
    const plan = this.documents.trustedPlanOf(args.document);
    const run = () => (plan === undefined ? this.#executeAsked(args) : this.#run(args, { plan }));
    const span = this.#spanOf(args, plan !== undefined);
    return span ? runAsSpan(span, run) : run();
  }

  #spanOf(args: ExecutionArgs, isOurs: boolean): TraceSpan | null {
    if (!this.#tracing.isOn) return null;
    const { request } = (args.contextValue as OperationContext).context.anyCaller;
    return operationSpan(args, { request, isOurs, tracing: this.#tracing });
  }

  async #executeAsked(args: ExecutionArgs): Promise<ExecutionResult> {
    const { context } = args.contextValue as OperationContext;
    const asked = askedBy(args);
    const isAdmitted = this.#admitted(asked, context);
    const admitted = isAdmitted instanceof Promise ? await isAdmitted : isAdmitted;
    if ('errors' in admitted) return this.counts.add(asked, 'refused', admitted);
    const result = await this.#run(args, admitted);
    this.counts.add(asked, result.errors ? 'failed' : 'answered', result);
    this.documents.keepGrown(args.document);
    return this.#masked(asked, result, context);
  }

  /** Starts a subscription, unless it is refused. @returns the one result of a subscription that did not start */
  async subscribe(args: ExecutionArgs): Promise<LiveStream | ExecutionResult> {
    const isOurs = this.documents.trustedPlanOf(args.document) !== undefined;
    const run = async () => {
      const started = await this.#subscribe(args, isOurs);
      const outcome = started instanceof LiveStream ? 'answered' : 'failed';
      return isOurs ? started : this.counts.add(askedBy(args), outcome, started);
    };
    const span = this.#spanOf(args, isOurs);
    if (!span) return run();
    const started = await runAsSpan(span, run);
    // it goes on for hours, and what it does then is no part of the request
    if (started instanceof LiveStream) span.parent?.end();
    return started;
  }

  async #subscribe(args: ExecutionArgs, isTrusted: boolean): Promise<LiveStream | ExecutionResult> {
    const operation = args.contextValue as OperationContext;
    const { context } = operation;
    const asked = askedBy(args);
    const mask = (shown: ExecutionResult) => (isTrusted ? shown : this.#masked(asked, shown, context));
    const admitted = isTrusted ? null : await this.#admitted(asked, context);
    if (admitted && 'errors' in admitted) return admitted;
    const empty = emptySelection(this.#schema, asked);
    if (empty) return mask({ errors: [empty] });
    // an event shows that something is newer than a replica may be
    context.anyCaller.request.isStream = true;
    const live = { ...this.#argsOf(args, admitted?.coerced), contextValue: context };
    const started = await subscribeLive(live, mask).catch((error: unknown) => ({
      errors: [new GraphQLError('', { originalError: asError(error) })],
    }));
    if (!(started instanceof LiveStream)) return mask(started);
    operation.live = started;
    return started;
  }

  /**
   * An operation that may run, or the reasons to refuse it. Its root fields count against the caller's rate limit,
   * except the first, which was counted when the request or the socket's message arrived, even if it contained no
   * operation. A refused operation of a known caller is recorded.
   */
  #admitted(asked: OperationRequest, context: Context): AdmittedOrNot | Promise<AdmittedOrNot> {
    const recorded = (admitted: AdmittedOrNot): AdmittedOrNot => {
      if ('errors' in admitted)
        recordRefused(this.#schema, asked, context, { error: admitted.errors[0]!, code: 'VALIDATION_ERROR' });
      return admitted;
    };
    const admitted = this.#unlessRefused(asked, context);
    return admitted instanceof Promise ? admitted.then(recorded) : recorded(admitted);
  }

  #unlessRefused(asked: OperationRequest, { anyCaller }: Context): AdmittedOrNot | Promise<AdmittedOrNot> {
    const { document, operationName, variables } = asked;
    try {
      const size = measureOperation(this.#schema, document, operationName, variables ?? {}, this.#maxCost);
      const plan = this.documents.planOf(document, operationName);
      const plain = plan?.plainVariables(variables ?? {});
      const read = plain ? { coerced: plain } : this.#coerced(asked);
      if ('errors' in read) return read;
      const admitted = { plan, coerced: read.coerced };
      const charged = this.#limit.demandRest(anyCaller, size.rootFields, size.schemaRequests);
      return charged instanceof Promise ? charged.then(() => admitted, refusalOr) : admitted;
    } catch (error) {
      return refusalOr(error);
    }
  }

  /** The coerced variables, unless only what is left out of the messages of errors is wrong, or the errors in them. */
  #coerced({
    document,
    operationName,
    variables,
  }: OperationRequest): Pick<Admitted, 'coerced'> | { errors: readonly GraphQLError[] } {
    const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? [];
    const given = variables ?? {};
    const { coerced } = getVariableValues(this.#schema, definitions, given, { maxErrors: 0 });
    if (coerced) return { coerced };
    const clipped = clippedVariables(definitions, given);
    const { errors } = getVariableValues(this.#schema, definitions, clipped, { maxErrors: MAX_VARIABLE_ERRORS });
    return errors ? { errors: errors.map(withoutValue) } : { coerced };
  }

  /** By the plan of a query, if it has one. */
  #run(args: ExecutionArgs, { plan, coerced }: Admitted): Promise<ExecutionResult> | ExecutionResult {
    const { context: contextValue } = args.contextValue as OperationContext;
    return plan
      ? plan.run(contextValue, args.variableValues ?? {}, coerced)
      : execute({ ...this.#argsOf(args, coerced), contextValue });
  }

  /** What graphql-js gets, which coerces the variables of an operation unless they are coerced already. */
  #argsOf({ document, operationName, variableValues }: ExecutionArgs, coerced: Values | undefined): ExecutionArgs {
    if (coerced && getOperationAST(document, operationName)?.operation !== OperationTypeNode.QUERY)
      return this.#coercedArgs.of(document, operationName, coerced);
    return { schema: this.#schema, document, operationName, variableValues };
  }

  /** Errors outside the catalogue are bugs: logged with their trace id, shown as an internal error. */
  #masked(asked: OperationRequest, result: ExecutionResult, context: Context): ExecutionResult {
    if (!result.errors) return result;
    for (const error of result.errors.filter(isOfArguments))
      recordRefused(this.#schema, asked, context, { error, code: 'VALIDATION_ERROR', alias: error.path![0]! });
    const errors = result.errors.map((error) => this.#mask(error, context.anyCaller.request.traceId));
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

const askedBy = ({ document, operationName, variableValues }: ExecutionArgs): OperationRequest => ({
  document,
  operationName,
  variables: variableValues,
});

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
