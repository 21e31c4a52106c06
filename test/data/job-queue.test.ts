import { describe, expect, it } from 'vitest';
import { JobQueue, type NewJob } from '../../src/data/job-queue.ts';
import { type TraceSpan, within } from '../../src/kernel/spans.ts';
import { scheduled, type Task, TRACE } from '../../src/kernel/tasks.ts';

const taskOf = (name: string): Task => ({ name, tries: 2, run: async () => undefined });
const [mail, index] = [taskOf('mail'), taskOf('index')];

const queueOf = (...tasks: Task[]): JobQueue => {
  const queue = new JobQueue();
  queue.declare(tasks);
  return queue;
};
const added = (queue: JobQueue, jobs: readonly NewJob[]): unknown => JSON.parse(queue.insertion(jobs).values[0]);

describe('the queue of jobs', () => {
  it('knows the tasks of all owners, each by its name', () => {
    const queue = queueOf(mail);
    queue.declare([index]);
    expect(queue.tasks).toEqual([mail, index]);
    expect(() => queue.declare([taskOf('mail')])).toThrow(`Two tasks are named 'mail'.`);
    expect(queueOf().tasks).toEqual([]);
  });

  it('takes jobs of tasks that are declared, with all that was said of them', () => {
    const queue = queueOf(mail, index);
    const runAt = new Date('2040-01-02T03:04:05Z');
    const lane = ['mail', 'index'];
    expect(
      added(queue, [
        { task: mail, payload: { to: 'ann' } },
        { task: index, payload: {}, key: 'k', runAt },
      ]),
    ).toEqual([
      { task: 'mail', payload: { to: 'ann' }, tries: 2, turn: 'mail', lane },
      { task: 'index', payload: {}, tries: 2, key: 'k', run_at: runAt.toISOString(), turn: 'index', lane },
    ]);
    expect(() => queue.insertion([{ task: taskOf('mail'), payload: {} }])).toThrow('No service declares');
    expect(() => queue.insertion([{ task: taskOf('other'), payload: {} }])).toThrow('No service declares');
  });

  it('compares jobs with those that wait for the same workers, by whose they are', () => {
    const alone: Task = { ...taskOf('alone'), atOnce: 1 };
    const queue = queueOf(
      mail,
      index,
      alone,
      scheduled('hourly', { everySeconds: 3_600 }, async () => undefined),
    );
    const rows = added(queue, [
      { task: mail, payload: {}, turnOf: 'org_1' },
      { task: alone, payload: {}, turnOf: 'org_1' },
    ]);
    expect(rows).toMatchObject([
      { turn: 'mail org_1', lane: ['mail', 'index'] },
      { turn: 'alone org_1', lane: ['alone'] },
    ]);
  });

  it('keeps the work of a request that is recorded in its trace', () => {
    const span = { isEnded: false, parent: null, traceparent: '00-1-2-01' } as TraceSpan;
    const queue = queueOf(mail);
    const rows = within(span, () => added(queue, [{ task: mail, payload: { to: 'ann' } }]));
    expect(rows).toMatchObject([{ payload: { to: 'ann', [TRACE]: '00-1-2-01' } }]);
  });

  it('tells a listener that there are new ones', () => {
    const queue = queueOf();
    queue.added();
    let told = 0;
    queue.onAdded(() => told++);
    expect(told).toBe(0);
    queue.added();
    expect(told).toBe(1);
  });
});

describe('a job whose key another one has, which begins to run while the job is added', () => {
  /** Adds jobs to a database that answers each statement with the keys it added. @returns the keys of each statement */
  async function lookedAt(jobs: readonly NewJob[], answers: readonly (string | null)[][]): Promise<unknown[][]> {
    const asked: unknown[][] = [];
    await queueOf(mail, index).add(jobs, async ({ values: [rows] }) => {
      asked.push((JSON.parse(rows as string) as NewJob[]).map(({ key }) => key));
      return (answers[asked.length - 1] ?? []).map((key) => ({ key }));
    });
    return asked;
  }
  const job = (key?: string): NewJob => ({ task: mail, payload: {}, key });

  it('is added by the next try, and the others are not added twice', async () => {
    const jobs = [job('a'), job('b'), job(), job('c')];
    expect(await lookedAt(jobs, [[null, 'b'], ['c'], ['a']])).toEqual([['a', 'b', undefined, 'c'], ['a', 'c'], ['a']]);
    expect(await lookedAt(jobs, [['a', 'b', 'c', null]])).toHaveLength(1);
    expect(await lookedAt([], [])).toEqual([]);
  });

  it('is given up with an error after ten tries, so that no change loses a job', async () => {
    const never = Array.from({ length: 9 }, () => []);
    expect(await lookedAt([job('a')], [...never, ['a']])).toHaveLength(10);
    await expect(lookedAt([job('a')], [...never, [], ['a']])).rejects.toThrow(`The job 'mail' could not be added.`);
  });
});
