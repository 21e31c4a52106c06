import type { Attempt } from '../kernel/tasks.ts';
import type { Sql } from './sql.ts';

const BESIDE = `select 1 from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id
  where t.identifier = $1 and j.id <> $2::bigint and j.locked_at is not null and j.payload::jsonb @> $3::jsonb limit 1`;

/**
 * Whether another job of a task runs, on any node, whose payload has these values. Of two that begin at once, both may
 * see the other, and at least one does.
 */
export async function runsBeside(
  sql: Sql,
  task: string,
  { jobId }: Pick<Attempt, 'jobId'>,
  payload: Readonly<Record<string, string | number>>,
): Promise<boolean> {
  return (await sql.read(BESIDE, [task, jobId, JSON.stringify(payload)])).length > 0;
}
