import cors from '@fastify/cors';
import helmet from '@fastify/helmet';
import websocket from '@fastify/websocket';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import { handleProtocols } from 'graphql-ws';
import { registerErrorShapes, statusOf } from '../rest/errors.ts';
import { fastifyOptions, type RestOptions, restPlugin } from '../rest/plugin.ts';
import { SigningKeys } from './access/signing-keys.ts';
import type { Config } from './config.ts';
import { EventLag } from './events/event-lag.ts';
import { errorCodeOf } from './graphql/activity-plugin.ts';
import { closeSockets } from './graphql/close-sockets.ts';
import { Context } from './graphql/context.ts';
import { createEndpoint } from './graphql/endpoint.ts';
import { ApiError, InputError } from './graphql/errors.ts';
import { addGraphQL } from './graphql/http.ts';
import { schema } from './graphql/schema.ts';
import { socketHandler } from './graphql/websocket.ts';
import { addAccountPages } from './http/account-pages.ts';
import { addFailureRecords } from './http/activity.ts';
import { Admission, addAdmission } from './http/admission.ts';
import { addCacheControl } from './http/cache-control.ts';
import { endUnusedConnections } from './http/connections.ts';
import { addHealth } from './http/health.ts';
import { addIdempotency } from './http/idempotency.ts';
import { addMetrics } from './http/metrics.ts';
import { CallerLimit } from './http/rate-limit.ts';
import { replayGate } from './http/replay-gate.ts';
import { addRequestContext, traceIdOf } from './http/request-context.ts';
import { addRequestLog } from './http/request-log.ts';
import { cutOffSlowReaders } from './http/slow-readers.ts';
import { addStartPage } from './http/start-page.ts';
import { baseUrl } from './infra/base-url.ts';
import type { Database } from './infra/database.ts';
import { Expectation } from './infra/expectation.ts';
import { appSecret } from './infra/keys.ts';
import type { Logger } from './infra/logger.ts';
import type { Mailer } from './infra/mail.ts';
import { Maintenance, type Task } from './infra/maintenance.ts';
import { OutageLog } from './infra/outage-log.ts';
import { enforceRetention } from './infra/retention.ts';
import { RootKeys } from './infra/root-keys.ts';
import { Seal } from './infra/seal.ts';
import { operationsDir } from './paths.ts';
import { createServices, type Services } from './services.ts';

export interface AppDeps {
  config: Config;
  database: Database;
  mailer: Mailer;
  logger: Logger;
}

export interface App {
  server: FastifyInstance;
  services: Services;
  /** Ends streams and writes what is still in memory. Call it after the server has stopped accepting. */
  stop(): Promise<void>;
}

/** The whole service but the process: it reads no environment and listens to nothing yet. */
export async function buildApp(deps: AppDeps): Promise<App> {
  const { config, database, logger } = deps;
  const rootKeys = await RootKeys.open(config, database.prisma);
  const keys = await SigningKeys.open(config.keysDir);
  const secret = Buffer.from(appSecret(config));
  const server = createServer(config, logger);
  const outages = new OutageLog(logger);
  const logFault = (error: unknown, what: string) => outages.fault(error, what);
  const services = createServices({
    ...deps,
    keys,
    rootKeys,
    appSecret: secret,
    publicUrl: () => config.publicUrl ?? listeningUrl(server, config),
    onFault: logFault,
    outcomeOf: (error) => ({ statusCode: statusOfError(error), errorCode: errorCodeOf(error) }),
  });
  const eventLag = new EventLag(services.sql, logger);
  const limit = new CallerLimit(config);
  const admission = new Admission(services.authentication, limit);
  endUnusedConnections(server);
  cutOffSlowReaders(server, { timeoutMs: config.writeTimeoutSeconds * 1_000 });
  registerErrorShapes(server, { onFault: logRequestFault });
  await addPlugins(server, config, services);
  addCacheControl(server);
  addRequestContext(server, config.trustedProxies);
  addAdmission(server, admission);
  addIdempotency(server, {
    sql: services.sql,
    seal: new Seal(secret, 'idempotency'),
    mayReplay: replayGate(schema, services),
  });
  addMetrics(server, services, database.pool, eventLag);
  addRequestLog(server, logger);
  addFailureRecords(server, services, schema);
  addHealth(server, { database, keys, eventLag });
  addAccountPages(server);
  addStartPage(server, {
    publicUrl: config.publicUrl,
    listeningUrl: () => listeningUrl(server, config),
    hasGraphiQL: config.graphiql,
  });
  const onResolverFault = (error: unknown, traceId: string) =>
    logger.error({ err: error, trace_id: traceId }, 'a resolver failed');
  const endpoint = createEndpoint({ schema, services, limit, config, onFault: onResolverFault });
  const socket = socketHandler({ ...config, endpoint, services, admission, limit, onFault: onResolverFault });
  addGraphQL(server, { ...config, endpoint, socket });
  await server.register(restPlugin, restOptions(config, services));
  const maintenance = new Maintenance(tasksOf(services, eventLag), logFault);
  return { server, services, stop: () => stop(services, maintenance) };
}

const MAX_HEADER_BYTES = 32 * 1024;

function createServer(config: Config, logger: Logger): FastifyInstance {
  return Fastify({
    ...fastifyOptions,
    http: { maxHeaderSize: MAX_HEADER_BYTES },
    bodyLimit: config.bodyLimitBytes,
    loggerInstance: logger as FastifyBaseLogger,
    genReqId: (request) => traceIdOf(request.headers),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'trace_id' }),
    // a request must have arrived after a minute; answers may take longer, because streams do
    requestTimeout: 60_000,
    // compiling the operations takes a second, and as long as a busy machine wants
    pluginTimeout: 120_000,
  });
}

async function addPlugins(server: FastifyInstance, { corsOrigins }: Config, services: Services): Promise<void> {
  // pages set a policy of their own; JSON needs none
  await server.register(helmet, {
    contentSecurityPolicy: false,
    crossOriginResourcePolicy: { policy: 'cross-origin' },
  });
  await server.register(cors, {
    strictPreflight: false, // its refusal would be plain text
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    origin: corsOrigins.includes('*') ? true : [...corsOrigins],
    exposedHeaders: [
      'x-trace-id',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'retry-after',
      'etag',
      'idempotent-replayed',
    ],
  });
  server.addHook('preClose', () => services.events.close());
  await server.register(websocket, {
    options: { maxPayload: 64 * 1024, perMessageDeflate: false, handleProtocols },
    // ws has closed the socket with the right code: what a client does wrong is no fault of the service
    errorHandler: (error, _socket, request) => request.log.debug({ reason: error.message }, 'a WebSocket failed'),
    preClose: closeSockets,
  });
}

function restOptions({ publicUrl }: Config, services: Services): RestOptions {
  return {
    schema,
    operationsDir,
    principal: (request) => request.caller.principal,
    context: (request, _principal, operation, versions) => {
      if (versions) request.caller.request.expectation = new Expectation(versions);
      request.caller.request.successStatus = operation.successStatus;
      return new Context(request.caller, services);
    },
    onFault: logRequestFault,
    publicUrl,
    info: {
      title: 'Platform management API',
      version: '1.0.0',
      description:
        'The control plane of a multi-tenant workspace platform. Every route is a GraphQL document: the same answers are at `/graphql`.',
    },
  };
}

function tasksOf(services: Services, eventLag: EventLag): Task[] {
  return [
    { name: 'event lag', everyMs: 5_000, run: () => eventLag.watch() },
    { name: 'buckets', everyMs: 1_000, run: () => services.buckets.provisionPending() },
    { name: 'bucket retries', everyMs: 10_000, run: () => services.buckets.retryFailed() },
    { name: 'secret notices', everyMs: 60_000, run: () => services.secretNotices.send() },
    { name: 'token notices', everyMs: 900_000, run: () => services.apiTokenNotices.send() },
    {
      name: 'retention',
      everyMs: 3_600_000,
      run: async () => {
        await services.buckets.removeDeleted();
        await enforceRetention(services.sql);
      },
    },
  ];
}

async function stop(services: Services, maintenance: Maintenance): Promise<void> {
  services.tail.close();
  await maintenance.stop();
  await services.background.drain();
  await services.activity.flush();
  await services.tokenUses.flush();
}

const logRequestFault = (error: unknown, request: FastifyRequest) =>
  request.log.error({ err: error }, 'a request failed');

function statusOfError(error: unknown): number {
  if (error instanceof InputError) return 422;
  return error instanceof ApiError ? statusOf(error.code) : 500;
}

function listeningUrl(server: FastifyInstance, config: Config): string {
  const address = server.addresses()[0];
  const port = typeof address === 'object' ? address.port : config.port;
  return baseUrl(config.host, port);
}
