import type { DocumentNode, ExecutionResult, GraphQLOutputType } from 'graphql';
import type { ErrorCode } from '../src/core/errors.ts';
import type { ErrorSet, RestMethod } from './directives.ts';
import type { Input, RequestParts } from './input.ts';
import type { BodyParameter, Parameter } from './parameters.ts';
import type { ObjectShape } from './selection.ts';

/** What a success answers. */
export interface ResponseBody {
  /**
   * `empty`: no body (204). `nothing`: the JSON text `null`. `events`: a stream of server-sent events of this value.
   */
  kind: 'value' | 'empty' | 'nothing' | 'events';
  /** Type of the `@body` field. */
  type: GraphQLOutputType;
  /** Shape of its (innermost) object; `null` for leaves. */
  shape: ObjectShape | null;
  /** Key of the field that is the `id` of a frame, and no part of its data; `null` for none. */
  eventId: string | null;
}

/** Argument -> where its value stands in a request. */
export type RootArguments = Readonly<Record<string, { in: 'params' | 'query'; name: string }>>;

/** Runs an operation. An error in the variables comes back as errors, like one of a resolver. */
export type Run = (context: object, variables: Record<string, unknown>) => Promise<ExecutionResult> | ExecutionResult;

/** One route of the REST API, compiled from one operation document. */
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
  /** Every root field may be used without a principal. */
  isPublic: boolean;
  /** Not part of the spec: the document lies below `additions/`. */
  isAddition: boolean;
  /** In the order path, query, header. */
  parameters: Parameter[];
  body: BodyParameter | null;
  response: ResponseBody;
  /** Descriptions of the root field that leads to the body, from the schema. */
  description: string;
  /** Errors that its root fields declare beyond those that the form of an operation tells. */
  mayFail: readonly ErrorCode[];
  /** The schema's root field that the operation asks for; its first, where it asks for several. */
  rootField: string;
  /** Which parameter of the path or the query feeds which argument of the root field. */
  rootArguments: RootArguments;
  /** The header `If-Match` names the versions that the resource may have: the root field takes `expectedVersion`. */
  takesIfMatch: boolean;
  /** Takes the `ETag` out of a result, before {@link bodyOf}; `null` where the body is no single resource. */
  etag: ((result: ExecutionResult) => string | null) | null;
  /** The executed document: façade directives gone, REST names as aliases. */
  document: DocumentNode;

  /** Reads and validates the variables of a request. */
  read(request: RequestParts): Input;
  /**
   * Adds to what was read what is wrong with its values in the light of each other, as the schema tells it from the
   * input alone.
   */
  compare(context: object, input: Input, request: RequestParts): void;
  /** Executes a query (compiled) or a mutation. */
  run: Run;
  /** Starts a subscription: a stream of results, or one result with the errors that prevented it. */
  subscribe(
    context: object,
    variables: Record<string, unknown>,
  ): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult>;
  /**
   * The response body of a result.
   * @throws ValidationFailure, an error of the catalogue or the resolver's own error when the result has errors
   * @throws ApiError RESOURCE_NOT_FOUND when a query finds null where an object should be
   */
  bodyOf(result: ExecutionResult, request: RequestParts): unknown;
}
