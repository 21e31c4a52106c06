import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Context } from '../../src/graphql/context.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { markChecked } from '../../src/kernel/mark-checked.ts';
import { startTestApp } from '../support/app.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import type { Plan } from '../support/query-plan.ts';
import { type AnyReads, readsIn } from '../support/reads.ts';
import { createWorld, type World } from '../support/world.ts';

/**
 * A parent that has nearly all rows of a table, and others whose rows come first in the order of its list. PostgreSQL
 * expects to find the parent's rows anywhere, and to walk the key alone looks cheapest: it reads past all rows of the
 * others. The list's statement must not.
 */
const OWN = 6_000;
const OTHERS = 600;
const PAGE = 50;

/** Lists that no field shows: their `Reads` give single rows. */
const unlisted = [
  'apps.ofOrganization',
  'deployments.reads',
  'organizations.reads',
  'tools.bySlug',
  'artifacts.single',
];
/** Lists of what is bounded by itself: all rows of the parent are read and put in order. */
const sorted = ['organizations.own', 'deployments.current', 'deployments.currentOfApp'];

/**
 * The lists of an organization's members without a factor, and of their sessions: they read the row of the organization
 * beside theirs, or those of the members, and no statement has several organizations.
 */
const ofOneParent = ['memberFactors.missing', 'memberSessions.reads'];

/** Lists of the caller's own: no statement has several parents. */
const ofCaller = ['notifications.reads'];

/**
 * Lists whose other conditions make the parent's rows look rarer than they are: PostgreSQL takes its index by itself.
 */
const choosesWell = [
  'applicationGrants.reads',
  'apiTokens.own',
  'apiTokens.ownOfApps',
  'toolInstances.allOfTool',
  'toolInstances.ownOfTool',
  'secretReads.all',
  'secretReads.readable',
  'secretReads.inWorkspace',
  'artifacts.versions',
  'deletedArtifacts.inNamespace',
  'deletedArtifacts.inWorkspace',
];

/** How many rows a list reads for each of its page, if it looks something up for each: its tool, its workspace. */
const perRow: Readonly<Record<string, number>> = { 'toolInstances.allOfTool': 5, 'toolInstances.ownOfTool': 10 };

interface Asked {
  text: string;
  values: unknown[];
}

interface Row {
  table: string;
  row: Record<string, unknown>;
}

// the lists are those of a running service
const app = await startTestApp({ ownDatabase: true });
let world: World;
let place: Record<string, string>;
beforeAll(async () => {
  world = await createWorld(app);
  for (const list of listRoutes) await addRows(app, world, list, 1);
  await app.database.pool.query(
    `insert into workspace_members (id, org_id, workspace_id, user_id, role)
      select 'wm_of_deleted', org_id, id, $2, 'owner' from workspaces where org_id = $1 and deleted_at is not null`,
    [world.ids.org_id, world.accounts.owner.userId],
  );
  const { org_id, workspace_id, environment_id, app_id, tool_id, tool_instance_id, thread_id, artifact_id } =
    world.ids as Record<string, string>;
  const { namespaceId } = await app.database.prisma.thread.findFirstOrThrow({ where: { orgId: org_id! } });
  place = {
    orgId: org_id!,
    workspaceId: workspace_id!,
    namespaceId,
    environmentId: environment_id!,
    appId: app_id!,
    toolId: tool_id!,
    entityId: world.ids.entity_id!,
    toolInstanceId: tool_instance_id!,
    threadId: thread_id!,
    rootArtifactId: artifact_id!,
    organizationRecipeId: world.ids.organization_recipe_id!,
    webhookId: world.ids.webhook_id!,
    auditStreamId: world.ids.audit_stream_id!,
  };
});
afterAll(() => app.close());

/** The statement of a list's first page, below the place or, batched, below it and another. */
async function statementOf(reads: AnyReads, batched: boolean): Promise<Asked> {
  const { userId } = world.accounts.owner;
  const context = new Context({ principal: { userId, token: null }, request: {} } as unknown as Caller, app.services);
  const nowhere = Object.fromEntries(Object.keys(place).map((property) => [property, 'nowhere']));
  const read = vi.spyOn(app.services.sql, 'readMarked');
  const places = batched ? [place, nowhere] : [place];
  const pages = await Promise.all(places.map((of) => reads.list(context, markChecked(of), { first: PAGE })));
  const [[text, values]] = read.mock.calls as [[string, unknown[]]];
  read.mockRestore();
  expect(pages[0]!.nodes.length, 'the list has a row to copy').toBeGreaterThan(0);
  return { text, values };
}

/** The rows of all tables that a row of the list is made of. */
async function originalsOf(db: pg.ClientBase, list: AnyReads['sources']['list'], values: unknown[]) {
  const { from, where, key, order } = list;
  // what a subquery reads is no part of the row
  let joined = from;
  while (joined.includes('(')) joined = joined.replaceAll(/(?:lateral )?\([^()]*\)(?: \w+ on true)?/g, '');
  const tables = [...joined.matchAll(/(?:^|join )(\w+) (\w+)\b/g)].map(([, table, alias]) => ({ table, alias }));
  const condition = where.length > 0 ? `where ${where.join(' and ')}` : '';
  const columns = tables.map(({ alias }) => `to_jsonb(${alias}) as "${alias}"`);
  const { rows } = await db.query<Record<string, Row['row'] | null>>(
    `select ${columns.join(', ')} from ${from} ${condition}
      order by ${key} ${order === 'desc' ? 'asc' : 'desc'} limit 1`,
    values,
  );
  return tables.flatMap(({ table, alias }): Row[] =>
    rows[0]![alias!] ? [{ table: table!, row: rows[0]![alias!]! }] : [],
  );
}

const KEYS = `select a.attname as column, i.indisprimary as primary, format_type(a.atttypid, null) as type
  from pg_index i cross join lateral unnest(i.indkey::int[]) k(attnum)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where i.indrelid = $1::regclass and i.indisunique`;

/** SQL of a new identifier: those of one group come before those of the next, whatever else is in the table. */
const newId = (id: string, group: number) => `'${id.slice(0, id.indexOf('_') + 1)}${group}' || lpad(n::text, 25, '0')`;

/**
 * Copies what a row of the list is made of many times: what identifies one of them is another one in each copy.
 * @param parents what names the parent, which `elsewhere` replaces
 */
async function copy(
  db: pg.ClientBase,
  originals: readonly Row[],
  { count, group, parents, elsewhere }: { count: number; group: number; parents: unknown[]; elsewhere: boolean },
): Promise<void> {
  const known = await Promise.all(
    originals.map(async ({ table, row }) => ({
      table,
      row,
      keys: (await db.query<{ column: string; primary: boolean; type: string }>(KEYS, [table])).rows,
    })),
  );
  const identities = new Set(
    known.flatMap(({ row, keys }) => keys.filter(({ primary }) => primary).map(({ column }) => row[column])),
  );
  for (const parent of parents) identities.delete(parent);
  for (const { table, row, keys } of known) {
    // the parent itself, whose columns the list shows too
    if (keys.some(({ column, primary }) => primary && parents.includes(row[column]))) continue;
    const changed = Object.entries(row).flatMap(([column, value]): [string, string][] => {
      if (typeof value === 'string' && identities.has(value)) return [[column, newId(value, group)]];
      if (column === 'is_default') return [[column, 'false']];
      // an instance has one connection for each namespace
      if (table === 'connections' && column === 'namespace_id' && parents.includes(row.tool_instance_id))
        return [[column, `'k${group}' || n`]];
      // and one for each end user
      if (table === 'connections' && column === 'end_user_id' && value !== null) return [[column, `'k${group}' || n`]];
      // the version after that of the copy
      if (column === 'replaced_by_version' && value !== null) return [[column, `${group} * 1000000 + n + 1`]];
      if (typeof value === 'string' && parents.includes(value)) return elsewhere ? [[column, `'elsewhere'`]] : [];
      const key = keys.find((of) => of.column === column && !of.primary);
      const isKnownBy = ['logical_model_id', 'tool_instance_id', 'execution_id'].includes(column);
      if (!key || (column.endsWith('_id') && !isKnownBy)) return [];
      return [[column, key.type === 'text' ? `'k${group}' || n` : `${group} * 1000000 + n`]];
    });
    const sqlOf = new Map(changed);
    const columns = Object.keys(row);
    // the row is read once, not once for each copy
    await db.query(
      `insert into ${table} (${columns.map((column) => `"${column}"`).join(', ')})
       select ${columns.map((column) => sqlOf.get(column) ?? `r."${column}"`).join(', ')}
       from jsonb_populate_record(null::${table}, $1::jsonb) r cross join generate_series(1, ${count}) n`,
      [JSON.stringify(row)],
    );
  }
}

/** Every scan of a plan, with the rows that it looked at. */
function scansOf(plan: Plan): { condition: string; rows: number }[] {
  const own = plan['Relation Name'] ?? plan['Index Name'];
  const removed = (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0);
  const scan = {
    condition: plan['Index Cond'] ?? '',
    rows: Math.round((plan['Actual Rows'] + removed) * plan['Actual Loops']),
  };
  return [...(own === undefined ? [] : [scan]), ...(plan.Plans ?? []).flatMap(scansOf)];
}

interface Explained {
  /** The most rows that one of its scans looked at. */
  read: number;
  /** The conditions by which indexes were searched. */
  conditions: string;
}

async function explained(db: pg.ClientBase, { text, values }: Asked): Promise<Explained> {
  const { rows } = await db.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(`explain (analyze, format json) ${text}`, values);
  const scans = scansOf(rows[0]!['QUERY PLAN'][0].Plan);
  return {
    read: Math.max(...scans.map((scan) => scan.rows)),
    conditions: scans.map(({ condition }) => condition).join('; '),
  };
}

/** The same statement without the range: by plain conditions, in the order of the key alone. */
const withoutRange = ({ text, values }: Asked, lead: string): Asked => ({
  values,
  text: text.replaceAll(/between (\S+) and \1/g, '= $1').replaceAll(`order by ${lead}, `, 'order by '),
});

/** Does something in a transaction that leaves nothing behind, in which the list's parent has nearly all rows. */
async function dominated(reads: AnyReads, work: (db: pg.ClientBase) => Promise<void>): Promise<void> {
  const { list } = reads.sources;
  const { values } = await statementOf(reads, false);
  // the values of filters, the cursor and the limit follow
  const named = list.where.flatMap((condition) => [...condition.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
  const parents = values.slice(0, Math.max(...named));
  const db = await app.database.pool.connect();
  let tables: string[] = [];
  try {
    // no triggers and no foreign keys: what is copied refers to what is not
    await db.query(`begin; set local session_replication_role = replica`);
    const originals = await originalsOf(db, list, parents);
    tables = originals.map(({ table }) => table);
    const [first, last] = list.order === 'desc' ? [2, 1] : [1, 2];
    await copy(db, originals, { count: OWN, group: last!, parents, elsewhere: false });
    await copy(db, originals, { count: OTHERS, group: first!, parents, elsewhere: true });
    await db.query(`analyze ${tables.join(', ')}`);
    await work(db);
  } finally {
    await db.query('rollback');
    // rows that were rolled back would count for the next list
    if (tables.length > 0) await db.query(`vacuum ${tables.join(', ')}`);
    db.release();
  }
}

const names = [...readsIn(app.services).keys()].filter((name) => ![...unlisted, ...ofOneParent].includes(name));

describe.each(names)('%s, most of whose rows are of one parent', (name) => {
  let column: string;
  let alone: Explained;
  let together: Explained;
  let control: Explained;
  beforeAll(async () => {
    const reads = readsIn(app.services).get(name)!;
    const lead = reads.sources.list.lead!;
    column = lead.replace(/^\w+\.| desc$/g, '');
    const asked = await statementOf(reads, false);
    const batched = await statementOf(reads, true);
    await dominated(reads, async (db) => {
      alone = await explained(db, asked);
      together = await explained(db, batched);
      control = await explained(db, withoutRange(asked, lead));
    });
  });

  test('reads a page, and no more, by the index of its parent', () => {
    if (sorted.includes(name)) return expect(alone.read, 'each row once').toBeLessThanOrEqual(OWN + OTHERS + 10);
    expect(alone.read).toBeLessThanOrEqual((PAGE + 1) * (perRow[name] ?? 1));
    expect(alone.conditions).toContain(`(${column} >= `);
  });

  test('below several parents at once: by the same column', () => {
    if (![...sorted, ...ofCaller].includes(name)) expect(together.conditions).toContain(`(${column} >= p.k`);
  });

  test('control: without the range the same statement reads past the rows of the others', () => {
    if (sorted.includes(name) || choosesWell.includes(name)) return;
    expect(control.read).toBeGreaterThan(OTHERS);
  });
});
