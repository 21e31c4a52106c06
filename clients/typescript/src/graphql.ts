import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
import { createClient, type Client as Socket } from 'graphql-ws';
import type { Credentials } from './credentials.ts';
import { AuthenticationFailedError, apiError, errorOf, type InputIssue, InvalidInputError } from './errors.ts';
import type { Send } from './resilient-fetch.ts';

/** A document as a text, with or without types: `codegen` with `documentMode: 'string'` writes typed ones. */
export type Document<Result, Variables> = (string | { toString(): string }) & DocumentTypeDecoration<Result, Variables>;

/** A problem of an input, with its place in the arguments. */
type GraphQLIssue = Omit<InputIssue, 'loc'> & { path: InputIssue['loc'] };

interface GraphQLFault {
  message: string;
  path?: readonly (string | number)[];
  extensions?: { code?: string; details?: Record<string, unknown> & { issues?: GraphQLIssue[] }; trace_id?: string };
}

interface GraphQLAnswer<Result> {
  data?: Result | null;
  errors?: readonly GraphQLFault[];
}

export interface GraphQLOptions {
  url: URL;
  credentials: Credentials | null;
  send: Send;
  /** For Node before 22, which has no `WebSocket`: that of the package `ws`. */
  webSocket?: unknown;
}

/** Queries, mutations and subscriptions. Each throws an `ApiError` when the service refuses it. */
export class GraphQL {
  readonly #options: GraphQLOptions;
  #socket: Socket | undefined;

  constructor(options: GraphQLOptions) {
    this.#options = options;
  }

  /** Runs a query or a mutation. Its field errors are thrown: what is answered is whole. */
  async run<Result, Variables>(
    document: Document<Result, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Result> {
    const { credentials } = this.#options;
    const token = (await credentials?.token()) ?? null;
    try {
      return await this.#send(document, variables, signal);
    } catch (error) {
      // GraphQL refuses a token with an answer whose status is 200
      const isRefused = error instanceof AuthenticationFailedError && token !== null;
      if (!isRefused || !(await credentials?.renew?.(token))) throw error;
      return this.#send(document, variables, signal);
    }
  }

  async #send<Result, Variables>(
    document: Document<Result, Variables>,
    variables: Variables,
    signal: AbortSignal | undefined,
  ): Promise<Result> {
    const { url, send } = this.#options;
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const query = String(document);
    const body = JSON.stringify({ query, variables });
    const request = new Request(url, { method: 'POST', headers, body, ...(signal && { signal }) });
    // a mutation whose answer was lost may have been carried out
    const response = await send(request, { isRepeatable: !/\bmutation\b/.test(query) });
    const traceId = response.headers.get('x-trace-id');
    if (!response.headers.get('content-type')?.includes('json')) throw await errorOf(response);
    return resultOf((await response.json()) as GraphQLAnswer<Result>, response.status, traceId);
  }

  /**
   * Follows a subscription. All subscriptions share one socket, which connects again by itself; what happens meanwhile
   * is not sent later. Where no event may be missed, ask again with `after: cursor`, or use `events()`.
   */
  async *follow<Result, Variables extends Record<string, unknown>>(
    document: Document<Result, Variables>,
    variables: Variables,
  ): AsyncGenerator<Result, void, undefined> {
    this.#socket ??= this.#connect();
    const answers = this.#socket.iterate<Result>({ query: String(document), variables });
    for await (const answer of answers) yield resultOf(answer as GraphQLAnswer<Result>, 200, null);
  }

  async close(): Promise<void> {
    await this.#socket?.dispose();
    this.#socket = undefined;
  }

  #connect(): Socket {
    const { url, credentials, webSocket } = this.#options;
    return createClient({
      url: url.href.replace(/^http/, 'ws'),
      // asked for each connection, so that a later one has a token that is good
      connectionParams: async () => {
        const token = await credentials?.token();
        return token ? { authorization: `Bearer ${token}` } : {};
      },
      retryAttempts: Number.POSITIVE_INFINITY,
      ...(webSocket !== undefined && { webSocketImpl: webSocket }),
    });
  }
}

function resultOf<Result>({ data, errors }: GraphQLAnswer<Result>, status: number, traceId: string | null): Result {
  const [fault] = errors ?? [];
  if (!fault && data) return data;
  const { code = 'GRAPHQL_ERROR', details = {}, trace_id = traceId } = fault?.extensions ?? {};
  const refusal = { status, code, message: fault?.message ?? 'The answer has no data.', details, traceId: trace_id };
  const issues = details.issues?.map(({ path, ...issue }) => ({ ...issue, loc: path }));
  throw issues ? new InvalidInputError(refusal, issues) : apiError(refusal);
}
