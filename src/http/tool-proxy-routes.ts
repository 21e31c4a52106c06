import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { outcomeOf } from '../data/activity.ts';
import { Context, type Services } from '../graphql/context.ts';
import type { FindPlace, Gate } from '../graphql/plugins/access-plugin.ts';
import type { Caller } from '../kernel/caller.ts';
import { ApiError } from '../kernel/errors.ts';
import { WITHOUT_BODY } from '../platform/outbound/outbound-response.ts';
import { callerError } from '../platform/postgres/faults.ts';
import type { CallPlace } from '../tools/connections/call-place.ts';
import { entryOf, type ProxiedAnswer, type ToolProxy } from '../tools/tool-proxy/tool-proxy.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of the plugin for CORS. */
    cors?: { preflightContinue: boolean };
  }
}

/** Those that the one way out sends. */
export const PROXY_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
const PROXY = '/tool-instances/{instance_id}/proxy';

/** Where instances are called through, and the field whose gate stands before it. */
export const PROXY_ROUTES = [
  { template: `${WORKSPACE}${PROXY}`, field: 'issueWorkspaceConnectionToken', part: 'workspace' },
  {
    template: `${WORKSPACE}/namespaces/{namespace_id}${PROXY}`,
    field: 'issueNamespaceConnectionToken',
    part: 'namespace',
  },
] as const;

/** What the OpenAPI document says of these routes: requests and answers are the provider's, whatever they are. */
export const proxiedPaths = () =>
  Object.fromEntries(
    PROXY_ROUTES.map(({ template, field }) => [
      `${template}/{path}`,
      {
        summary: 'Call the provider of a tool instance with its credential',
        description:
          'Any request goes to the base address of the tool with the credential of the instance, and the answer ' +
          'comes back with the header `x-tool-status`. Answers without it are from this service. `{path}` may have ' +
          'slashes.',
        methods: PROXY_METHODS,
        security: [{ bearer: [] }],
        'x-permission': 'connection:use',
        'x-field': field,
        errors: [400, 401, 403, 404, 409, 413, 429, 502, 503, 504],
      },
    ]),
  );

/** Nothing of an answer is run or shown by the origin of the service. */
const ANSWER_HEADERS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** So much of an upload that nobody needs any more is taken, so that its client sees the answer; then it is cut. */
const DRAINED_BYTES = 16 * 1024 * 1024;
const DRAINED_MS = 10_000;
/** When the server closes, calls have this time to end by themselves. */
const CLOSING_MS = 5_000;
/** What Fastify takes for a media type. In place of anything else it says `application/octet-stream`. */
const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+[\t ]*(?:;|$)/;

type ProxyParams = Record<'org_id' | 'workspace_id' | 'instance_id', string> & { namespace_id?: string };

/**
 * Serves `…/tool-instances/{instance_id}/proxy/*`: any request, sent to the provider of the instance with its
 * credential. Bodies of all kinds pass through in both directions.
 */
export function addToolProxy(server: FastifyInstance, services: Services, schema: GraphQLSchema): void {
  const fields = schema.getMutationType()!.getFields();
  const open = new Set<AbortController>();
  const failures = new WeakMap<FastifyReply, unknown>();
  server.addHook('preClose', async () => {
    setTimeout(() => {
      for (const call of open) call.abort();
    }, CLOSING_MS).unref();
  });
  void server.register(async (scope) => {
    scope.setErrorHandler((error, _request, reply) => {
      throw failures.get(reply) ?? error;
    });
    scope.removeAllContentTypeParsers();
    // the body is read by the provider
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const { template, field, part } of PROXY_ROUTES) {
      const { gate, placeOf } = fields[field]!.extensions as unknown as { gate: Gate; placeOf: FindPlace };
      scope.route({
        method: [...PROXY_METHODS],
        url: `${template.replaceAll(/\{(\w+)\}/g, ':$1')}/*`,
        exposeHeadRoute: false,
        config: { template, isProxied: true, takesFile: true, cors: { preflightContinue: true } },
        onRequest: refuseUpgrade,
        handler: async (request, reply) => {
          if (isPreflight(request)) return reply.code(204).header('content-length', '0').send();
          const context = new Context(request.caller, services);
          const { caller } = context;
          const params = request.params as ProxyParams;
          const ids = {
            orgId: params.org_id,
            workspaceId: params.workspace_id,
            ...(params.namespace_id !== undefined && { namespaceId: params.namespace_id }),
          };
          try {
            const permit = await gate(context, {}, ids);
            const place = (await placeOf(context, ids, permit))[part];
            return await pass(request, reply, {
              caller,
              place,
              id: params.instance_id,
              proxy: services.toolProxy,
              open,
              failures,
            });
          } catch (error) {
            throw recorded(services, caller, { id: params.instance_id, namespaceId: null, ...ids }, error);
          }
        },
      });
    }
  });
}

/** Records a call that was refused, or of which nothing came back. @returns the error for the caller */
function recorded(
  services: Services,
  caller: Caller,
  instance: Parameters<typeof entryOf>[0],
  error: unknown,
): unknown {
  const known = callerError(error);
  // an answer that came has its record, also if it could not be passed on
  if (caller.request.recorded) return known;
  caller.request.recorded = true;
  const code = known instanceof ApiError ? (known.details.reason ?? known.code) : 'fault';
  services.activity.record(caller, entryOf(instance, { code }), outcomeOf(known));
  return known;
}

/** The request of a browser that asks whether it may send another. */
const isPreflight = ({ method, headers }: FastifyRequest): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;

/** What takes a connection over is no request that could be sent on. */
async function refuseUpgrade({ headers }: FastifyRequest): Promise<void> {
  if (headers.upgrade === undefined) return;
  throw new ApiError(
    'INVALID_REQUEST',
    { reason: 'upgrade' },
    'Connections cannot be upgraded through the proxy: WebSockets are not passed on.',
  );
}

interface Passing {
  caller: Caller;
  place: CallPlace;
  id: string;
  proxy: ToolProxy;
  open: Set<AbortController>;
  /** Why answers failed of which nothing had been sent. */
  failures: WeakMap<FastifyReply, unknown>;
}

async function pass(
  request: FastifyRequest,
  reply: FastifyReply,
  { caller, place, id, proxy, open, failures }: Passing,
): Promise<FastifyReply> {
  const { raw, method, headers } = request;
  const signal = whileOpen(reply.raw, open);
  reply.raw.once('finish', () => drain(raw));
  const length = headers['content-length'];
  const hasBody = headers['transfer-encoding'] !== undefined || Number(length ?? 0) > 0;
  const answer = await proxy.call(caller, place, id, {
    method,
    ...addressIn(raw.url ?? '', request.routeOptions.url!),
    headers,
    body: hasBody ? raw : null,
    contentLength: length !== undefined && hasBody ? Number(length) : null,
    signal,
  });
  caller.request.recorded = true;
  try {
    return send(reply, method, answer, failures);
  } catch (error) {
    answer.body.destroy();
    withdraw(reply, answer);
    throw error;
  }
}

/** Aborted when whoever asked has gone, and among the open ones as long as they have not. */
export function whileOpen(response: ServerResponse, open: Set<AbortController>): AbortSignal {
  const call = new AbortController();
  if (response.destroyed) {
    // they went before: it would never be taken out again
    call.abort();
    return call.signal;
  }
  open.add(call);
  response.once('close', () => {
    open.delete(call);
    if (!response.writableFinished) call.abort();
  });
  return call.signal;
}

/** Takes what a client still sends after its answer, within bounds, and cuts it off then: it must not stand still. */
function drain(request: IncomingMessage): void {
  if (request.readableEnded || request.destroyed) return;
  const cut = () => request.destroy();
  const timer = setTimeout(cut, DRAINED_MS).unref();
  let left = DRAINED_BYTES;
  request
    .on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) cut();
    })
    .on('error', () => undefined)
    .once('close', () => clearTimeout(timer))
    // nothing reads it that could hold it back
    .unpipe()
    .resume();
}

/** Takes the headers of an answer back that is not passed on: what follows is said by the service. */
function withdraw(reply: FastifyReply, { headers }: ProxiedAnswer): void {
  for (const name of Object.keys(headers)) {
    reply.removeHeader(name);
    reply.raw.removeHeader(name);
  }
}

function send(
  reply: FastifyReply,
  method: string,
  answer: ProxiedAnswer,
  failures: WeakMap<FastifyReply, unknown>,
): FastifyReply {
  const { raw } = reply;
  const { status, headers, body } = answer;
  if (body.errored) throw answer.failed(body.errored);
  reply.code(status).headers({ ...headers, ...ANSWER_HEADERS });
  if (method === 'HEAD' || WITHOUT_BODY.has(status)) {
    body.on('error', () => undefined).resume();
    if (status !== 304 && method !== 'HEAD') reply.removeHeader('content-length');
    // without a stream, the framework would answer HEAD with a length of its own
    return method === 'HEAD' ? reply.send(Readable.from([])) : reply.send();
  }
  // a stream costs more than a small answer that it would carry
  const bytes = MEDIA_TYPE.test(headers['content-type'] ?? '') ? answer.takeWhole() : null;
  if (bytes) return reply.send(bytes);
  body.once('error', (error) => {
    if (!raw.headersSent) {
      failures.set(reply, answer.failed(error));
      withdraw(reply, answer);
    }
    // HTTP/1.0 has no other way to tell a part from the whole
    if (raw.req.httpVersion === '1.0') raw.socket?.resetAndDestroy();
  });
  // the head goes on its way before there is a body, and with the beginning of one that is there
  body.once('resume', () => {
    if (!body.errored && body.readableLength === 0) raw.flushHeaders();
  });
  return reply.send(body);
}

/** What a request asks for below its route, as it was sent. @throws INVALID_REQUEST */
function addressIn(url: string, route: string): { path: string; query: string } {
  const end = url.indexOf('?');
  const whole = end < 0 ? url : url.slice(0, end);
  const query = end < 0 ? '' : url.slice(end + 1);
  const before = route.split('/').length - 1;
  // no other form than the path: the router would cut an address in front of it off
  if (!whole.startsWith('/') || whole.includes('#') || query.includes('#'))
    throw new ApiError('INVALID_REQUEST', { reason: 'proxied_path' }, 'The request must name a path.');
  return { path: whole.split('/').slice(before).join('/'), query };
}
