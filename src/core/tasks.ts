/** When a task is done by itself. */
export interface Schedule {
  /** At most once in so many seconds, on whichever node looks first. */
  everySeconds: number;
  /** A `select`: the task is due only while it has rows. It is asked every second, so an index must answer it. */
  ifAny?: string;
}

/** One try of a job. */
export interface Attempt {
  jobId: string;
  /** From 1. */
  number: number;
  /** Aborted when the service stops and has waited for five seconds. */
  signal: AbortSignal;
}

/** A kind of work that is done in the background, as jobs. The service that owns it declares it in its `tasks`. */
export interface Task<Payload extends object = object> {
  /** Names the task in the database, the log and the metrics; never reused for another payload. */
  readonly name: string;
  /** A job is given up after so many failed tries. The waits between them are 3 s, 7 s, 20 s, … and 6 h at most. */
  readonly tries: number;
  readonly schedule?: Schedule;
  /** Does the work. A node that is killed leaves it half done: it is done again from the start. */
  run(payload: Payload, attempt: Attempt): Promise<unknown>;
}

/** A task that is done by itself. Its runs never overlap; when all tries of one failed, the next period begins anew. */
export function scheduled(name: string, schedule: Schedule, run: (attempt: Attempt) => Promise<unknown>): Task {
  return { name, tries: SCHEDULED_TRIES, schedule, run: (_payload, attempt) => run(attempt) };
}

// four minutes of waits in all
const SCHEDULED_TRIES = 6;

/** Thrown by a task whose next try would fail as well: the job is given up at once. */
export class GiveUp extends Error {
  constructor(cause: unknown) {
    super('another try would fail as well', { cause });
  }
}
