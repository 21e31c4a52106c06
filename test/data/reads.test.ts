import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServiceDeps } from '../../src/access/service-deps.ts';
import { columnsOf } from '../../src/data/paging.ts';
import { Reads } from '../../src/data/reads.ts';
import type { ReadsOptions } from '../../src/data/reads-options.ts';
import type { ReadContext, RequestCache } from '../../src/data/request-cache.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import { markChecked } from '../../src/kernel/mark-checked.ts';
import type { Principal, TokenPrincipal } from '../../src/kernel/principal.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { type BareDatabase, openBareDatabase } from '../support/bare-database.ts';
import { logQueries } from '../support/query-log.ts';

interface Thing {
  id: string;
  orgId: string;
  workspaceId: string;
  namespaceId: string | null;
  name: string;
  createdBy: string | null;
}
interface Place {
  orgId: string;
  workspaceId: string;
}
interface Args {
  first: number;
  after?: string | null;
  counted?: boolean;
  name?: string | null;
}

let database: BareDatabase;
let deps: ServiceDeps;
beforeAll(async () => {
  database = await openBareDatabase();
  const { sql } = database;
  // reads need no more of a service than these
  deps = { sql } as ServiceDeps;
  await database.pool.query(`
    create table things (id text primary key, org_id text not null, workspace_id text not null, namespace_id text,
      name text not null, created_by text, is_gone boolean not null default false);
    create table shared_things (id text primary key, org_id text, workspace_id text, namespace_id text,
      name text not null, created_by text, is_gone boolean not null default false);
    insert into things values
      ('t1', 'o1', 'w1', 'n1', 'one', 'u1'), ('t2', 'o1', 'w1', 'n2', 'two', 'u2'),
      ('t3', 'o1', 'w1', null, 'one', null),
      ('t4', 'o1', 'w1', 'n1', 'gone', 'u1'), ('t5', 'o1', 'w2', 'n3', 'five', 'u1'),
      ('t6', 'o2', 'w3', 'n4', 'six', 'u1'), ('t7', 'o1', 'w1', 'n1', 'seven', 'u2');
    update things set is_gone = true where name = 'gone';
    insert into shared_things values ('s2', null, null, null, 'shared', null), ('t25', null, null, null, 'two', null),
      ('t26', null, null, null, 'gone', null);
    update shared_things set is_gone = true where name = 'gone';
    insert into resource_counts (org_id, resource, slot, n) values
      ('o1', 'thing', 0, 40), ('o1', 'thing', 1, 2), ('o1', 'other', 0, 7), ('o2', 'thing', 0, 5);
    insert into place_counts (org_id, place_id, counter, slot, n) values
      ('o1', 'w1', 'things', 0, 30), ('o1', 'w1', 'things', 1, 3), ('o1', 'w1', 'others', 0, 9),
      ('o2', 'w1', 'things', 0, 8), ('o1', 'w2', 'things', 0, 6)`);
});
afterAll(() => database.close());

const columns = columnsOf(['id', 'orgId', 'workspaceId', 'namespaceId', 'name', 'createdBy']);
type Options = ReadsOptions<Thing, Place, Args>;
const readsOf = (given: Partial<Options> = {}) =>
  new Reads<Thing, Place, Args>(deps, {
    kind: 'thread',
    from: 'things',
    columns,
    below: ['orgId', 'workspaceId'],
    always: ['not t.is_gone'],
    filters: ({ name }) => ({ 't.name = ?': name }),
    ...given,
  });

const known = { username: 'ann', isPlatformAdmin: false, isVerified: true };
const userOf = (userId: string): Principal => ({
  ...known,
  type: 'user',
  userId,
  sessionId: 's',
  orgId: null,
  token: null,
});
const tokenOf = (given: Partial<TokenPrincipal['token']> = {}): Principal => ({
  ...known,
  type: 'api_token',
  userId: 'u1',
  orgId: 'o1',
  token: {
    id: 'tok_1',
    type: 'pat',
    familyId: 'tok_1',
    hash: 'h',
    orgId: 'o1',
    appId: null,
    permissions: new Set(),
    workspaceIds: [],
    namespaceIds: [],
    environmentIds: [],
    impliedWorkspaceIds: null,
    endpoints: null,
    rateLimitRps: null,
    rateLimitBurst: null,
    root: null,
    ...given,
  },
});

/** A request of a caller, which keeps what it needs once. */
function asking(principal: Principal | null = userOf('u1'), more: Partial<AnyCaller> = {}): ReadContext {
  const kept = new Map<string, unknown>();
  return {
    anyCaller: { principal, request: systemCaller('a test').request, ...more },
    once<T>(key: string, make: () => T): T {
      if (!kept.has(key)) kept.set(key, make());
      return kept.get(key) as T;
    },
  };
}
const placeOf = (workspaceId = 'w1', orgId = 'o1') => markChecked({ orgId, workspaceId });
const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id).join(' ');

async function listed(
  reads: Reads<Thing, Place, Args>,
  args: Partial<Args> = {},
  context = asking(),
  place = placeOf(),
) {
  return idsOf((await reads.list(context, place, { first: 10, ...args })).nodes);
}

describe('a list', () => {
  it('has the rows of its place, the newest first', async () => {
    expect(await listed(readsOf())).toBe('t7 t3 t2 t1');
    expect(await listed(readsOf(), {}, asking(), placeOf('w2'))).toBe('t5');
    expect(await listed(readsOf(), {}, asking(), placeOf('w3'))).toBe('');
    expect(await listed(readsOf(), {}, asking(), placeOf('w3', 'o2'))).toBe('t6');
    expect(await listed(readsOf({ order: 'asc' }))).toBe('t1 t2 t3 t7');
    expect(await listed(readsOf({ always: [] }))).toBe('t7 t4 t3 t2 t1');
  });

  it('has pages, each after the last row of the one before', async () => {
    const reads = readsOf();
    const first = await reads.list(asking(), placeOf(), { first: 3 });
    expect([idsOf(first.nodes), first.hasNextPage, first.hasPreviousPage]).toEqual(['t7 t3 t2', true, false]);
    const after = first.cursorOf(first.nodes[2]!);
    const second = await reads.list(asking(), placeOf(), { first: 3, after });
    expect([idsOf(second.nodes), second.hasNextPage, second.hasPreviousPage]).toEqual(['t1', false, true]);
    expect([await first.total(), await second.total()]).toEqual([4, 4]);
  });

  it('refuses the cursor of another list, place, filter or caller', async () => {
    const after = (await readsOf().list(asking(), placeOf(), { first: 1 })).cursorOf({ id: 't3' } as Thing);
    const refusal = 'the cursor is malformed or was made for another list';
    await expect(readsOf({ name: 'others' }).list(asking(), placeOf(), { first: 1, after })).rejects.toThrow(refusal);
    await expect(readsOf().list(asking(), placeOf('w2'), { first: 1, after })).rejects.toThrow(refusal);
    await expect(readsOf().list(asking(), placeOf(), { first: 1, after, name: 'one' })).rejects.toThrow(refusal);
    const restricted = asking(tokenOf({ namespaceIds: ['n1'] }));
    await expect(readsOf().list(restricted, placeOf(), { first: 1, after })).rejects.toThrow(refusal);
    expect(await listed(readsOf({ name: 'things' }), { after })).toBe('t2 t1');
  });

  it('may be narrowed by filters, and counts what is left', async () => {
    const page = await readsOf({ count: { kept: 'thing' } }).list(asking(), placeOf(), {
      first: 1,
      name: 'one',
    });
    expect([idsOf(page.nodes), page.hasNextPage, await page.total()]).toEqual(['t3', true, 2]);
    expect(await listed(readsOf(), { name: null })).toBe('t7 t3 t2 t1');
    expect(
      await listed(readsOf({ filters: ({ name }) => ({ 't.name = ?': name, 't.created_by = ?': 'u1' }) }), {
        name: 'one',
      }),
    ).toBe('t1');
    const { filters: _none, ...unfiltered } = readsOptions();
    expect(await listed(new Reads<Thing, Place, Args>(deps, unfiltered), { name: 'one' })).toBe('t7 t3 t2 t1');
  });

  it('may leave out rows that can be read by their id', async () => {
    const reads = readsOf({ listed: ['t.org_id = $1', `t.name <> 'two'`] });
    expect(await listed(reads)).toBe('t7 t3 t1');
    expect((await reads.find(asking(), placeOf(), 't2'))?.name).toBe('two');
  });

  it('may be that of what is the caller’s own', async () => {
    const reads = readsOf({ mine: 't.created_by = $me' });
    expect(await listed(reads, {}, asking(userOf('u1')))).toBe('t1');
    expect(await listed(reads, {}, asking(userOf('u2')))).toBe('t7 t2');
    expect(await listed(reads, { name: 'two' }, asking(userOf('u2')))).toBe('t2');
    const signedInAs = { userId: 'u2', username: 'bob' };
    expect(await listed(reads, {}, asking(null, { signedInAs }))).toBe('t7 t2');
    expect(await listed(reads, {}, asking(userOf('u1'), { signedInAs }))).toBe('t1');
    await expect(listed(reads, {}, asking(null))).rejects.toThrow(
      `'things' lists what is the caller's own, but nobody is known to call.`,
    );
    const page = await reads.list(asking(userOf('u2')), placeOf(), { first: 1 });
    expect(await page.total()).toBe(2);
  });

  it('is refused where what it demands is not so', async () => {
    const demands = async ({ workspaceId }: Place, { name }: Args) => {
      if (name === workspaceId) throw new Error('it must not be so');
    };
    await expect(listed(readsOf({ demands }), { name: 'w1' })).rejects.toThrow('it must not be so');
    expect(await listed(readsOf({ demands }), { name: 'one' })).toBe('t3 t1');
  });

  it('of several places is read with one statement, and its counts with another', async () => {
    const context = asking();
    const reads = readsOf();
    const log = logQueries(database.pool);
    const sent = await log.during(async () => {
      const pages = await Promise.all(
        ['w1', 'w2', 'w9', 'w1'].map((workspaceId) => reads.list(context, placeOf(workspaceId), { first: 2 })),
      );
      expect(pages.map(({ nodes }) => idsOf(nodes))).toEqual(['t7 t3', 't5', '', 't7 t3']);
      expect(pages.map(({ hasNextPage }) => hasNextPage)).toEqual([true, false, false, true]);
      expect(await Promise.all(pages.map(async (page) => page.total()))).toEqual([4, 1, 0, 4]);
    });
    expect(sent).toHaveLength(2);
    const others = await Promise.all([
      reads.list(context, placeOf(), { first: 1 }),
      reads.list(context, placeOf(), { first: 2, name: 'two' }),
      readsOf({ name: 'asc', order: 'asc' }).list(context, placeOf(), { first: 2 }),
    ]);
    expect(others.map(({ nodes }) => idsOf(nodes))).toEqual(['t7', 't2', 't1 t2']);
  });

  it('is another one with each cursor, filter and place of a request', async () => {
    const context = asking();
    const reads = readsOf();
    const [first] = (await reads.list(context, placeOf(), { first: 1 })).nodes;
    const cursorOf = async (id: string) =>
      (await reads.list(context, placeOf(), { first: 1 })).cursorOf({ ...first!, id });
    const afterThem = ['t7', 't3', 't2'].map(async (id) =>
      listed(reads, { first: 1, after: await cursorOf(id) }, context),
    );
    expect(await Promise.all(afterThem)).toEqual(['t3', 't2', 't1']);
    const totals = [{}, { name: 'one' }, { name: 'two' }].map(async (args) =>
      (await reads.list(context, placeOf(), { first: 1, ...args })).total(),
    );
    expect(await Promise.all(totals)).toEqual([4, 2, 1]);
    const places = [placeOf('w1', 'o1'), placeOf('1', 'o1w')].map((place) => listed(reads, {}, context, place));
    expect(await Promise.all(places)).toEqual(['t7 t3 t2 t1', '']);
  });

  it('is read with its count where that is asked for', async () => {
    const log = logQueries(database.pool);
    const totals: number[] = [];
    const count = async (reads: Reads<Thing, Place, Args>, args: Partial<Args> = {}, place = placeOf()) => {
      const page = await reads.list(asking(), place, { first: 1, counted: true, ...args });
      totals.push(await page.total());
    };
    const sent = await log.during(async () => {
      await count(readsOf());
      await count(readsOf(), { name: 'one' });
      await count(readsOf({ count: { kept: 'thing' } }));
      await count(readsOf({ count: { kept: 'thing' } }), { name: 'one' });
      await count(readsOf({ count: { ofPlace: 'things' } }));
      await count(readsOf({ count: { ofPlace: 'things' } }), {}, placeOf('w2'));
      await count(readsOf({ count: { from: `(select * from things where name <> 'seven') t` } }));
    });
    expect(totals).toEqual([4, 2, 42, 2, 33, 6, 3]);
    expect(sent).toHaveLength(7);
  });

  it('has the count that is stored, or a shorter one, for each place', async () => {
    const totalsOf = async (given: Partial<Options>, places = [placeOf(), placeOf('w2')]) => {
      const context = asking();
      const reads = readsOf(given);
      const pages = await Promise.all(places.map((place) => reads.list(context, place, { first: 1 })));
      return Promise.all(pages.map(async (page) => page.total()));
    };
    expect(await totalsOf({ count: { kept: 'thing' } })).toEqual([42, 42]);
    expect(await totalsOf({ count: { kept: 'thing' } }, [placeOf('w3', 'o2'), placeOf('w', 'o3'), placeOf()])).toEqual([
      5, 0, 42,
    ]);
    expect(await totalsOf({ count: { ofPlace: 'things' } })).toEqual([33, 6]);
    expect(await totalsOf({ count: { ofPlace: 'things' } }, [placeOf('w9'), placeOf('w1', 'o2')])).toEqual([0, 8]);
    expect(await totalsOf({ count: { from: `(select * from things where name <> 'seven') t` } })).toEqual([3, 1]);
    expect(await totalsOf({ count: { ofPlace: 'things' } }, [placeOf('w2')])).toEqual([6]);
  });
});

/** The options of {@link readsOf}. */
const readsOptions = (): Options => ({
  kind: 'thread',
  from: 'things',
  columns,
  below: ['orgId', 'workspaceId'],
  always: ['not t.is_gone'],
  filters: ({ name }) => ({ 't.name = ?': name }),
});

describe('a token that is restricted to some places', () => {
  it('lists what is in them, or in no place of their kind', async () => {
    expect(await listed(readsOf(), {}, asking(tokenOf()))).toBe('t7 t3 t2 t1');
    expect(await listed(readsOf(), {}, asking(tokenOf({ namespaceIds: ['n2', 'n3'] })))).toBe('t3 t2');
    expect(await listed(readsOf(), { name: 'two' }, asking(tokenOf({ namespaceIds: ['n1'] })))).toBe('');
    expect(await listed(readsOf(), {}, asking(tokenOf({ workspaceIds: ['w2'] })))).toBe('');
    expect(await listed(readsOf(), {}, asking(tokenOf({ workspaceIds: ['w1'] })))).toBe('t7 t3 t2 t1');
    const page = await readsOf({ count: { kept: 'thing' } }).list(
      asking(tokenOf({ namespaceIds: ['n1'] })),
      placeOf(),
      {
        first: 1,
      },
    );
    expect(await page.total()).toBe(3);
  });

  it('lists places themselves only where it is restricted to them', async () => {
    const apps = readsOf({ kind: 'app' });
    expect(await listed(apps, {}, asking(tokenOf({ appId: 't2' })))).toBe('t2');
    expect(await listed(apps, {}, asking(tokenOf()))).toBe('t7 t3 t2 t1');
    expect(await listed(readsOf(), {}, asking(tokenOf({ appId: 't2' })))).toBe('t7 t3 t2 t1');
    const { namespaceId: _none, ...others } = columns;
    const spaces = new Reads<Omit<Thing, 'namespaceId'>, Place, Args>(deps, {
      kind: 'namespace',
      from: 'things',
      columns: others,
      below: ['orgId', 'workspaceId'],
    });
    const page = await spaces.list(asking(tokenOf({ namespaceIds: ['t1', 't3'] })), placeOf(), { first: 9 });
    expect(idsOf(page.nodes)).toBe('t3 t1');
  });

  it('lists its organization alone', async () => {
    await database.pool.query(`insert into organizations (id, name) values ('o1', 'One'), ('o2', 'Two')`);
    const organizations = new Reads<{ id: string; name: string }, object>(deps, {
      kind: 'organization',
      from: 'organizations',
      columns: { id: 't.id', name: 't.name' },
      below: [],
    });
    const list = async (principal: Principal) =>
      idsOf((await organizations.list(asking(principal), markChecked({}), { first: 9 })).nodes);
    expect([await list(userOf('u1')), await list(tokenOf())]).toEqual(['o2 o1', 'o1']);
    const one = new Reads<{ id: string; name: string }, { orgId: string }>(deps, {
      kind: 'organization',
      from: 'organizations',
      columns: { id: 't.id', name: 't.name' },
      below: { orgId: 't.id' },
    });
    expect((await one.get(asking(), markChecked({ orgId: 'o2' }), 'o2')).name).toBe('Two');
    expect(await one.find(asking(), markChecked({ orgId: 'o2' }), 'o1')).toBeNull();
  });
});

describe('the first rows of places', () => {
  it('are as many as fit together, and at least some of each', async () => {
    const first = async (workspaces: string[], limits: { first: number; together: number; least: number }) => {
      const context = asking();
      const reads = readsOf();
      const rows = workspaces.map((workspaceId) => reads.firstOf(context, placeOf(workspaceId), limits));
      return (await Promise.all(rows)).map(idsOf);
    };
    expect(await first(['w1'], { first: 3, together: 10, least: 1 })).toEqual(['t7 t3 t2']);
    expect(await first(['w1', 'w2'], { first: 3, together: 4, least: 1 })).toEqual(['t7 t3', 't5']);
    expect(await first(['w1', 'w2'], { first: 3, together: 5, least: 1 })).toEqual(['t7 t3', 't5']);
    expect(await first(['w1', 'w2', 'w3'], { first: 3, together: 2, least: 1 })).toEqual(['t7', 't5', '']);
    expect(await first(['w1', 'w2'], { first: 9, together: 2, least: 3 })).toEqual(['t7 t3 t2', 't5']);
  });

  it('of different numbers are read apart', async () => {
    const context = asking();
    const limits = { together: 10, least: 1 };
    const rows = await Promise.all([
      readsOf().firstOf(context, placeOf(), { ...limits, first: 1 }),
      readsOf().firstOf(context, placeOf(), { ...limits, first: 2 }),
      readsOf()
        .get(context, placeOf(), 't1')
        .then((row) => [row]),
    ]);
    expect(rows.map(idsOf)).toEqual(['t7', 't7 t3', 't1']);
  });
});

describe('a row', () => {
  it('is found in its place, with all its columns', async () => {
    const t2 = { id: 't2', orgId: 'o1', workspaceId: 'w1', namespaceId: 'n2', name: 'two', createdBy: 'u2' };
    expect(await readsOf().get(asking(), placeOf(), 't2')).toEqual(t2);
    expect(await readsOf().find(asking(), placeOf(), 't2')).toEqual(t2);
    expect(await readsOf().find(asking(), placeOf('w2'), 't2')).toBeNull();
    expect(await readsOf().find(asking(), placeOf('w1', 'o2'), 't2')).toBeNull();
    expect(await readsOf().find(asking(), placeOf(), 't4')).toBeNull();
    await expect(readsOf().get(asking(), placeOf(), 't4')).rejects.toThrow(
      expect.objectContaining({
        code: 'RESOURCE_NOT_FOUND',
        details: { resource_type: 'thread', resource_id: 't4' },
      }),
    );
  });

  it('is read together with others, once for a request', async () => {
    const context = asking();
    const reads = readsOf();
    const log = logQueries(database.pool);
    const sent = await log.during(async () => {
      const rows = await Promise.all([
        reads.find(context, placeOf(), 't1'),
        reads.find(context, placeOf('w2'), 't5'),
        reads.find(context, placeOf('w2'), 't1'),
        reads.find(context, placeOf(), 't1'),
      ]);
      expect(rows.map((row) => row?.id ?? null)).toEqual(['t1', 't5', null, 't1']);
      await reads.find(context, placeOf(), 't1');
    });
    expect(sent).toHaveLength(1);
  });

  it('may be known by another column, or by a word', async () => {
    const byName = readsOf({ known: { by: 'name' } });
    expect((await byName.find(asking(), placeOf(), 'two'))?.id).toBe('t2');
    expect(await byName.find(asking(), placeOf(), 't2')).toBeNull();
    const named = readsOf({ known: { alias: { word: 'second', column: 't.name' } } });
    await database.pool.query(`insert into things values ('t8', 'o1', 'w8', null, 'second', null)`);
    const context = asking();
    const rows = [named.find(context, placeOf('w8'), 'second'), named.find(context, placeOf('w8'), 't8')];
    expect((await Promise.all(rows)).map((row) => row?.id)).toEqual(['t8', 't8']);
    expect(await named.find(asking(), placeOf(), 'second')).toBeNull();
    expect(await readsOf().find(asking(), placeOf('w8'), 'second')).toBeNull();
  });

  it('is found by its id alone where the calling code asks for that', async () => {
    const reads = readsOf();
    expect((await reads.findUnscoped(asking(), 't6'))?.orgId).toBe('o2');
    expect(await reads.findUnscoped(asking(), 't4')).toBeNull();
    expect((await reads.findInTenant(asking(), 'o1', 't5'))?.workspaceId).toBe('w2');
    expect(await reads.findInTenant(asking(), 'o1', 't6')).toBeNull();
    expect(await reads.findInTenant(asking(), 'o1', 't4')).toBeNull();
    const context = asking();
    const both = [reads.findUnscoped(context, 't6'), reads.findInTenant(context, 'o1', 't5')];
    expect((await Promise.all(both)).map((row) => row?.id)).toEqual(['t6', 't5']);
    const whole = readsOf({ name: 'whole', always: [] });
    const gone = [
      reads.findUnscoped(context, 't4'),
      whole.findUnscoped(context, 't4'),
      reads.findInTenant(context, 'o1', 't4'),
      whole.findInTenant(context, 'o1', 't4'),
    ];
    expect((await Promise.all(gone)).map((row) => row?.id ?? null)).toEqual([null, 't4', null, 't4']);
  });

  it('is never found without its tenant', async () => {
    const reads = new Reads<Thing, object>(deps, { kind: 'thread', from: 'things', columns, below: [] });
    await expect(reads.find(asking(), markChecked({}), 't1')).rejects.toThrow(
      `'things' is below nothing that could hold a row to its tenant.`,
    );
    const nowhere = markChecked({ orgId: 'o1' } as Place);
    await expect(readsOf().find(asking(), nowhere, 't1')).rejects.toThrow(`A place of 'things' has no 'workspaceId'.`);
  });

  it('may be changed by who has the permission, for all rows or for this one', async () => {
    const permission = 'thread:update';
    const own = (grant: 'all' | 'own' | null, id: string, principal: Principal | null = userOf('u1')) =>
      readsOf()
        .own(
          asking(principal).anyCaller,
          markChecked({ orgId: 'o1', workspaceId: 'w1' }, { permission, grant } as never),
          id,
        )
        .then(
          (row) => row.id,
          (error: unknown) => error,
        );
    const refusal = expect.objectContaining({ code: 'FORBIDDEN', details: { required_permission: permission } });
    expect(await own('all', 't2')).toBe('t2');
    expect(await own('own', 't1')).toBe('t1');
    expect(await own('own', 't2')).toEqual(refusal);
    expect(await own('own', 't3')).toEqual(refusal);
    expect(await own('own', 't3', null)).toEqual(refusal);
    expect(await own('own', 't1', null)).toEqual(refusal);
    expect(await own(null, 't1')).toEqual(refusal);
    expect(await own('own', 't9')).toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    const { createdBy: _none, ...others } = columns;
    const anonymous = new Reads<Omit<Thing, 'createdBy'>, Place>(deps, {
      kind: 'thread',
      from: 'things',
      columns: others,
      below: ['orgId', 'workspaceId'],
    });
    const place = markChecked({ orgId: 'o1', workspaceId: 'w1' }, { permission, grant: 'own' } as never);
    await expect(anonymous.own(asking(null).anyCaller, place, 't1')).rejects.toThrow(refusal);
  });
});

describe('rows that something is added to', () => {
  it('are completed together, each page with its own', async () => {
    const seen: string[] = [];
    const complete = async (_context: RequestCache, rows: readonly Thing[]) => {
      seen.push(idsOf(rows));
      return rows.map((row) => ({ ...row, name: row.name.toUpperCase() }));
    };
    const reads = readsOf({ complete });
    const context = asking();
    const pages = await Promise.all(
      ['w1', 'w9', 'w2'].map((workspaceId) => reads.list(context, placeOf(workspaceId), { first: 2 })),
    );
    expect(pages.map(({ nodes }) => nodes.map(({ name }) => name))).toEqual([['SEVEN', 'ONE'], [], ['FIVE']]);
    expect(pages.map(({ hasNextPage }) => hasNextPage)).toEqual([true, false, false]);
    expect(seen).toEqual(['t7 t3 t5']);
    expect((await reads.get(asking(), placeOf(), 't2')).name).toBe('TWO');
    const [row] = await reads.firstOf(asking(), placeOf(), { first: 1, together: 1, least: 1 });
    expect(row?.name).toBe('SEVEN');
  });
});

describe('rows of no tenant', () => {
  const shared = () =>
    readsOf({
      also: {
        from: `(select s.*, o.id as of_org, w.id as of_workspace from shared_things s, (values ('o1'), ('o2')) o(id),
          (values ('w1'), ('w3')) w(id)) t`,
        below: { orgId: 't.of_org', workspaceId: 't.of_workspace' },
        columns: { orgId: `'nobody'` },
      },
    });

  it('are in the list of each place, in its order', async () => {
    expect(await listed(shared())).toBe('t7 t3 t25 t2 t1 s2');
    expect(await listed(shared(), {}, asking(), placeOf('w3', 'o2'))).toBe('t6 t25 s2');
    expect(await listed(shared(), { name: 'two' })).toBe('t25 t2');
    expect(await (await shared().list(asking(), placeOf(), { first: 1 })).total()).toBe(6);
  });

  it('are found there and in a tenant, but not by their id alone', async () => {
    expect(await shared().find(asking(), placeOf(), 's2')).toMatchObject({ id: 's2', orgId: 'nobody', name: 'shared' });
    expect(await shared().find(asking(), placeOf('w2'), 's2')).toBeNull();
    expect(await shared().find(asking(), placeOf(), 't26')).toBeNull();
    expect((await shared().findInTenant(asking(), 'o1', 's2'))?.orgId).toBe('nobody');
    expect(await shared().findInTenant(asking(), 'o3', 's2')).toBeNull();
    expect(await shared().findInTenant(asking(), 'o1', 't26')).toBeNull();
    expect(await shared().findUnscoped(asking(), 's2')).toBeNull();
    expect((await shared().findUnscoped(asking(), 't6'))?.id).toBe('t6');
    const { also: _none, ...alone } = { ...readsOptions(), from: 'shared_things', also: undefined };
    const unscoped = new Reads<Thing, Place, Args>(deps, alone);
    expect((await unscoped.findUnscoped(asking(), 's2'))?.id).toBe('s2');
  });
});

describe('the statement of a list', () => {
  const leadOf = (given: Partial<Options>) => {
    const { from, lead, where, key, order } = readsOf({ always: [], ...given }).sources.list;
    return { from, lead, where, key, order };
  };

  it('begins with the last column of its place, as its index does', () => {
    const list = { from: 'things t', key: 't.id', order: 'desc' };
    const [org, workspace] = ['t.org_id = $1', 't.workspace_id between $2 and $2'];
    expect(leadOf({})).toEqual({ ...list, lead: 't.workspace_id', where: [org, workspace] });
    const inOrganization = new Reads<Thing, { orgId: string }>(deps, {
      kind: 'thread',
      from: 'things',
      columns,
      below: ['orgId'],
    });
    expect(inOrganization.sources.list).toMatchObject({ lead: 't.org_id', where: ['t.org_id between $1 and $1'] });
    expect(leadOf({ order: 'asc', index: { order: 'desc', key: 't.name' } })).toEqual({
      ...list,
      key: 't.name',
      order: 'asc',
      lead: 't.workspace_id desc',
      where: [org, workspace],
    });
    expect(
      leadOf({ index: { lead: 't.org_id' }, from: 'things t join others o on true', listed: ['t.x = $1'] }),
    ).toEqual({
      ...list,
      from: 'things t join others o on true',
      lead: 't.org_id',
      where: ['t.org_id between $1 and $1', 't.workspace_id = $2', 't.x = $1'],
    });
  });

  it('may be ordered by another column, with its value in the cursor', async () => {
    const reads = readsOf({ index: { key: 't.name', keyOf: ({ name }) => name } });
    const first = await reads.list(asking(), placeOf(), { first: 2 });
    expect(idsOf(first.nodes)).toMatch(/^t2 t7$/);
    const after = first.cursorOf(first.nodes[0]!);
    expect(idsOf((await reads.list(asking(), placeOf(), { first: 1, after })).nodes)).toBe('t7');
  });
});
