import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { roles } from '../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from './app.ts';
import { expendable } from './expendable.ts';
import { addRows, listRoutes } from './lists.ts';
import { operations, pathVariables, routeOf } from './operations.ts';
import { expectOk, injectable, partsOf } from './requests.ts';
import { checksums, cloneRows, databaseChecksums, idsOf, inTransaction } from './rows.ts';
import { sharedIds } from './samples.ts';
import { createWorld, findKey, makeId, makerOf, variablesOf, type World } from './world.ts';

let app: TestApp;
let world: World;
let other: World;
beforeAll(async () => {
  app = await startTestApp();
  [world, other] = [await createWorld(app), await createWorld(app, { withResources: false })];
});
afterAll(() => app.close());

const rows = async (text: string, values: unknown[] = []) =>
  (await app.database.pool.query<Record<string, string>>(text, values)).rows;
const isId = (value: string) => /^[a-z]+_[0-9A-Z]{26}$/.test(value);

/** What the service names by itself. */
const UNMARKED = ['namespaces.name: Default'];

describe('a world', () => {
  it('has an id for every path variable of every route, and each is of something that is in it', async () => {
    const known = new Set([
      ...Object.keys(world.ids),
      ...Object.keys(sharedIds),
      'token',
      'resource_type',
      'resource_id',
    ]);
    expect(variablesOf(operations).filter((name) => !known.has(name))).toEqual([]);
    const own = await idsOf(app.database.pool, world.ids.org_id!);
    const runs = await rows('select execution_id as id from executions where org_id = $1', [world.ids.org_id]);
    // passkeys are of their user alone
    const passkeys = await rows('select id from passkeys where user_id = $1', [world.accounts.owner.userId]);
    const inWorld = new Set([...own, ...runs.map(({ id }) => id!), ...passkeys.map(({ id }) => id!)]);
    const { stranger_user_id, ...ids } = world.ids;
    const notHere = Object.entries(ids).filter(([, id]) => isId(id) && !inWorld.has(id));
    expect(notHere).toEqual([]);
    expect(inWorld.has(stranger_user_id!)).toBe(false);
    expect(Object.values(ids).filter(isId).length).toBeGreaterThan(25);
  });

  it('shares no id and no marker with another one', async () => {
    const own = new Set(Object.values(world.ids));
    expect(Object.values(other.ids).filter((id) => own.has(id))).toEqual([]);
    expect(world.marker).not.toBe(other.marker);
    const answer = await app.server.inject({ url: '/v1/orgs', headers: other.as('owner') });
    expect(answer.body).toContain(other.marker);
    expect(answer.body).not.toContain(world.marker);
  });

  it('has its marker in every name, title and description', async () => {
    const columns = await rows(`select table_name as "table", column_name as "column" from information_schema.columns c
      where table_schema = 'public'
        and column_name in ('name', 'title', 'description', 'full_name', 'summary', 'content')
        and table_name !~ '^(activity|notifications)' and exists (select 1 from information_schema.columns o
          where o.table_schema = 'public' and o.table_name = c.table_name and o.column_name = 'org_id')
      order by 1, 2`);
    const unmarked: string[] = [];
    for (const { table, column } of columns)
      for (const { text } of await rows(
        `select distinct ${column} as text from ${table} where org_id = $1 and ${column} not like $2`,
        [world.ids.org_id, `%${world.marker}%`],
      ))
        unmarked.push(`${table}.${column}: ${text}`);
    expect(unmarked).toEqual(UNMARKED);
    expect(columns.length).toBeGreaterThan(20);
  });

  it('has an account of each role, in the organization and in its workspace', async () => {
    for (const role of roles) {
      const { userId } = world.accounts[role];
      const held = (table: string) =>
        rows(`select role from ${table} where org_id = $1 and user_id = $2`, [world.ids.org_id, userId]);
      expect(await held('organization_members')).toEqual([{ role }]);
      expect((await held('workspace_members'))[0]).toEqual({ role });
      const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}`;
      expect((await app.server.inject({ url, headers: world.as(role) })).statusCode).toBe(200);
    }
    expect(new Set(roles.map((role) => world.accounts[role].userId)).size).toBe(roles.length);
  });

  it('has a guest in no workspace, a stranger outside, and nobody who administers the platform', async () => {
    const members = (table: string, userId: string) =>
      rows(`select 1 from ${table} where org_id = $1 and user_id = $2`, [world.ids.org_id, userId]);
    const { guest, stranger } = world;
    expect(await members('organization_members', guest.userId)).toHaveLength(1);
    expect(await members('workspace_members', guest.userId)).toEqual([]);
    expect(await members('organization_members', stranger.userId)).toEqual([]);
    expect(await members('workspace_members', stranger.userId)).toEqual([]);
    const headers = { authorization: `Bearer ${stranger.accessToken}` };
    expect((await app.server.inject({ url: '/v1/orgs', headers })).statusCode).toBe(200);
    const everybody = [...Object.values(world.accounts), guest, stranger].map(({ userId }) => userId);
    expect(await rows('select id from users where id = any($1) and is_platform_admin', [everybody])).toEqual([]);
  });

  it('says where to add what it cannot make', async () => {
    const unknown = makeId(app, world, 'moon_id');
    await expect(unknown).rejects.toThrow("'{moon_id}': no route POST makes one. Set ids.moon_id in createWorld");
    expect(makerOf('thread_id')?.path).toMatch(/\/threads$/);
  });

  it('has nothing that still waits: each workspace has its storage', async () => {
    const pending = `select 1 from workspaces where org_id = $1 and bucket_status <> 'ready'`;
    expect(await rows(pending, [world.ids.org_id])).toEqual([]);
  });
});

describe('a list', () => {
  it.each(listRoutes.map((list) => [routeOf(list.operation), list] as const))(
    '%s shows every row that is added to it',
    async (_route, list) => {
      const { itemIds } = await addRows(app, world, list, 3);
      const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
      if (list.isPaged) parts.query.limit = '100';
      const { body } = await app.server.inject(injectable(list.operation, parts));
      expect(new Set(itemIds).size).toBe(3);
      expect(itemIds.filter((id) => !body.includes(id))).toEqual([]);
    },
  );
});

describe('rows', () => {
  it('are copied with ids of their own, in order, and nothing of the original changes', async () => {
    const { pool } = app.database;
    const find = 'select * from threads where id = $1';
    const before = await rows(find, [world.ids.thread_id]);
    const ids = await inTransaction(pool, (db) =>
      cloneRows(db, 'threads', 3, { where: 'id = $1', values: [world.ids.thread_id] }),
    );
    expect([new Set([...ids, world.ids.thread_id]).size, ids]).toEqual([4, ids.toSorted()]);
    expect(await rows(find, [world.ids.thread_id])).toEqual(before);
    const [copy] = await rows(find, [ids[1]]);
    expect(copy).toEqual({ ...before[0], id: ids[1] });
  });

  it('of which there is none cannot be copied, and nothing is written when a copy fails', async () => {
    const { pool } = app.database;
    const nothing = inTransaction(pool, (db) => cloneRows(db, 'threads', 1, { where: 'id = $1', values: ['none'] }));
    await expect(nothing).rejects.toThrow('There is no row of threads to copy: test/support/lists.ts says');
    const id = world.ids.thread_id;
    const failing = inTransaction(pool, async (db) => {
      await db.query(`update threads set title = 'lost' where id = $1`, [id]);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await rows(`select 1 from threads where id = $1 and title = 'lost'`, [id])).toEqual([]);
  });

  it.each([
    ['threads', "update threads set title = title || '.' where id = $1", () => world.ids.thread_id],
    ['users', "update users set bio = coalesce(bio, '') || '.' where id = $1", () => world.accounts.member.userId],
    ['organizations', "update organizations set name = name || '.' where id = $1", () => world.ids.org_id],
  ])('of %s show in the checksums when they change, and in no others', async (table, change, id) => {
    const { pool } = app.database;
    await app.jobsDone();
    const sums = async () => [
      await checksums(pool, world.ids.org_id!),
      await databaseChecksums(pool),
      await checksums(pool, other.ids.org_id!),
    ];
    const [own, all, others] = await sums();
    await pool.query(change, [id()]);
    const [ownAfter, allAfter, othersAfter] = await sums();
    expect(ownAfter?.[table]).not.toBe(own?.[table]);
    expect(allAfter?.[table]).not.toBe(all?.[table]);
    expect(othersAfter).toEqual(others);
    expect(Object.keys(ownAfter ?? {}).filter((name) => ownAfter?.[name] !== own?.[name])).toEqual([table]);
  });
});

describe('what a request may remove', () => {
  // the app of a deployment stays: the deployment is made anew
  const removals = operations.filter(
    ({ method, path }) =>
      method === 'DELETE' && path.endsWith('}') && !path.endsWith('/{org_id}') && !path.includes('/deploy/'),
  );

  it.each(removals.map((operation) => [routeOf(operation), operation] as const))(
    '%s: is made for the request, and is not what the world has',
    async (_route, operation) => {
      const last = pathVariables(operation.path).at(-1)!;
      const parts = await expendable(app, world, operation, 'owner');
      expect(parts.params[last]).toBeTruthy();
      expect(parts.params[last]).not.toBe(world.ids[last]);
      for (const outer of pathVariables(operation.path).slice(0, -1))
        expect(parts.params[outer]).toBe(world.ids[outer]);
    },
  );
});

it('finds a key wherever it stands in an answer, the first name that there is', async () => {
  const answer = { page: [{ id: 'a' }, { thread_id: 't', inner: { id: 'b' } }] };
  expect(findKey(answer, ['thread_id', 'id'])).toBe('t');
  expect(findKey(answer, ['none', 'id'])).toBe('a');
  expect(findKey(answer, ['none'])).toBeUndefined();
  await expect(expectOk(app, { url: '/v1/orgs' })).rejects.toThrow('GET "/v1/orgs" answered 401: {');
});
