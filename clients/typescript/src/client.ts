import { addressAt } from './address.ts';
import { bearer, type Credentials } from './credentials.ts';
import { type EventsOptions, eventsOf, type ReceivedEvent } from './events.ts';
import { type Artifact, type ByteRange, download, type NamespacePlace, type UploadOptions, upload } from './files.ts';
import { type Document, GraphQL } from './graphql.ts';
import { type ItemOf, type ListParameters, type ListPath, pagesOf } from './pages.ts';
import { type ResilientOptions, resilientFetch, type Send, withIdempotency } from './resilient-fetch.ts';
import { type Rest, restOf } from './rest.ts';

export interface ClientOptions extends Omit<ResilientOptions, 'credentials'> {
  /** Address of the service, with the path below which a proxy serves it, if there is one. */
  url: string;
  /** A token, or what gives one for each request. Without it, only public operations are allowed. */
  credentials?: string | Credentials;
  /** For Node before 22, which has no `WebSocket`: that of the package `ws`. */
  webSocket?: unknown;
}

/** A client of the service: REST, GraphQL, live events and files with the same credentials. */
export class Client {
  /** The operations of the REST API, by their paths. */
  readonly rest: Rest;
  readonly #graphql: GraphQL;
  readonly #send: Send;
  readonly #sendRest: (request: Request) => Promise<Response>;
  readonly #fetch: typeof fetch;
  readonly #base: string;

  constructor({ url, credentials: given, webSocket, ...options }: ClientOptions) {
    this.#base = addressAt(url, '');
    const credentials = typeof given === 'string' ? bearer(given) : (given ?? null);
    this.#fetch = options.fetch ?? fetch;
    this.#send = resilientFetch({ ...options, credentials });
    this.#sendRest = withIdempotency(this.#send, credentials);
    this.rest = restOf(this.#base, this.#sendRest);
    this.#graphql = new GraphQL({ url: this.#at('/graphql'), credentials, send: this.#send, webSocket });
  }

  /** Sends any request with the credentials of the client, and again where that is safe. Refusals are not thrown. */
  send(path: string, init: RequestInit = {}): Promise<Response> {
    return this.#sendRest(new Request(this.#at(path), init));
  }

  /** The entries of a list, page after page: `for await (const workspace of client.list('/v1/…', { path }))`. */
  list<Path extends ListPath>(
    path: Path,
    parameters: ListParameters<Path>,
    signal?: AbortSignal,
  ): AsyncGenerator<ItemOf<Path>, void, undefined> {
    return pagesOf(this.rest, path, parameters, signal);
  }

  /** The events of a workspace, without a gap over connections that break. */
  events(
    { org_id, workspace_id }: { org_id: string; workspace_id: string },
    options: EventsOptions = {},
  ): AsyncGenerator<ReceivedEvent, void, undefined> {
    const path = `/v1/orgs/${encodeURIComponent(org_id)}/workspaces/${encodeURIComponent(workspace_id)}/sync/stream`;
    return eventsOf(this.#send, this.#at(path), options);
  }

  /** Sends a file, and makes it an artifact. */
  upload(place: NamespacePlace, file: Blob, options: UploadOptions): Promise<Artifact> {
    return upload(this.rest, this.#fetch, place, file, options);
  }

  /** The file of an artifact, or a part of it. @throws ApiError if there is none, or the range lies beyond its end */
  download(
    place: NamespacePlace & { artifact_id: string },
    range?: ByteRange,
    signal?: AbortSignal,
  ): Promise<Response> {
    return download(this.rest, this.#fetch, place, range, signal);
  }

  /** Runs a GraphQL query or mutation. */
  query<Result, Variables>(
    document: Document<Result, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Result> {
    return this.#graphql.run(document, variables, signal);
  }

  /** Follows a GraphQL subscription, until the loop over it ends. */
  subscribe<Result, Variables extends Record<string, unknown>>(
    document: Document<Result, Variables>,
    variables: Variables,
  ): AsyncGenerator<Result, void, undefined> {
    return this.#graphql.follow(document, variables);
  }

  /** Closes the socket of subscriptions, if there is one. */
  close(): Promise<void> {
    return this.#graphql.close();
  }

  #at(path: string): URL {
    return new URL(addressAt(this.#base, path));
  }
}
