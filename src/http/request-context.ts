import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { browserOf } from '../access/browser.ts';
import type { AnyCaller, Browser, RequestInfo } from '../kernel/caller.ts';
import { canonicalPath } from '../kernel/endpoint-paths.ts';
import { unavailable } from '../kernel/errors.ts';
import { traceParentOf } from '../platform/tracing/trace-parent.ts';
import { ClientAddress } from './client-address.ts';
import { CONSISTENCY_HEADER } from './consistency.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The caller: unauthenticated until the credential has been checked. */
    caller: AnyCaller;
  }
  interface FastifyContextConfig {
    /** What follows the template in the path of a request is for somebody else, and is not recorded. */
    isProxied?: boolean;
  }
}

const TRACE_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** `x-trace-id` if it is usable, else the trace of `traceparent`, else a new one (defaults §0.5). */
export function traceIdOf(
  headers: Record<string, string | string[] | undefined>,
  newId: () => string = randomUUID,
): string {
  const given = headers['x-trace-id'];
  if (typeof given === 'string' && TRACE_ID.test(given)) return given;
  return (headers.traceparent !== undefined && traceParentOf(headers.traceparent)?.traceId) || newId();
}

/** The path of a request without its query. */
export const pathOf = (url: string): string => {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
};

/** Stores what is known about each request before it is parsed, and sends the trace id in the response. */
export function addRequestContext(
  server: FastifyInstance,
  { trustedProxies, publicUrl = '' }: { trustedProxies: readonly string[]; publicUrl?: string | undefined },
): void {
  const clients = new ClientAddress(trustedProxies);
  const isSecure = publicUrl.startsWith('https:');
  server.decorateRequest('caller', null as unknown as AnyCaller);
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('x-trace-id', request.id);
    const ip = ClientAddress.limitKey(clients.of(request.raw));
    request.caller = { principal: null, request: new HttpRequestInfo(request, reply, ip, isSecure) };
    done();
  });
}

/** What is known about a request over HTTP. */
class HttpRequestInfo implements RequestInfo {
  readonly traceId: string;
  readonly method: string;
  readonly path: string;
  readonly ip: string;
  readonly startedAt = performance.now();
  readonly consistency: string | undefined;
  readonly isRest: boolean;
  successStatus = 200;
  recorded = false;
  readonly endpoint: () => string | undefined;
  readonly left: () => AbortSignal;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #isSecure: boolean;

  constructor(request: FastifyRequest, reply: FastifyReply, ip: string, isSecure: boolean) {
    this.traceId = request.id;
    this.method = request.method;
    this.path = shownPath(request);
    this.ip = ip;
    this.isRest = request.routeOptions.config.operation !== undefined;
    const consistency = request.headers[CONSISTENCY_HEADER];
    // several are one that nobody gave
    this.consistency = Array.isArray(consistency) ? consistency.join() : consistency;
    this.endpoint = () => endpointOf(request);
    this.left = () => leftBefore(reply.raw);
    this.#request = request;
    this.#reply = reply;
    this.#isSecure = isSecure;
  }

  get browser(): Browser {
    const setCookie = (text: string) => void this.#reply.header('set-cookie', text);
    return browserOf({ headers: this.#request.headers, setCookie, isSecure: this.#isSecure });
  }
}

/** The path, without the part of it that is somebody else's: of what is called through the service. */
function shownPath({ url, params, routeOptions: { config } }: FastifyRequest): string {
  if (!config.isProxied) return pathOf(url);
  return `${canonicalPath(config.template!, params as Record<string, string>)}/…`;
}

/** See {@link RequestInfo.left}. */
function leftBefore(answer: ServerResponse): AbortSignal {
  const left = new AbortController();
  const leave = () => {
    if (!answer.writableFinished) left.abort(unavailable());
  };
  if (answer.destroyed) leave();
  else answer.once('close', leave);
  return left.signal;
}

/** See {@link RequestInfo.endpoint}. Derived from the matched route, never from the raw URL. */
function endpointOf({ routeOptions, params }: FastifyRequest): string | undefined {
  const { template } = routeOptions.config;
  if (template) return canonicalPath(template, params as Record<string, string>);
  const { url } = routeOptions;
  if (url === '/mcp/w/:workspace') return canonicalPath('/mcp/w/{workspace}', params as Record<string, string>);
  return url === '/graphql' || url === '/mcp' ? url : undefined;
}
