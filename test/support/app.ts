import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { inject } from 'vitest';
import { Passwords } from '../../src/access/passwords.ts';
import { type App, type AppDeps, buildApp } from '../../src/app.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import type { Logger } from '../../src/platform/logger.ts';
import { createMailer, type Mail, type Mailer } from '../../src/platform/mail/mail.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../../src/platform/postgres/database.ts';
import { Storage } from '../../src/platform/storage/storage.ts';
import { openTracing } from '../../src/platform/tracing/open-tracing.ts';
import { createTestDatabase, onServer, takeDatabase } from './database.ts';
import { expectDocumented, readDocument } from './documented.ts';
import { facade } from './operations.ts';
import { quietLogger } from './quiet-logger.ts';
import { SharedApp } from './shared-app.ts';
import { fromOutside, withSingleConnections } from './single-connection.ts';
import { timed } from './times.ts';
import { waitUntil } from './wait.ts';

export interface TestApp extends App {
  database: Database;
  /** `DATA_DIR` of the app. */
  dataDir: string;
  /** Mails that were handed over, newest last; none of them leaves when no SMTP_URL is set. */
  mails: Mail[];
  /** Folder of the keys that sign access tokens. */
  keysDir: string;
  /**
   * Resolves when no job of the database waits for its first try or runs: what was promised by mail was handed over.
   */
  jobsDone(): Promise<void>;
  /** `http://127.0.0.1:PORT` once `listen` was awaited. */
  url: string;
  listen(): Promise<string>;
  /** Another node over the same database, with the same keys; it closes with this one, if not before. */
  another(env?: Record<string, string>): Promise<TestApp>;
  /** @throws Error when a route answered what the OpenAPI document does not list */
  close(): Promise<void>;
}

export interface TestAppOptions {
  /** Environment variables of the service. */
  env?: Record<string, string>;
  /** An existing database: a second node over it. */
  databaseUrl?: string;
  /** Where it records what it sends. Nodes of one service share it: any of them sends what is to be sent. */
  mails?: Mail[];
  /** A database that no file had before: plans of statements follow from what a table ever held. */
  ownDatabase?: boolean;
  /** Passwords that cost what they do in the field; by default they cost far less. */
  passwords?: Passwords;
  logger?: Logger;
  /** Whom calls to others trust, and how they find them. */
  outbound?: AppDeps['outbound'];
}

/** Nodes over one database have the same root keys, or they do not start. */
export const ROOT_KEYS = `test:${randomBytes(32).toString('base64')}`;

/** A Redis that has no time for a moment is not away: what nodes count together would be counted twice. */
const REDIS_ANSWER_MS = 2_000;

/** Fifty requests at once share four connections: on a busy machine the last of them waits longer than in the field. */
const CONNECTION_WAIT_MS = 60_000;

/** Starting the process that reads files takes a third of a second of the processor. */
const READER_IDLE_MS = 300_000;

/** A nineteenth of the memory of the field, and half of its passes. */
const CHEAP = { memoryCost: 1_024, timeCost: 1 };

const SELDOM_SECONDS = 60;

/** What comes once in some seconds comes ten times as often: tests wait for it. It is cheap where nothing is due. */
const HURRIED: AppDeps['jobs'] = {
  pollMs: 100,
  periodOf: ({ everySeconds }) => (everySeconds < SELDOM_SECONDS ? everySeconds / 10 : everySeconds),
};

/** What is there once in a process. */
const shared = new SharedApp(() => startOwnApp());

/**
 * The real app. Without options it is the one that the files of this process use one after the other, each time over an
 * emptied database: whoever stops it, or counts what the process has done so far, takes {@link startOwnApp}.
 */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const isPlain = Object.keys(options).length === 0;
  return isPlain && !shared.isTaken ? timed('app', () => shared.take()) : startOwnApp(options);
}

/**
 * An app that no other file has. Its database is the one of this process, emptied, unless it gets one. Limits that
 * tests would run into are off unless `env` sets them.
 */
export const startOwnApp = (options: TestAppOptions = {}): Promise<TestApp> => timed('app', () => start(options));

async function start(options: TestAppOptions): Promise<TestApp> {
  const {
    env = {},
    databaseUrl,
    ownDatabase,
    mails = [],
    passwords = new Passwords(CHEAP),
    logger = quietLogger,
    outbound,
  } = options;
  const dataDir = env.DATA_DIR ?? mkdtempSync(path.join(os.tmpdir(), 'platform-test-'));
  const config = loadConfig({
    NODE_ENV: 'test',
    DATA_DIR: dataDir,
    ROOT_KEYS,
    RATE_LIMIT_RPS: '0',
    REGISTRATIONS_PER_MINUTE: '0',
    LOGIN_FAILURES_PER_MINUTE: '0',
    SSO_STARTS_PER_MINUTE: '0',
    MAILS_PER_HOUR: '0',
    PORT: '0',
    EVENT_POLL_MS: '20',
    SEARCH_TIMEOUT_MS: '30000', // what a search reads is bounded; how long it takes depends on the machine
    DATABASE_POOL_SIZE: '4', // each connection costs a process of PostgreSQL that plans every statement for itself
    ...env,
  });
  const own = databaseUrl ? null : await (ownDatabase ? createTestDatabase() : takeDatabase());
  const tracing = await openTracing({ config, logger });
  const database = withSingleConnections(
    openDatabase({
      ...placeOf(databaseUrl ?? own!.url),
      readUrls: config.databaseReadUrls,
      poolSize: config.databasePoolSize,
      connectionWaitMs: CONNECTION_WAIT_MS,
      logger,
      isTraced: tracing.isOn,
    }),
  );
  const mailer = recording(createMailer({ config, logger }), mails, config.smtpUrl !== undefined);
  const app = await buildApp({
    config,
    database,
    mailer,
    logger,
    facade,
    passwords,
    tracing,
    jobs: HURRIED,
    extraction: { idleMs: READER_IDLE_MS },
    redis: { answerMs: REDIS_ANSWER_MS },
    ...(outbound && { outbound }),
  });
  await app.server.ready();
  if (own) await holdSeldomTasks(app, database);
  await readDocument(app.server);
  const others: TestApp[] = [];
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await Promise.all(others.map((other) => other.close()));
    await app.server.close();
    await app.stop();
    mailer.close();
    await tracing.close();
    await database.close();
    await own?.drop();
    if (!env.DATA_DIR) rmSync(dataDir, { recursive: true, force: true });
    expectDocumented(app.server);
  };
  const test: TestApp = {
    ...app,
    database,
    dataDir,
    mails,
    keysDir: config.keysDir,
    url: '',
    jobsDone: () => jobsDone(database.pool),
    async listen() {
      if (!app.server.server.listening) await app.server.listen({ host: '127.0.0.1', port: 0 });
      test.url = `http://127.0.0.1:${(app.server.server.address() as AddressInfo).port}`;
      return test.url;
    },
    async another(given = {}) {
      if (given.S3_BUCKET) await shareMarker(config, given);
      const other = await startOwnApp({
        env: { DATA_DIR: dataDir, ...given },
        databaseUrl: database.url,
        mails,
        ...(outbound && { outbound }),
      });
      others.push(other);
      return other;
    },
    close: () => {
      closing ??= timed('app', close);
      return closing;
    },
  };
  return test;
}

/** As if its files had been copied: a store without them is not the one of the service. */
async function shareMarker(config: Config, env: Record<string, string>): Promise<void> {
  const [from, to] = [new Storage(config), new Storage(loadConfig({ DATA_DIR: config.dataDir, ...env }))];
  if (!(await to.marker())) await to.mark((await from.marker())!);
  await to.close();
}

/**
 * What runs by itself once a minute or less often would meet only tests on a slow machine, and do there what they are
 * about to ask for. It waits until a test says that it is due.
 */
const holdSeldomTasks = ({ services }: App, database: Database) =>
  fromOutside(() =>
    database.pool.query(
      `insert into jobs._private_known_crontabs (identifier, known_since, last_execution)
       select name, now(), now() + interval '1 day' from unnest($1::text[]) name
       on conflict (identifier) do update set last_execution = excluded.last_execution`,
      [
        services.jobQueue.tasks.flatMap(({ name, schedule }) =>
          schedule && schedule.everySeconds >= SELDOM_SECONDS ? [name] : [],
        ),
      ],
    ),
  );

/** Past the pooler, where the run has one, go jobs, and files that say `// direct connection: <reason>`. */
function placeOf(url: string): Pick<DatabaseOptions, 'url' | 'pooled'> {
  const pooler = process.env.TEST_DIRECT ? null : inject('poolerUrl');
  const socketOf = (one: string) => new URL(one).searchParams.get('host');
  if (!pooler || socketOf(url) !== socketOf(inject('serverUrl'))) return { url };
  return { url: onServer(pooler, new URL(url).pathname.slice(1)), pooled: { directUrl: url } };
}

/** Besides jobs that are there: what a change of language or of models makes a job of a moment later. */
async function jobsDone(pool: Database['pool']): Promise<void> {
  const text = `select 1 from jobs._private_jobs
    where attempts < max_attempts and (locked_at is not null or run_at <= now() and attempts = 0)
    union all select 1 from search_language_changes where not is_marked
    union all select 1 from embedding_changes where not is_marked
    union all select 1 from artifacts where index_version = 0 and is_latest and deleted_at is null limit 1`;
  await waitUntil(async () => (await fromOutside(() => pool.query(text))).rowCount === 0);
}

function recording(mailer: Mailer, mails: Mail[], isReal: boolean): Mailer {
  return {
    async send(mail) {
      mails.push(mail);
      if (isReal) await mailer.send(mail);
    },
    close: () => mailer.close(),
  };
}
