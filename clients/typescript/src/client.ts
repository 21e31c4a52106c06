import delay from 'delay';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { createClient, type Client as Socket } from 'graphql-ws';
import createRest from 'openapi-fetch';
import { randomText, sha256 } from './bytes.ts';
import { addressAt, bearer, type Credentials } from './credentials.ts';
import { type Answered, apiError, errorOf, resultOf, success } from './errors.ts';
import type { paths } from './generated/rest.ts';
import { again, carrier, isPassing, patientMs } from './requests.ts';
import type * as types from './types.ts';

const STREAM = '/v1/orgs/{org_id}/workspaces/{workspace_id}/sync/stream';
/** Reasons of `stream.closing` after which no other connection would get an event. */
const FINAL: unknown[] = ['token_revoked', 'membership_revoked', 'workspace_deleted', 'organization_deleted'];
const LONGEST_PAUSE_MS = 30_000;
const NAMESPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}';
const PIECE_BYTES = 4 * 1024 * 1024;

type TusRequest = RequestInit & { headers?: object };

/** A client of the service: REST, GraphQL, live events and files with the same credentials. */
export class Client {
  /** The operations of the REST API, by their paths. */
  readonly rest: types.Rest;
  readonly #options: types.ClientOptions;
  readonly #credentials: Credentials;
  readonly #carry: ReturnType<typeof carrier>;
  readonly #at = (path: string): string => addressAt(this.#options.url, path);
  readonly #fetch: typeof fetch = (input, init) => (this.#options.fetch ?? fetch)(input, init);
  #socket: Socket | undefined;

  constructor(options: types.ClientOptions) {
    const { credentials = null } = options;
    this.#options = options;
    this.#credentials = credentials instanceof Object ? credentials : bearer(credentials);
    this.#carry = carrier(options, this.#credentials);
    this.rest = createRest<paths>({ baseUrl: this.#at(''), fetch: (request) => this.#once(request) }) as types.Rest;
  }

  /** Sends any request with the credentials of the client, and again where that is safe. @throws ApiError */
  send(path: string, init?: RequestInit): Promise<Response> {
    return this.#once(new Request(this.#at(path), init));
  }

  /** The entries of a list, page after page: `for await (const workspace of client.list('/v1/…', { path }))`. */
  async *list<P extends types.ListPath>(path: P, parameters: types.ListParameters<P>, signal?: AbortSignal) {
    type Page = types.Answer<{ next_cursor: string | null }>;
    // one call for all lists: their parameters are checked where this is called
    const get = this.rest.GET as unknown as (path: string, init: object) => Promise<Page>;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const params = { path: parameters.path, query: { ...parameters.query, ...(cursor && { cursor }) } };
      const { data } = await get(path, { params, signal });
      yield* Object.values<unknown>(data).find((value): value is types.ItemOf<P>[] => Array.isArray(value)) ?? [];
      cursor = data.next_cursor || null;
    }
  }

  /**
   * The events of a workspace, over as many connections as it takes. Each connection goes on where the one before it
   * ended. Ends when the service says that no connection gets events any more; that event is the last one.
   */
  async *events(path: types.WorkspacePlace, { after, signal }: types.EventsOptions = {}) {
    let [last, retryMs] = [after, 1_000];
    for (let failures = 0; ; failures++) {
      try {
        const params = { path, header: last === undefined ? {} : { 'last-event-id': last } };
        const init = { params, headers: { accept: 'text/event-stream' }, signal: signal ?? null };
        const { data: stream } = await this.rest.GET(STREAM, { ...init, parseAs: 'stream' });
        for await (const { id = '', data } of framesOf(stream!, (ms) => (retryMs = ms))) {
          const received: types.ReceivedEvent = { id, event: JSON.parse(data) as types.WorkspaceEvent };
          failures = 0;
          last = id || last;
          yield received;
          if (received.event.type === 'stream.closing' && FINAL.includes(received.event.data.reason)) return;
        }
      } catch (error) {
        if (signal?.aborted || !isPassing(error)) throw error;
      }
      await delay(Math.min(retryMs * 2 ** failures, LONGEST_PAUSE_MS), signal && { signal });
    }
  }

  /**
   * Sends a file in pieces and makes it an artifact. Each piece carries its checksum; after a broken connection the
   * upload goes on where the service has it.
   */
  async upload(path: types.NamespacePlace, file: Blob, options: types.UploadOptions): Promise<types.Artifact> {
    const { fileName, mimeType, onProgress, pieceBytes = PIECE_BYTES, signal, ...artifact } = options;
    const given = { params: { path }, signal: signal ?? null };
    const announced = { file_name: fileName, size_bytes: file.size, ...(mimeType && { mime_type: mimeType }) };
    const { data: ticket } = await this.rest.POST(`${NAMESPACE}/uploads`, { ...given, body: announced });
    const tus = (init: TusRequest) => this.#tus(ticket.url, { ...init, signal: given.signal });
    for (let sent = 0; sent < file.size; onProgress?.(sent, file.size)) {
      const attempt = async (failures: number) => {
        const from = failures > 0 ? await tus({ method: 'HEAD' }) : sent;
        return from < file.size ? tus(await pieceOf(file, from, pieceBytes)) : from;
      };
      sent = await again(attempt, patientMs, signal);
    }
    const body = { ...artifact, file: ticket.file };
    return (await this.rest.POST(`${NAMESPACE}/uploads/finish`, { ...given, body })).data;
  }

  /** The file of an artifact, or a part of it. @throws ApiError if there is none, or the range lies beyond its end */
  async download(path: types.NamespacePlace & { artifact_id: string }, range?: types.ByteRange, signal?: AbortSignal) {
    const given = { params: { path }, signal: signal ?? null };
    const { data } = await this.rest.GET(`${NAMESPACE}/artifacts/{artifact_id}/download`, given);
    const headers = range && { range: `bytes=${range.from}-${range.to ?? ''}` };
    return success(await this.#fetch(data.download_url, { headers: { ...headers }, signal: given.signal }));
  }

  /** Runs a GraphQL query or mutation. Its field errors are thrown: what is answered is whole. */
  query<Result, V>(document: types.Document<Result, V>, variables: V, signal?: AbortSignal): Promise<Result> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const query = String(document);
    const body = JSON.stringify({ query, variables });
    const request = new Request(this.#at('/graphql'), { method: 'POST', headers, body, signal: signal ?? null });
    const read = async (response: Response) => {
      if (!response.headers.get('content-type')?.includes('json')) throw await errorOf(response);
      return resultOf((await response.json()) as Answered<Result>, response);
    };
    // a mutation whose answer was lost may have been carried out
    return this.#carry(request, read, !/\bmutation\b/.test(query));
  }

  /**
   * Follows a subscription, until the loop over it ends. All share one socket, which connects again by itself; what
   * happens meanwhile is not sent later. Where no event may be missed, ask again with `after`, or use `events()`.
   */
  async *subscribe<Result, V extends Record<string, unknown>>(document: types.Document<Result, V>, variables: V) {
    this.#socket ??= this.#connect();
    const answers = this.#socket.iterate<Result>({ query: String(document), variables });
    for await (const answer of answers) yield resultOf(answer as Answered<Result>);
  }

  /** Closes the socket of subscriptions, if there is one. */
  async close(): Promise<void> {
    await this.#socket?.dispose();
    this.#socket = undefined;
  }

  #connect(): Socket {
    return createClient({
      url: this.#at('/graphql').replace(/^http/, 'ws'),
      // asked for each connection, so that a later one has a token that is good
      connectionParams: async () => {
        const token = await this.#credentials.token();
        return token ? { authorization: `Bearer ${token}` } : {};
      },
      retryAttempts: Number.POSITIVE_INFINITY,
      webSocketImpl: this.#options.webSocket,
    });
  }

  /** Each POST gets an `Idempotency-Key`, with which the service carries it out once. */
  #once(request: Request): Promise<Response> {
    const { method, headers } = request;
    if (method === 'POST' && !headers.has('idempotency-key')) headers.set('idempotency-key', randomText());
    return this.#carry(request, success, ['GET', 'HEAD'].includes(method));
  }

  /** The address of an upload speaks tus 1.0.0, and is itself the authorization. @returns how much has arrived */
  async #tus(url: string, init: TusRequest): Promise<number> {
    const sent = { ...init, headers: { 'tus-resumable': '1.0.0', ...init.headers } };
    const { status, headers } = await success(await this.#fetch(url, sent));
    const offset = headers.get('upload-offset') ?? '';
    if (/^\d+$/.test(offset)) return Number(offset);
    throw apiError({ status, code: 'NO_OFFSET', message: 'The answer does not say how much of the file has arrived.' });
  }
}

/** A piece of a file with its checksum. */
async function pieceOf(file: Blob, from: number, bytes: number): Promise<TusRequest> {
  const body = await file.slice(from, from + bytes).arrayBuffer();
  // pages that are not from https have no `crypto.subtle`: TCP's own checksum has to do
  const digest = crypto.subtle && { 'content-digest': `sha-256=:${await sha256(body)}:` };
  const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(from), ...digest };
  return { method: 'PATCH', headers, body };
}

/** What a stream has, until it ends. Not every browser iterates over streams by itself. */
async function* framesOf(stream: ReadableStream, onRetry: (ms: number) => void) {
  const decoder = new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>;
  const reader = stream.pipeThrough(decoder).pipeThrough(new EventSourceParserStream({ onRetry })).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined); // it was closed already
  }
}
