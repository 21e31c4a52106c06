import type pg from 'pg';

/** Writes many activity records: without indexes, which are made after the rows. */
export async function loadActivity(client: pg.Client, write: () => Promise<void>): Promise<void> {
  await client.query(`set maintenance_work_mem = '1GB'`);
  const { rows: indexes } = await client.query<{ name: string; made: string }>(
    `select c.relname as name, pg_get_indexdef(i.indexrelid) as made from pg_index i
     join pg_class c on c.oid = i.indexrelid where i.indrelid = 'activity'::regclass and not i.indisprimary`,
  );
  // the service itself adds nothing to the sums until the indexes are back
  await client.query(`select pg_advisory_lock(hashtext('activity fold'))`);
  for (const { name } of indexes) await client.query(`drop index ${name}`);
  await client.query('alter table activity drop constraint activity_pkey');
  await write();
  await client.query('alter table activity add constraint activity_pkey primary key (id, "timestamp")');
  // those of the partitions, too
  for (const { made } of indexes) await client.query(made.replace(' ON ONLY ', ' ON '));
  await client.query('vacuum analyze activity');
  await client.query(`select pg_advisory_unlock(hashtext('activity fold'))`);
}

/** The default of `fold_activity`. */
const DENSITY = 500;
const SPANS = ['month', 'day', 'hour', 'minute'] as const;

/** Scopes of records: the column that names one, and whether it has sums of each user. */
const SCOPES = [
  ['organization', null, true],
  ['workspace', 'workspace_id', true],
  ['app', 'app_id', true],
  ['namespace', 'namespace_id', false],
  ['environment', 'environment_id', false],
  ['token', 'token_id', false],
  ['resource', 'resource_id', false],
] as const;

/**
 * Makes the sums of all activity records from nothing, as the service would have made them one batch after another: the
 * same rows, in less time. The service adds nothing meanwhile.
 */
export async function sumActivity(client: pg.Client): Promise<void> {
  await client.query(`select pg_advisory_lock(hashtext('activity fold'))`);
  try {
    await client.query(`set timezone to 'UTC'`);
    await client.query(`set work_mem = '512MB'`);
    await client.query(`set maintenance_work_mem = '1GB'`);
    await client.query('begin');
    await client.query('truncate activity_sums, activity_divided');
    await client.query('alter table activity_sums drop constraint activity_sums_pkey');
    await client.query('update activity_fold set xid = pg_snapshot_xmin(pg_current_snapshot()), folded_at = now()');
    await client.query(`update activity_fold set record_id = ''`);
    await client.query(
      `create temp table picked on commit drop as select a.org_id, a.user_id, a.workspace_id, a.app_id, a.namespace_id,
         a.environment_id, a.token_id, a.resource_id, date_trunc('minute', a.timestamp) as minute, a.action,
         coalesce(a.resource_type, '') as resource_type, a.success, a.duration_ms,
         activity_tokens(a.token_usage) as tokens
       from activity a, activity_fold f where a.org_id is not null and (a.xid, a.id) < (f.xid, f.record_id)`,
    );
    await client.query('analyze picked');
    for (const [level, span] of SPANS.entries()) await sumSpans(client, span, SPANS[level - 1] ?? null);
    await client.query(
      `alter table activity_sums add constraint activity_sums_pkey
         primary key (org_id, scope, user_id, span, start, action, resource_type, success)`,
    );
    await client.query('commit');
  } finally {
    await client.query(`select pg_advisory_unlock(hashtext('activity fold'))`);
  }
  for (const table of ['activity_sums', 'activity_divided']) await client.query(`vacuum analyze ${table}`);
}

/** The sums without kinds, of spans of one length. */
const MARGINS = `insert into activity_sums (org_id, scope, user_id, span, start, action, resource_type, success,
    requests, duration_ms, tokens)
  select s.org_id, s.scope, '', s.span || m.kept, s.start, m.action, m.resource_type, m.success, sum(s.requests),
    sum(s.duration_ms), sum(s.tokens)
  from activity_sums s cross join lateral activity_margins(s.action, s.resource_type, s.success) m
  where s.span = $1 and has_activity_margins(s.scope, s.user_id)
  group by 1, 2, 4, 5, 6, 7, 8`;

/** Sums the spans of one length, of the longer spans that are divided. */
async function sumSpans(client: pg.Client, span: string, longer: string | null): Promise<void> {
  for (const [kind, column, ofUsers] of SCOPES) {
    for (const user of ofUsers ? [`''`, 'p.user_id'] : [`''`]) {
      if (longer && !(await isAnyDivided(client, longer, kind, user !== `''`))) continue;
      const scope = column ? `'${kind} ' || p.${column}` : `'${kind}'`;
      const named = [column && `p.${column} is not null`, user !== `''` && 'p.user_id is not null'].filter(Boolean);
      const divided = `join activity_divided d on d.org_id = p.org_id and d.scope = ${scope} and d.user_id = ${user}
        and d.span = '${longer}' and d.start = date_trunc('${longer}', p.minute)`;
      await client.query(
        `insert into activity_sums (org_id, scope, user_id, span, start, action, resource_type, success, requests,
           duration_ms, tokens)
         select p.org_id, ${scope}, ${user}, '${span}', date_trunc('${span}', p.minute), p.action, p.resource_type,
           p.success, count(*), sum(p.duration_ms), sum(p.tokens)
         from picked p ${longer ? divided : ''} ${named.length > 0 ? `where ${named.join(' and ')}` : ''}
         group by 1, 2, 3, 4, 5, 6, 7, 8`,
      );
    }
  }
  if (span !== 'minute') {
    await client.query(MARGINS, [span]);
    await client.query(
      `insert into activity_divided (org_id, scope, user_id, span, start)
       select org_id, scope, user_id, span, start from activity_sums where span = $1
       group by 1, 2, 3, 4, 5 having sum(requests) > ${DENSITY}`,
      [span],
    );
  }
  await client.query('analyze activity_divided');
}

async function isAnyDivided(client: pg.Client, span: string, kind: string, ofUsers: boolean): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from activity_divided where span = $1 and split_part(scope, ' ', 1) = $2 and (user_id <> '') = $3 limit 1`,
    [span, kind, ofUsers],
  );
  return rowCount === 1;
}
