import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
import { createClient, type Client as Socket } from 'graphql-ws';
import type { InputIssue } from './api-error.ts';
import { apiError, errorOf, type Known, knownOf } from './errors.ts';
import { FilesClient } from './files.ts';

/** A document as a text, with or without types: `codegen` with `documentMode: 'string'` writes typed ones. */
export type Document<Result, Variables> = (string | { toString(): string }) & DocumentTypeDecoration<Result, Variables>;

/** A problem of an input has its place in the arguments. */
type Details = Record<string, unknown> & { issues?: (Omit<InputIssue, 'loc'> & { path: InputIssue['loc'] })[] };
interface Answered<Result> {
  data?: Result | null;
  errors?: { message: string; extensions?: { code?: string; details?: Details; trace_id?: string } }[];
}

/** A client of the service: REST, GraphQL, live events and files with the same credentials. */
export class Client extends FilesClient {
  #socket: Socket | undefined;

  /** Runs a GraphQL query or mutation. Its field errors are thrown: what is answered is whole. */
  query<Result, Variables>(document: Document<Result, Variables>, variables: Variables, signal?: AbortSignal) {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const query = String(document);
    const body = JSON.stringify({ query, variables });
    const request = new Request(this.at('/graphql'), { method: 'POST', headers, body, signal: signal ?? null });
    const read = async (response: Response) => {
      if (!response.headers.get('content-type')?.includes('json')) throw await errorOf(response);
      return resultOf((await response.json()) as Answered<Result>, knownOf(response));
    };
    // a mutation whose answer was lost may have been carried out
    return this.carry(request, read, !/\bmutation\b/.test(query));
  }

  /**
   * Follows a subscription, until the loop over it ends. All share one socket, which connects again by itself; what
   * happens meanwhile is not sent later. Where no event may be missed, ask again with `after`, or use `events()`.
   */
  async *subscribe<Result, Variables extends Record<string, unknown>>(
    document: Document<Result, Variables>,
    variables: Variables,
  ) {
    this.#socket ??= this.#connect();
    const answers = this.#socket.iterate<Result>({ query: String(document), variables });
    for await (const answer of answers) yield resultOf(answer as Answered<Result>, { status: 200 });
  }

  /** Closes the socket of subscriptions, if there is one. */
  async close(): Promise<void> {
    await this.#socket?.dispose();
    this.#socket = undefined;
  }

  #connect(): Socket {
    return createClient({
      url: this.at('/graphql').replace(/^http/, 'ws'),
      // asked for each connection, so that a later one has a token that is good
      connectionParams: async () => {
        const token = await this.credentials.token();
        return token ? { authorization: `Bearer ${token}` } : {};
      },
      retryAttempts: Number.POSITIVE_INFINITY,
      webSocketImpl: this.options.webSocket,
    });
  }
}

/** What is answered, if it is whole. @throws ApiError */
function resultOf<Result>({ data, errors }: Answered<Result>, known: Known): Result {
  const fault = errors?.[0];
  if (!fault && data) return data;
  const { message, extensions = {} } = fault ?? { message: 'The answer has no data.' };
  const { code = 'GRAPHQL_ERROR', details = {}, trace_id: traceId = known.traceId ?? null } = extensions;
  const issues = (details.issues ?? []).map(({ path, ...issue }) => ({ ...issue, loc: path }));
  throw apiError({ ...known, code, message, details, traceId, issues });
}
