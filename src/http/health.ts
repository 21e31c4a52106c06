import type { FastifyInstance } from 'fastify';
import type { SigningKeys } from '../access/signing-keys.ts';
import type { Database } from '../infra/database.ts';

const PROBE_TIMEOUT_MS = 2_000;

/** Whether the process lives (`/healthz`), whether it can serve (`/readyz`), and the keys that verify its tokens. */
export function addHealth(server: FastifyInstance, deps: { database: Database; keys: SigningKeys }): void {
  let isStopping = false;
  server.addHook('preClose', async () => {
    isStopping = true;
  });
  server.get('/healthz', async () => ({ status: 'ok' }));
  server.get('/readyz', async (_request, reply) => {
    const checks = { database: await probe(deps.database), shutdown: isStopping ? 'the service is stopping' : 'ok' };
    const isReady = Object.values(checks).every((check) => check === 'ok');
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', checks });
  });
  server.get('/.well-known/jwks.json', async (_request, reply) =>
    reply.header('cache-control', 'public, max-age=300').send(await deps.keys.jwks()),
  );
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
