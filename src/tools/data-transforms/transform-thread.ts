// Runs in a thread of its own: whoever writes a transform decides how long it takes.
import { serveTasks } from '../../platform/threads/thread-work.ts';
import { runTransform, type TransformTask } from './run-transform.ts';
import { TransformFault } from './transform-budget.ts';

/** What became of a transform. */
export type TransformEnd = { result: unknown } | { refusal: string };

serveTasks((task: TransformTask): TransformEnd => {
  try {
    return { result: runTransform(task) };
  } catch (error) {
    if (error instanceof TransformFault) return { refusal: error.message };
    throw error;
  }
});
