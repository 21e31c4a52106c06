import type { FastifyInstance } from 'fastify';
import type { SigningKeys } from '../access/signing-keys.ts';
import type { EventLag } from '../live/events/event-lag.ts';
import type { StoreCheck } from '../platform/nodes/store-check.ts';
import type { Siblings } from '../platform/nodes/worker-link.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import type { Leaving } from './leaving.ts';

const PROBE_TIMEOUT_MS = 2_000;

/** Why a node that ends takes no more requests. */
export const STOPPING = 'the service is stopping';

/**
 * Serves `/healthz` (the process is alive), `/readyz` (it can serve requests), and the public keys that verify its
 * tokens.
 */
export function addHealth(
  server: FastifyInstance,
  deps: {
    database: Database;
    keys: SigningKeys;
    eventLag: EventLag;
    redis: RedisLink | null;
    storeCheck: StoreCheck;
    leaving: Pick<Leaving, 'hasBegun'>;
    siblings?: Pick<Siblings, 'running' | 'of'> | undefined;
  },
): void {
  server.get('/healthz', async () => ({ status: 'ok' }));
  server.get('/readyz', async (_request, reply) => {
    const database = await probe(deps.database);
    const checks = {
      database,
      files: (database === 'ok' ? await deps.storeCheck.current() : deps.storeCheck.problem) ?? 'ok',
      shutdown: deps.leaving.hasBegun ? STOPPING : 'ok',
    };
    const isReady = Object.values(checks).every((check) => check === 'ok');
    // late events are only reported: requests can be served, and no other node would be faster
    const events = checks.database === 'ok' ? await lagOf(deps.eventLag) : null;
    // so is Redis: without it, the node does all by itself
    const redis = deps.redis ? { redis: await deps.redis.state() } : {};
    // and so are replicas: without them, the primary answers
    const replicas = deps.database.replicas?.all.map(({ number, state }) => ({ replica: number, state }));
    const workers = deps.siblings && { running: deps.siblings.running, of: deps.siblings.of };
    const status = isReady ? 'ready' : 'not ready';
    return reply.code(isReady ? 200 : 503).send({ status, checks, events, replicas, workers, ...redis });
  });
  server.get('/.well-known/jwks.json', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send(await deps.keys.jwks()),
  );
}

async function lagOf(eventLag: EventLag): Promise<{ lag_seconds: number; waiting: number } | null> {
  try {
    const { seconds, waiting } = await eventLag.read();
    return { lag_seconds: seconds, waiting };
  } catch {
    return null; // the database became unreachable after the first check
  }
}

async function probe({ pool }: Database): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('did not answer in time'), PROBE_TIMEOUT_MS);
  });
  const asked = pool.query('select 1').then(
    () => 'ok',
    () => 'cannot be reached',
  );
  const state = await Promise.race([asked, late]);
  clearTimeout(timer);
  return state;
}
