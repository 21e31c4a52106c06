import { serveTasks } from '../../../src/platform/threads/thread-work.ts';

/** What the test asks. */
export type Task = { echo: string } | { fail: string } | 'spin' | 'grow' | 'end' | 'throw later' | 'environment';

let running = 0;

serveTasks(async (task: Task): Promise<unknown> => {
  if (task === 'environment') return [Object.keys(process.env), process.execArgv.length > 0];
  if (task === 'spin') for (;;);
  if (task === 'end') process.exit(1);
  if (task === 'grow') {
    const kept: string[][] = [];
    for (;;) kept.push('x'.repeat(100_000).split(''));
  }
  if (task === 'throw later') {
    setImmediate(() => {
      throw new Error('the secret');
    });
    return new Promise(() => undefined);
  }
  console.log('the secret'); // nobody reads it
  if ('fail' in task) throw new TypeError(task.fail);
  running += 1;
  const together = running;
  await new Promise(setImmediate);
  running -= 1;
  return [task.echo, together];
});
