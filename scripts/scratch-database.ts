import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLogger } from '../src/platform/logger.ts';
import { startEmbeddedPostgres } from '../src/platform/postgres/postgres-embedded.ts';

/** Runs the work with its own empty PostgreSQL, and removes the database afterwards. */
export async function withScratchDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(path.join(tmpdir(), 'scratch-'));
  try {
    const server = await startEmbeddedPostgres({
      dir: path.join(dir, 'postgres'),
      isDurable: false,
      logger: createLogger({ logLevel: 'error' }),
    });
    try {
      return await work(server.url);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
