import type { DocumentNode, ExecutionResult, GraphQLOutputType } from 'graphql';
import type { LiveStream } from '../src/engine/live/live-stream.ts';
import type { ErrorCode } from '../src/kernel/errors.ts';
import type { ErrorSet, RestMethod } from './directives.ts';
import type { OperationInput, RequestParts } from './input.ts';
import type { BodyKind, BodyParameter, Parameter } from './parameters.ts';
import type { ObjectShape } from './selection.ts';

/** The success response. */
export interface ResponseBody {
  /**
   * `empty`: no body (204). `nothing`: the JSON text `null`. `events`: a stream of server-sent events with this value.
   * `lines`: a stream of lines of JSON with this value.
   */
  kind: 'value' | 'empty' | 'nothing' | 'events' | 'lines';
  /** Type of the `@body` field. */
  type: GraphQLOutputType;
  /** Shape of its (innermost) object; `null` for leaves. */
  shape: ObjectShape | null;
  /** Key of the field that becomes the `id` of a frame and is not part of its data; `null` for none. */
  eventId: string | null;
  /** Key of the field that becomes the address of a redirect and is not part of the body; `null` for none. */
  redirect: string | null;
}

/** Argument -> location of its value in a request. */
export type RootArguments = Readonly<Record<string, { in: 'params' | 'query'; name: string }>>;

/** Runs the documents of operations. Errors in the variables are returned like errors of a resolver. */
export interface DocumentRunner {
  /** Called once for each document, before it runs. */
  add(document: DocumentNode): void;
  /** Runs a query or a mutation. */
  execute(
    document: DocumentNode,
    context: object,
    variables: Record<string, unknown>,
  ): Promise<ExecutionResult> | ExecutionResult;
  /** Starts a subscription: a stream of results, or one result with the errors that prevented it. */
  subscribe(
    document: DocumentNode,
    context: object,
    variables: Record<string, unknown>,
  ): Promise<LiveStream | ExecutionResult>;
}

/**
 * One route of the REST API, compiled from one operation document: its parameters, body, response, document and
 * functions when they are first asked for, if the document is known to be valid.
 */
export interface CompiledOperation {
  name: string;
  type: 'query' | 'mutation' | 'subscription';
  method: RestMethod;
  /** Path template as in the spec: `/v1/orgs/{org_id}`. */
  path: string;
  /** The same for Fastify: `/v1/orgs/:org_id`. */
  url: string;
  /** Path of the document below the operations folder, and the 1-based line of the operation in it. */
  file: string;
  line: number;
  comment: string;
  errors: ErrorSet;
  /** Status of success. */
  status: number;
  /** How many JSON values the body may have; `null` for the bound of all routes. */
  maxValues: number | null;
  /** The same `Idempotency-Key` gets the first answer again. */
  isReplayed: boolean;
  /** All root fields may be used without a principal. */
  isPublic: boolean;
  /** Not part of the spec: the document is below `additions/`. */
  isAddition: boolean;
  takes: BodyKind;
  /** In the order path, query, header. */
  parameters: Parameter[];
  body: BodyParameter | null;
  response: ResponseBody;
  /** The schema's description of the root field that leads to the body. */
  description: string;
  /** Errors that its root fields declare, beyond those that follow from the form of the operation. */
  mayFail: readonly ErrorCode[];
  /** The root field that the operation selects; the first, if there are several. */
  rootField: string;
  /** The path or query parameter behind each argument of the root field. */
  rootArguments: RootArguments;
  /** The route accepts `If-Match`, because the root field takes `expectedVersion`. */
  takesIfMatch: boolean;
  /** Takes the `ETag` out of a result, before {@link bodyOf}; `null` when the body is not a single resource. */
  etag: ((result: ExecutionResult) => string | null) | null;
  /** The executed document: without façade directives, with REST names as aliases. */
  document: DocumentNode;

  /** Reads and validates the variables of a request. */
  read(request: RequestParts): OperationInput;
  /**
   * Adds the failures of values that contradict each other, as far as the schema can find them from the input alone.
   * The schema does not check again what is valid then.
   */
  compare(context: object, input: OperationInput, request: RequestParts): void;
  /**
   * The response body of a result.
   * @throws ValidationFailure, an error of the catalogue or the resolver's own error when the result has errors
   * @throws ApiError RESOURCE_NOT_FOUND when a query finds null where an object should be
   */
  bodyOf(result: ExecutionResult, request: RequestParts): unknown;
}
