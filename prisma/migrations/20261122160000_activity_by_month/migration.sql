-- Activity records in monthly partitions, and their sums. No existing row is moved or rewritten: the table of before
-- becomes the first partition, with everything until the end of the current month. What takes time, in proportion to
-- its rows, are the new indexes and the first sums.

-- What a record is about below its workspace, for tokens that are restricted to places.
ALTER TABLE "activity" ADD COLUMN "namespace_id" TEXT, ADD COLUMN "environment_id" TEXT;

-- The transaction that wrote a record. Constant for the rows of before, which are summed below.
ALTER TABLE "activity" ADD COLUMN "xid" xid8 NOT NULL DEFAULT '0';
ALTER TABLE "activity" ALTER COLUMN "xid" SET DEFAULT pg_current_xact_id();

ALTER TABLE "activity" RENAME TO "activity_first";
ALTER TABLE "activity_first" DROP CONSTRAINT "activity_pkey";
DROP INDEX activity_by_time;
ALTER INDEX "activity_org_id_timestamp_id_idx" RENAME TO "activity_first_of_organization";
ALTER INDEX "activity_org_id_workspace_id_timestamp_id_idx" RENAME TO "activity_first_of_workspace";
ALTER INDEX "activity_org_id_user_id_timestamp_id_idx" RENAME TO "activity_first_of_user";

CREATE TABLE "activity" (LIKE "activity_first" INCLUDING DEFAULTS) PARTITION BY RANGE ("timestamp");
ALTER TABLE "activity" ADD CONSTRAINT "activity_pkey" PRIMARY KEY ("id", "timestamp");
CREATE INDEX "activity_org_id_timestamp_id_idx" ON "activity"("org_id", "timestamp" DESC, "id" DESC);
CREATE INDEX "activity_org_id_workspace_id_timestamp_id_idx"
  ON "activity"("org_id", "workspace_id", "timestamp" DESC, "id" DESC);
CREATE INDEX "activity_org_id_user_id_timestamp_id_idx"
  ON "activity"("org_id", "user_id", "timestamp" DESC, "id" DESC);
CREATE INDEX activity_of_app ON activity (org_id, app_id, "timestamp" DESC, id DESC) WHERE app_id IS NOT NULL;
CREATE INDEX activity_of_resource ON activity (org_id, resource_id, "timestamp" DESC, id DESC)
  WHERE resource_id IS NOT NULL;
CREATE INDEX activity_of_token ON activity (org_id, token_id, "timestamp" DESC, id DESC) WHERE token_id IS NOT NULL;
-- What is not summed yet.
CREATE INDEX "activity_xid_idx" ON "activity"("xid");

-- CreateTable
CREATE TABLE "activity_sums" (
    "org_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "span" TEXT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "action" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "success" BOOLEAN NOT NULL,
    "requests" BIGINT NOT NULL,
    "duration_ms" BIGINT NOT NULL,
    "tokens" BIGINT NOT NULL,
    "executions" BIGINT NOT NULL,

    CONSTRAINT "activity_sums_pkey"
      PRIMARY KEY ("org_id","scope","user_id","span","start","action","resource_type","success")
) PARTITION BY RANGE ("start");
CREATE INDEX activity_sums_of_executions ON activity_sums (org_id, scope, user_id, span, start) WHERE executions > 0;

CREATE TABLE "activity_fold" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "xid" xid8 NOT NULL,
    "folded_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "activity_fold_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "activity_fold_once" CHECK ("id" = 1)
);
INSERT INTO activity_fold (xid) VALUES ('1');

-- Adds the records of some transactions to the sums: by hour, day and month. Those of a user have no hours, and those of
-- a namespace, an environment or a resource have months only: a list of them has few records in a day, or in a month.
-- A record counts for the places, the token and the resource that it names, and in the former also for its user.
CREATE FUNCTION sum_activity(since xid8, until xid8) RETURNS void
LANGUAGE sql SET timezone TO 'UTC' SET work_mem TO '64MB' AS $$
  WITH hours AS (
    SELECT a.org_id, s.scope, s.user_id, date_trunc('hour', a."timestamp") AS start, a.action,
      coalesce(a.resource_type, '') AS resource_type, a.success, count(*) AS requests, sum(a.duration_ms) AS duration_ms,
      sum(CASE WHEN jsonb_typeof(a.token_usage -> 'total') = 'number'
        THEN (a.token_usage ->> 'total')::numeric ELSE 0 END)::bigint AS tokens,
      count(*) FILTER (WHERE a.execution_id IS NOT NULL OR a.action = 'execute') AS executions
    FROM activity a CROSS JOIN LATERAL (VALUES
      ('organization', ''), ('organization', a.user_id),
      ('workspace ' || a.workspace_id, ''), ('workspace ' || a.workspace_id, a.user_id),
      ('app ' || a.app_id, ''), ('app ' || a.app_id, a.user_id),
      ('namespace ' || a.namespace_id, ''), ('environment ' || a.environment_id, ''),
      ('token ' || a.token_id, ''), ('resource ' || a.resource_id, '')) s(scope, user_id)
    WHERE a.org_id IS NOT NULL AND s.scope IS NOT NULL AND s.user_id IS NOT NULL AND a.xid >= since AND a.xid < until
    GROUP BY 1, 2, 3, 4, 5, 6, 7
  ), spans AS (
    SELECT 'hour' AS span, * FROM hours WHERE user_id = '' AND scope !~ '^(namespace|environment|resource) '
    UNION ALL
    SELECT span, org_id, scope, user_id, date_trunc(span, start), action, resource_type, success,
      sum(requests)::bigint, sum(duration_ms)::bigint, sum(tokens)::bigint, sum(executions)::bigint
    FROM hours CROSS JOIN (VALUES ('day'), ('month')) s(span)
    WHERE span = 'month' OR scope !~ '^(namespace|environment|resource) '
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  )
  INSERT INTO activity_sums AS c (org_id, scope, user_id, span, start, action, resource_type, success,
    requests, duration_ms, tokens, executions)
  SELECT org_id, scope, user_id, span, start, action, resource_type, success,
    requests, duration_ms, tokens, executions FROM spans
  ON CONFLICT (org_id, scope, user_id, span, start, action, resource_type, success) DO UPDATE SET
    requests = c.requests + excluded.requests, duration_ms = c.duration_ms + excluded.duration_ms,
    tokens = c.tokens + excluded.tokens, executions = c.executions + excluded.executions
$$;

-- Adds the next records to the sums, in the order of commits: only transactions that are older than every running one.
-- A reader takes the sums, and what is not in them by `activity_fold`, with one snapshot. Returns whether there are more.
CREATE FUNCTION fold_activity(batch int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  since xid8;
  horizon xid8;
  until xid8;
BEGIN
  SELECT f.xid INTO since FROM activity_fold f FOR UPDATE;
  horizon := pg_snapshot_xmin(pg_current_snapshot());
  -- the database was restored in another cluster, which has not seen so many transactions: everything is summed again
  IF since > pg_snapshot_xmax(pg_current_snapshot()) THEN
    DELETE FROM activity_sums;
    UPDATE activity SET xid = '1';
    since := '1';
  END IF;
  SELECT a.xid INTO until FROM activity a WHERE a.xid >= since AND a.xid < horizon
    ORDER BY a.xid OFFSET batch LIMIT 1;
  -- a transaction is summed as a whole
  IF until = since THEN
    SELECT a.xid INTO until FROM activity a WHERE a.xid > since AND a.xid < horizon ORDER BY a.xid LIMIT 1;
  END IF;
  until := coalesce(until, horizon);
  IF until <= since THEN
    RETURN false;
  END IF;
  PERFORM sum_activity(since, until);
  UPDATE activity_fold SET xid = until, folded_at = now();
  RETURN until < horizon;
END $$;

-- The end of the last month that has partitions.
CREATE FUNCTION activity_prepared_until() RETURNS timestamptz LANGUAGE sql STABLE SET timezone TO 'UTC' AS $$
  SELECT max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'activity'::regclass
$$;

-- Makes the partitions of the current month and of some after it. What the default partitions have of these months is
-- moved. Readers and writers of other partitions do not wait.
CREATE FUNCTION prepare_activity_months(ahead int) RETURNS int
LANGUAGE plpgsql SET timezone TO 'UTC' SET lock_timeout TO '5s' AS $$
DECLARE
  next timestamptz;
  part text;
  name text;
  made int := 0;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('activity months'));
  next := activity_prepared_until();
  WHILE next <= date_trunc('month', now()) + make_interval(months => ahead) LOOP
    FOREACH part IN ARRAY ARRAY['activity', 'activity_sums'] LOOP
      name := part || to_char(next, '_YYYY_MM');
      EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS)', name, part);
      EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %2$I < %4$L RETURNING *)
        INSERT INTO %5$I SELECT * FROM moved', part || '_default',
        CASE part WHEN 'activity' THEN 'timestamp' ELSE 'start' END, next, next + interval '1 month', name);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', part, name, next,
        next + interval '1 month');
    END LOOP;
    next := next + interval '1 month';
    made := made + 1;
  END LOOP;
  RETURN made;
END $$;

-- Removes the months that ended before a time, with their sums: records and sums always tell the same.
CREATE FUNCTION drop_activity_before(cutoff timestamptz) RETURNS SETOF text
LANGUAGE plpgsql SET timezone TO 'UTC' SET lock_timeout TO '5s' AS $$
DECLARE
  gone record;
  until timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('activity months'));
  FOR gone IN
    SELECT p.name, p.until FROM (
      SELECT c.oid::regclass::text AS name,
        (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz AS until
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent IN ('activity'::regclass, 'activity_sums'::regclass)) p
    WHERE p.until <= cutoff ORDER BY p.until, p.name
  LOOP
    EXECUTE format('DROP TABLE %s', gone.name);
    until := gone.until;
    RETURN NEXT gone.name;
  END LOOP;
  -- what had a wrong time
  IF until IS NOT NULL THEN
    DELETE FROM activity_default WHERE "timestamp" < until;
    DELETE FROM activity_sums_default WHERE start < until;
  END IF;
END $$;

-- The table of before as the first partition, until the end of this month, or of the last month that it has.
DO $$
DECLARE
  until timestamptz;
BEGIN
  PERFORM set_config('timezone', 'UTC', true);
  SELECT date_trunc('month', greatest(now(), max("timestamp"))) + interval '1 month' INTO until FROM activity_first;
  EXECUTE format('ALTER TABLE activity ATTACH PARTITION activity_first FOR VALUES FROM (MINVALUE) TO (%L)', until);
  EXECUTE format('CREATE TABLE activity_sums_first PARTITION OF activity_sums FOR VALUES FROM (MINVALUE) TO (%L)', until);
END $$;
CREATE TABLE activity_default PARTITION OF activity DEFAULT;
CREATE TABLE activity_sums_default PARTITION OF activity_sums DEFAULT;
SELECT sum_activity('0', '1');
SELECT prepare_activity_months(3);
