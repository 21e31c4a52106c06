import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { type Config, commandLine, loadConfig, logFormatOf } from './config.ts';
import { baseUrl } from './http/base-url.ts';
import { migrationsDir, moduleOf } from './paths.ts';
import { LogOutput } from './platform/log-output.ts';
import { createLogger, type Logger } from './platform/logger.ts';
import { WorkerLink } from './platform/nodes/worker-link.ts';
import { WorkerProcesses } from './platform/nodes/workers.ts';
import type { DatabasePlace } from './platform/postgres/database.ts';
import { migrate } from './platform/postgres/migrate.ts';
import { isPooled, keepLimits, refuseUnfitPooler, refuseUnfitReplicaPoolers } from './platform/postgres/pooler.ts';
import { startEmbeddedPostgres } from './platform/postgres/postgres-embedded.ts';
import { hasDatabase } from './platform/postgres/postgres-folder.ts';
import { waitForDatabase } from './platform/postgres/wait-for-database.ts';
import { ReadableLog } from './platform/readable-log.ts';
import { StartSteps } from './platform/start-steps.ts';
import { openTracing } from './platform/tracing/open-tracing.ts';
import { tuneGarbageCollector, withoutOptimizer } from './platform/v8.ts';
import { Shutdown } from './shutdown.ts';
import { settingFaults, startFault } from './start-fault.ts';

const STEP_TIMEOUT_SECONDS = 15;
/** What the log has said at the end is written within this time, or lost. */
const LAST_LINES_MS = 1_000;
const DATABASE_STOP_TIMEOUT_SECONDS = 60;

function readConfig(): Config {
  try {
    commandLine();
    return loadConfig();
  } catch (error) {
    for (const problem of settingFaults(error)) sayFault(problem, logFormatOf());
    process.exit(1);
  }
}

/** The last words of a start that failed, on the other output and at once: the log may have lines that still wait. */
function sayFault(sentence: string, format: Config['logFormat']): void {
  const line = { level: 'fatal', time: new Date().toISOString(), msg: sentence };
  console.error(format === 'json' ? JSON.stringify(line) : sentence);
}

/** What a start tells while it goes on, and what it hands over. */
interface Start {
  config: Config;
  logger: Logger;
  shutdown: Shutdown;
  steps: StartSteps;
  lostLogLines: () => number;
  /** The parent, of a process that is one of several workers. */
  link: WorkerLink | null;
  /** When there is no service left to run. */
  onGone: (reason: string) => void;
}

/** Where the database is: as requests reach it, and past a pooler. */
interface DatabaseUrls {
  url: string;
  directUrl: string;
}

async function provideDatabase({ config, logger, shutdown, steps }: Start): Promise<DatabaseUrls> {
  if (config.databaseUrl) {
    const place = { url: config.databaseUrl, directUrl: config.databaseDirectUrl ?? config.databaseUrl };
    steps.begin('connecting to the database');
    for (const url of new Set(Object.values(place))) await waitForDatabase(url, logger);
    return place;
  }
  const dir = path.join(config.dataDir, 'postgres');
  if (hasDatabase(dir)) steps.begin('starting the database', { folder: dir });
  else steps.begin('creating a database', { folder: dir });
  const embedded = await startEmbeddedPostgres({ dir, logger });
  shutdown.add('the embedded PostgreSQL', () => embedded.stop(), DATABASE_STOP_TIMEOUT_SECONDS);
  return { url: embedded.url, directUrl: embedded.url };
}

async function migrateDatabase({ directUrl }: DatabaseUrls, { steps }: Start): Promise<void> {
  let isTold = false;
  await migrate(directUrl, migrationsDir, (progress) => {
    if (!isTold) steps.begin('migrating the database', progress);
    isTold = true;
    steps.progress(progress);
  });
}

/** @returns what to open the database with when a pooler stands before it */
async function seePooler({ url, directUrl }: DatabaseUrls, { config }: Start) {
  if (!config.databaseUrl || !(await isPooled(url))) return undefined;
  await refuseUnfitPooler(url);
  // jobs work through it as well, where nothing leads past it
  return { directUrl: (await isPooled(directUrl)) ? url : directUrl };
}

/** Migrates it. @returns what to open it with */
async function prepareDatabase(place: DatabaseUrls, given: Start): Promise<DatabasePlace> {
  const pooled = await seePooler(place, given);
  await refuseUnfitReplicaPoolers(given.config.databaseReadUrls);
  await migrateDatabase(place, given);
  if (pooled) await keepLimits(place.url);
  return { url: place.url, pooled };
}

/** Stops accepting at once. Requests in flight get a grace period, then their connections are closed. */
async function closeServer(server: FastifyInstance, graceSeconds: number): Promise<void> {
  const closed = new AbortController();
  const cut = delay(graceSeconds * 1_000, undefined, { signal: closed.signal }).then(
    () => {
      server.server.closeAllConnections();
      // Node no longer counts sockets as connections
      for (const socket of server.websocketServer.clients) socket.terminate();
    },
    () => undefined, // aborted, because all requests were finished
  );
  await server.close();
  closed.abort();
  await cut;
}

/** The processes of a node: this one starts the database and migrates it, and the workers do all else. */
async function startWorkers(given: Start): Promise<string> {
  const { config, logger, shutdown, steps, onGone } = given;
  const database = await prepareDatabase(await provideDatabase(given), given);
  steps.begin('starting the workers', { workers: config.workers });
  const program = { ...moduleOf('main'), args: process.argv.slice(2) };
  const workers = new WorkerProcesses({ count: config.workers, database, program, logger, onGone });
  const seconds = config.shutdownDelaySeconds + config.shutdownTimeoutSeconds + 4 * STEP_TIMEOUT_SECONDS;
  shutdown.add('the workers', () => workers.stop(seconds * 1_000), seconds + STEP_TIMEOUT_SECONDS);
  return workers.start();
}

/** The service in this process. A worker finds its database ready. */
async function startService(given: Start): Promise<string> {
  const { config, logger, shutdown, steps, lostLogLines, link } = given;
  // the modules of the service, most of the time of a start, load while the database starts
  const modules = Promise.all([
    import('./app.ts'),
    import('./platform/postgres/database.ts'),
    import('./platform/mail/mail.ts'),
  ]);
  modules.catch(() => undefined); // reported where it is awaited
  const tracing = await openTracing(given);
  // after everything whose last spans it sends
  shutdown.add('the traces', () => tracing.close(), STEP_TIMEOUT_SECONDS);
  const place = link ? null : await provideDatabase(given);
  steps.begin('loading the service');
  // a service that is not installed whole must not migrate a database
  const [{ buildApp }, { openDatabase }, { createMailer }] = await modules;
  const prepared = place ? await prepareDatabase(place, given) : link!.database;

  steps.begin('preparing the routes');
  const database = openDatabase({
    ...prepared,
    readUrls: config.databaseReadUrls,
    poolSize: config.databasePoolSize,
    logger,
    isTraced: tracing.isOn,
  });
  shutdown.add('the database connections', () => database.close(), STEP_TIMEOUT_SECONDS);
  const mailer = createMailer({ config, logger });
  shutdown.add('the mailer', async () => mailer.close(), STEP_TIMEOUT_SECONDS);
  const siblings = link ?? undefined;
  const app = await buildApp({ config, database, mailer, logger, lostLogLines, siblings, tracing });
  shutdown.add('the background work', () => app.stop(), STEP_TIMEOUT_SECONDS);
  shutdown.add(
    'the server',
    () => closeServer(app.server, config.shutdownTimeoutSeconds),
    config.shutdownTimeoutSeconds + STEP_TIMEOUT_SECONDS,
  );
  if (link) shutdown.add('to share a socket', () => link.released(), STEP_TIMEOUT_SECONDS);
  const { shutdownDelaySeconds } = config;
  if (shutdownDelaySeconds > 0)
    shutdown.add('to answer', () => app.leave(shutdownDelaySeconds), shutdownDelaySeconds + STEP_TIMEOUT_SECONDS);

  await app.server.listen({ host: config.host, port: config.port });
  const { port } = app.server.server.address() as AddressInfo;
  return config.publicUrl ?? baseUrl(config.host, port);
}

function announce(base: string, { config: { publicUrl, host, port, logFormat }, logger }: Start, output: LogOutput) {
  const addresses = {
    rest: `${base}/v1`,
    graphql: `${base}/graphql`,
    reference: `${base}/docs/api`,
    guides: `${base}/docs/`,
  };
  if (logFormat === 'json') return logger.info(addresses, 'ready');
  const listening = publicUrl ? ` (listening on ${host}, port ${port})` : '';
  output.write(
    `Platform management API is ready${listening}.\n` +
      `  REST       ${addresses.rest}\n  GraphQL    ${addresses.graphql}\n` +
      `  Reference  ${addresses.reference}\n  Guides     ${addresses.guides}\n`,
  );
}

/**
 * Runs the service until a signal or a fault ends it. The process exits with 0 after a requested, clean stop, else with
 * 1.
 */
async function main(): Promise<void> {
  tuneGarbageCollector();
  const optimize = withoutOptimizer();
  const config = readConfig();
  const link = await WorkerLink.open();
  const isAlone = config.workers === 1;
  const output = isAlone ? new LogOutput(process.stdout.fd) : LogOutput.shared(process.stdout.fd);
  const readable = config.logFormat === 'text' ? new ReadableLog(output) : undefined;
  const ownLogger = createLogger(config, readable ?? output);
  const logger = link ? ownLogger.child({ worker: link.number }) : ownLogger;
  if (!link) for (const sentence of config.ignoredVariables) logger.warn(sentence);
  const shutdown = new Shutdown();
  const showBelow = process.stdout.isTTY && readable && !link ? (text: string) => readable.showBelow(text) : undefined;
  // the parent tells of the start
  const steps = new StartSteps(link ? createLogger({ logLevel: 'silent' }) : logger, showBelow);
  let isStopping = false;

  const stop = async (exitCode: number): Promise<void> => {
    isStopping = true;
    await starting.catch(() => undefined); // reported where it is awaited
    const isClean = await shutdown.run(logger);
    await output.flush(LAST_LINES_MS);
    process.exit(isClean ? exitCode : 1);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    // a terminal sends its signals to workers as well
    if (isStopping && link) return;
    if (isStopping) {
      logger.warn({ signal }, 'second signal: exit without waiting');
      void output.flush(LAST_LINES_MS).then(() => process.exit(1));
      return;
    }
    logger[link ? 'debug' : 'info']({ signal }, 'stopping');
    void stop(0);
  };
  const onFault = (error: unknown): void => {
    logger.fatal({ err: error }, 'an unhandled error');
    if (!isStopping) void stop(1);
  };
  const onGone = (reason: string): void => {
    if (isStopping) return;
    sayFault(`The service ends, because its workers do. ${reason}`, config.logFormat);
    void stop(1);
  };
  const given: Start = { config, logger, shutdown, steps, lostLogLines: () => output.lost, link, onGone };
  const starting = (isAlone || link ? startService(given) : startWorkers(given)).finally(() => {
    steps.end();
    optimize();
  });
  link?.onStop(() => onSignal('SIGTERM'));
  process
    .on('SIGTERM', onSignal)
    .on('SIGINT', onSignal)
    .on('uncaughtException', onFault)
    .on('unhandledRejection', onFault);

  try {
    const base = await starting;
    if (link) link.ready(base);
    else announce(base, given, output);
  } catch (error) {
    const fault = startFault(error, config);
    if (link) link.fault(fault);
    else sayFault(`The service could not start. ${fault}`, config.logFormat);
    logger.debug({ err: error }, 'the service could not start');
    if (!isStopping) await stop(1);
  }
}

await main();
