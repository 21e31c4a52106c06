-- How long the operations of a place took, as a histogram: how many records there are in each bucket of durations, by
-- quarters of an hour, hours and days of UTC. Bucket 0 are those of 0 ms; bucket n ends with 1.1 to the n - 1, so that
-- its middle is at most 5 percent from everything in it.
CREATE TABLE "activity_latencies" (
    "org_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "span" TEXT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "bucket" INTEGER NOT NULL,
    "requests" BIGINT NOT NULL,

    CONSTRAINT "activity_latencies_pkey" PRIMARY KEY ("org_id","scope","span","start","bucket")
);
CREATE INDEX "activity_latencies_start" ON "activity_latencies" USING brin ("start");

CREATE FUNCTION latency_bucket(duration_ms int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN duration_ms <= 0 THEN 0 ELSE 1 + ceil(ln(duration_ms::float8) / ln(1.1::float8))::int END
$$;

-- Adds the records from one place in the order of commits up to another. What is older is told no more.
CREATE FUNCTION add_latencies(since_xid xid8, since_id text, until_xid xid8, until_id text) RETURNS void
LANGUAGE sql SET timezone TO 'UTC' AS $$
  -- what is counted is small: it is written under nine keys only then
  WITH counted AS MATERIALIZED (
    SELECT a.org_id, a.workspace_id, a.app_id, date_bin('15 minutes', a."timestamp", '2000-01-01') AS quarter,
      latency_bucket(a.duration_ms) AS bucket, count(*) AS requests
    FROM activity a
    WHERE (a.xid, a.id) >= (since_xid, since_id) AND (a.xid, a.id) < (until_xid, until_id)
      AND a.org_id IS NOT NULL AND a."timestamp" > now() - interval '91 days'
    GROUP BY 1, 2, 3, 4, 5)
  INSERT INTO activity_latencies AS c (org_id, scope, span, start, bucket, requests)
    SELECT n.org_id, s.scope, k.span, k.start, n.bucket, sum(n.requests)::bigint
    FROM counted n
    CROSS JOIN LATERAL (VALUES ('organization'), ('workspace ' || n.workspace_id), ('app ' || n.app_id)) s(scope)
    CROSS JOIN LATERAL (VALUES ('quarter', n.quarter), ('hour', date_trunc('hour', n.quarter)),
      ('day', date_trunc('day', n.quarter))) k(span, start)
    WHERE s.scope IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (org_id, scope, span, start, bucket) DO UPDATE SET requests = c.requests + excluded.requests
$$;

-- How often what is in a workspace is named by its records, by days of UTC. A record is about its resource and its app.
CREATE TABLE "activity_uses" (
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "resource_type" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "requests" BIGINT NOT NULL,
    "errors" BIGINT NOT NULL,

    CONSTRAINT "activity_uses_pkey" PRIMARY KEY ("org_id","workspace_id","start","resource_type","resource_id")
);
CREATE INDEX "activity_uses_start" ON "activity_uses" USING brin ("start");

CREATE FUNCTION add_activity_uses(since_xid xid8, since_id text, until_xid xid8, until_id text) RETURNS void
LANGUAGE sql SET timezone TO 'UTC' AS $$
  WITH counted AS MATERIALIZED (
    SELECT a.org_id, a.workspace_id, a.app_id, a.resource_type, a.resource_id, date_trunc('day', a."timestamp") AS day,
      count(*) AS requests, count(*) FILTER (WHERE NOT a.success) AS errors
    FROM activity a
    WHERE (a.xid, a.id) >= (since_xid, since_id) AND (a.xid, a.id) < (until_xid, until_id)
      AND a.org_id IS NOT NULL AND a.workspace_id IS NOT NULL AND a."timestamp" > now() - interval '91 days'
    GROUP BY 1, 2, 3, 4, 5, 6)
  INSERT INTO activity_uses AS c (org_id, workspace_id, start, resource_type, resource_id, requests, errors)
    SELECT n.org_id, n.workspace_id, n.day, u.type, u.id, sum(n.requests)::bigint, sum(n.errors)::bigint
    FROM counted n
    CROSS JOIN LATERAL (SELECT n.resource_type, n.resource_id UNION SELECT 'app', n.app_id) u(type, id)
    WHERE u.type IS NOT NULL AND u.id IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (org_id, workspace_id, start, resource_type, resource_id)
      DO UPDATE SET requests = c.requests + excluded.requests, errors = c.errors + excluded.errors
$$;

-- No record is added to the sums while those that are in them are added here. From then on each step of summing adds to
-- all, in its transaction: also a step of a node of before, which waits for this lock.
SELECT pg_advisory_xact_lock(hashtext('activity fold'));

CREATE FUNCTION sum_further() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode TO force_custom_plan AS $$
BEGIN
  -- everything is summed again
  IF (NEW.xid, NEW.record_id) < (OLD.xid, OLD.record_id) THEN
    DELETE FROM activity_latencies;
    DELETE FROM activity_uses;
  ELSE
    PERFORM add_latencies(OLD.xid, OLD.record_id, NEW.xid, NEW.record_id);
    PERFORM add_activity_uses(OLD.xid, OLD.record_id, NEW.xid, NEW.record_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER activity_fold_further AFTER UPDATE ON "activity_fold" FOR EACH ROW EXECUTE FUNCTION sum_further();
SELECT add_latencies('0', '', f.xid, f.record_id), add_activity_uses('0', '', f.xid, f.record_id) FROM activity_fold f;

-- What the artifacts of a place held, from some time on until the next sample: one where it has
-- changed since the last look.
CREATE TABLE "storage_samples" (
    "org_id" TEXT NOT NULL,
    "place_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "bytes" BIGINT NOT NULL,

    CONSTRAINT "storage_samples_pkey" PRIMARY KEY ("org_id","place_id","at")
);
