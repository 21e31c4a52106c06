import createClient, { type FetchResponse, type MaybeOptionalInit } from 'openapi-fetch';
import type { MediaType, PathsWithMethod } from 'openapi-typescript-helpers';
import { randomText } from './bytes.ts';
import { success } from './errors.ts';
import type { Lists } from './generated/lists.ts';
import type { paths } from './generated/rest.ts';
import { Requests } from './requests.ts';

/** What a call gives: the body of its success, and the response, for headers such as `etag`. */
export interface Answer<Body> {
  data: Body;
  response: Response;
}

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

export class RestClient extends Requests {
  /** The operations of the REST API, by their paths. */
  readonly rest = createClient<paths>({ baseUrl: this.at(''), fetch: (request) => this.#once(request) }) as Rest;

  /** Sends any request with the credentials of the client, and again where that is safe. @throws ApiError */
  send(path: string, init?: RequestInit): Promise<Response> {
    return this.#once(new Request(this.at(path), init));
  }

  /** The entries of a list, page after page: `for await (const workspace of client.list('/v1/…', { path }))`. */
  async *list<Path extends ListPath>(path: Path, { path: place, query }: ListParameters<Path>, signal?: AbortSignal) {
    // one call for all lists: their parameters are checked where this is called
    const get = this.rest.GET as unknown as (path: string, init: object) => Promise<Answer<{ next_cursor?: string }>>;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const params = { path: place, query: { ...query, ...(cursor && { cursor }) } };
      const { data } = await get(path, { params, signal });
      yield* Object.values<unknown>(data).find((value): value is ItemOf<Path>[] => Array.isArray(value)) ?? [];
      cursor = data.next_cursor ?? null;
    }
  }

  /** Each POST gets an `Idempotency-Key`, with which the service carries it out once. */
  #once(request: Request): Promise<Response> {
    const { method, headers } = request;
    if (method === 'POST' && !headers.has('idempotency-key')) headers.set('idempotency-key', randomText());
    return this.carry(request, success, ['GET', 'HEAD'].includes(method));
  }
}
