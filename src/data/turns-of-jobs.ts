/**
 * The places of jobs: a job of a tenant comes after the tenant's other jobs of that task, each of which has a place of
 * its own, and not before the first that waits. So tenants take turns, however many jobs one of them has added, and by
 * whichever node. A job that replaces a waiting one keeps its place.
 *
 * Jobs are compared that the same workers take: a task with workers of its own, or all others together (`lane`).
 * Two changes at once may give the same place: then the older job is first.
 */
export const MAX_PLACE = 30_000;

export const ADD_IN_TURN = `with given as (
    select j.*, row_number() over (partition by j.turn order by j.n) - 1 as nth
    from rows from (json_to_recordset($1::json) as (task text, payload json, run_at timestamptz, tries smallint,
      key text, turn text, lane json)) with ordinality j(task, payload, run_at, tries, key, turn, lane, n)),
  fronts as (
    select l.lane, min(front.priority) as place
    from (select distinct g.lane::text as lane from given g) l
    cross join lateral json_array_elements_text(l.lane::json) name
    join jobs._private_tasks t on t.identifier = name
    cross join lateral (select w.priority from jobs._private_jobs w
      where w.task_id = t.id and w.is_available = true and w.attempts = 0 and w.flags is not null and w.run_at <= now()
      order by w.priority limit 1) front
    group by 1),
  ends as (
    select u.turn, (select w.priority from jobs._private_jobs w
      where w.flags = jsonb_build_object(u.turn, true) and w.is_available = true and w.flags is not null
      order by w.priority desc limit 1) as place
    from (select distinct g.turn from given g) u)
  select count(*)::int from jobs.add_jobs(array(
    select (g.task, g.payload, null, g.run_at, g.tries, g.key,
      coalesce(
        (select w.priority from jobs._private_jobs w where w.key = g.key and w.is_available = true),
        least(${MAX_PLACE}, greatest(coalesce(f.place, 0), coalesce(e.place + 1, 0)) + g.nth)),
      array[g.turn])::jobs.job_spec
    from given g join ends e using (turn) left join fronts f on f.lane = g.lane::text order by g.n))`;
