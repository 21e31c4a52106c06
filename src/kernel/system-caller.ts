import { randomUUID } from 'node:crypto';
import type { AnyCaller } from './caller.ts';
import { activeSpan } from './spans.ts';

/** Stands in for the HTTP method of what the service does by itself. */
export const TASK_METHOD = 'TASK';

/** The service itself, running `task` in the background. Records and events name it as their actor. */
export function systemCaller(task: string): AnyCaller {
  return {
    principal: null,
    request: {
      traceId: activeSpan()?.traceId ?? randomUUID(),
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
