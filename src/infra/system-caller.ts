import { randomUUID } from 'node:crypto';
import type { Caller } from '../access/caller.ts';

/** The service itself, doing `task` in the background: what its records and events name as their actor. */
export function systemCaller(task: string): Caller {
  return {
    principal: null,
    request: {
      traceId: randomUUID(),
      method: 'TASK',
      path: task,
      ip: '',
      successStatus: 200,
      startedAt: performance.now(),
      recorded: false,
      isRest: false,
    },
  };
}
