import { randomBytes } from 'node:crypto';
import pg from 'pg';

const BATCH = 100_000;

/**
 * Gives an organization `count` more workspaces, with one statement per 100,000, and runs `vacuum analyze` on the
 * tables.
 */
export async function seedWorkspaces(
  url: string,
  { orgId, userId }: { orgId: string; userId: string },
  count: number,
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const mark = randomBytes(4).toString('hex').toUpperCase(); // ids must differ from those of another tenant
  try {
    for (let from = 0; from < count; from += BATCH) {
      await client.query(
        `insert into workspaces (id, org_id, name, description, owner_id, storage_bucket, bucket_status, tags)
         select id, $1, 'Workspace ' || n, 'Made to be measured, with a description of a usual length.', $2, lower(id),
           'ready', array['bench', 'n' || (n % 100)]
         from generate_series($3::bigint, $4::bigint) n,
           lateral (select 'ws_' || $5 || lpad(upper(to_hex(n)), 18, '0') as id) made`,
        [orgId, userId, from, Math.min(count, from + BATCH) - 1, mark],
      );
    }
    await client.query('vacuum analyze workspaces');
    await client.query('vacuum analyze resource_counts');
  } finally {
    await client.end();
  }
}
