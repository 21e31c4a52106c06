import { Access } from '../access/access.ts';
import { AccessTokens } from '../access/access-tokens.ts';
import { Authentication } from '../access/authentication.ts';
import { Budgets } from '../access/budgets.ts';
import { MailBudgets } from '../access/mail-budgets.ts';
import { oauthKeys, oauthRsaKeys } from '../access/oauth-keys.ts';
import { OAuthTokens } from '../access/oauth-tokens.ts';
import { Passwords } from '../access/passwords.ts';
import type { ServiceDeps } from '../access/service-deps.ts';
import type { SigningKeys } from '../access/signing-keys.ts';
import { TokenUses } from '../access/token-uses.ts';
import type { Config } from '../config.ts';
import { ActivityRecorder } from '../data/activity.ts';
import { Changes, type ChangesDeps } from '../data/changes.ts';
import { Cursors } from '../data/cursors.ts';
import { JobQueue } from '../data/job-queue.ts';
import type { ReplicaReads } from '../data/replica-reads.ts';
import { SlowReads } from '../data/slow-reads.ts';
import type { Sql } from '../data/sql.ts';
import type { ExtractionOptions } from '../knowledge/indexing/text/text-extraction.ts';
import type { RootKeys } from '../platform/keys/root-keys.ts';
import { Seal } from '../platform/keys/seal.ts';
import type { Logger } from '../platform/logger.ts';
import type { AccountMail } from '../platform/mail/account-mail.ts';
import type { Mailer } from '../platform/mail/mail.ts';
import type { Siblings } from '../platform/nodes/worker-link.ts';
import type { Outbound } from '../platform/outbound/outbound.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import { Storage } from '../platform/storage/storage.ts';
import { Removals } from '../tenancy/removals.ts';

/** What the process provides. */
export interface ProcessDeps {
  config: Config;
  database: Database;
  mailer: Mailer;
  logger: Logger;
  outbound: Outbound;
  keys: SigningKeys;
  rootKeys: RootKeys;
  appSecret: Buffer;
  /** Address under which clients reach the service; known once it listens. */
  publicUrl: () => string;
  onFault: (error: unknown, what: string) => void;
  passwords?: Passwords;
  extraction?: ExtractionOptions;
  /** `null`: the node shares nothing beside the database. */
  redis: RedisLink | null;
  /** The other workers of the node, if the process is one of several. */
  siblings?: Pick<Siblings, 'running' | 'of'> | undefined;
  /** Of this start of the node. */
  nodeId: string;
}

/** What stands before the ground: changes tell the groups on top of it what they did. */
export interface Base extends Pick<ChangesDeps, 'notify' | 'onCommit'> {
  sql: Sql;
  replicaReads: ReplicaReads | null;
  mail: AccountMail;
}

/** What all groups stand on: data, access and what talks to the outside. */
export type Ground = ReturnType<typeof createGround>;

/** Everything below the groups, made once per process. */
export function createGround(process: ProcessDeps, { sql, replicaReads, mail, notify, onCommit }: Base) {
  const { config, database, outbound, publicUrl, onFault, appSecret, rootKeys, logger } = process;
  const jobQueue = new JobQueue();
  const changes = new Changes({
    database,
    sql,
    jobs: jobQueue,
    notify,
    // in the field a wrong order is a deadlock at worst, which is retried: no reason to refuse a change
    assertsLockOrder: config.environment === 'test',
    onCommit,
    replicaReads,
  });
  const access = new Access(sql, config);
  const slowReads = new SlowReads({
    sql,
    database,
    replicaReads,
    poolSize: config.databasePoolSize,
    searchTimeoutMs: config.searchTimeoutMs,
  });
  const budgets = new Budgets(process.redis);
  const deps: ServiceDeps = { sql, replicaReads, slowReads, changes, access, budgets };
  const tokens = new AccessTokens(process.keys, config.accessTokenTtlSeconds);
  const tokenUses = new TokenUses(sql, onFault);
  const serviceUrl = () => publicUrl().replace(/\/$/, '');
  const keysOfGrants = oauthKeys(appSecret, config);
  const oauthTokens = new OAuthTokens(keysOfGrants, serviceUrl);
  const authentication = new Authentication(tokens, oauthTokens, tokenUses, sql);
  const passwords = process.passwords ?? new Passwords();
  const activity = new ActivityRecorder(sql, (error, lost) =>
    onFault(error, `activity records could not be written (${lost} lost)`),
  );
  const storage = new Storage(config, (error) =>
    logger.error({ err: error }, 'the store of files refused or did not answer'),
  );
  return {
    config,
    prisma: database.prisma,
    logger,
    rootKeys,
    keys: process.keys,
    siblings: process.siblings,
    nodeId: process.nodeId,
    appSecret,
    publicUrl,
    deps,
    tokens,
    serviceUrl,
    oauthTokens,
    keysOfGrants,
    rsaKeys: () => oauthRsaKeys(appSecret, config),
    mailBudgets: new MailBudgets(config, budgets),
    removals: new Removals(),
    extraction: process.extraction,
    /** Seals what the service gives away for one purpose. */
    sealFor: (purpose: string) => new Seal(appSecret, purpose),
    open: { access, cursors: new Cursors(appSecret), authentication, activity, onFault },
    closed: { sql, budgets, tokenUses, passwords, jobQueue, outbound, storage, mail },
  };
}
