import { randomUUID } from 'node:crypto';
import type { Caller } from './caller.ts';

/** What stands in the place of the HTTP method for what the service does by itself. */
export const TASK_METHOD = 'TASK';

/** The service itself, doing `task` in the background: what its records and events name as their actor. */
export function systemCaller(task: string): Caller {
  return {
    principal: null,
    request: {
      traceId: randomUUID(),
      method: TASK_METHOD,
      path: task,
      ip: '',
      successStatus: 200,
      startedAt: performance.now(),
      recorded: false,
      isRest: false,
    },
  };
}
