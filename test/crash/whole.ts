import type pg from 'pg';
import { expect } from 'vitest';
import type { Deployments, Load, Rotations, TokenRefreshes, Workspaces, Writer } from './load.ts';

/**
 * Every acknowledged change is there with its record and its event, and each of those in flight as a whole or not at
 * all.
 */
export async function expectWhole(db: pg.Client, load: Load): Promise<void> {
  // first of all: who holds a refresh token without an answer has a minute to send it again
  await expectUsable(load);
  await expectWholeWorkspaces(db, load.workspaces);
  for (const writer of load.rotations) await expectWholeSecret(db, writer);
  for (const writer of load.deployments) await expectWholeSlot(db, writer);
  for (const writer of load.tokens) await expectWholeFamily(db, writer);
  const open = await db.query(
    `select session_id, count(*) filter (where replaced_at is null)::int as usable from refresh_tokens group by 1`,
  );
  expect(open.rows.length).toBe(1);
  for (const { usable } of open.rows as { usable: number }[]) expect(usable, 'refresh tokens of a session').toBe(1);
}

async function expectWholeWorkspaces(db: pg.Client, writers: readonly Workspaces[]): Promise<void> {
  const { rows } = await db.query<{ id: string; name: string; [trace: string]: unknown }>(
    `select w.id, w.name,
      (select count(*)::int from workspace_members m where m.workspace_id = w.id) as members,
      (select count(*)::int from namespaces n where n.workspace_id = w.id) as namespaces,
      (select count(*)::int from activity a where a.resource_id = w.id and a.action = 'create'
        and a.success) as creates,
      (select count(*)::int from activity a cross join lateral jsonb_array_elements(a.metadata->'also') m
        where a.resource_type = 'user' and a.action = 'create' and a.success and a.org_id = w.org_id
          and m @> jsonb_build_object('action', 'create', 'resource_type', 'workspace', 'resource_id', w.id))
            as mentions,
      (select count(*)::int from activity a where a.resource_id = w.id and a.action = 'update'
        and a.success) as updates,
      (select count(*)::int from events e where e.workspace_id = w.id and e.type = 'workspace.created') as created,
      (select count(*)::int from events e where e.resource_id = w.id and e.type = 'workspace.updated'
        and not e.data ? 'bucket_status') as updated
     from workspaces w`,
  );
  const found = new Map(rows.map((row) => [row.id, row.name]));
  const promised = new Map(writers.flatMap(({ names }) => [...names]));
  expect(promised.size).toBeGreaterThan(0);
  for (const [id, names] of promised) expect(names, `acknowledged workspace ${id}`).toContain(found.get(id));
  const others = rows.filter(({ id }) => !promised.has(id)).map(({ name }) => name);
  const maybe = writers.flatMap(({ maybeMade }) => maybeMade);
  expect(others.filter((name) => !maybe.includes(name))).toEqual(['Default workspace']);
  for (const row of rows) {
    // a registration has one record: the workspace that comes with it is listed there
    const isDefault = row.name === 'Default workspace' ? 1 : 0;
    const isRenamed = row.name.startsWith('renamed ') ? 1 : 0;
    expect(row, 'a workspace by half').toMatchObject({
      members: 1,
      namespaces: 1,
      creates: 1 - isDefault,
      mentions: isDefault,
      created: 1,
      updates: isRenamed,
      updated: isRenamed,
    });
  }
  const orphans = await db.query(
    `select e.id from events e where e.resource_type = 'workspace' and not exists (select 1 from workspaces w ` +
      'where w.id = e.resource_id)',
  );
  expect(orphans.rows).toEqual([]);
  const counted = await db.query<{ kept: string; real: string }>(
    `select (select sum(n) from resource_counts where resource = 'workspace')::text as kept, (select count(*) ` +
      'from workspaces)::text as real',
  );
  expect(counted.rows[0]!.kept).toBe(counted.rows[0]!.real);
}

/** `[from, from + 1, …, to]` */
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

async function expectWholeSecret(db: pg.Client, { secretId, values, inFlight }: Rotations): Promise<void> {
  const { rows } = await db.query<{ current: number; versions: number[]; records: number[]; events: number }>(
    `select s.vault_version as current,
      array(select v.version from secret_versions v where v.secret_id = s.id order by 1) as versions,
      array(select (a.metadata->>'version')::int from activity a where a.resource_id = s.id and a.action = 'rotate'
        and a.success order by 1) as records,
      (select count(*)::int from events e where e.resource_id = s.id and e.type = 'secret.rotated') as events
     from secrets s where s.id = $1`,
    [secretId],
  );
  const { current } = rows[0]!;
  expect(rows, 'a rotation by half').toEqual([
    { current, versions: range(1, current), records: range(2, current), events: current - 1 },
  ]);
  for (const version of values.keys()) expect(version, 'acknowledged version').toBeLessThanOrEqual(current);
  const unpromised = current - 1 - values.size;
  expect(unpromised).toBeGreaterThanOrEqual(0);
  expect(unpromised, 'rotations that nobody asked for').toBeLessThanOrEqual(inFlight);
}

interface DeploymentRow {
  id: string;
  number: number;
  release: string;
  previous: string | null;
  records: number;
  events: number;
}

async function expectWholeSlot(db: pg.Client, { environmentId, ids, inFlight }: Deployments): Promise<void> {
  const slots = await db.query<{ release: string | null; last: number }>(
    'select release_id as release, last_number as last from environment_slots where environment_id = $1',
    [environmentId],
  );
  const { rows } = await db.query<DeploymentRow>(
    `select d.id, d.number, d.release_id as release, d.previous_release_id as previous,
      (select count(*)::int from activity a where a.resource_id = d.id and a.action = 'deploy'
        and a.success) as records,
      (select count(*)::int from events e where e.resource_id = d.id
        and e.type in ('deployment.created', 'deployment.rolled_back')) as events
     from deployments d where d.environment_id = $1 order by d.number`,
    [environmentId],
  );
  expect(rows.map(({ number }) => number)).toEqual(range(1, rows.length));
  expect(rows.map(({ previous }) => previous)).toEqual([null, ...rows.slice(0, -1).map(({ release }) => release)]);
  expect(slots.rows, 'a record without its pointer').toEqual([{ release: rows.at(-1)!.release, last: rows.length }]);
  expect(rows.filter(({ records, events }) => records !== 1 || events !== 1)).toEqual([]);
  const found = rows.map(({ id }) => id);
  expect(
    ids.filter((id) => !found.includes(id)),
    'acknowledged deployments that are gone',
  ).toEqual([]);
  expect(found.length - ids.length, 'deployments that nobody asked for').toBeLessThanOrEqual(inFlight);
}

interface TokenRow {
  id: string;
  successor: string | null;
  reason: string | null;
  records: number;
  events: number;
}

async function expectWholeFamily(db: pg.Client, { ids, inFlight }: TokenRefreshes): Promise<void> {
  const { rows } = await db.query<TokenRow>(
    `select t.id, t.successor_id as successor, t.revoked_reason as reason,
      (select count(*)::int from activity a where a.resource_id = t.id and a.action = 'refresh'
        and a.success) as records,
      (select count(*)::int from events e where e.resource_id = t.id and e.type = 'api_token.refreshed') as events
     from api_tokens t where t.family_id = (select f.family_id from api_tokens f where f.id = $1) order by t.id`,
    [ids[0]],
  );
  const found = rows.map(({ id }) => id);
  expect(
    rows.map(({ successor }) => successor),
    'tokens without the next',
  ).toEqual([...found.slice(1), null]);
  expect(rows.map(({ reason }) => reason)).toEqual([...found.slice(1).map(() => 'rotated'), null]);
  for (const [index, { records, events }] of rows.entries())
    expect([records, events], 'record and event of a refresh').toEqual(index === 0 ? [0, 0] : [1, 1]);
  expect(
    ids.filter((id) => !found.includes(id)),
    'acknowledged tokens that are gone',
  ).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
  expect(found.length - ids.length, 'tokens that nobody asked for').toBeLessThanOrEqual(inFlight);
}

/** What was promised can be used: values are opened, and whoever holds the last refresh token goes on with it. */
async function expectUsable({ client, rotations, tokens, sessions }: Load): Promise<void> {
  for (const writer of [...tokens, ...sessions] as Writer[]) {
    const before = writer.acknowledged;
    await writer.step(0);
    expect(writer.acknowledged, 'the last refresh token works').toBe(before + 1);
  }
  for (const { secretId, values, maybeValues } of rotations) {
    const outcome = await client.send('GET', `/v1/orgs/${client.orgId}/secrets/${secretId}/versions`);
    if (outcome.is !== 'acknowledged') throw new Error(`the versions of ${secretId} are ${outcome.is}`);
    const { versions } = outcome.body as { versions: { version: number; value: { value: string } | null }[] };
    const kept = versions.filter(({ value }) => value !== null);
    expect(kept.length).toBeGreaterThan(1);
    for (const { version, value } of kept) {
      const known = version === 1 ? 'first' : values.get(version);
      expect(known ? [known] : maybeValues, `version ${version}`).toContain(value!.value);
    }
  }
}
