import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
import type { FetchResponse, MaybeOptionalInit } from 'openapi-fetch';
import type { MediaType, PathsWithMethod } from 'openapi-typescript-helpers';
import type { Credentials, Service } from './credentials.ts';
import type { Lists } from './generated/lists.ts';
import type { components, operations, paths } from './generated/rest.ts';

export interface ClientOptions extends Service {
  /** A token, or what gives one for each request. Without it, only public operations are allowed. */
  credentials?: string | Credentials;
  /** How often a request is sent again. Default 3. */
  retries?: number;
  /** The longest `Retry-After` that is waited for, in seconds. Default 30. */
  maxWaitSeconds?: number;
  /** For Node before 22, which has no `WebSocket`: that of the package `ws`. */
  webSocket?: unknown;
}

/** What a call gives: the body of its success, and the response, for headers such as `etag`. */
export type Answer<Body> = { data: Body; response: Response };

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
/** A call of `openapi-fetch`, but for refusals: they are thrown, so there is always data. */
type Call<M extends Method> = <Path extends PathsWithMethod<paths, M>, Init extends MaybeOptionalInit<paths[Path], M>>(
  path: Path,
  ...init: Record<never, never> extends Init ? [init?: Init] : [init: Init]
) => Promise<Answer<Exclude<FetchResponse<Extract<paths[Path][M], object>, Init, MediaType>['data'], undefined>>>;
/** The operations of the REST API. Each throws an `ApiError` when the service refuses it. */
export type Rest = { readonly [M in Method as Uppercase<M>]: Call<M> };

/** The paths of lists that have pages. */
export type ListPath = keyof Lists;
export type ItemOf<Path extends ListPath> = Lists[Path]['item'];
/** The parameters of the path and the query of a list, without `cursor`. */
export type ListParameters<Path extends ListPath> = Lists[Path]['parameters'];

type Stream = operations['StreamWorkspace'];
export type WorkspacePlace = Stream['parameters']['path'];
/** An event of a workspace. Ignore types that you do not know: later versions of the service have more. */
export type WorkspaceEvent = Stream['responses'][200]['content']['text/event-stream'];
/** An event with its position in the stream: `after` goes on behind it. */
export type ReceivedEvent = { id: string; event: WorkspaceEvent };

export interface EventsOptions {
  /** Where to go on: the `id` of the last event that was handled. Without it, the stream begins with what is new. */
  after?: string;
  signal?: AbortSignal;
}

export type Artifact = components['schemas']['Artifact'];
/** Where an artifact is. `default` names the namespace that each workspace has. */
export type NamespacePlace = operations['FinishUpload']['parameters']['path'];
export type UploadOptions = Omit<components['schemas']['UploadArtifactInput'], 'file'> & {
  fileName: string;
  mimeType?: string;
  /** Called after each piece. */
  onProgress?: (sent: number, total: number) => void;
  /** Bytes of a piece. Default 4 MiB. */
  pieceBytes?: number;
  signal?: AbortSignal;
};
/** A part of a file; both ends count, as in `Range`. Without `to` up to its end. */
export type ByteRange = { from: number; to?: number };

/** A document as a text, with or without types: `codegen` with `documentMode: 'string'` writes typed ones. */
export type Document<Result, Variables> = (string | { toString(): string }) & DocumentTypeDecoration<Result, Variables>;
