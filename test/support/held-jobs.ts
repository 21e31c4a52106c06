import type pg from 'pg';
import type { TestApp } from './app.ts';

/** Does something while no job begins that it promises: they begin after it. */
export async function whileJobsWait<T>({ database }: TestApp, work: () => Promise<T>): Promise<T> {
  await database.pool.query(`create function jobs.hold() returns trigger language plpgsql as $$
    begin new.run_at := now() + interval '1 hour'; return new; end $$;
    create trigger hold before insert on jobs._private_jobs for each row execute function jobs.hold()`);
  try {
    return await work();
  } finally {
    await database.pool.query(`drop trigger hold on jobs._private_jobs; drop function jobs.hold();
      -- in their order, as if they had waited
      update jobs._private_jobs set run_at = now() - interval '1 hour' + id * interval '1 microsecond'
      where run_at > now() and attempts = 0`);
  }
}

/** Does something while no job that has failed is tried again by itself: only when a test says that it is due. */
export async function whileRetriesWait<T>(database: Pick<pg.Client, 'query'>, work: () => Promise<T>): Promise<T> {
  await database.query(`create function jobs.hold_retry() returns trigger language plpgsql as $$
    begin new.run_at := now() + interval '1 hour'; return new; end $$;
    create trigger hold_retry before update on jobs._private_jobs for each row
      when (old.locked_at is not null and new.locked_at is null and new.last_error is not null)
      execute function jobs.hold_retry()`);
  try {
    return await work();
  } finally {
    await database.query('drop trigger hold_retry on jobs._private_jobs; drop function jobs.hold_retry()');
  }
}
