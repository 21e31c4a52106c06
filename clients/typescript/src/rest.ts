import createClient, { type FetchResponse, type MaybeOptionalInit } from 'openapi-fetch';
import { errorOf } from './errors.ts';
import type { paths } from './generated/rest.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Media = `${string}/${string}`;
type PathsWith<M extends Method> = {
  [Path in keyof paths]: paths[Path] extends Record<M, object> ? Path : never;
}[keyof paths];
type Operation<Path extends keyof paths, M extends Method> = Extract<paths[Path][M], object>;
/** The second argument may be left out where the operation needs nothing. */
type InitArgument<Init> = Record<never, never> extends Init ? [init?: Init] : [init: Init];

/** What a call gives: the body of its success, and the response, for headers such as `etag`. */
export interface Answer<Body> {
  data: Body;
  response: Response;
}

/** A call of `openapi-fetch`, but for refusals: they are thrown, so there is always data. */
export type Call<M extends Method> = <Path extends PathsWith<M>, Init extends MaybeOptionalInit<paths[Path], M>>(
  path: Path,
  ...init: InitArgument<Init>
) => Promise<Answer<Exclude<FetchResponse<Operation<Path, M>, Init, Media>['data'], undefined>>>;

/** The operations of the REST API. Each throws an `ApiError` when the service refuses it. */
export interface Rest {
  GET: Call<'get'>;
  POST: Call<'post'>;
  PUT: Call<'put'>;
  PATCH: Call<'patch'>;
  DELETE: Call<'delete'>;
}

/** @param send sends requests, with their credentials */
export function restOf(baseUrl: string, send: (request: Request) => Promise<Response>): Rest {
  const client = createClient<paths>({ baseUrl, fetch: send });
  client.use({
    async onResponse({ response }) {
      if (!response.ok) throw await errorOf(response);
    },
  });
  // the types of a client that throws: what it answers has no `error`
  return client as unknown as Rest;
}
