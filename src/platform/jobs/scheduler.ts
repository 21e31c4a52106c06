import type pg from 'pg';
import type { Schedule, Task } from '../../kernel/tasks.ts';

/** The result of polling the jobs. */
export interface Look {
  /** Number of jobs that can run now; counted only up to a few. */
  ready: number;
  /** Whether a node has not renewed its locks on jobs in time, or left behind a job without further attempts. */
  hasStale: boolean;
  /** Whether some wait at the last place that there is. */
  isFull: boolean;
  /** Scheduled tasks that are due. */
  due: string[];
}

/** The scheduled tasks of all nodes: each is due once per period. The database stores when it was last due. */
export class Scheduler {
  readonly #pool: pg.Pool;
  readonly #tasks: readonly (Task & Required<Pick<Task, 'schedule'>>)[];
  readonly #look: string;

  /**
   * @param leaseSeconds how long a lock on a job lasts without renewal
   * @param periodOf the seconds of a period, of a process in a hurry. Default: what the schedule says
   */
  constructor(pool: pg.Pool, tasks: readonly Task[], leaseSeconds: number, periodOf?: (schedule: Schedule) => number) {
    this.#pool = pool;
    this.#tasks = tasks.flatMap((task) => {
      const { schedule } = task;
      return schedule
        ? [{ ...task, schedule: { ...schedule, everySeconds: periodOf?.(schedule) ?? schedule.everySeconds } }]
        : [];
    });
    this.#look = lookText(this.#tasks, leaseSeconds);
  }

  /** Starts the periods of new tasks. */
  async begin(): Promise<void> {
    await this.#pool.query(
      `insert into jobs._private_known_crontabs (identifier, known_since, last_execution)
       select task, now(), now() from unnest($1::text[]) task on conflict do nothing`,
      [this.#tasks.map(({ name }) => name)],
    );
  }

  /** One statement that only reads. */
  async look(): Promise<Look> {
    const { rows } = await this.#pool.query<Look>({ name: 'look_for_jobs', text: this.#look });
    return rows[0]!;
  }

  /**
   * Adds the jobs of tasks that are due. If several nodes do so at once, each job is added by one of them.
   * @returns the number of jobs
   */
  async addDue(names: readonly string[]): Promise<number> {
    const due = this.#tasks.filter(({ name }) => names.includes(name));
    const { rowCount } = await this.#pool.query(ADD_DUE, [
      due.map(({ name }) => name),
      due.map(({ schedule }) => schedule.everySeconds),
      due.map(({ tries }) => tries),
    ]);
    return rowCount ?? 0;
  }
}

// a waiting or running job of the task must finish first
const isDue = (task: string, seconds: string) => `c.identifier = ${task}
  and c.last_execution <= now() - ${seconds} * interval '1 second'
  and not exists (select 1 from jobs._private_jobs j where j.key = ${task})`;

const ADD_DUE = `with due as (
    update jobs._private_known_crontabs c set last_execution = now()
    from unnest($1::text[], $2::float8[], $3::int[]) t(name, seconds, tries) where ${isDue('t.name', 't.seconds')}
    returning t.name, t.tries)
  select jobs.add_job(due.name, job_key => due.name, max_attempts => due.tries) is not null from due`;

function lookText(tasks: readonly Pick<Task, 'name' | 'schedule'>[], leaseSeconds: number): string {
  const due = tasks.map(({ name, schedule }) => {
    const condition = schedule?.ifAny ? ` and exists (${schedule.ifAny})` : '';
    return `select c.identifier from jobs._private_known_crontabs c
      where ${isDue(`'${name}'`, String(schedule?.everySeconds))}${condition}`;
  });
  return `select
    (select count(*)::int from
      (select 1 from jobs._private_jobs where is_available = true and run_at <= now() limit 10) r) as ready,
    exists (select 1 from jobs._private_jobs where locked_at < now() - ${leaseSeconds} * interval '1 second'
      or locked_at is null and attempts >= max_attempts) as "hasStale",
    exists (select 1 from jobs._private_jobs where is_available = true and priority >= 30000) as "isFull",
    array(${due.length > 0 ? due.join(' union all ') : 'select null::text where false'}) as due`;
}
