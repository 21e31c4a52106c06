// from sources: starts threads of TypeScript
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { moduleOf } from '../../../src/paths.ts';
import { BoundedThread, ThreadError } from '../../../src/platform/threads/bounded-thread.ts';
import type { Task } from './tasks.fixture.ts';

const module = {
  file: path.join(import.meta.dirname, 'tasks.fixture.ts'),
  execArgv: moduleOf('identity/sso/saml/check-thread').execArgv,
};
const PATIENT = { timeMs: 60_000, heapMiB: 64, mostPending: 8 };
const thread = new BoundedThread(module, PATIENT);
afterAll(() => thread.close());

const outcome = (task: Task, of = thread): Promise<unknown> =>
  of.run(task).catch((error: unknown) => {
    if (!(error instanceof ThreadError)) throw error;
    return error.reason;
  });

test('does tasks one after the other, in their order', async () => {
  const tasks = ['a', 'b', 'c'].map((echo) => outcome({ echo }));
  expect(thread.pending).toBe(3);
  expect(await Promise.all(tasks)).toEqual([
    ['a', 1],
    ['b', 1],
    ['c', 1],
  ]);
  expect(thread.pending).toBe(0);
});

test('it knows nothing of the environment', async () => {
  const [names] = (await thread.run('environment' satisfies Task)) as [string[]];
  expect(names).not.toContain('PATH');
});

test('a fault says of what kind it is and where, and not its message', async () => {
  const error = await thread.run({ fail: 'the secret\n    at another secret' } satisfies Task).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(ThreadError);
  const { message, stack, reason } = error as ThreadError;
  expect([message, reason]).toEqual(['The task failed. (TypeError)', 'fault']);
  expect(stack).toContain('tasks.fixture.ts');
  expect(stack).not.toContain('secret');
  expect(await outcome({ echo: 'next' })).toEqual(['next', 1]);
});

describe('the next task gets a new thread after one that', () => {
  test.each<[Task, string]>([
    ['grow', 'memory'],
    ['end', 'crash'],
    ['throw later', 'crash'],
  ])('%s', async (task, reason) => {
    const [first, second] = await Promise.all([outcome(task), outcome({ echo: 'next' })]);
    expect([first, second]).toEqual([reason, ['next', 1]]);
  });

  test('takes too long', async () => {
    const hurried = new BoundedThread(module, { ...PATIENT, timeMs: 1_000 });
    expect(await outcome('spin', hurried)).toBe('timeout');
    await hurried.close();
    expect(await outcome({ echo: 'x' }, hurried)).toBe('closed');
  });
});

test('leaves out a task that nobody waits for any more, and ends one that runs', async () => {
  const left = new Error('nobody waits');
  const [running, waiting] = [new AbortController(), new AbortController()];
  const spinning = thread.run('spin' satisfies Task, running.signal);
  const second = thread.run('spin' satisfies Task, waiting.signal);
  const third = outcome({ echo: 'third' });
  waiting.abort(left);
  await expect(second).rejects.toBe(left);
  expect(thread.pending).toBe(2);
  running.abort(left);
  await expect(spinning).rejects.toBe(left);
  expect(await third).toEqual(['third', 1]);
  await expect(thread.run('spin' satisfies Task, running.signal)).rejects.toBe(left);
});

test('takes no more tasks than it may, and those that wait when it is closed fail', async () => {
  const small = new BoundedThread(module, { ...PATIENT, mostPending: 2 });
  const tasks = [outcome('spin', small), outcome({ echo: 'a' }, small)];
  expect(small.isFull).toBe(true);
  expect(await outcome({ echo: 'b' }, small)).toBe('full');
  await small.close();
  expect(await Promise.all(tasks)).toEqual(['closed', 'closed']);
  expect(small.isFull).toBe(false);
});
