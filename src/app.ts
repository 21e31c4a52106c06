import cors from '@fastify/cors';
import helmet from '@fastify/helmet';
import websocket from '@fastify/websocket';
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance, type FastifyRequest } from 'fastify';
import path from 'node:path';
import { registerErrorShapes, statusOf } from '../rest/errors.ts';
import { fastifyOptions, restPlugin } from '../rest/plugin.ts';
import { SigningKeys } from './access/signing-keys.ts';
import type { Config } from './config.ts';
import { errorCodeOf } from './graphql/activity-plugin.ts';
import { Context } from './graphql/context.ts';
import { addGraphQL, createEndpoint } from './graphql/endpoint.ts';
import { ApiError, InputError } from './graphql/errors.ts';
import { schema } from './graphql/schema.ts';
import { socketHandler } from './graphql/websocket.ts';
import { addAccountPages } from './http/account-pages.ts';
import { addFailureRecords } from './http/activity.ts';
import { addHealth } from './http/health.ts';
import { addIdempotency } from './http/idempotency.ts';
import { addMetrics } from './http/metrics.ts';
import { addRateLimit, CallerLimit } from './http/rate-limit.ts';
import { addRequestLog } from './http/request-log.ts';
import { addRequestContext, traceIdOf } from './http/request-context.ts';
import type { Database } from './infra/database.ts';
import { appSecret } from './infra/keys.ts';
import type { Logger } from './infra/logger.ts';
import { Maintenance } from './infra/maintenance.ts';
import { enforceRetention } from './infra/retention.ts';
import { Seal } from './infra/seal.ts';
import type { Mailer } from './infra/mail.ts';
import { projectRoot } from './paths.ts';
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
export async function buildApp({ config, database, mailer, logger }: AppDeps): Promise<App> {
  const keys = await SigningKeys.open(config.keysDir);
  const secret = Buffer.from(appSecret(config));
  let isStopping = false;
  const server = Fastify({
    ...fastifyOptions,
    bodyLimit: config.bodyLimitBytes,
    loggerInstance: logger as FastifyBaseLogger,
    genReqId: (request) => traceIdOf(request.headers),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'trace_id' }),
    requestTimeout: 60_000,
    connectionTimeout: 0,
  });
  const services = createServices({
    config,
    database,
    mailer,
    keys,
    appSecret: secret,
    publicUrl: () => config.publicUrl ?? listeningUrl(server, config),
    onFault: (error, what) => logger.error({ err: error }, what),
    outcomeOf: (error) => ({ statusCode: statusOfError(error), errorCode: errorCodeOf(error) }),
  });
  const onFault = (error: unknown, request: FastifyRequest) => request.log.error({ err: error }, 'a request failed');
  registerErrorShapes(server, { onFault });
  await server.register(helmet, { contentSecurityPolicy: false, crossOriginResourcePolicy: { policy: 'cross-origin' } });
  await server.register(cors, {
    origin: config.corsOrigins.includes('*') ? true : [...config.corsOrigins],
    exposedHeaders: ['x-trace-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after', 'idempotent-replayed'],
  });
  await server.register(websocket, { options: { maxPayload: 64 * 1024, perMessageDeflate: false } });
  addRequestContext(server, services, config.trustedProxies);
  const limit = new CallerLimit(config);
  addRateLimit(server, limit);
  addIdempotency(server, database.prisma, new Seal(secret, 'idempotency'));
  addMetrics(server, services, database.pool);
  addRequestLog(server, logger);
  addFailureRecords(server, services, schema);
  addAccountPages(server);
  addHealth(server, { database, keys, isStopping: () => isStopping });
  const endpoint = createEndpoint({ schema, services, limit, config, onFault: (error, traceId) => logger.error({ err: error, trace_id: traceId }, 'a resolver failed') });
  addGraphQL(server, endpoint, socketHandler(endpoint, services));
  await server.register(restPlugin, {
    schema,
    operationsDir: path.join(projectRoot, 'rest', 'operations'),
    principal: (request) => request.caller.principal,
    context: (request, _principal, operation) => {
      request.caller.request.successStatus = operation.successStatus;
      return new Context(request.caller, services);
    },
    onFault,
    publicUrl: config.publicUrl,
    info: {
      title: 'Platform management API',
      version: '1.0.0',
      description: 'The control plane of a multi-tenant workspace platform. Every route is a GraphQL document: the same answers are at `/graphql`.',
    },
  });
  server.addHook('preClose', async () => {
    isStopping = true;
    services.tail.close();
  });
  const onTaskFault = (error: unknown, what: string) => logger.error({ err: error }, what);
  const maintenance = new Maintenance(
    [
      { name: 'buckets', everyMs: 1_000, run: () => services.buckets.provisionPending() },
      { name: 'retention', everyMs: 3_600_000, run: () => enforceRetention(services.sql) },
    ],
    onTaskFault,
  );
  return {
    server,
    services,
    stop: async () => {
      services.tail.close();
      await maintenance.stop();
      await services.background.drain();
      await services.activity.flush();
    },
  };
}

function statusOfError(error: unknown): number {
  if (error instanceof InputError) return 422;
  return error instanceof ApiError ? statusOf(error.code) : 500;
}

function listeningUrl(server: FastifyInstance, config: Config): string {
  const address = server.addresses()[0];
  const port = typeof address === 'object' ? address.port : config.port;
  return `http://${config.host}:${port}`;
}

