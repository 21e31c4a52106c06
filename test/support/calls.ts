import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { TestApp } from './app.ts';

/** Short forms of `server.inject`, for tests that are about a story of several requests. */
export interface Calls {
  get: (url: string, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
  post: (url: string, payload?: object, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
  put: (url: string, payload: object, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  patch: (url: string, payload: object, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  delete: (url: string, headers: Record<string, string>) => Promise<LightMyRequestResponse>;
  graphql: (query: string, variables?: object, headers?: Record<string, string>) => Promise<LightMyRequestResponse>;
}

export function callsOf(app: TestApp): Calls {
  const call = (method: InjectOptions['method'], url: string, headers: Record<string, string> = {}, payload?: object) =>
    app.server.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
  return {
    get: (url, headers) => call('GET', url, headers),
    post: (url, payload, headers) => call('POST', url, headers, payload),
    put: (url, payload, headers) => call('PUT', url, headers, payload),
    patch: (url, payload, headers) => call('PATCH', url, headers, payload),
    delete: (url, headers) => call('DELETE', url, headers),
    graphql: (query, variables, headers) => call('POST', '/graphql', headers, { query, variables }),
  };
}

/** Body and code of an answer, without what differs from one to the next. */
export function sameness(answer: LightMyRequestResponse): { statusCode: number; body: string; headers: unknown } {
  const { 'x-trace-id': _trace, date: _date, ...headers } = answer.headers;
  return { statusCode: answer.statusCode, body: answer.body.replace(/"timestamp":"[^"]*"/, ''), headers };
}
