/** Where the payload of a job has the trace that it goes on with. Tasks do not see it. */
export const TRACE = 'traceparent';

/** When a task runs on its own. */
export interface Schedule {
  /** At most once per this many seconds, on the node that looks first. */
  everySeconds: number;
  /** A `select`: the task is due only while it has rows. It runs every second, so an index must serve it. */
  ifAny?: string;
}

/** One attempt at a job. */
export interface Attempt {
  jobId: string;
  /** From 1. */
  number: number;
  /** Aborted when the service stops, after a wait of five seconds. */
  signal: AbortSignal;
}

/** A kind of work that is done in the background, as jobs. The service that owns it declares it in its `tasks`. */
export interface Task<Payload extends object = object> {
  /** Names the task in the database, the log and the metrics; never reused for another payload. */
  readonly name: string;
  /**
   * A job is given up after this many failed attempts. The waits between them are 3 s, 7 s, 20 s, … and 6 h at most.
   */
  readonly tries: number;
  /** How many of its jobs a node runs at once, by workers of its own; without it, it shares some with other tasks. */
  readonly atOnce?: number;
  readonly schedule?: Schedule;
  /** Does the work. If the node is killed, the work is repeated from the start. */
  run(payload: Payload, attempt: Attempt): Promise<unknown>;
  /**
   * Called when a job is given up because its node ended in the last try, which therefore could not record its end. It
   * is called again until it succeeds.
   */
  abandoned?(payload: Payload, attempt: Omit<Attempt, 'signal'>): Promise<unknown>;
}

/**
 * A task that runs on its own. Its runs never overlap. When all attempts of one run have failed, the next period starts
 * again.
 */
export function scheduled(name: string, schedule: Schedule, run: (attempt: Attempt) => Promise<unknown>): Task {
  return { name, tries: SCHEDULED_TRIES, schedule, run: (_payload, attempt) => run(attempt) };
}

// the waits add up to four minutes
const SCHEDULED_TRIES = 6;

/** Thrown by a task whose next attempt would fail as well. The job is given up at once. */
export class GiveUp extends Error {
  constructor(cause: unknown) {
    super('another try would fail as well', { cause });
  }
}
