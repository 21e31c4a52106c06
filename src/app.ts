import { randomUUID } from 'node:crypto';
import cors from '@fastify/cors';
import websocket from '@fastify/websocket';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { handleProtocols } from 'graphql-ws';
import { type FaultHandling, registerErrorShapes } from '../rest/errors.ts';
import { Facade } from '../rest/facade.ts';
import { acceptFields } from '../rest/form-fields.ts';
import { fastifyOptions, type OperationFacts, type RestOptions, restPlugin } from '../rest/plugin.ts';
import { toolInputOf } from '../rest/tool-input.ts';
import { Admission } from './access/admission.ts';
import { CallerLimit } from './access/caller-limit.ts';
import { pathPrefixOf } from './access/oauth-tokens.ts';
import type { Passwords } from './access/passwords.ts';
import { followSigningKeys, joinService } from './access/shared-keys.ts';
import { SigningKeys } from './access/signing-keys.ts';
import type { Config } from './config.ts';
import { Operations } from './engine/path/operations.ts';
import { PersistedDocuments } from './engine/path/persisted-documents.ts';
import { RegisteredDocuments } from './engine/path/registered-documents.ts';
import { closeSockets } from './engine/transport/close-sockets.ts';
import { createEndpoint } from './engine/transport/endpoint.ts';
import { addGraphQL } from './engine/transport/http.ts';
import { OwnDocuments } from './engine/transport/own-documents.ts';
import { plainReader } from './engine/transport/plain-request.ts';
import { socketHandler } from './engine/transport/websocket.ts';
import { Context, type Services } from './graphql/context.ts';
import { addAccountPages } from './http/account-pages.ts';
import { addActivityExport } from './http/activity-export.ts';
import { addAdmission } from './http/admission.ts';
import { addAnswerHeaders } from './http/answer-headers.ts';
import { addAsyncApi } from './http/async-api.ts';
import { baseUrl } from './http/base-url.ts';
import { addCallbackPage } from './http/callback-page.ts';
import { addClientDocument } from './http/client-document.ts';
import { addConnectPages, ConnectReturns } from './http/connect-pages.ts';
import { cutOffSlowReaders, cutOffSlowSenders, endUnusedConnections, UPLOAD_TIMEOUT_MS } from './http/connections.ts';
import { addConsistency, CONSISTENCY_HEADER } from './http/consistency.ts';
import { addConsolePages, consoleDocuments } from './http/console-pages.ts';
import { addDocPages } from './http/doc-pages.ts';
import { addFactorPages } from './http/factor-pages.ts';
import { addFailureRecords } from './http/failure-records.ts';
import { addFileRoutes } from './http/file-routes.ts';
import { formFiles } from './http/form-files.ts';
import { addHealth, STOPPING } from './http/health.ts';
import { idempotency, storedAnswers } from './http/idempotency.ts';
import { addLeaving } from './http/leaving.ts';
import { addMetrics } from './http/metrics.ts';
import { addOAuthRoutes } from './http/oauth-routes.ts';
import { PageSessions } from './http/page-sessions.ts';
import { addRefusedPages } from './http/refused-pages.ts';
import { replayGate } from './http/replay-gate.ts';
import { addRequestContext, traceIdOf } from './http/request-context.ts';
import { addRequestLog } from './http/request-log.ts';
import { addRequestSpans } from './http/request-spans.ts';
import { addUploadDiscovery, RESUMABLE_UPLOAD_HEADERS } from './http/resumable-uploads.ts';
import { addSchemaDocuments } from './http/schema-documents.ts';
import { addScimRoutes } from './http/scim-routes.ts';
import { addSessionPages } from './http/session-pages.ts';
import { addSsoRoutes, refusedSignIns } from './http/sso-routes.ts';
import { addStartPage } from './http/start-page.ts';
import { addToolProxy, proxiedPaths } from './http/tool-proxy-routes.ts';
import { addUnsubscribePage } from './http/unsubscribe-page.ts';
import { allDone } from './kernel/all-done.ts';
import { Expectation } from './kernel/expectation.ts';
import type { Owner } from './kernel/owner.ts';
import { apart } from './kernel/spans.ts';
import { scheduled, type Task } from './kernel/tasks.ts';
import { hasKeptFiles } from './knowledge/files/kept-files.ts';
import type { ExtractionOptions } from './knowledge/indexing/text/text-extraction.ts';
import { asyncApi } from './live/events/async-api.ts';
import { addMcp } from './mcp/mcp-routes.ts';
import { operationsDir, version } from './paths.ts';
import { recipeSchema } from './pipelines/recipes/recipe-schema.ts';
import { workspaceSchema } from './pipelines/workspace-documents/workspace-document.schema.ts';
import { wereChecked } from './platform/build-checks.ts';
import { every } from './platform/every.ts';
import { Jobs, type JobsOptions } from './platform/jobs/jobs.ts';
import { appSecret } from './platform/keys/keys.ts';
import { RootKeys } from './platform/keys/root-keys.ts';
import { Seal } from './platform/keys/seal.ts';
import { type Logger, requestLogger } from './platform/logger.ts';
import type { Mailer } from './platform/mail/mail.ts';
import { Heartbeat } from './platform/nodes/heartbeat.ts';
import { type KnownNode, knownNodes } from './platform/nodes/known-nodes.ts';
import { StoreCheck } from './platform/nodes/store-check.ts';
import type { Siblings } from './platform/nodes/worker-link.ts';
import { Outbound, type OutboundOptions } from './platform/outbound/outbound.ts';
import type { Database } from './platform/postgres/database.ts';
import { callerErrorOfAny } from './platform/postgres/faults.ts';
import { OutageLog } from './platform/postgres/outage-log.ts';
import { RedisLink, type RedisLinkOptions } from './platform/redis/redis-link.ts';
import { noTracing, type Tracing } from './platform/tracing/tracing.ts';
import { PROXY_HEADERS } from './tools/tool-proxy/proxied-headers.ts';
import { writeBuiltInTools } from './tools/tools/built-in-tools.ts';
import { customActionSchemas } from './tools/tools/custom-action-schemas.ts';
import { Retention } from './wiring/retention.ts';
import { retentionOrder } from './wiring/retention-order.ts';
import { schema } from './wiring/schema.ts';
import { secretReferencesOf } from './wiring/secret-references.ts';
import { createServices, type Runtime } from './wiring/services.ts';

export interface AppDeps {
  config: Config;
  database: Database;
  mailer: Mailer;
  logger: Logger;
  /** The compiled documents of the REST API, if the process has them already. */
  facade?: Facade;
  /** Lines of the log that were lost, of a process whose log may lose some. */
  lostLogLines?: () => number;
  /** The other workers of the node, if the process is one of several. */
  siblings?: Siblings | undefined;
  /** By default, no traces are made. Whoever gives it closes it. */
  tracing?: Tracing;
  /** Whom calls to others trust, and how they find them: a test has servers of its own. */
  outbound?: Pick<OutboundOptions, 'ca' | 'names'>;
  /** How passwords are hashed: a test need not wait for what makes guessing expensive. */
  passwords?: Passwords;
  /** How text is taken out of files: a test need not start the process for it again and again. */
  extraction?: ExtractionOptions;
  /** How often the process looks for work: a test need not wait for what comes once in some seconds. */
  jobs?: Pick<JobsOptions, 'pollMs' | 'periodOf'>;
  /** How soon Redis must answer: in tests it shares a busy machine. */
  redis?: Pick<RedisLinkOptions, 'answerMs'>;
}

export interface App {
  server: FastifyInstance;
  services: Runtime;
  /** All services that declare tasks, retention and references to secrets. */
  owners: readonly Owner[];
  retention: Retention;
  jobs: Jobs;
  /** Answers for so many more seconds, and tells proxies to ask other nodes. */
  leave(seconds: number): Promise<void>;
  /** Ends streams and writes the data that is still in memory. Call it after the server has stopped accepting. */
  stop(): Promise<void>;
}

/** The whole service without the process: it reads no environment variables and does not listen yet. */
export async function buildApp(deps: AppDeps): Promise<App> {
  const { config, database, logger, tracing = noTracing } = deps;
  const rootKeys = await RootKeys.open(config, database);
  const keys = await SigningKeys.open(config.keysDir);
  const secret = Buffer.from(appSecret(config));
  await joinService(config, keys, database);
  const server = createServer(config, logger, tracing);
  const outages = new OutageLog(logger);
  const logFault = (error: unknown, what: string) => outages.fault(error, what);
  const outbound = new Outbound({ config, logger, ...deps.outbound });
  const redis = config.redisUrl ? await RedisLink.open({ url: config.redisUrl, secret, logger, ...deps.redis }) : null;
  // one that is several processes has one row, which the first of them keeps
  const { nodeId, number: workerNumber } = deps.siblings ?? { nodeId: randomUUID(), number: 1 };
  const { services, open, replicaReads } = createServices({
    ...deps,
    nodeId,
    outbound,
    keys,
    rootKeys,
    appSecret: secret,
    publicUrl: () => config.publicUrl ?? listeningUrl(server, config),
    onFault: logFault,
    redis,
  });
  const toolsWritten = writeBuiltInTools(services.sql); // while the routes are made
  toolsWritten.catch(() => undefined); // reported where it is awaited
  const storeCheck = storeCheckOf(deps, services, logFault);
  const { eventLag } = services;
  const limit = new CallerLimit(config, services.budgets);
  const admission = new Admission(services.authentication, limit);
  const leaving = addLeaving(server);
  endUnusedConnections(server);
  cutOffSlowSenders(server, { timeoutMs: ARRIVAL_MS });
  cutOffSlowReaders(server, { timeoutMs: config.writeTimeoutSeconds * 1_000 });
  registerErrorShapes(server, faults);
  addAnswerHeaders(server);
  addUploadDiscovery(server, config);
  await addPlugins(server, config, open);
  addRequestContext(server, config);
  const { publicUrl } = config;
  const sessions = new PageSessions({ admission, seal: new Seal(secret, 'session pages'), publicUrl });
  if (replicaReads) addConsistency(server, replicaReads);
  addRequestSpans(server, tracing);
  addAdmission(server, admission, (request) => sessions.cookieOfCall(request));
  addRequestLog(server, logger);
  addFailureRecords(server, open, schema);
  addHealth(server, { database, keys, eventLag, redis, storeCheck, leaving, siblings: deps.siblings });
  addAccountPages(server);
  const base = () => pathPrefixOf(services.authorizationServer.publicUrl);
  addRefusedPages(server, base);
  addSessionPages(server, { services: open, sessions, acceptForms: acceptFields, base });
  addFactorPages(server, { services: open, sessions, acceptForms: acceptFields, base });
  addOAuthRoutes(server, { server: services.authorizationServer, sessions, acceptForms: acceptFields });
  addUnsubscribePage(server, open, acceptFields);
  addConnectPages(server, { services: open, publicUrl, acceptForms: acceptFields });
  addCallbackPage(server, { ...config, ofEndUsers: new ConnectReturns(open) });
  addClientDocument(server, () => services.authorizationServer.publicUrl.replace(/\/$/, ''));
  addFileRoutes(server, {
    downloads: services.downloads,
    wholeResults: services.wholeResults,
    files: services.files,
    tickets: services.uploadTickets,
    pieces: services.uploadPieces,
    linkCaller: services.linkCaller,
    maxUploadBytes: config.maxUploadBytes,
  });
  addActivityExport(server, open, schema);
  addToolProxy(server, open, schema);
  addSsoRoutes(server, open, acceptFields);
  addScimRoutes(server, {
    services: open,
    limit,
    onFault: faults.onFault,
  });
  addSchemaDocuments(server, { recipe: recipeSchema, workspace: workspaceSchema, ...customActionSchemas.jsonSchemas });
  addAsyncApi(server, asyncApi(TITLE));
  addDocPages(server);
  addConsolePages(server);
  addStartPage(server, {
    ...TITLE,
    publicUrl: config.publicUrl,
    listeningUrl: () => listeningUrl(server, config),
    hasGraphiQL: config.graphiql,
  });
  const onResolverFault = (error: unknown, traceId: string) =>
    logger.error({ err: error, trace_id: traceId }, 'a resolver failed');
  const operations = new Operations({ schema, limit, config, onFault: onResolverFault, tracing });
  const { documents } = operations;
  const registered = new RegisteredDocuments(services.sql, consoleDocuments());
  const persisted = new PersistedDocuments({ documents, registered, persistedOnly: config.persistedOnly });
  const endpoint = createEndpoint({ schema, services: open, operations, persisted, onFault: onResolverFault });
  const socket = socketHandler({
    ...config,
    endpoint,
    services: open,
    admission,
    limit,
    persisted,
    tracing,
    onFault: onResolverFault,
  });
  addGraphQL(server, { ...config, endpoint, read: plainReader(documents, persisted), socket });
  const runner = new OwnDocuments(endpoint, documents);
  const facade = deps.facade ?? new Facade(schema, operationsDir, (digest) => wereChecked('operations', digest));
  const operationsByName = new Map(facade.operations.map((operation) => [operation.name, operation]));
  addMcp(server, {
    schema,
    access: services.access,
    operations: operationsByName,
    inputOf: (name) => toolInputOf(schema, operationsByName.get(name)!),
    endpoint,
    persisted,
    documents: runner,
    contextOf: ({ caller }) => new Context(caller, open),
    sql: services.sql,
    seal: new Seal(secret, 'mcp confirmations'),
    limit,
    isGrantable: (scope) => services.authorizationServer.isGrantable(scope),
    version,
    publicUrl: () => services.authorizationServer.publicUrl,
    corsOrigins: config.corsOrigins,
    bodyLimitBytes: config.bodyLimitBytes,
    onFault: onResolverFault,
  });
  const hooks = idempotency({
    sql: services.sql,
    seal: new Seal(secret, 'idempotency'),
    mayReplay: replayGate(schema, open),
    written: async (caller) => replicaReads?.committed(caller),
  });
  const hooksOf = ({ isReplayed }: OperationFacts) => (isReplayed ? hooks : {});
  await server.register(restPlugin, { ...restOptions(config, open, runner), facade, hooksOf });
  const byName: Record<string, object & Owner> = { ...services, storedAnswers };
  const owners = Object.values(byName);
  const retention = new Retention({ sql: services.sql, owners: byName, order: retentionOrder, onFault: logFault });
  services.vault.declare(secretReferencesOf(owners));
  services.jobQueue.declare(tasksOf(owners, retention));
  const jobs = new Jobs({
    pool: database.directPool,
    tasks: services.jobQueue.tasks,
    logger,
    onFault: logFault,
    tracing,
    ...deps.jobs,
  });
  services.jobQueue.onAdded(() => apart(() => jobs.wake()));
  addMetrics(server, {
    services,
    pool: database.pool,
    replicaReads,
    eventLag,
    jobs,
    nodes: () => knownNodes(async (text, values) => (await database.pool.query<KnownNode>(text, values)).rows, nodeId),
    operations: operations.counts,
    tracing,
    lostLogLines: deps.lostLogLines,
    redis,
    siblings: deps.siblings,
  });
  await allDone([toolsWritten, services.storage.load(), storeCheck.check()]);
  jobs.start();
  services.webhookEngine.start();
  services.auditEngine.start();
  const endStoreCheck = storeCheck.follow();
  const endKeyWatch = followSigningKeys(keys, database, (error) => logFault(error, 'a rotation was not noted'));
  const endLagWatch = every(
    5_000,
    () => eventLag.watch(),
    (error) => logFault(error, 'the event lag could not be measured'),
  );
  const heartbeat = new Heartbeat({
    nodeId,
    pool: database.pool,
    version,
    workers: () => deps.siblings ?? { running: 1, of: 1 },
    problem: () => (leaving.hasBegun ? STOPPING : storeCheck.problem),
    onFault: (error) => logFault(error, 'the other nodes could not be told that this one runs'),
  });
  const endHeartbeat = workerNumber === 1 ? heartbeat.start() : async () => undefined;
  const stop = async (): Promise<void> => {
    services.tail.close();
    // jobs first: a call that is cut off in the middle may have changed something at its target
    const engines = [services.webhookEngine.stop(), services.auditEngine.stop()];
    // while the database is away, this tries for some seconds: what follows does not wait for it
    const left = endHeartbeat();
    await Promise.all([jobs.stop(), ...engines, endLagWatch(), endStoreCheck(), endKeyWatch()]);
    await services.textExtraction.close();
    await services.samlChecks.close();
    await services.toolDocuments.close();
    await services.largeAnswers.close();
    await services.mcpSessions.close();
    await outbound.close();
    await services.storage.close();
    services.auth.recordFailures();
    services.ssoRefusals.recordCounted();
    await services.activity.end();
    await services.tokenUses.flush();
    await redis?.close();
    await left;
  };
  return { server, services, owners, retention, jobs, leave: (seconds) => leaving.begin(seconds), stop };
}

const storeCheckOf = (
  { database, logger }: AppDeps,
  { storage, sql }: Pick<Runtime, 'storage' | 'sql'>,
  onFault: (error: unknown, what: string) => void,
): StoreCheck =>
  new StoreCheck({
    storage,
    database,
    hasFiles: (of) => hasKeptFiles((text, values) => sql.read(text, values), of),
    onFault: (error) => onFault(error, 'the store of files could not be checked'),
    onChange: (problem) => {
      if (problem === null) logger.info('the files of the service are here');
      else logger.error(`no file is stored or sent: ${problem}`);
    },
  });

const MAX_HEADER_BYTES = 32 * 1024;
/** How long the head of a request, and a body that is no file, may take to arrive. */
const ARRIVAL_MS = 60_000;

/** No route has a schema of the framework's own: without these, it would load its two compilers at each start. */
const noSchemas = {
  buildValidator: () => refuseSchema,
  buildSerializer: () => refuseSchema,
};

function refuseSchema(): never {
  throw new Error('Requests and answers are validated by the GraphQL schema, not by schemas of a route.');
}

function createServer(config: Config, logger: Logger, tracing: Tracing): FastifyInstance {
  return Fastify({
    ...fastifyOptions,
    http: { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: ARRIVAL_MS },
    bodyLimit: config.bodyLimitBytes,
    loggerInstance: logger as FastifyBaseLogger,
    childLoggerFactory: (parent, { trace_id: traceId }) => requestLogger(parent as Logger, String(traceId)),
    genReqId: (request) => traceIdOf(request.headers, tracing.newTraceId.bind(tracing)),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'trace_id' }),
    schemaController: { compilersFactory: noSchemas },
    // other bodies than files have to arrive within a minute; responses may take longer, because streams do
    requestTimeout: UPLOAD_TIMEOUT_MS,
    // compiling the operations takes a second, and much longer on a busy machine
    pluginTimeout: 120_000,
  });
}

async function addPlugins(
  server: FastifyInstance,
  { corsOrigins, databaseReadUrls }: Config,
  services: Services,
): Promise<void> {
  await server.register(cors, {
    strictPreflight: false, // its error would be plain text
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    origin: corsOrigins.includes('*') ? true : [...corsOrigins],
    // as one text: of a list, the plugin would make it again with each answer
    exposedHeaders: [
      'x-trace-id',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'retry-after',
      'etag',
      'idempotent-replayed',
      'repr-digest',
      'content-range',
      ...PROXY_HEADERS,
      ...(databaseReadUrls.length > 0 ? [CONSISTENCY_HEADER] : []),
      ...RESUMABLE_UPLOAD_HEADERS,
    ].join(', '),
  });
  server.addHook('preClose', () => services.events.close());
  await server.register(websocket, {
    options: { maxPayload: 64 * 1024, perMessageDeflate: false, handleProtocols },
    // ws has closed the socket with the right code: a client's mistake is not a fault of the service
    errorHandler: (error, _socket, request) => request.log.debug({ reason: error.message }, 'a WebSocket failed'),
    preClose: closeSockets,
  });
}

/** Of the API, in its documents. */
const TITLE = { title: 'Platform management API', version };

function restOptions(config: Config, services: Services, runner: OwnDocuments): Omit<RestOptions, 'facade'> {
  const { publicUrl, maxUploadBytes } = config;
  return {
    runner,
    principal: (request) => request.caller.principal,
    context: (request, _principal, operation, versions) => {
      if (versions) request.caller.request.expectation = new Expectation(versions);
      request.caller.request.successStatus = operation.successStatus;
      return new Context(request.caller, services);
    },
    files: formFiles(schema, services, maxUploadBytes),
    before: { FinishOidcSignIn: refusedSignIns(services) },
    ...faults,
    extensions: { 'x-proxied-paths': proxiedPaths() },
    publicUrl,
    info: {
      ...TITLE,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      contact: contactOf(config),
      description:
        'The control plane of a multi-tenant workspace platform. Every route is a GraphQL document, so `/graphql` ' +
        'gives the same answers.',
    },
  };
}

/** Whom callers of the API ask: whoever the operator names, otherwise what the documentation answers. */
function contactOf({ supportContact, publicUrl }: Config): { name: string; url?: string; email?: string } {
  if (supportContact?.includes('@') && !supportContact.includes('://'))
    return { name: 'Support', email: supportContact };
  if (supportContact) return { name: 'Support', url: supportContact };
  return { name: 'Documentation', ...(publicUrl ? { url: `${publicUrl}/docs/` } : {}) };
}

/** The tasks that the owners declare, and retention. */
function tasksOf(owners: readonly Owner[], retention: Retention): Task[] {
  const hourly = scheduled('retention', { everySeconds: 3_600 }, () => retention.run());
  return [...owners.flatMap(({ tasks }) => tasks ?? []), hourly];
}

/** An outage of the database is the same for callers wherever it is noticed; all else is logged. */
const faults: FaultHandling = {
  shown: callerErrorOfAny,
  onFault(error, request) {
    // who is gone gets no answer, and is no fault of ours
    if (request.raw.readableAborted) request.log.info({ err: messageOf(error) }, 'the client closed the connection');
    else request.log.error({ err: error }, 'a request failed');
  },
};

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function listeningUrl(server: FastifyInstance, config: Config): string {
  const address = server.addresses()[0];
  const port = typeof address === 'object' ? address.port : config.port;
  return baseUrl(config.host, port);
}
