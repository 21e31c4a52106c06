import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { readEpoch } from '../../src/data/epoch.ts';
import { Sql } from '../../src/data/sql.ts';
import { cursorOf, type Position } from '../../src/live/events/position.ts';
import { waitUntil } from './wait.ts';

export const WRITERS = 12;
const PER_WRITER = 60;

interface Place {
  orgId: string;
  workspaceId: string;
}

/** The resource of an event: each writer has one, and changes it alone. */
export const resourceOf = (id: string): string => id.replace(/_[^_]*$/, '');

/** Writes an event of a workspace. */
export const insertEvent = (client: pg.Pool | pg.PoolClient, { orgId, workspaceId }: Place, id: string) =>
  client.query(
    `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
     values ($1, $2, $3, 'thread.created', '{"principal_type":"system","principal_id":null,"username":null}', 'thread',
       $4, '{}')`,
    [id, orgId, workspaceId, resourceOf(id)],
  );

/** The cursor of a written event, once readers can have it: no transaction that began before it runs any more. */
export const cursorOfWritten = (pool: pg.Pool, id: string): Promise<string> =>
  waitUntil(
    async () => {
      const { rows } = await pool.query<Position>(
        `select xid::text, seq::text from events where id = $1 and xid < pg_snapshot_xmin(pg_current_snapshot())`,
        [id],
      );
      return rows[0] && cursorOf(rows[0], await readEpoch(new Sql(pool)));
    },
    { what: 'the end of each transaction that began before the event' },
  );

/**
 * Twelve that write events at once, in transactions that commit late, now and then roll back, and hold several events.
 * Their ids begin with `prefix` and the writer's number.
 * @param options.written gets the ids meanwhile
 * @returns the ids that were committed, in the order of the commits
 */
export async function writeLate(
  pool: pg.Pool,
  place: Place,
  prefix: string,
  { perWriter = PER_WRITER, written = [] }: { perWriter?: number; written?: string[] } = {},
): Promise<string[]> {
  await Promise.all(
    Array.from({ length: WRITERS }, (_, writer) => write(pool, place, `${prefix}_${writer}_`, perWriter, written)),
  );
  return written;
}

async function write(pool: pg.Pool, place: Place, prefix: string, count: number, written: string[]): Promise<void> {
  const client = await pool.connect();
  try {
    for (let i = 0; i < count; ) {
      const batch = 1 + Math.floor(Math.random() * 3);
      const isAborted = Math.random() < 0.1;
      const ids = Array.from({ length: batch }, (_, k) => `${prefix}${i + k}${isAborted ? '_aborted' : ''}`);
      await client.query('begin');
      for (const id of ids) {
        await insertEvent(client, place, id);
        if (Math.random() < 0.3) await delay(Math.random() * 4);
      }
      await delay(Math.random() * 6);
      await client.query(isAborted ? 'rollback' : 'commit');
      if (!isAborted) written.push(...ids);
      i += batch;
    }
  } finally {
    client.release();
  }
}
