import pg from 'pg';
import type { TestApp } from './app.ts';

/**
 * Runs a statement that makes thousands of rows. The service ends a statement after half a minute, which they may take
 * on a busy machine: here it takes as long as it takes.
 */
export async function fill({ database }: Pick<TestApp, 'database'>, text: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}
