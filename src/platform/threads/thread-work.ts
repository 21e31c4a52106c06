import { parentPort } from 'node:worker_threads';

/** What a thread says: that its modules are loaded; then, of each task, its result, or that it has failed. */
export type ThreadAnswer = 'ready' | { result: unknown } | { fault: ThreadFault };

/** A failure without its message: it may quote the task, or a key that is in it. */
export interface ThreadFault {
  name: string;
  /** Where it was thrown: the lines of the stack. */
  at: string;
}

/** Does the tasks of the thread that this module runs in. What its work throws is a fault of the program. */
export function serveTasks(work: (task: never) => unknown): void {
  const port = parentPort;
  if (!port) throw new Error('This module runs in a thread.');
  const tell = (answer: ThreadAnswer) => port.postMessage(answer);
  const done = async (task: unknown) => work(task as never);
  port.on('message', (task: unknown) => {
    void done(task).then(
      (result) => tell({ result }),
      (error: unknown) => tell({ fault: faultOf(error) }),
    );
  });
  tell('ready');
}

function faultOf(error: unknown): ThreadFault {
  if (!(error instanceof Error)) return { name: typeof error, at: '' };
  const { name, message, stack = '' } = error;
  const begin = stack.indexOf(message) + message.length;
  const frames = stack.slice(begin).split('\n');
  return { name, at: frames.filter((line) => line.startsWith('    at ')).join('\n') };
}
