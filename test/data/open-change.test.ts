import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Changes, type ChangesDeps } from '../../src/data/changes.ts';
import { findRow } from '../../src/data/find-row.ts';
import { JobQueue } from '../../src/data/job-queue.ts';
import type { Notify, Occasion } from '../../src/data/occasions.ts';
import { Sql } from '../../src/data/sql.ts';
import type { Tx } from '../../src/data/tx.ts';
import { statement } from '../../src/data/writes.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import { Expectation } from '../../src/kernel/expectation.ts';
import { newId } from '../../src/kernel/ids.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { Task } from '../../src/kernel/tasks.ts';
import { Transaction } from '../../src/platform/postgres/transaction.ts';
import { addOrganization, addWorkspace, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';
import { logQueries } from '../support/query-log.ts';

const task: Task = { name: 'of_a_test', tries: 3, run: async () => undefined };
const undeclared: Task = { ...task, name: 'nobody_knows' };
const missing = () => new Error('it is not there');

let database: BareDatabase;
let orgId: string;
let workspaceId: string;
let jobs: JobQueue;
/** What was told after a commit: `events`, `jobs`. */
let told: string[];
beforeAll(async () => {
  database = await openBareDatabase();
  orgId = await addOrganization(database);
  workspaceId = await addWorkspace(database, orgId);
});
beforeEach(() => {
  told = [];
  jobs = new JobQueue();
  jobs.declare([task]);
  jobs.onAdded(() => told.push('jobs'));
});
afterAll(() => database.close());

const changesOf = (given: Partial<ChangesDeps> = {}): Changes =>
  new Changes({
    database,
    sql: database.sql,
    jobs,
    notify: () => null,
    assertsLockOrder: true,
    onCommit: () => told.push('events'),
    ...given,
  });

/** Runs a change, whose record can be found by its caller's trace. */
const run = <T>(work: (tx: Tx) => Promise<T>, caller = systemCaller('a test')): Promise<T> =>
  changesOf().run(caller, work);

const namespaceOf = (slug: string) => ({ id: newId('namespace'), orgId, workspaceId, name: slug, slug });

/** A namespace that is there. */
async function madeNamespace(slug: string): Promise<string> {
  const row = namespaceOf(slug);
  await database.add('namespaces', row);
  return row.id;
}
const nameOf = async (id: string) => (await findRow(database.sql, 'namespaces', { id }))?.name ?? null;

const recordOf = (resourceId: string, metadata?: Record<string, unknown>) =>
  ({ action: 'update', resourceType: 'namespace', resourceId, orgId, metadata }) as const;
const eventOf = (resourceId: string) =>
  ({ type: 'namespace.updated', orgId, resourceType: 'namespace', resourceId }) as const;

const recordsOf = (caller: AnyCaller) =>
  database.sql.read<{ resource_id: string; metadata: object }>(
    'select resource_id, metadata from activity where trace_id = $1 order by id',
    [caller.request.traceId],
  );
const eventsOf = async (caller: AnyCaller) =>
  (
    await database.sql.read<{ resource_id: string }>(
      'select resource_id from events where trace_id = $1 order by seq',
      [caller.request.traceId],
    )
  ).map((row) => row.resource_id);
const payloads = async () =>
  (
    await database.sql.read<{ payload: object }>(
      `select payload from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id
        where t.identifier = $1 order by j.id`,
      [task.name],
    )
  ).map(({ payload }) => payload);

describe('a change', () => {
  it('returns what its work returns, and of a row that is still to be written the row', async () => {
    const row = namespaceOf('returned');
    expect(await run(async () => 7)).toBe(7);
    expect(await changesOf().run(systemCaller('a test'), async (tx) => tx.create('namespaces', row))).toMatchObject({
      ...row,
      description: null,
      resourceVersion: 1,
    });
    expect(await nameOf(row.id)).toBe('returned');
  });

  it('that does nothing needs no database', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none' });
    const nowhere = changesOf({
      sql: new Sql(pool),
      database: { transaction: (work) => work(new Transaction(pool)) },
    });
    expect(await nowhere.run(systemCaller('a test'), async () => 'done')).toBe('done');
    await expect(
      nowhere.run(systemCaller('a test'), async (tx) => tx.remove('threads', { id: 'x' })),
    ).rejects.toThrow();
    await pool.end();
  });

  it('is sent at its end: alone if it is one statement, in a transaction if there are more', async () => {
    const [one, two] = [namespaceOf('alone'), namespaceOf('two')];
    const log = logQueries(database.pool);
    const alone = await log.during(() =>
      run(async (tx) => {
        tx.demand('workspaces', { id: workspaceId }, 'share', missing);
        tx.insert('namespaces', one);
        tx.audit(recordOf(one.id));
        tx.emit(eventOf(one.id));
      }),
    );
    expect(alone.map((text) => text.split(' ')[0])).toEqual(['with']);
    const both = await log.during(() =>
      run(async (tx) => {
        tx.insert('namespaces', two);
        tx.update('namespaces', { id: two.id }, { name: 'Renamed' });
      }),
    );
    expect(both.map((text) => text.split(' ')[0])).toEqual(['begin', 'with', 'with', 'commit']);
    const read = await log.during(() =>
      run(async (tx) => {
        tx.update('namespaces', { id: two.id }, { name: 'Twice' });
        await tx.query(statement`select 1 as one`);
      }),
    );
    expect(read.map((text) => text.split(' ')[0])).toEqual(['begin', 'with', 'select', 'commit']);
    expect([await nameOf(one.id), await nameOf(two.id)]).toEqual(['alone', 'Twice']);
  });

  it('sees what it wrote when it asks', async () => {
    const row = namespaceOf('seen');
    const seen = await run(async (tx) => {
      tx.insert('namespaces', row);
      const before = await tx.query<{ name: string }>(statement`select name from namespaces where id = ${row.id}`);
      tx.update('namespaces', { id: row.id }, { name: 'Changed' });
      const changed = tx.change('namespaces', { id: row.id }, { description: 'text' }, missing);
      return [before, (await tx.written(changed)).name];
    });
    expect(seen).toEqual([[{ name: 'seen' }], 'Changed']);
  });

  it('may write with a statement of its own', async () => {
    const id = await madeNamespace('by-hand');
    await run(async (tx) => tx.write(statement`update namespaces set name = ${'By hand'} where id = ${id}`));
    expect(await nameOf(id)).toBe('By hand');
  });

  it('removes rows, and none where one must be there and is not', async () => {
    const [gone, kept] = [await madeNamespace('gone'), await madeNamespace('kept')];
    await run(async (tx) => {
      tx.remove('namespaces', { id: gone });
      tx.remove('namespaces', { id: 'ns_NONE' });
    });
    expect(await nameOf(gone)).toBeNull();
    const work = run(async (tx) => {
      tx.remove('namespaces', { id: kept }, missing);
      tx.remove('namespaces', { id: gone }, missing);
    });
    await expect(work).rejects.toThrow('it is not there');
    expect(await nameOf(kept)).toBe('kept');
  });

  it.each<[string, (tx: Tx) => unknown]>([
    ['is demanded', (tx) => tx.demand('workspaces', { id: 'ws_NONE' }, 'share', missing)],
    ['is to be changed', (tx) => tx.change('apps', { id: 'app_NONE' }, { name: 'x' }, missing)],
    ['is to be removed', (tx) => tx.remove('threads', { id: 'thr_NONE' }, missing)],
    ['is locked', (tx) => tx.lock('workspaces', { id: 'ws_NONE' }, 'share', missing)],
  ])('does nothing where a row is missing that %s', async (_title, demand) => {
    const id = await madeNamespace(newId('namespace').toLowerCase());
    const before = await nameOf(id);
    const starts: ((tx: Tx) => unknown)[] = [() => undefined, (tx) => tx.query(statement`select 1`)];
    for (const start of starts) {
      const caller = systemCaller('a test');
      let after = 0;
      const work = changesOf().run(caller, async (tx) => {
        await start(tx);
        await demand(tx);
        tx.update('namespaces', { id }, { name: 'Changed' });
        tx.enqueue(task, { of: 'nothing' });
        tx.audit(recordOf(id));
        tx.emit(eventOf(id));
        tx.afterCommit(() => after++);
      });
      await expect(work).rejects.toThrow('it is not there');
      expect([await nameOf(id), await recordsOf(caller), await eventsOf(caller)]).toEqual([before, [], []]);
      expect([after, told, caller.request.recorded]).toEqual([0, [], false]);
    }
    expect(await payloads()).not.toContainEqual({ of: 'nothing' });
  });

  it('does what is left for after the commit once it has committed', async () => {
    const id = await madeNamespace('afterwards');
    const names: Promise<string | null>[] = [];
    await run(async (tx) => {
      tx.update('namespaces', { id }, { name: 'Afterwards' });
      tx.afterCommit(() => names.push(nameOf(id)));
      tx.afterCommit(() => names.push(Promise.resolve('second')));
    });
    expect(await Promise.all(names)).toEqual(['Afterwards', 'second']);
  });
});

describe('a demand that is no row', () => {
  const demanded = (text: string, values: unknown[] = []) =>
    run(async (tx) => {
      tx.demandThat({ shape: text, text: (first) => text.replace('$', `$${first}`), values });
      tx.insert('namespaces', namespaceOf(newId('namespace').toLowerCase()));
    });

  it('fails the change by itself', async () => {
    await demanded('select 1 / $::int', [1]);
    await expect(demanded('select 1 / $::int', [0])).rejects.toThrow('division by zero');
    await expect(demanded('select 1 where false')).rejects.toThrow("'select 1 where false' must fail by itself.");
  });
});

describe('the record of a change', () => {
  it('is that of what it did last, with what it did before', async () => {
    const caller = systemCaller('a test');
    await run(async (tx) => {
      tx.audit({ ...recordOf('ns_1', { why: 'first' }), action: 'create' });
      tx.audit(recordOf('ns_2'));
      tx.audit(recordOf('ns_3', { why: 'last' }));
    }, caller);
    expect(await recordsOf(caller)).toEqual([
      {
        resource_id: 'ns_3',
        metadata: {
          why: 'last',
          also: [
            { action: 'create', resource_type: 'namespace', resource_id: 'ns_1', why: 'first' },
            { action: 'update', resource_type: 'namespace', resource_id: 'ns_2' },
          ],
        },
      },
    ]);
    expect(caller.request.recorded).toBe(true);
  });

  it('is alone where it did one thing, and is none where it did nothing that is recorded', async () => {
    const [one, none] = [systemCaller('a test'), systemCaller('a test')];
    await run(async (tx) => tx.audit(recordOf('ns_1', { a: 1 })), one);
    expect(await recordsOf(one)).toEqual([{ resource_id: 'ns_1', metadata: { a: 1 } }]);
    await run(async (tx) => tx.emit(eventOf('ns_1')), none);
    expect([await recordsOf(none), none.request.recorded]).toEqual([[], false]);
    expect(await eventsOf(none)).toEqual(['ns_1']);
  });

  it('marks the key of its request, and no other', async () => {
    const [mine, other] = [newId('event'), newId('event')];
    const isMarked = (id: string) =>
      database.sql
        .read<{ is: boolean }>('select committed_at is not null as is from idempotency_keys where id = $1', [id])
        .then(([row]) => row?.is);
    await database.pool.query(`insert into idempotency_keys (id, request_hash) values ($1, 'h'), ($2, 'h')`, [
      mine,
      other,
    ]);
    const caller = systemCaller('a test');
    caller.request.idempotencyId = mine;
    const failing = async (tx: Tx) => tx.remove('threads', { id: 'thr_NONE' }, missing);
    await expect(run(failing, caller)).rejects.toThrow('it is not there');
    expect(await isMarked(mine)).toBe(false);
    await run(async (tx) => tx.insert('namespaces', namespaceOf('marked')), caller);
    expect([await isMarked(mine), await isMarked(other)]).toEqual([true, false]);
    const demanding = systemCaller('a test');
    demanding.request.idempotencyId = other;
    await run(async (tx) => tx.demand('workspaces', { id: workspaceId }, 'share', missing), demanding);
    expect(await isMarked(other)).toBe(true);
  });
});

describe('the events and jobs of a change', () => {
  it('are told of after its commit, if there are any', async () => {
    await run(async (tx) => tx.insert('namespaces', namespaceOf('quiet')));
    expect(told).toEqual([]);
    const caller = systemCaller('a test');
    await run(async (tx) => {
      tx.emit(eventOf('ns_1'));
      tx.emit(eventOf('ns_2'));
    }, caller);
    expect([told, await eventsOf(caller)]).toEqual([['events'], ['ns_1', 'ns_2']]);
    await run(async (tx) => tx.enqueue(task, { n: 1 }));
    expect(told).toEqual(['events', 'jobs']);
    expect(await payloads()).toContainEqual({ n: 1 });
  });

  it('are made of what concerns somebody', async () => {
    const seen: (readonly Occasion[])[] = [];
    const notify: Notify = (tx, _caller, occasions) => {
      seen.push(occasions);
      if (occasions.length === 1) return null;
      return tx.query(statement`select 1`).then(() => tx.enqueue(task, { of: 'a notice' }));
    };
    const notifying = (work: (tx: Tx) => Promise<void>) => changesOf({ notify }).run(systemCaller('a test'), work);
    const announced: Occasion = { type: 'user.updated', orgId: null, resourceType: 'user', resourceId: 'usr_1' };
    await notifying(async (tx) => tx.insert('namespaces', namespaceOf('nobody')));
    expect([seen, told]).toEqual([[], []]);
    await notifying(async (tx) => tx.announce(announced));
    expect([seen, told]).toEqual([[[announced]], []]);
    await notifying(async (tx) => {
      tx.announce(announced);
      tx.announce({ ...announced, resourceId: 'usr_2' });
    });
    expect(told).toEqual(['events', 'jobs']);
    await notifying(async (tx) => {
      tx.emit(eventOf('ns_1'));
      tx.announce(announced);
    });
    expect(seen.at(-1)).toEqual([eventOf('ns_1'), announced]);
    expect((await payloads()).filter((payload) => JSON.stringify(payload).includes('a notice'))).toHaveLength(2);
  });

  it('are of tasks that are declared', async () => {
    await expect(run(async (tx) => tx.enqueue(undeclared, {}))).rejects.toThrow(
      `No service declares the task 'nobody_knows'.`,
    );
  });

  it('are queued as they were asked for', async () => {
    const runAt = new Date('2040-01-02T03:04:05Z');
    await run(async (tx) => {
      tx.enqueue(task, { n: 'replaced' }, { key: 'k' });
      tx.enqueue(task, { n: 'later' }, { runAt });
    });
    await run(async (tx) => tx.enqueue(task, { n: 'replacing' }, { key: 'k' }));
    const rows = await database.sql.read(
      `select payload->>'n' as n, key, max_attempts as tries, flags,
         case when run_at > now() then run_at end as later
       from jobs._private_jobs where payload->>'n' in ('replaced', 'later', 'replacing') order by id`,
      [],
    );
    const job = { key: null, tries: 3, flags: { [task.name]: true }, later: null };
    expect(rows).toEqual([
      { ...job, n: 'replacing', key: 'k' },
      { ...job, n: 'later', flags: { [`${task.name} later`]: true }, later: runAt },
    ]);
  });
});

describe('a change whose caller expects a version', () => {
  const expecting = (...versions: number[]): AnyCaller => {
    const caller = systemCaller('a test');
    caller.request.expectation = new Expectation(versions);
    return caller;
  };
  const rename = (caller: AnyCaller, id: string, version?: string) =>
    run(async (tx) => {
      await tx.expectVersion({ table: 'namespaces', key: { id }, ...(version && { version }) });
      return tx.change('namespaces', { id }, { name: 'Renamed' }, missing).constructor.name;
    }, caller);

  it('happens where the row has it', async () => {
    const id = await madeNamespace('expected');
    const caller = expecting(7, 1);
    await rename(caller, id);
    expect([await nameOf(id), caller.request.expectation?.isMet]).toEqual(['Renamed', true]);
    await rename(systemCaller('a test'), id);
  });

  it('does not happen where it has another one', async () => {
    const id = await madeNamespace('unexpected');
    const caller = expecting(2);
    await expect(rename(caller, id)).rejects.toThrow('The resource is at version 1, not at the expected version');
    expect([await nameOf(id), caller.request.expectation?.isMet]).toEqual(['unexpected', false]);
  });

  it('may expect one that counts more than the row', async () => {
    const id = await madeNamespace('summed');
    const sum = '(select count(*)::int from namespaces n where n.id = t.id) + 40';
    await expect(rename(expecting(1), id, sum)).rejects.toThrow('The resource is at version 41');
    await rename(expecting(41), id, sum);
    expect(await nameOf(id)).toBe('Renamed');
  });

  it('says first what is missing, and that nothing looked at the version', async () => {
    const id = await madeNamespace('looked-at');
    await expect(rename(expecting(1), 'ns_NONE')).rejects.toThrow('it is not there');
    await expect(rename(expecting(1), 'ns_NONE', '7')).rejects.toThrow('it is not there');
    const blind = run(async (tx) => tx.update('namespaces', { id }, { name: 'Renamed' }), expecting(1));
    await expect(blind).rejects.toThrow('A change did not look at the version that its caller expects.');
    expect(await nameOf(id)).toBe('looked-at');
  });
});

describe('rows that a change locks', () => {
  it('are read as they are, in the order of their keys', async () => {
    const ids = [await madeNamespace('locked-1'), await madeNamespace('locked-2')].toSorted();
    const locked = await run(async (tx) => {
      const rows = await tx.lockAll('namespaces', statement`t.id = any(${ids.toReversed()})`, 'no key update');
      const one = await tx.lock('namespaces', { id: ids[0]! }, 'update', missing);
      const none = await tx.lock('namespaces', { id: 'ns_NONE' }, 'update');
      return [rows.map(({ id }) => id), one.slug.startsWith('locked-'), none];
    });
    expect(locked).toEqual([ids, true, null]);
  });

  it.each<[string, (tx: Tx, id: string) => unknown]>([
    ['one by one', (tx, id) => tx.lock('namespaces', { id }, 'no key update')],
    ['together', (tx, id) => tx.lockAll('namespaces', statement`t.id = ${id}`, 'no key update')],
    ['unread', (tx, id) => tx.lockUnread('namespaces', statement`t.id = ${id}`, 'no key update')],
    ['as a demand', (tx, id) => tx.demand('namespaces', { id }, 'no key update', missing)],
  ])('are locked until its end: %s', async (_way, lock) => {
    const id = await madeNamespace(newId('namespace').toLowerCase());
    const free = () =>
      database.sql.read('select from namespaces where id = $1 for share skip locked', [id]).then((rows) => rows.length);
    const during = await run(async (tx) => {
      await lock(tx, id);
      await tx.query(statement`select 1`);
      return free();
    });
    expect([during, await free()]).toEqual([0, 1]);
  });

  it.each<[string, (tx: Tx) => unknown]>([
    ['one', (tx) => tx.lock('organizations', { id: orgId }, 'share')],
    ['all', (tx) => tx.lockAll('organizations', statement`t.id = ${orgId}`, 'share')],
    ['unread', (tx) => tx.lockUnread('organizations', statement`t.id = ${orgId}`, 'share')],
    ['a demand', async (tx) => tx.demand('organizations', { id: orgId }, 'share', missing)],
  ])('must be locked in order where that is asserted: %s', async (_way, lock) => {
    const work = async (tx: Tx) => {
      await tx.lock('workspaces', { id: workspaceId }, 'share', missing);
      await lock(tx);
      return 'done';
    };
    await expect(run(work)).rejects.toThrow('A change locks organizations after workspaces');
    expect(await changesOf({ assertsLockOrder: false }).run(systemCaller('a test'), work)).toBe('done');
  });
});

describe('a change that is one statement', () => {
  const renaming = (id: string) => ({
    text: 'update namespaces set name = $1 where id = $2 returning id, name, slug',
    values: ['Renamed', id],
    audit: recordOf(id, { a: 1 }),
    metadata: `jsonb_build_object('slug', c.slug)`,
  });

  it('gives the row as it is afterwards, and is recorded with what follows from it', async () => {
    const id = await madeNamespace('in-one');
    const caller = systemCaller('a test');
    expect(await changesOf().runStatement(caller, renaming(id))).toEqual({ id, name: 'Renamed', slug: 'in-one' });
    expect([await nameOf(id), caller.request.recorded]).toEqual(['Renamed', true]);
    expect(await recordsOf(caller)).toEqual([{ resource_id: id, metadata: { a: 1, slug: 'in-one' } }]);
  });

  it('is nothing where there is no row', async () => {
    const caller = systemCaller('a test');
    expect(await changesOf().runStatement(caller, renaming('ns_NONE'))).toBeNull();
    expect([await recordsOf(caller), caller.request.recorded]).toEqual([[], false]);
  });
});
