import type { Job, JobHelpers, TaskList } from 'graphile-worker';
import type pg from 'pg';
import { apart, spanned, type TraceSpan } from '../../kernel/spans.ts';
import { GiveUp, type Schedule, type Task, TRACE } from '../../kernel/tasks.ts';
import { every } from '../every.ts';
import type { Logger } from '../logger.ts';
import { traceParentOf } from '../tracing/trace-parent.ts';
import { noTracing, type Tracing } from '../tracing/tracing.ts';
import { Scheduler } from './scheduler.ts';
import { type Lane, Workers } from './workers.ts';

const LOOK_MS = 1_000;
const LEASE_SECONDS = 20;
// workers that begin none of the ready jobs for this many polls are stuck
const PATIENCE = 5;
const SHARED_WORKERS = 4;
/** Places are numbered anew at most so often. */
const RENUMBER_MS = 60_000;

// without a limit, `limit null` counts all. What waits for its time does not wait for a worker
const STATES = `select n.task, s.state, count(j.id)::int as count,
    (extract(epoch from now() - min(j.run_at)
      filter (where j.run_at <= now() and s.state in ('waiting', 'retrying'))))::float8 as "oldestSeconds"
  from unnest($1::text[]) n(task) cross join unnest(array['waiting', 'retrying', 'running', 'dead']) s(state)
  left join jobs._private_tasks t on t.identifier = n.task
  left join (select * from jobs._private_jobs limit $2) j on j.task_id = t.id
    and s.state = case when j.locked_at is not null then 'running'
    when j.attempts >= j.max_attempts then 'dead' when j.attempts > 0 then 'retrying' else 'waiting' end
  group by 1, 2`;

const FREE_STALE = `update jobs._private_jobs set locked_at = null, locked_by = null
  where locked_at < now() - $1 * interval '1 second' and attempts < max_attempts`;

// jobs without further attempts: they would keep their payload, and prevent a scheduled task from becoming due
const TAKE_DEAD = `update jobs._private_jobs j set locked_at = now(), locked_by = 'nobody' from jobs._private_tasks t
  where t.id = j.task_id and attempts >= max_attempts
    and coalesce(locked_at < now() - $1 * interval '1 second', true)
  returning t.identifier as task, j.id::text as job, attempts as attempt, payload`;
const REMOVE_DEAD = 'delete from jobs._private_jobs where id = $1';

// by the place of each among those of its turn: a place beyond the last number would be one for many
const RENUMBER = `update jobs._private_jobs j set priority = p.place
  from (select id, least(30000, row_number() over (partition by flags order by priority, run_at, id) - 1) as place
    from jobs._private_jobs where is_available = true and flags is not null) p
  where p.id = j.id and j.is_available = true and j.priority <> p.place`;

const TROUBLED = `select t.identifier as task, s.state, count(*)::int as count
  from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id,
  lateral (select case when j.locked_at > now() - $1 * interval '1 second' then null
    when j.attempts >= j.max_attempts then 'dead'
    when j.run_at < now() - $2 * interval '1 second' then 'late'
    when j.attempts > 0 then 'retrying' end as state) s
  where s.state is not null group by 1, 2 order by 1, 2`;
/** A job that could run and was not taken for so long waits for a node. */
const LATE_SECONDS = 120;

/** Jobs of a task that do not go on as they should. */
export interface TroubledJobs {
  task: string;
  /** `dead`: given up by a killed node; `late`: nobody takes them; `retrying`: they failed before. */
  state: 'dead' | 'late' | 'retrying';
  count: number;
}

/** Counts the jobs that are stuck or have failed, also while no node runs. */
export async function troubledJobs(pool: pg.Pool): Promise<TroubledJobs[]> {
  const { rows } = await pool.query<TroubledJobs>(TROUBLED, [LEASE_SECONDS, LATE_SECONDS]);
  return rows;
}

/** How many jobs of a task are in a state. */
export interface JobState {
  task: string;
  state: 'waiting' | 'retrying' | 'running' | 'dead';
  count: number;
  /** For how long the oldest of them could have run; `null` if none could, or in another state. */
  oldestSeconds: number | null;
}

/**
 * Jobs by task and state, including zeros.
 * @param ask runs a statement
 * @param limit of the jobs that are looked at; `null` for all
 */
export const jobStates = (
  ask: (text: string, values: unknown[]) => Promise<JobState[]>,
  tasks: readonly string[],
  limit: number | null = null,
): Promise<JobState[]> => ask(STATES, [tasks, limit]);

/** A job that ended with its node in its last try. */
interface DeadJob {
  task: string;
  job: string;
  attempt: number;
  payload: unknown;
}

/** What the jobs of a process need. */
export interface JobsOptions {
  pool: pg.Pool;
  tasks: readonly Task[];
  logger: Logger;
  /** Logs faults of the queue itself. */
  onFault: (error: unknown, what: string) => void;
  tracing?: Tracing;
  /** Delay after which jobs of a killed process are repeated. */
  leaseSeconds?: number;
  /** Pause between two polls; new jobs of this process do not wait for it. Default: one second. */
  pollMs?: number;
  /** For how long jobs that run may go on when it stops. Default: ten seconds. */
  stopMs?: number;
  /** The seconds between two runs of a scheduled task. Default: what its schedule says. */
  periodOf?: (schedule: Schedule) => number;
}

/**
 * Runs the jobs in the database: each node those that it can lock. A node renews its locks on jobs every second. When
 * it is killed, its jobs are repeated, by another node or its own successor, as soon as the locks are older than the
 * lease.
 */
export class Jobs {
  /** Number of jobs that this process gave up, by task. */
  readonly givenUp: ReadonlyMap<string, number>;
  readonly #givenUp: Map<string, number>;
  readonly #options: JobsOptions;
  readonly #leaseSeconds: number;
  readonly #schedule: Scheduler;
  readonly #running = new Map<string, string>();
  #workers: Workers | null = null;
  /** Workers whose place others have taken, and that still finish a job. */
  readonly #replaced = new Set<Workers>();
  #endLooking: () => Promise<void> = async () => undefined;
  #hasBegun = false;
  #renumberedAt = Number.NEGATIVE_INFINITY;
  /** Jobs that have begun since the last look. */
  #begun = 0;
  #looksInVain = 0;
  #isStopped = false;

  constructor(options: JobsOptions) {
    this.#options = options;
    this.#leaseSeconds = options.leaseSeconds ?? LEASE_SECONDS;
    this.#givenUp = new Map(options.tasks.map(({ name }) => [name, 0]));
    this.givenUp = this.#givenUp;
    this.#schedule = new Scheduler(options.pool, options.tasks, this.#leaseSeconds, options.periodOf);
  }

  /** Starts polling for jobs. */
  start(): void {
    const onFault = (error: unknown) => this.#options.onFault(error, 'due jobs could not be read');
    this.#endLooking = every(this.#options.pollMs ?? LOOK_MS, () => this.#look(), onFault, 0);
  }

  /** Called when there are new jobs: they need not wait for the next poll. */
  wake(): void {
    if (!this.#isStopped) this.#workers?.nudge(1);
  }

  /** Number of jobs by known task and state, including zeros. */
  states(): Promise<JobState[]> {
    const { pool } = this.#options;
    return jobStates(async (text, values) => (await pool.query<JobState>(text, values)).rows, [...this.givenUp.keys()]);
  }

  /** Takes no more jobs and finishes the running ones, within `stopMs`. The next node runs the rest. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#stopWorkers(), this.#endLooking()]);
    // a poll in progress may have replaced them
    await this.#stopWorkers();
  }

  async #stopWorkers(): Promise<void> {
    await Promise.all([this.#workers, ...this.#replaced].map(async (workers) => workers?.stop()));
  }

  async #look(): Promise<void> {
    if (!this.#hasBegun) await this.#schedule.begin();
    this.#hasBegun = true;
    await this.#renewLocks();
    const { ready, hasStale, isFull, due } = await this.#schedule.look();
    if (isFull) await this.#renumber();
    const freed = hasStale ? await this.#freeStale() : 0;
    const added = due.length > 0 ? await this.#schedule.addDue(due) : 0;
    // short jobs begin and end between two looks
    const isIdle = this.#begun === 0 && this.#running.size === 0;
    this.#begun = 0;
    this.#looksInVain = ready > 0 && isIdle ? this.#looksInVain + 1 : 0;
    if (!this.#workers?.isSound || this.#looksInVain >= PATIENCE) await this.#replaceWorkers();
    else if (ready + freed + added > 0 && !this.#isStopped) this.#workers.nudge(ready + freed + added);
  }

  /** After an error workers may never recover; new ones do. */
  async #replaceWorkers(): Promise<void> {
    if (this.#isStopped) return;
    const old = this.#workers;
    if (old) {
      this.#replaced.add(old);
      void old.stop().finally(() => this.#replaced.delete(old));
    }
    this.#looksInVain = 0;
    const { pool, tasks, onFault, stopMs } = this.#options;
    this.#workers = await Workers.start({ pool, lanes: this.#lanes(tasks), onFault, ...(stopMs && { stopMs }) });
  }

  /** A task that may run so often at once has as many workers; all others share some. */
  #lanes(tasks: readonly Task[]): Lane[] {
    const listOf = (some: readonly Task[]): TaskList =>
      Object.fromEntries(
        some.map((task) => [task.name, (payload: unknown, helpers: JobHelpers) => this.#run(task, payload, helpers)]),
      );
    const alone = tasks.flatMap((task) =>
      task.atOnce === undefined ? [] : [{ tasks: listOf([task]), workers: task.atOnce }],
    );
    const together = tasks.filter(({ atOnce }) => atOnce === undefined);
    return [...(together.length > 0 ? [{ tasks: listOf(together), workers: SHARED_WORKERS }] : []), ...alone];
  }

  async #renumber(): Promise<void> {
    if (performance.now() - this.#renumberedAt < RENUMBER_MS) return;
    this.#renumberedAt = performance.now();
    // the crowd may have come since PostgreSQL counted last: for a table that was empty it plans a loop in a loop
    await this.#options.pool.query('analyze jobs._private_jobs');
    await this.#options.pool.query(RENUMBER);
  }

  async #renewLocks(): Promise<void> {
    if (this.#running.size === 0) return;
    const text =
      'update jobs._private_jobs set locked_at = now() where id = any($1::bigint[]) and locked_at is not null';
    await this.#options.pool.query(text, [[...this.#running.keys()]]);
  }

  /** @returns the number of jobs that can be retried */
  async #freeStale(): Promise<number> {
    const { pool, logger } = this.#options;
    const { rows: dead } = await pool.query<DeadJob>(TAKE_DEAD, [this.#leaseSeconds]);
    for (const job of dead) await this.#bury(job);
    const { rowCount } = await pool.query(FREE_STALE, [this.#leaseSeconds]);
    if (rowCount) logger.warn({ jobs: rowCount }, 'jobs of a lost node are run again');
    return rowCount ?? 0;
  }

  /** Removes a dead job once its task knows of its end. If that fails, it is repeated after the lease. */
  async #bury({ payload, ...record }: DeadJob): Promise<void> {
    const { pool, tasks, onFault } = this.#options;
    try {
      const task = tasks.find(({ name }) => name === record.task);
      await task?.abandoned?.(objectOf(payload), { jobId: record.job, number: record.attempt });
    } catch (error) {
      onFault(error, `the task '${record.task}' could not record a job that was given up`);
      return;
    }
    await pool.query(REMOVE_DEAD, [record.job]);
    this.#giveUp(record, 'lost its node during its last try');
  }

  async #run(task: Task, payload: unknown, { job, abortSignal }: JobHelpers): Promise<void> {
    this.#running.set(job.id, task.name);
    this.#begun += 1;
    try {
      const span = this.#spanOf(job, payload);
      const work = () => task.run(objectOf(payload), { jobId: job.id, number: job.attempts, signal: abortSignal });
      await (span ? spanned(span, work) : apart(work));
    } catch (error) {
      this.#failed(job, error);
    } finally {
      this.#running.delete(job.id);
    }
  }

  /** Goes on with the trace of the request that added the job; a scheduled task begins one. */
  #spanOf({ task_identifier: task, id, attempts }: Job, payload: unknown): TraceSpan | null {
    const { tracing = noTracing } = this.#options;
    if (!tracing.isOn) return null;
    return tracing.begin(`job ${task}`, {
      kind: 'consumer',
      parent: traceParentOf((payload as Record<string, unknown> | null)?.[TRACE]),
      attributes: { 'messaging.destination.name': task, 'messaging.message.id': id, 'platform.attempt': attempts },
    });
  }

  /**
   * Logs the failure under the name of the task. @throws Error so that the job is retried, unless it is given up: then
   * the job is removed
   */
  #failed({ id, task_identifier: task, attempts, max_attempts }: Job, error: unknown): void {
    const { logger } = this.#options;
    const isLast = error instanceof GiveUp || attempts >= max_attempts;
    const record = { err: error instanceof GiveUp ? error.cause : error, task, job: id, attempt: attempts };
    if (!isLast) {
      logger.warn(record, `a job of the task '${task}' failed and is tried again`);
      // stored in the database: only the class of the error, because its message may contain anything
      throw new Error(nameOf(error));
    }
    this.#giveUp(record, 'failed');
  }

  #giveUp(record: { task: string }, what: string): void {
    this.#options.logger.error(record, `a job of the task '${record.task}' ${what} and is given up`);
    this.#givenUp.set(record.task, (this.#givenUp.get(record.task) ?? 0) + 1);
  }
}

/** A payload as it was given. */
function objectOf(payload: unknown): object {
  if (typeof payload !== 'object' || payload === null) return {};
  const { [TRACE]: _trace, ...given } = payload as Record<string, unknown>;
  return given;
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no error';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
