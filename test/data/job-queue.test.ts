import { describe, expect, it } from 'vitest';
import { JobQueue, type NewJob } from '../../src/data/job-queue.ts';
import { scheduled, type Task } from '../../src/kernel/tasks.ts';

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
