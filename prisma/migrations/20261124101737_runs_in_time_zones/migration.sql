-- AlterTable
ALTER TABLE "execution_sums" ADD COLUMN     "tokens" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "executions" ADD COLUMN     "is_timed_out" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "reported_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;

-- A report that changes nothing else is no new version of the run. Existing runs were last reported when a report last
-- changed them.
DROP TRIGGER resource_version ON executions;
UPDATE executions SET reported_at = updated_at WHERE status = 'running';
CALL keep_resource_version('executions', '{reported_at}');
CREATE INDEX executions_running ON executions (reported_at) WHERE status = 'running';
ALTER TABLE executions ADD CONSTRAINT executions_timed_out CHECK (status = 'failed' OR NOT is_timed_out);

-- As before, and in the quarter of an hour in which it began: time zones are whole quarters from UTC.
CREATE OR REPLACE FUNCTION spans_of_run(scopes text[], started_at timestamptz)
RETURNS TABLE (scope_id text, span text, start timestamptz) LANGUAGE sql IMMUTABLE AS $$
  SELECT p.id, k.span,
    CASE k.span WHEN 'quarter' THEN date_bin('15 minutes', started_at, '2000-01-01 00:00:00+00')
      ELSE date_trunc(k.span, started_at, 'UTC') END
  FROM unnest(scopes) p(id) CROSS JOIN (VALUES ('quarter'), ('hour'), ('day')) k(span) WHERE p.id IS NOT NULL
$$;

-- As before, with the tokens that runs used: those of a run are in the spans in which it began, whenever it reports them.
CREATE OR REPLACE FUNCTION sum_begun_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, n, success, failed, tokens)
    SELECT r.org_id, p.scope_id, p.span, p.start, pg_backend_pid() % 8, count(*),
      count(*) FILTER (WHERE r.status = 'completed'), count(*) FILTER (WHERE r.status = 'failed'),
      sum(activity_tokens(r.token_usage))
    FROM new_rows r
    CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (org_id, scope_id, span, start, slot) DO UPDATE SET n = s.n + excluded.n,
      success = s.success + excluded.success, failed = s.failed + excluded.failed, tokens = s.tokens + excluded.tokens;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION sum_ended_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, success, failed, tokens)
    SELECT r.org_id, p.scope_id, p.span, p.start, pg_backend_pid() % 8,
      sum((r.status = 'completed')::int - (o.status = 'completed')::int),
      sum((r.status = 'failed')::int - (o.status = 'failed')::int),
      sum(activity_tokens(r.token_usage) - activity_tokens(o.token_usage))
    FROM new_rows r JOIN old_rows o ON o.id = r.id AND (o.status, o.token_usage) IS DISTINCT FROM (r.status, r.token_usage)
    CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (org_id, scope_id, span, start, slot) DO UPDATE SET success = s.success + excluded.success,
      failed = s.failed + excluded.failed, tokens = s.tokens + excluded.tokens;
  RETURN NULL;
END $$;

-- What is there already: the tokens of runs, and all of their quarters.
INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, n, success, failed, tokens)
  SELECT r.org_id, p.scope_id, p.span, p.start, 0, count(*) FILTER (WHERE p.span = 'quarter'),
    count(*) FILTER (WHERE p.span = 'quarter' AND r.status = 'completed'),
    count(*) FILTER (WHERE p.span = 'quarter' AND r.status = 'failed'), sum(activity_tokens(r.token_usage))
  FROM executions r
  CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
  GROUP BY 1, 2, 3, 4
  ON CONFLICT (org_id, scope_id, span, start, slot) DO UPDATE SET tokens = s.tokens + excluded.tokens;

-- Runs that went with their app are in the sums of hours only: in which quarter they began is not known any more. They
-- are in the first one.
INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, n, success, failed)
  SELECT h.org_id, h.scope_id, 'quarter', h.start, 0, h.n - coalesce(q.n, 0), h.success - coalesce(q.success, 0),
    h.failed - coalesce(q.failed, 0)
  FROM (SELECT org_id, scope_id, start, sum(n) AS n, sum(success) AS success, sum(failed) AS failed
    FROM execution_sums WHERE span = 'hour' GROUP BY 1, 2, 3) h
  LEFT JOIN (SELECT org_id, scope_id, date_trunc('hour', start, 'UTC') AS start, sum(n) AS n, sum(success) AS success,
      sum(failed) AS failed
    FROM execution_sums WHERE span = 'quarter' GROUP BY 1, 2, 3) q USING (org_id, scope_id, start)
  WHERE (h.n, h.success, h.failed) IS DISTINCT FROM (coalesce(q.n, 0), coalesce(q.success, 0), coalesce(q.failed, 0))
  ON CONFLICT (org_id, scope_id, span, start, slot) DO UPDATE SET n = s.n + excluded.n,
    success = s.success + excluded.success, failed = s.failed + excluded.failed;

-- Their tokens are known by the records of their reports: they count at the first one.
INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, tokens)
  SELECT r.org_id, p.scope_id, p.span, p.start, 0, sum(r.tokens)
  FROM (SELECT a.org_id, a.workspace_id, a.execution_id, min(a.app_id) AS app_id, min(a.token_id) AS token_id,
      min(a.user_id) AS user_id, min(a."timestamp") AS started_at, sum(activity_tokens(a.token_usage)) AS tokens
    FROM activity a JOIN organizations o ON o.id = a.org_id
    WHERE a.resource_type = 'execution' AND a.action = 'execute' AND a.success AND a.execution_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM executions e WHERE e.org_id = a.org_id AND e.workspace_id = a.workspace_id
        AND e.execution_id = a.execution_id)
    GROUP BY 1, 2, 3 HAVING sum(activity_tokens(a.token_usage)) > 0) r
  CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.user_id], r.started_at) p
  GROUP BY 1, 2, 3, 4
  ON CONFLICT (org_id, scope_id, span, start, slot) DO UPDATE SET tokens = s.tokens + excluded.tokens;
