import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenUnique, type Changes } from '../../src/data/changes.ts';
import type { Tx } from '../../src/data/tx.ts';
import { statement } from '../../src/data/writes.ts';
import { tables } from '../../src/generated/tables.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import { newId } from '../../src/kernel/ids.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { Task } from '../../src/kernel/tasks.ts';

import { startTestApp, type TestApp } from '../support/app.ts';
import { changesOver } from '../support/changes.ts';
import { type Person, register } from '../support/person.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { waitFor } from '../support/wait.ts';

let app: TestApp;
let owner: Person;
let changes: Changes;
let log: QueryLog;
let nudges = 0;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  log = logQueries(app.database.pool);
  owner = await register(app);
  changes = changesOver(app, { onCommit: () => nudges++ });
});
afterAll(() => app.close());

const caller = (): AnyCaller => systemCaller('a test');
const JOBS_OF = `select j.payload from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id
  where t.identifier = $1 order by j.id`;
const missing = () => new Error('it is not there');

/** A namespace of the owner's workspace, as a change makes it. */
const namespaceOf = (slug: string) => ({
  id: newId('namespace'),
  orgId: owner.orgId,
  workspaceId: owner.workspaceId,
  name: slug,
  slug,
});

/** Says that something was done to a resource of that id. */
function tell(tx: Tx, id: string): void {
  const { orgId } = owner;
  tx.audit({ action: 'update', resourceType: 'namespace', resourceId: id, orgId });
  tx.emit({ type: 'namespace.updated', orgId, resourceType: 'namespace', resourceId: id });
}

/** How many records and events tell of a resource. */
async function toldOf(id: string): Promise<[number, number]> {
  const { prisma } = app.database;
  return [
    await prisma.activity.count({ where: { resourceId: id } }),
    await prisma.event.count({ where: { resourceId: id } }),
  ];
}

/** How many transactions wrote a namespace and what tells of it. */
async function transactionsOf(id: string): Promise<number> {
  const { rows } = await app.database.pool.query<{ n: number }>(
    `select count(distinct xid)::int as n from (select xmin::text as xid from namespaces where id = $1
       union all select xmin::text from activity where resource_id = $1 union all select xmin::text from events
         where resource_id = $1) rows`,
    [id],
  );
  return rows[0]!.n;
}

const slugOf = async (id: string) => (await app.database.prisma.namespace.findUnique({ where: { id } }))?.slug ?? null;

test('the tables are those of the database, with all their columns', async () => {
  const { rows } = await app.database.pool.query<{ name: string; columns: string[] }>(
    `select table_name as name, array_agg(column_name::text order by column_name) as columns
       from information_schema.columns
       join pg_class c on c.oid = format('%I.%I', table_schema, table_name)::regclass and not c.relispartition
     where table_schema = 'public' and table_name not like '\\_prisma%'
       -- the database itself writes these, which Prisma has no type for
       and column_name not in ('xid', 'position_xid', 'from_xid', 'to_xid', 'begun') and udt_name <> 'tsvector'
     group by 1 order by 1`,
  );
  const known = Object.entries(tables).map(([name, { columns }]) => ({ name, columns: Object.values(columns).sort() }));
  expect(known.sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual(rows);
});

describe('how a change is sent', () => {
  test('what reads nothing before is one statement, with its record and its events', async () => {
    const row = namespaceOf('alone');
    const seen = nudges;
    const texts = await log.during(() =>
      changes.run(caller(), async (tx) => {
        tx.demand('workspaces', { id: owner.workspaceId }, 'share', missing);
        tell(tx, row.id);
        return tx.create('namespaces', row);
      }),
    );
    expect(texts.filter((text) => text.includes('namespaces'))).toHaveLength(1);
    expect(await toldOf(row.id)).toEqual([1, 1]);
    expect(nudges).toBe(seen + 1);
  });

  test('what depends on what went before goes into the next statement, and all of it is one transaction', async () => {
    const row = namespaceOf('first-name');
    const texts = await log.during(() =>
      changes.run(caller(), async (tx) => {
        tx.insert('namespaces', row);
        tx.update('namespaces', { id: row.id }, { slug: 'second-name' });
        const again = { ...namespaceOf('first-name') };
        tx.insert('namespaces', again);
        tx.remove('namespaces', { id: again.id }, missing);
        tell(tx, row.id);
      }),
    );
    expect(texts.filter((text) => text.includes('namespaces'))).toHaveLength(4);
    expect(await transactionsOf(row.id)).toBe(1);
    expect(await slugOf(row.id)).toBe('second-name');
    expect(await toldOf(row.id)).toEqual([1, 1]);
  });

  test('what is asked sees everything that was written before it', async () => {
    const row = namespaceOf('seen');
    const seen = await changes.run(caller(), async (tx) => {
      tx.insert('namespaces', row);
      return tx.query<{ slug: string }>(statement`select slug from namespaces where id = ${row.id}`);
    });
    expect(seen).toEqual([{ slug: 'seen' }]);
  });
});

describe('all of a change happens, or nothing', () => {
  test('where one of the rows is missing', async () => {
    const row = namespaceOf('never');
    const works: ((tx: Tx) => unknown)[] = [
      (tx) => tx.demand('workspaces', { id: 'ws_NONE' }, 'share', missing),
      (tx) => tx.change('namespaces', { id: 'ns_NONE' }, { name: 'x' }, missing),
      (tx) => tx.remove('threads', { id: 'thr_NONE' }, missing),
      (tx) => tx.query(statement`select 1`).then(() => tx.change('apps', { id: 'app_NONE' }, { name: 'x' }, missing)),
    ];
    for (const missingOne of works) {
      let after = 0;
      const work = async (tx: Tx) => {
        tx.afterCommit(() => after++);
        tell(tx, row.id);
        await missingOne(tx);
        tx.insert('namespaces', row);
      };
      await expect(changes.run(caller(), work)).rejects.toThrow('it is not there');
      expect([await slugOf(row.id), await toldOf(row.id), after]).toEqual([null, [0, 0], 0]);
    }
  });

  test('where PostgreSQL refuses a row, which is told as what it is', async () => {
    const [taken, row] = [namespaceOf('taken'), namespaceOf('free')];
    await changes.run(caller(), async (tx) => tx.insert('namespaces', taken));
    const error: unknown = await changes
      .run(caller(), async (tx) => {
        await tx.query(statement`select 1`);
        tx.insert('namespaces', row);
        tx.update('namespaces', { id: taken.id }, { name: 'Not this' });
        tx.insert('namespaces', { ...namespaceOf('taken') });
        tell(tx, row.id);
      })
      .catch((refusal: unknown) => refusal);
    expect(brokenUnique(error)).toBe(true);
    expect([await slugOf(row.id), await toldOf(row.id)]).toEqual([null, [0, 0]]);
    // work in the background may hold one for a moment
    const { pool } = app.database;
    await waitFor(() => expect(pool.totalCount - pool.idleCount).toBe(0));
  });

  test('where a row is missing and PostgreSQL refuses another: the first in order is told', async () => {
    const taken = namespaceOf('taken-later');
    await changes.run(caller(), async (tx) => tx.insert('namespaces', taken));
    const absent = (tx: Tx) => tx.remove('threads', { id: 'thr_NONE' }, missing);
    const refused = (tx: Tx) => tx.insert('namespaces', { ...namespaceOf('taken-later') });
    const ends: ((tx: Tx) => unknown)[] = [() => undefined, (tx) => tx.query(statement`select 1`)];
    for (const end of ends) {
      const told = (...steps: ((tx: Tx) => unknown)[]): Promise<unknown> =>
        changes
          .run(caller(), async (tx) => {
            for (const step of [...steps, end]) await step(tx);
          })
          .catch((error: unknown) => error);
      expect(await told(absent, refused)).toEqual(missing());
      expect(brokenUnique(await told(refused, absent))).toBe(true);
    }
    const { pool } = app.database;
    await waitFor(() => expect(pool.totalCount - pool.idleCount).toBe(0));
  });

  test('where the work fails after it wrote', async () => {
    const row = namespaceOf('undone');
    const work = changes.run(caller(), async (tx) => {
      await tx.written(tx.create('namespaces', row));
      throw new Error('changed its mind');
    });
    await expect(work).rejects.toThrow('changed its mind');
    expect(await slugOf(row.id)).toBeNull();
  });

  test('and with it the jobs that it adds', async () => {
    const task: Task = { name: 'of_a_test', tries: 1, run: async () => undefined };
    app.services.jobQueue.declare([task]);
    // no worker knows the task, so its jobs stay
    const jobs = async () => (await app.database.pool.query(JOBS_OF, [task.name])).rows.map(({ payload }) => payload);
    const refused: ((tx: Tx) => unknown)[] = [
      (tx) => tx.demand('workspaces', { id: 'ws_NONE' }, 'share', missing),
      (tx) => tx.query(statement`select 1`).then(() => tx.remove('threads', { id: 'thr_NONE' }, missing)),
      () => Promise.reject(missing()),
    ];
    for (const refusal of refused) {
      const work = async (tx: Tx) => {
        tx.enqueue(task, { of: 'a change that is undone' });
        await refusal(tx);
      };
      await expect(changes.run(caller(), work)).rejects.toThrow('it is not there');
      const afterAsking = async (tx: Tx) => {
        await work(tx);
        await tx.query(statement`select count(*) from namespaces`);
      };
      await expect(changes.run(caller(), afterAsking)).rejects.toThrow('it is not there');
    }
    expect(await jobs()).toEqual([]);
    await changes.run(caller(), async (tx) => tx.enqueue(task, { of: 'a change' }));
    expect(await jobs()).toEqual([{ of: 'a change' }]);
  });

  test('a deadlock is tried again', async () => {
    const [a, b] = [namespaceOf('deadlock-a'), namespaceOf('deadlock-b')];
    await changes.run(caller(), async (tx) => {
      tx.insert('namespaces', a);
      tx.insert('namespaces', b);
    });
    let tries = 0;
    const holders = new Set<string>();
    const lock = (first: string, second: string) =>
      changes.run(caller(), async (tx) => {
        tries++;
        await tx.query(statement`select 1 from namespaces where id = ${first} for update`);
        holders.add(first);
        await waitFor(() => expect(holders.size).toBe(2));
        tx.update('namespaces', { id: second }, { name: 'locked' });
        tell(tx, first);
      });
    await Promise.all([lock(a.id, b.id), lock(b.id, a.id)]);
    // the one that was ended may be quicker than the one that waited for it, and meet it again
    expect(tries).toBeGreaterThan(2);
    expect([await toldOf(a.id), await toldOf(b.id)]).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });
});

describe('rows', () => {
  test('are given as Prisma reads them, whatever their columns are', async () => {
    const { prisma } = app.database;
    const { orgId } = owner;
    const base = { orgId, createdBy: null };
    const { account, model, key } = await changes.run(caller(), async (tx) => ({
      account: await tx.written(
        tx.create('provider_accounts', {
          ...base,
          id: newId('provider_account'),
          name: 'Account',
          providerType: 'openai',
          credentialsRef: 'env://KEY',
          maxTokensPerMonth: 2n ** 53n + 1n,
          tags: { b: '1', aa: '2', a: '3' },
        }),
      ),
      model: await tx.written(
        tx.create('logical_models', {
          ...base,
          id: newId('model'),
          logicalModelId: 'a-model',
          name: 'Model',
          defaultTemperature: 0.7,
          fallbackChain: ['x,"y', 'z\\'],
          capabilities: { chat: true },
        }),
      ),
      key: await tx.written(tx.create('root_keys', { id: 'of-a-test', canary: Uint8Array.of(0, 255, 7) })),
    }));
    expect(account).toEqual(await prisma.providerAccount.findUnique({ where: { id: account.id } }));
    expect(model).toEqual(await prisma.logicalModel.findUnique({ where: { id: model.id } }));
    expect(Uint8Array.from(key.canary)).toEqual(
      Uint8Array.from((await prisma.rootKey.findUnique({ where: { id: key.id } }))!.canary),
    );
    expect(Object.keys(account.tags as object)).toEqual(['a', 'b', 'aa']);
  });

  test('show the version that a change gave them; one that changes nothing leaves them as they are', async () => {
    const row = namespaceOf('versions');
    const made = await changes.run(caller(), async (tx) => tx.create('namespaces', row));
    const change = (set: { name?: string }) =>
      changes.run(caller(), async (tx) => tx.change('namespaces', { id: row.id }, set, missing));
    const renamed = await change({ name: 'Renamed' });
    expect([made.resourceVersion, renamed.resourceVersion]).toEqual([1, 2]);
    expect(renamed.updatedAt.getTime()).toBeGreaterThanOrEqual(made.updatedAt.getTime());
    expect(await change({})).toEqual(renamed);
  });

  test('are never all of a table because nothing says which', async () => {
    const work = changes.run(caller(), async (tx) => tx.remove('threads', { id: undefined }));
    await expect(work).rejects.toThrow('Nothing says which rows of threads are meant.');
  });
});
