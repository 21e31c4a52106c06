import pg from 'pg';

/** Adds workspaces to an organization until it has `count`, in one statement per 100,000. */
export async function seedWorkspaces(url: string, orgId: string, ownerId: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ n: number }>('select count(*)::int as n from workspaces where org_id = $1', [
      orgId,
    ]);
    for (let from = rows[0]!.n; from < count; from += 100_000) {
      await client.query(
        `insert into workspaces (id, org_id, name, description, owner_id, storage_bucket, bucket_status, tags)
         select 'ws_' || lpad(upper(to_hex(n)), 26, '0'), $1, 'Workspace ' || n, 'Made to be measured, with a description of a usual length.', $2,
           'ws_' || lpad(to_hex(n), 26, '0'), 'ready', array['bench', 'n' || (n % 100)]
         from generate_series($3::bigint, $4::bigint) n`,
        [orgId, ownerId, from, Math.min(count, from + 100_000) - 1],
      );
    }
    await client.query('vacuum analyze workspaces');
    await client.query('vacuum analyze resource_counts');
  } finally {
    await client.end();
  }
}
