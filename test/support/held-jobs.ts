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
