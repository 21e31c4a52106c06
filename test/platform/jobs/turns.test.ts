import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { JobQueue, type NewJob } from '../../../src/data/job-queue.ts';
import type { Task } from '../../../src/kernel/tasks.ts';
import { Jobs } from '../../../src/platform/jobs/jobs.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { gate } from '../../support/gate.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

const CROWD = 10_000;
/** Of a node, for tasks that have no workers of their own. */
const WORKERS = 4;

let server: TestDatabase;
let database: Database;
const nodes: Jobs[] = [];
beforeAll(async () => {
  server = await createTestDatabase();
  database = openDatabase({ url: server.url, poolSize: 10, logger: quietLogger });
});
afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.stop()));
  // what a test has deleted would weigh on the plans of the next one
  await database.pool.query('truncate jobs._private_jobs');
});
afterAll(async () => {
  await database.close();
  await server.drop();
});

type Of = { of: string; n?: number };

/** The queue of a node's changes; the node runs nothing before it starts. */
function nodeWith(...tasks: Task[]): { queue: JobQueue; start: () => void } {
  const queue = new JobQueue();
  queue.declare(tasks);
  const onFault = (error: unknown) => {
    throw error;
  };
  const jobs = new Jobs({ pool: database.pool, tasks, logger: quietLogger, onFault, pollMs: 50 });
  queue.onAdded(() => jobs.wake());
  return {
    queue,
    start() {
      nodes.push(jobs);
      jobs.start();
    },
  };
}

async function add(queue: JobQueue, jobs: readonly NewJob[]): Promise<void> {
  const { text, values } = queue.insertion(jobs);
  await database.pool.query(text, values);
  queue.added();
}
const jobsOf = (task: Task, of: string, count: number): NewJob[] =>
  Array.from({ length: count }, (_, n) => ({ task, payload: { of, n }, turnOf: of }));

/** A task that records whose jobs it has run, in their order. */
const recording = (order: string[], more: Partial<Task<Of>> = {}): Task =>
  ({ name: 'work', tries: 3, run: async ({ of }: Of) => order.push(of), ...more }) as Task;

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve());
  });

const placesOf = async (of: string): Promise<number[]> =>
  (
    await database.pool.query<{ priority: number }>(
      `select priority from jobs._private_jobs where payload->>'of' = $1 order by id`,
      [of],
    )
  ).rows.map(({ priority }) => priority);

it('the next job of a tenant waits for no crowd of another, from whichever node it comes', async () => {
  const order: string[] = [];
  // one at a time, so that they end in the order in which they were taken
  const task = recording(order, { atOnce: 1 });
  const [one, other] = [nodeWith(task), nodeWith(task)];
  await add(one.queue, jobsOf(task, 'a', CROWD));
  await add(other.queue, jobsOf(task, 'b', 1));
  one.start();
  await waitUntil(() => order.includes('b'));
  expect(order.indexOf('b')).toBeLessThanOrEqual(WORKERS);
});

it('not after the crowd has waited for long, either', async () => {
  const order: string[] = [];
  let addedAt = -1;
  const task = recording(order, {
    atOnce: 1,
    run: async ({ of }) => {
      order.push(of);
      if (order.length !== 200) return;
      await add(queue, jobsOf(task, 'b', 1));
      addedAt = order.length;
    },
  });
  const { queue, start } = nodeWith(task);
  await add(queue, jobsOf(task, 'a', CROWD));
  start();
  await waitUntil(() => order.includes('b'));
  expect(order.indexOf('b') - addedAt).toBeLessThanOrEqual(WORKERS);
});

it('tenants have equal turns, whatever each has waiting', async () => {
  const order: string[] = [];
  const task = recording(order, { atOnce: 1 });
  const { queue, start } = nodeWith(task);
  await add(queue, jobsOf(task, 'a', 30));
  await add(queue, [...jobsOf(task, 'b', 10), ...jobsOf(task, 'c', 20)]);
  start();
  await waitUntil(() => order.length === 60);
  const rounds = (from: number, to: number, size: number) =>
    Array.from({ length: (to - from) / size }, (_, n) =>
      order
        .slice(from + n * size, from + (n + 1) * size)
        .toSorted()
        .join(''),
    );
  expect(rounds(0, 30, 3)).toEqual(Array.from({ length: 10 }, () => 'abc'));
  expect(rounds(30, 50, 2)).toEqual(Array.from({ length: 10 }, () => 'ac'));
  expect(rounds(50, 60, 1)).toEqual(Array.from({ length: 10 }, () => 'a'));
});

it('who always has a new job does not keep others from their turns', async () => {
  const order: string[] = [];
  const task = recording(order, {
    atOnce: 1,
    run: async ({ of }) => {
      order.push(of);
      if (of === 'b' && order.length < 60) await add(queue, jobsOf(task, 'b', 2));
    },
  });
  const { queue, start } = nodeWith(task);
  await add(queue, [...jobsOf(task, 'a', 20), ...jobsOf(task, 'b', 1)]);
  start();
  await waitUntil(() => order.filter((of) => of === 'a').length === 20);
  expect(order.lastIndexOf('a')).toBeLessThanOrEqual(41);
});

/** Takes the job that the library's workers would take. @returns whose it was */
async function takeNext(): Promise<string | undefined> {
  const { rows } = await database.pool.query<{ of: string }>(
    `delete from jobs._private_jobs where id = (select id from jobs._private_jobs
      where is_available = true and run_at <= now() order by priority, run_at, id limit 1)
      returning payload->>'of' as of`,
  );
  return rows[0]?.of;
}

/** How many jobs each has in the queue. */
async function jobsLeft(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ of: string; jobs: number }>(
    `select payload->>'of' as of, count(*)::int as jobs from jobs._private_jobs group by 1`,
  );
  return Object.fromEntries(rows.map(({ of, jobs }) => [of, jobs]));
}

/** What a turn that came too late is explained by: who waits since which turn, beside what the queue holds. */
async function explained(turn: number, waiting: ReadonlyMap<string, unknown>): Promise<string> {
  const { rows } = await database.pool.query(
    `select id, payload->>'of' as of, priority, run_at, now(), is_available, attempts, locked_by, xmin
      from jobs._private_jobs order by priority, run_at, id`,
  );
  return JSON.stringify({ turn, waiting: [...waiting], rows });
}

it('two who each add a job when one of theirs has run do not keep a third waiting', async () => {
  const task = recording([]);
  const { queue } = nodeWith(task);
  await add(queue, jobsOf(task, 'a', 3));
  for (const of of ['b', 'c']) await add(queue, jobsOf(task, of, 1));
  const order: string[] = [];
  for (let n = 0; n < 12; n += 1) {
    const of = (await takeNext())!;
    order.push(of);
    if (of !== 'a') await add(queue, jobsOf(task, of, 1));
  }
  expect(order.lastIndexOf('a')).toBeLessThanOrEqual(8);
  expect(order.filter((of) => of === 'a')).toHaveLength(3);
});

it('nobody waits for more than two turns of each other for every job of its own', async () => {
  const task = recording([]);
  const { queue } = nodeWith(task);
  await fc.assert(
    fc.asyncProperty(
      // how many jobs each has at first; who has one adds the next when it has run
      fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 12 })), { minLength: 2, maxLength: 6 }),
      fc.array(fc.nat({ max: 20 }), { minLength: 40, maxLength: 60 }),
      async (first, arrivals) => {
        await database.pool.query('delete from jobs._private_jobs');
        const waiting = new Map<string, { since: number; most: number }[]>(first.map((_, n) => [`t${n}`, []]));
        let picks = 0;
        const arrive = async (of: string, count: number) => {
          const own = waiting.get(of)!;
          for (let n = 0; n < count; n += 1) own.push({ since: picks, most: 2 * first.length * (own.length + 1) });
          await add(queue, jobsOf(task, of, count));
        };
        for (const [n, count] of first.entries()) await arrive(`t${n}`, count);
        for (const arrival of arrivals) {
          const of = await takeNext();
          if (of !== undefined) {
            waiting.get(of)!.shift();
            picks += 1;
            if (first[Number(of.slice(1))] === 1) await arrive(of, 1);
          }
          if (first[arrival]! > 1) await arrive(`t${arrival}`, 1);
          const late = [...waiting].find(([, own]) => own.some(({ since, most }) => picks - since > most));
          if (late) throw new Error(`${late[0]} waits for too many turns: ${await explained(picks, waiting)}`);
        }
        // none was lost, or taken by somebody else
        const left = [...waiting].flatMap(([who, own]) => (own.length > 0 ? [[who, own.length]] : []));
        expect(await jobsLeft()).toEqual(Object.fromEntries(left));
      },
    ),
    { numRuns: 15 },
  );
});

it('what a tenant has for later, or tries again, does not put off what it adds now', async () => {
  const task = recording([]);
  const { queue } = nodeWith(task);
  const later = jobsOf(task, 'a', 200).map((job) => ({ ...job, runAt: new Date(Date.now() + 3_600_000) }));
  await add(queue, later);
  await add(queue, jobsOf(task, 'b', 50));
  await database.pool.query(`update jobs._private_jobs set attempts = 1, run_at = now() + interval '1 hour'
    where payload->>'of' = 'b'`);
  await add(queue, jobsOf(task, 'c', 1));
  await add(queue, [...jobsOf(task, 'a', 1), ...jobsOf(task, 'b', 1)]);
  expect([(await placesOf('a')).at(-1), (await placesOf('b')).at(-1)]).toEqual([0, 0]);
  expect((await placesOf('a')).slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, n) => n));
});

it('a job that failed is tried again at its place, before the crowd that came later', async () => {
  const order: string[] = [];
  let hasFailed = false;
  const isRecorded = async () =>
    (
      await database.pool.query(`select 1 from jobs._private_jobs where payload->>'of' = 'b' and last_error is not null
      and locked_at is null`)
    ).rowCount === 1;
  const task = recording(order, {
    atOnce: 1,
    run: async ({ of }) => {
      if (of === 'b' && !hasFailed) {
        hasFailed = true;
        await database.pool.query(`create function jobs.at_once() returns trigger language plpgsql as $$
          begin if new.attempts = 1 and new.last_error is not null then new.run_at := now(); end if; return new; end $$;
          create trigger at_once before update on jobs._private_jobs for each row execute function jobs.at_once()`);
        throw new Error('busy');
      }
      // a worker takes its next job while the failure of the one before is still being recorded
      if (of === 'a' && hasFailed && !order.includes('b'))
        await waitUntil(async () => order.includes('b') || (await isRecorded()));
      order.push(of);
    },
  });
  const { queue, start } = nodeWith(task);
  await add(queue, jobsOf(task, 'a', 300));
  await add(queue, jobsOf(task, 'b', 1));
  start();
  await waitUntil(() => order.includes('b'));
  await database.pool.query('drop trigger at_once on jobs._private_jobs; drop function jobs.at_once()');
  expect(order.indexOf('b')).toBeLessThanOrEqual(3);
});

it('work that runs once at a time keeps no other work waiting, nor is kept', async () => {
  const order: string[] = [];
  const { opened: held, open: release } = gate();
  const slow = recording(order, { name: 'slow', atOnce: 1, run: () => held });
  const quick = recording(order, { name: 'quick' });
  const { queue, start } = nodeWith(slow, quick);
  await add(queue, jobsOf(slow, 'a', 100));
  start();
  await waitFor(async () =>
    expect((await database.pool.query('select 1 from jobs._private_jobs where locked_at is not null')).rowCount).toBe(
      1,
    ),
  );
  await add(queue, jobsOf(quick, 'a', 50));
  await waitUntil(() => order.length === 50);
  release();
});

it('a job that replaces a waiting one keeps its place', async () => {
  const task = recording([]);
  const { queue } = nodeWith(task);
  const keyed = (of: string): NewJob => ({ task, payload: { of }, turnOf: 'a', key: 'k' });
  await add(queue, [keyed('first'), ...jobsOf(task, 'a', 3)]);
  await add(queue, [keyed('again')]);
  expect([await placesOf('again'), await placesOf('a')]).toEqual([[0], [1, 2, 3]]);
});

it('more jobs than there are places are numbered anew when the first are done', async () => {
  const task = recording([], { atOnce: 1, run: (_payload, { signal }) => untilAborted(signal) });
  const { queue, start } = nodeWith(task);
  // as after a quiet night
  await add(queue, jobsOf(task, 'a', 1));
  await database.pool.query('delete from jobs._private_jobs');
  await database.pool.query('analyze jobs._private_jobs');
  await add(queue, jobsOf(task, 'a', 30_005));
  expect((await placesOf('a')).slice(-5)).toEqual(Array.from({ length: 5 }, () => 30_000));
  await database.pool.query('delete from jobs._private_jobs where priority < 100');
  start();
  await waitUntil(async () => {
    const places = await placesOf('a');
    return new Set(places).size === places.length;
  });
});

it('a job costs one statement, which looks at few rows, however many wait', async () => {
  const task = recording([]);
  const { queue } = nodeWith(task);
  await add(queue, jobsOf(task, 'a', CROWD));
  await database.pool.query('analyze jobs._private_jobs');
  const { text, values } = queue.insertion(jobsOf(task, 'b', 1));
  const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, buffers, timing off) ${text}`,
    values,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).not.toMatch(/Seq Scan on _private_jobs/);
  expect(plan).toContain('jobs_front_index');
  expect(plan).toContain('jobs_turn_index');
});
