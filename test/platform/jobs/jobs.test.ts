import type pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { JobQueue, type NewJob } from '../../../src/data/job-queue.ts';
import type { Statement } from '../../../src/data/writes.ts';
import { GiveUp, scheduled, type Task } from '../../../src/kernel/tasks.ts';
import { Jobs, type JobsOptions } from '../../../src/platform/jobs/jobs.ts';
import { Workers } from '../../../src/platform/jobs/workers.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { gate } from '../../support/gate.ts';
import { whileRetriesWait } from '../../support/held-jobs.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

const SECRET = 'the payload of a job';

let server: TestDatabase;
let database: Database;
let nodes: Jobs[];
let lines: string[];

beforeAll(async () => {
  server = await createTestDatabase();
});
afterAll(() => server.drop());
beforeEach(() => {
  // connections of its own: the statement that looks for jobs is another for other tasks
  database = openDatabase({ url: server.url, poolSize: 10, logger: quietLogger });
  [nodes, lines] = [[], []];
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(nodes.map((node) => node.stop()));
  for (const table of ['jobs', 'known_crontabs']) await database.pool.query(`delete from jobs._private_${table}`);
  await database.close();
});

/** A node that does these tasks, and the queue of its changes. */
function start(
  tasks: readonly Task[],
  given: Pick<JobsOptions, 'leaseSeconds' | 'stopMs'> = {},
): { queue: JobQueue; jobs: Jobs } {
  const queue = new JobQueue();
  queue.declare(tasks);
  const logger = pino({ base: undefined }, { write: (line: string) => void lines.push(line) });
  const onFault = (error: unknown, what: string) => logger.error(error, what);
  const jobs = new Jobs({ pool: database.pool, tasks, logger, onFault, pollMs: 50, ...given });
  queue.onAdded(() => jobs.wake());
  nodes.push(jobs);
  jobs.start();
  return { queue, jobs };
}

async function add(queue: JobQueue, ...jobs: NewJob[]): Promise<void> {
  await queue.add(jobs, answersOf(database.pool));
  queue.added();
}

const answersOf =
  (client: Pick<pg.ClientBase, 'query'>) =>
  async ({ text, values }: Statement) =>
    (await client.query<{ key: string | null }>(text, values)).rows;

const count = async (condition = 'true') =>
  (await database.pool.query(`select 1 from jobs._private_jobs where ${condition}`)).rowCount;
const soon = (check: () => unknown) => waitFor(check);
/** As if the wait before the next try were over. */
const skipWaits = () => database.pool.query('update jobs._private_jobs set run_at = now() where locked_at is null');

describe('a job', () => {
  it('is done once by one of two nodes, with its payload, and removed', async () => {
    const done: unknown[] = [];
    const task: Task<{ n: number }> = { name: 'note', tries: 3, run: async ({ n }) => done.push(n) };
    const [here] = [start([task]), start([task])];
    await add(here.queue, ...Array.from({ length: 20 }, (_, n) => ({ task, payload: { n } })));
    await soon(async () => expect(await count()).toBe(0));
    expect(done.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it('is not done before its time, and takes the place of the one with its key', async () => {
    const done: unknown[] = [];
    const task: Task = { name: 'note', tries: 3, run: async (payload) => done.push(payload) };
    const { queue } = start([task]);
    await add(queue, { task, payload: { n: 1 }, key: 'k', runAt: new Date(Date.now() + 3_600_000) });
    await add(queue, { task, payload: { n: 2 } });
    await soon(() => expect(done).toEqual([{ n: 2 }]));
    await add(queue, { task, payload: { n: 3 }, key: 'k' });
    await soon(() => expect(done).toEqual([{ n: 2 }, { n: 3 }]));
    await soon(async () => expect(await count()).toBe(0));
  });

  it('is not lost when the one with its key begins at this moment', async () => {
    const task: Task = { name: 'note', tries: 3, run: async () => undefined };
    const queue = new JobQueue();
    queue.declare([task]);
    await add(queue, { task, payload: { n: 1 }, key: 'k' });
    const [worker, change] = [await database.pool.connect(), await database.pool.connect()];
    try {
      await worker.query('begin');
      await worker.query(`update jobs._private_jobs set locked_at = now(), locked_by = 'worker', attempts = 1`);
      const adding = queue.add(
        [
          { task, payload: { n: 2 }, key: 'k' },
          { task, payload: { n: 3 } },
        ],
        answersOf(change),
      );
      await soon(async () => expect(await lockWaits(worker)).toBe(1));
      await worker.query('commit');
      await adding;
    } finally {
      worker.release(true);
      change.release(true);
    }
    const { rows } = await database.pool.query(
      'select payload, key, locked_by is not null as runs from jobs._private_jobs order by payload::text',
    );
    expect(rows).toEqual([
      { payload: { n: 1 }, key: null, runs: true },
      { payload: { n: 2 }, key: 'k', runs: false },
      { payload: { n: 3 }, key: null, runs: false },
    ]);
  });

  it('that fails is tried again, and logged by the name of its task, without its payload', async () => {
    const attempts: number[] = [];
    const task: Task = {
      name: 'flaky',
      tries: 3,
      run: async (_payload, { number }) => {
        attempts.push(number);
        if (number === 1) throw Object.assign(new Error('busy'), { code: 'EBUSY' });
      },
    };
    const { queue, jobs } = start([task]);
    await whileRetriesWait(database.pool, async () => {
      await add(queue, { task, payload: { SECRET } });
      await soon(async () => expect(await count(`last_error = 'EBUSY' and locked_at is null`)).toBe(1));
      expect(await jobs.states()).toContainEqual(
        expect.objectContaining({ task: 'flaky', state: 'retrying', count: 1 }),
      );
    });
    await skipWaits();
    await soon(async () => expect(await count()).toBe(0));
    expect(attempts).toEqual([1, 2]);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 40, task: 'flaky', attempt: 1, err: { message: 'busy' } });
    expect(lines.join()).not.toContain(SECRET);
  });

  it.each([
    ['after its last try', 1, () => new Error('broken')],
    ['at once where another try would be in vain', 9, () => new GiveUp(new Error('broken'))],
  ])('is given up %s: removed, counted and logged', async (_when, tries, failure) => {
    const task: Task = { name: 'broken', tries, run: () => Promise.reject(failure()) };
    const { queue, jobs } = start([task]);
    await add(queue, { task, payload: { SECRET } });
    await soon(() => expect(jobs.givenUp.get('broken')).toBe(1));
    await soon(async () => expect(await count()).toBe(0));
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 50, task: 'broken', err: { message: 'broken' } });
    expect(lines.join()).not.toContain(SECRET);
  });

  it('of a node that is gone is done by another one', async () => {
    const done: unknown[] = [];
    const task: Task = { name: 'note', tries: 3, run: async (payload) => done.push(payload) };
    const { queue } = start([task]);
    await soon(() => expect(database.pool.totalCount).toBeGreaterThan(0));
    const { text, values } = queue.insertion([{ task, payload: { n: 1 }, runAt: new Date(Date.now() + 3_600_000) }]);
    await database.pool.query(text, values);
    const lock = (age: string) =>
      database.pool.query(
        `update jobs._private_jobs set run_at = now(), locked_by = 'gone', locked_at = now() - $1::interval`,
        [age],
      );
    await lock('1 second');
    await add(queue, { task, payload: { n: 2 } });
    await soon(() => expect(done).toEqual([{ n: 2 }]));
    await soon(async () => expect(await count()).toBe(1)); // it is removed too, and not locked once more
    await lock('1 minute');
    await soon(() => expect(done).toEqual([{ n: 2 }, { n: 1 }]));
    await soon(() => expect(lines.join()).toContain('jobs of a lost node are run again'));
  });

  it('that ended with its node in its last try is given up: removed, counted and logged', async () => {
    const run = vi.fn(async () => undefined);
    const task: Task = { name: 'mortal', tries: 1, run };
    const queue = new JobQueue();
    queue.declare([task]);
    for (const lock of [`locked_by = 'gone', locked_at = now() - interval '1 minute'`, 'locked_at = null']) {
      await add(queue, { task, payload: { SECRET } });
      await database.pool.query(`update jobs._private_jobs set attempts = 1, ${lock} where attempts = 0`);
    }
    const { jobs } = start([task]);
    await soon(async () => expect(await count()).toBe(0));
    // it is counted and logged when it has been removed
    await soon(() => expect([jobs.givenUp.get('mortal'), lines.length]).toEqual([2, 2]));
    expect(run).not.toHaveBeenCalled();
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: 50, task: 'mortal', attempt: 1 });
    expect(lines.join()).not.toContain(SECRET);
  });

  it('that ended with its node in its last try is removed when its task has taken note of it', async () => {
    const noted: unknown[] = [];
    const task: Task<{ n: number }> = {
      name: 'mortal',
      tries: 2,
      run: async () => undefined,
      abandoned: async (payload, attempt) => {
        noted.push([payload, attempt]);
        if (noted.length === 1) throw new Error('busy');
      },
    };
    const queue = new JobQueue();
    queue.declare([task]);
    await add(queue, { task, payload: { n: 7 } });
    await database.pool.query(
      `update jobs._private_jobs set attempts = 2, locked_by = 'gone', locked_at = now() - interval '1 minute'`,
    );
    const { rows } = await database.pool.query<{ id: string }>('select id from jobs._private_jobs');
    const { jobs } = start([task], { leaseSeconds: 1 });
    await soon(async () => expect(await count()).toBe(0));
    await soon(() => expect(jobs.givenUp.get('mortal')).toBe(1));
    const note = [{ n: 7 }, { jobId: rows[0]!.id, number: 2 }];
    expect(noted).toEqual([note, note]);
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      "the task 'mortal' could not record a job that was given up",
      "a job of the task 'mortal' lost its node during its last try and is given up",
    ]);
  });

  it('survives a database outage longer than a lease, and is done once by one of two nodes', async () => {
    const done: number[] = [];
    const { opened: held, open: release } = gate();
    const task: Task<{ n: number }> = { name: 'note', tries: 3, run: async ({ n }) => done.push(n) };
    const slow: Task = { name: 'slow', tries: 3, run: () => held.then(() => done.push(-1)) };
    // a node that stands still for as long loses its job to the other one
    const lease = { leaseSeconds: 4 };
    const [here] = [start([task, slow], lease), start([task, slow], lease)];
    await add(here.queue, { task: slow, payload: {} });
    await soon(async () => expect(await count('locked_at is not null')).toBe(1));
    const runAt = new Date(Date.now() + 3_600_000);
    await add(here.queue, ...Array.from({ length: 20 }, (_, n) => ({ task, payload: { n }, runAt })));
    await server.outage(async () => {
      const began = performance.now();
      release();
      await soon(() => expect(lines.join().split('due jobs could not be read').length).toBeGreaterThan(6));
      await soon(() => expect(performance.now() - began).toBeGreaterThan(lease.leaseSeconds * 1_000));
      expect(done).toEqual([-1]);
    });
    await soon(skipWaits);
    await soon(async () => expect(await count()).toBe(0));
    // that it was done could not be written, so it is done again
    expect(done.toSorted((a, b) => a - b)).toEqual([-1, -1, ...Array.from({ length: 20 }, (_, n) => n)]);
  });

  it('that runs is finished before its node stops, and nothing new begins', async () => {
    const done: unknown[] = [];
    const { opened: held, open: release } = gate();
    const task: Task = { name: 'slow', tries: 3, run: () => held.then(() => done.push(1)) };
    const { queue, jobs } = start([task]);
    await add(queue, { task, payload: {} });
    await soon(async () => expect(await count('locked_at is not null')).toBe(1));
    const stopping = jobs.stop();
    // a look for jobs that was under way may still take one
    await soon(() => expect(database.pool.idleCount).toBe(database.pool.totalCount));
    await add(queue, { task, payload: {} });
    release();
    await stopping;
    expect(done).toEqual([1]);
    expect([await count(), await count('locked_at is null and attempts = 0')]).toEqual([1, 1]);
  });

  it('that runs on workers that were replaced is finished before its node stops', async () => {
    const order: string[] = [];
    const { opened: held, open: release } = gate();
    const slow: Task = { name: 'slow', tries: 3, run: () => held.then(() => order.push('slow')) };
    const quick: Task = { name: 'quick', tries: 3, run: async () => order.push('quick') };
    const { queue, jobs } = start([slow, quick]);
    await add(queue, { task: slow, payload: {} });
    await soon(async () => expect(await count('locked_at is not null')).toBe(1));
    await server.outage(async () => {
      await soon(() => {
        jobs.wake();
        expect(lines.join()).toContain('jobs could not be fetched');
      });
    });
    await soon(() => add(queue, { task: quick, payload: {}, key: 'k' }));
    await soon(() => expect(order).toEqual(['quick']));
    const stopping = jobs.stop().then(() => order.push('stopped'));
    await soon(() => expect(database.pool.idleCount).toBe(database.pool.totalCount));
    expect(await count('locked_at is not null')).toBe(1);
    release();
    await stopping;
    expect(order).toEqual(['quick', 'slow', 'stopped']);
    expect(await count()).toBe(0);
  });

  it('does not hold up its node when two others failed in an outage, and neither could be noted', async () => {
    const held = [gate(), gate(), gate()] as const;
    const failing: Task<{ n: 0 | 1 }> = {
      name: 'failing',
      tries: 3,
      run: async ({ n }) => {
        await held[n].opened;
        throw new Error('on purpose');
      },
    };
    const slow: Task = { name: 'slow', tries: 3, run: () => held[2].opened };
    const { queue, jobs } = start([failing, slow], { stopMs: 200 });
    await add(queue, { task: failing, payload: { n: 0 } }, { task: failing, payload: { n: 1 } });
    await add(queue, { task: slow, payload: {} });
    await soon(async () => expect(await count('locked_at is not null')).toBe(3));
    await server.outage(async () => {
      for (const n of [0, 1]) {
        held[n]!.open();
        await soon(() => expect(lines.join().match(/job queue: Failed to fail jobs/g)).toHaveLength(n + 1));
      }
    });
    held[2].open();
    await jobs.stop();
  });

  it('needs a declared task', () => {
    const task: Task = { name: 'forgotten', tries: 1, run: async () => undefined };
    expect(() => new JobQueue().insertion([{ task, payload: {} }])).toThrow(
      `No service declares the task 'forgotten'.`,
    );
  });
});

describe('a scheduled task', () => {
  it('runs once in its period on all nodes together', async () => {
    const runs: string[] = [];
    const looks = { a: 0, b: 0 };
    const tasksOf = (node: 'a' | 'b') => [
      scheduled('hourly', { everySeconds: 3_600 }, async () => {
        runs.push(node);
      }),
      // due whenever its node, and no other, looks for what is due
      scheduled(`always_${node}`, { everySeconds: 0 }, async () => {
        looks[node] += 1;
      }),
    ];
    start(tasksOf('a'));
    start(tasksOf('b'));
    const bothLook = async (times: number) => {
      const before = { ...looks };
      await soon(() => {
        expect(looks.a).toBeGreaterThanOrEqual(before.a + times);
        expect(looks.b).toBeGreaterThanOrEqual(before.b + times);
      });
    };
    await bothLook(1);
    for (const expected of [1, 2]) {
      await database.pool.query(
        `update jobs._private_known_crontabs set last_execution = now() - interval '61 minutes'`,
      );
      await soon(() => expect(runs).toHaveLength(expected));
    }
    // a look that is under way, and two whole ones
    await bothLook(3);
    expect(runs).toHaveLength(2);
  });

  it('is due again although a run ended with its node in the last try', async () => {
    const run = vi.fn(async () => undefined);
    await database.pool.query(`select jobs.add_job('hourly', job_key => 'hourly', max_attempts => 1)`);
    await database.pool.query('update jobs._private_jobs set attempts = 1');
    await database.pool.query(
      `insert into jobs._private_known_crontabs values ('hourly', now(), now() - interval '61 minutes')`,
    );
    start([scheduled('hourly', { everySeconds: 3_600 }, run)]);
    await soon(() => expect(run).toHaveBeenCalledTimes(1));
  });

  it('with a condition runs only while there is something to do', async () => {
    await database.pool.query('create table to_do (n int)');
    const task = scheduled('tidy', { everySeconds: 0, ifAny: 'select 1 from to_do' }, () =>
      database.pool.query('delete from to_do'),
    );
    const run = vi.spyOn(task, 'run');
    const looks = vi.spyOn(database.pool, 'query');
    start([task]);
    await soon(() => expect(looks.mock.calls.length).toBeGreaterThan(2));
    expect(run).not.toHaveBeenCalled();
    await database.pool.query('insert into to_do values (1)');
    await soon(async () => expect((await database.pool.query('select 1 from to_do')).rowCount).toBe(0));
    expect(run).toHaveBeenCalledTimes(1);
  });
});

it('keeps no connection and listens to nothing while there is nothing to do', async () => {
  start([{ name: 'nothing', tries: 1, run: async () => undefined }]);
  const known = `select 1 from jobs._private_tasks where identifier = 'nothing'`;
  await soon(async () => expect((await database.pool.query(known)).rowCount).toBe(1));
  await soon(() => expect(database.pool.idleCount).toBe(database.pool.totalCount));
  const listening = await database.pool.query(
    `select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen%'`,
  );
  expect(listening.rowCount).toBe(0);
});

it('workers go on while their jobs are so short that none runs in the moment of a look', async () => {
  const workers = new Set<string>();
  let done = 0;
  const task: Task = {
    name: 'note',
    tries: 1,
    run: async (_payload, { jobId }) => {
      done += 1;
      if (done % 50 !== 0) return;
      const { rows } = await database.pool.query<{ locked_by: string }>(
        'select locked_by from jobs._private_jobs where id = $1',
        [jobId],
      );
      workers.add(rows[0]!.locked_by);
    },
  };
  const { queue } = start([task]);
  await add(queue, ...Array.from({ length: 5_000 }, () => ({ task, payload: {} })));
  await waitUntil(() => done === 5_000);
  expect(workers.size).toBe(1);
});

describe('workers that have stopped', () => {
  it('keep nothing of the service in memory: the library keeps the options of all that ever ran', async () => {
    const service = await startAndStop();
    await waitUntil(() => {
      collectGarbage();
      return service.deref() === undefined;
    });
  });

  const task: Task = { name: 'note', tries: 1, run: async () => undefined };
  const lanes = [{ tasks: { note: () => undefined }, workers: 1 }];

  async function startAndStop(): Promise<WeakRef<object>> {
    const service = { faults: [] as unknown[] };
    const queue = new JobQueue();
    queue.declare([task]);
    const workers = await Workers.start({
      pool: database.pool,
      lanes,
      onFault: (error) => void service.faults.push(error),
    });
    await add(queue, { task, payload: {} });
    workers.nudge(1);
    await soon(async () => expect(await count()).toBe(0));
    await workers.stop();
    return new WeakRef(service);
  }
});
