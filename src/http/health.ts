import type { FastifyInstance } from 'fastify';
import type { SigningKeys } from '../access/signing-keys.ts';
import type { EventLag } from '../live/events/event-lag.ts';
import type { Database } from '../platform/postgres/database.ts';

const PROBE_TIMEOUT_MS = 2_000;

/**
 * Serves `/healthz` (the process is alive), `/readyz` (it can serve requests), and the public keys that verify its
 * tokens.
 */
export function addHealth(
  server: FastifyInstance,
  deps: { database: Database; keys: SigningKeys; eventLag: EventLag },
): void {
  let isStopping = false;
  server.addHook('preClose', async () => {
    isStopping = true;
  });
  server.get('/healthz', async () => ({ status: 'ok' }));
  server.get('/readyz', async (_request, reply) => {
    const checks = { database: await probe(deps.database), shutdown: isStopping ? 'the service is stopping' : 'ok' };
    const isReady = Object.values(checks).every((check) => check === 'ok');
    // late events are only reported: requests can be served, and no other node would be faster
    const events = checks.database === 'ok' ? await lagOf(deps.eventLag) : null;
    const { replicas } = deps.database;
    return reply.code(isReady ? 200 : 503).send({
      status: isReady ? 'ready' : 'not ready',
      checks,
      events,
      // without them the primary answers
      ...(replicas && { replicas: replicas.all.map(({ number, state }) => ({ replica: number, state })) }),
    });
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
