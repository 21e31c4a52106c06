import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { type Config, ConfigError, loadConfig } from './config.ts';
import { baseUrl } from './http/base-url.ts';
import { migrationsDir } from './paths.ts';
import { tuneGarbageCollector } from './platform/garbage-collector.ts';
import { LogOutput } from './platform/log-output.ts';
import { createLogger, type Logger } from './platform/logger.ts';
import { migrate } from './platform/postgres/migrate.ts';
import { startEmbeddedPostgres } from './platform/postgres/postgres-embedded.ts';
import { waitForDatabase } from './platform/postgres/wait-for-database.ts';
import { Shutdown } from './shutdown.ts';

const STEP_TIMEOUT_SECONDS = 15;
/** What the log has said at the end is written within this time, or lost. */
const LAST_LINES_MS = 1_000;
const DATABASE_STOP_TIMEOUT_SECONDS = 60;

function readConfig(): Config {
  try {
    return loadConfig();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(problem);
    process.exit(1);
  }
}

/** @returns the connection URL */
async function provideDatabase(config: Config, logger: Logger, shutdown: Shutdown): Promise<string> {
  if (config.databaseUrl) {
    await waitForDatabase(config.databaseUrl, logger);
    return config.databaseUrl;
  }
  const embedded = await startEmbeddedPostgres({ dir: path.join(config.dataDir, 'postgres'), logger });
  shutdown.add('the embedded PostgreSQL', () => embedded.stop(), DATABASE_STOP_TIMEOUT_SECONDS);
  return embedded.url;
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

async function start(config: Config, logger: Logger, shutdown: Shutdown, lostLogLines: () => number): Promise<void> {
  // the modules of the service, most of the time of a start, load while the database starts
  const modules = Promise.all([
    import('./app.ts'),
    import('./platform/postgres/database.ts'),
    import('./platform/mail/mail.ts'),
  ]);
  modules.catch(() => undefined); // reported where it is awaited
  const url = await provideDatabase(config, logger, shutdown);
  // a service that is not installed whole must not migrate a database
  const [{ buildApp }, { openDatabase }, { createMailer }] = await modules;
  const applied = await migrate(url, migrationsDir);
  if (applied.length > 0) logger.info({ migrations: applied }, 'migrations applied');

  const database = openDatabase({ url, poolSize: config.databasePoolSize, logger });
  shutdown.add('the database connections', () => database.close(), STEP_TIMEOUT_SECONDS);
  const mailer = createMailer({ config, logger });
  shutdown.add('the mailer', async () => mailer.close(), STEP_TIMEOUT_SECONDS);
  const app = await buildApp({ config, database, mailer, logger, lostLogLines });
  shutdown.add('the background work', () => app.stop(), STEP_TIMEOUT_SECONDS);
  shutdown.add(
    'the server',
    () => closeServer(app.server, config.shutdownTimeoutSeconds),
    config.shutdownTimeoutSeconds + STEP_TIMEOUT_SECONDS,
  );

  await app.server.listen({ host: config.host, port: config.port });
  announce(config, app.server.server.address() as AddressInfo);
}

function announce({ host, publicUrl }: Config, { port }: AddressInfo): void {
  const base = publicUrl ?? baseUrl(host, port);
  const listening = publicUrl ? ` (listening on ${host}, port ${port})` : '';
  console.log(
    `Platform management API is ready${listening}.\n` +
      `  REST       ${base}/v1\n  GraphQL    ${base}/graphql\n` +
      `  Reference  ${base}/docs/api\n  Guides     ${base}/docs/`,
  );
}

function explain(error: unknown, { host, port }: Config): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return `Port ${port} of ${host} is in use. Stop the other process, or set PORT.`;
  if (code === 'EACCES' && 'syscall' in error && error.syscall === 'listen')
    return `This user may not listen on port ${port}. Set PORT to 1024 or higher.`;
  return error.message;
}

/**
 * Runs the service until a signal or a fault ends it. The process exits with 0 after a requested, clean stop, else with
 * 1.
 */
async function main(): Promise<void> {
  tuneGarbageCollector();
  const config = readConfig();
  const output = new LogOutput(process.stdout.fd);
  const logger = createLogger(config, output);
  const shutdown = new Shutdown();
  let isStopping = false;

  const stop = async (exitCode: number): Promise<void> => {
    isStopping = true;
    await starting.catch(() => undefined); // reported where it is awaited
    const isClean = await shutdown.run(logger);
    await output.flush(LAST_LINES_MS);
    process.exit(isClean ? exitCode : 1);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      logger.warn({ signal }, 'second signal: exit without waiting');
      void output.flush(LAST_LINES_MS).then(() => process.exit(1));
      return;
    }
    logger.info({ signal }, 'stopping');
    void stop(0);
  };
  const onFault = (error: unknown): void => {
    logger.fatal({ err: error }, 'a fault that nothing handled');
    if (!isStopping) void stop(1);
  };
  const starting = start(config, logger, shutdown, () => output.lost);
  process
    .on('SIGTERM', onSignal)
    .on('SIGINT', onSignal)
    .on('uncaughtException', onFault)
    .on('unhandledRejection', onFault);

  try {
    await starting;
  } catch (error) {
    console.error(`The service could not start. ${explain(error, config)}`);
    logger.debug({ err: error }, 'the service could not start');
    if (!isStopping) await stop(1);
  }
}

await main();
