/**
 * The positions of jobs: a job of a tenant comes after the tenant's other jobs of that task, each of which has a
 * position of its own, and not before the first that waits. So tenants take turns, however many jobs one of them has
 * added, and by whichever node. A job that replaces a waiting one keeps its position.
 *
 * The first position is closed once all who waited for it before the next one have had their turn: its jobs are all
 * newer then than one that waits at the next position, and so is what is added. Otherwise tenants that add a job
 * whenever one of theirs has run would keep each other at the first position, and the others behind it.
 *
 * Only jobs that could run now count. What a tenant adds for later has turns of its own, and a retry has had its turn.
 *
 * Jobs are compared that the same workers take: a task with workers of its own, or all others together (`lane`).
 * Two changes at once may give the same position: then the older job is first.
 */
export const LAST_POSITION = 30_000;

/** The first job of a lane that waits for its first try, among those that meet a condition. */
const firstOf = (condition: string) => `(select of_task.priority, of_task.id
    from json_array_elements_text(l.lane::json) name
    join jobs._private_tasks t on t.identifier = name
    cross join lateral (select w.priority, w.id from jobs._private_jobs w
      where w.task_id = t.id and w.is_available = true and w.attempts = 0 and w.flags is not null and w.run_at <= now()
        and ${condition}
      order by w.priority, w.id limit 1) of_task
    order by 1, 2 limit 1)`;

/** Answers a row for each job that was added, with its key. */
export const ADD_IN_TURN = `with jobs_given as (
    select j.*, case when j.run_at > now() then j.turn_of || ' later' else j.turn_of end as turn
    from rows from (json_to_recordset($1::json) as (task text, payload json, run_at timestamptz, tries smallint,
      key text, turn text, lane json)) with ordinality j(task, payload, run_at, tries, key, turn_of, lane, n)),
  given as (select j.*, row_number() over (partition by j.turn order by j.n) - 1 as nth from jobs_given j),
  fronts as (
    select l.lane, case when following.id < front.id then following.priority else front.priority end as position
    from (select distinct g.lane::text as lane from given g) l
    cross join lateral ${firstOf('true')} front
    left join lateral ${firstOf('w.priority > front.priority')} following on true),
  ends as (
    select u.turn, (select w.priority from jobs._private_jobs w
      where w.flags = jsonb_build_object(u.turn, true) and w.is_available = true and w.flags is not null
        and w.attempts = 0
      order by w.priority desc limit 1) as position
    from (select distinct g.turn from given g) u)
  select added.key from jobs.add_jobs(array(
    select (g.task, g.payload, null, g.run_at, g.tries, g.key,
      coalesce(
        (select w.priority from jobs._private_jobs w where w.key = g.key and w.is_available = true),
        least(${LAST_POSITION}, greatest(coalesce(f.position, 0), coalesce(e.position + 1, 0)) + g.nth)),
      array[g.turn])::jobs.job_spec
    from given g join ends e using (turn) left join fronts f on f.lane = g.lane::text order by g.n)) added`;
