-- A summary, a total and a series need no kinds of records, but what these come to: of all records, of each action and
-- of each type of resource. That is kept beside the kinds for what it is mostly asked of: months, days and hours of
-- organizations, workspaces and apps. The sums of all records of a month are its `month total`, by success; those of
-- one action, or of one type of resource, its `month margin`.

-- No record is added to the kinds while these are added up. A node that waits for this lock then goes on with the
-- function of before, which would add records to the kinds only. That fails, because what it calls has another name
-- now, and leaves the records to the next step.
SELECT pg_advisory_xact_lock(hashtext('activity fold'));
ALTER FUNCTION activity_of(activity_divided, xid8, text) RENAME TO activity_of_span;

-- Whether a scope has sums without kinds.
CREATE FUNCTION has_activity_margins(scope text, user_id text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT user_id = '' AND split_part(scope, ' ', 1) IN ('organization', 'workspace', 'app')
$$;

-- The sums without kinds that records of one kind are part of: an empty action or type stands for all of them.
CREATE FUNCTION activity_margins(of_action text, of_type text, of_success boolean)
RETURNS TABLE (kept text, action text, resource_type text, success boolean) LANGUAGE sql IMMUTABLE AS $$
  SELECT *
  FROM (VALUES (' total', '', '', of_success), (' margin', of_action, '', true), (' margin', '', of_type, true)) m
  WHERE m.column1 = ' total' OR m.column2 <> '' OR m.column3 <> ''
$$;

INSERT INTO activity_sums (org_id, scope, user_id, span, start, action, resource_type, success, requests, duration_ms,
    tokens)
  SELECT s.org_id, s.scope, '', s.span || m.kept, s.start, m.action, m.resource_type, m.success, sum(s.requests),
    sum(s.duration_ms), sum(s.tokens)
  FROM activity_sums s CROSS JOIN LATERAL activity_margins(s.action, s.resource_type, s.success) m
  WHERE s.span IN ('month', 'day', 'hour') AND has_activity_margins(s.scope, s.user_id)
  GROUP BY 1, 2, 4, 5, 6, 7, 8;

-- As before, with the sums without kinds.
CREATE OR REPLACE FUNCTION fold_activity(batch int, density int DEFAULT 500) RETURNS boolean LANGUAGE plpgsql
SET timezone TO 'UTC' SET work_mem TO '64MB' SET plan_cache_mode TO force_custom_plan
AS $$
DECLARE
  since_xid xid8;
  since_id text;
  horizon xid8;
  newest xid8;
  until_xid xid8;
  until_id text;
  spans text[] := ARRAY['month', 'day', 'hour', 'minute'];
  dense activity_divided[];
  fresh activity_divided[];
BEGIN
  -- a lock that has no transaction number: reading delays no event
  PERFORM pg_advisory_xact_lock(hashtext('activity fold'));
  SELECT f.xid, f.record_id INTO since_xid, since_id FROM activity_fold f;
  horizon := pg_snapshot_xmin(pg_current_snapshot());
  newest := pg_snapshot_xmax(pg_current_snapshot());
  -- the database was restored in another cluster, which has not seen so many transactions: everything is summed again
  IF since_xid > newest THEN
    DELETE FROM activity_sums;
    DELETE FROM activity_divided;
    UPDATE activity_fold SET xid = '0', record_id = '', folded_at = now();
    RETURN true;
  END IF;
  IF EXISTS (SELECT FROM activity a WHERE a.xid > newest AND since_xid = '0') THEN
    UPDATE activity SET xid = '1' WHERE (id, "timestamp") IN (
      SELECT a.id, a."timestamp" FROM activity a WHERE a.xid > newest ORDER BY a.xid LIMIT batch);
    RETURN true;
  END IF;

  SELECT a.xid, a.id INTO until_xid, until_id FROM activity a
    WHERE (a.xid, a.id) >= (since_xid, since_id) AND a.xid < horizon ORDER BY a.xid, a.id OFFSET batch LIMIT 1;
  IF until_xid IS NULL THEN
    IF horizon <= since_xid THEN
      RETURN false;
    END IF;
    until_xid := horizon;
    until_id := '';
  END IF;

  FOR level IN 1..4 LOOP
    -- what became dense is divided from now on, and what it has until now is summed again below
    WITH made AS (
      INSERT INTO activity_divided SELECT d.* FROM unnest(dense) d ON CONFLICT DO NOTHING RETURNING activity_divided
    ) SELECT array_agg(m.activity_divided) INTO fresh FROM made m;
    WITH picked AS (
      SELECT a.org_id, a.user_id, a.workspace_id, a.app_id, a.namespace_id, a.environment_id, a.token_id, a.resource_id,
        date_trunc(spans[level], a."timestamp") AS start, a.action, coalesce(a.resource_type, '') AS resource_type,
        a.success, a.duration_ms, activity_tokens(a.token_usage) AS tokens
      FROM activity a
      WHERE (a.xid, a.id) >= (since_xid, since_id) AND (a.xid, a.id) < (until_xid, until_id) AND a.org_id IS NOT NULL
        AND (level = 1 OR (a.org_id, date_trunc(spans[level - 1], a."timestamp")) IN (
          SELECT d.org_id, d.start FROM activity_divided d
          WHERE d.scope = 'organization' AND d.user_id = '' AND d.span = spans[level - 1]))
    ), next AS (
      SELECT org_id,
        CASE 0
          WHEN grouping(workspace_id) THEN 'workspace ' || workspace_id
          WHEN grouping(app_id) THEN 'app ' || app_id
          WHEN grouping(namespace_id) THEN 'namespace ' || namespace_id
          WHEN grouping(environment_id) THEN 'environment ' || environment_id
          WHEN grouping(token_id) THEN 'token ' || token_id
          WHEN grouping(resource_id) THEN 'resource ' || resource_id
          ELSE 'organization' END AS scope,
        CASE grouping(user_id) WHEN 0 THEN user_id ELSE '' END AS user_id,
        start, action, resource_type, success, count(*) AS requests, sum(duration_ms) AS duration_ms,
        sum(tokens) AS tokens
      FROM picked
      GROUP BY org_id, start, action, resource_type, success, GROUPING SETS ((), (user_id), (workspace_id),
        (workspace_id, user_id), (app_id), (app_id, user_id), (namespace_id), (environment_id), (token_id),
        (resource_id))
    ), sums AS (
      SELECT n.* FROM next n LEFT JOIN activity_divided d ON d.org_id = n.org_id AND d.scope = n.scope
          AND d.user_id = n.user_id AND d.span = spans[level - 1] AND d.start = date_trunc(spans[level - 1], n.start)
        LEFT JOIN unnest(fresh) f ON f.org_id = d.org_id AND f.scope = d.scope AND f.user_id = d.user_id
          AND f.start = d.start
      WHERE n.scope IS NOT NULL AND n.user_id IS NOT NULL
        AND (level = 1 OR d.org_id IS NOT NULL AND f.org_id IS NULL)
      UNION ALL
      SELECT f.org_id, f.scope, f.user_id, date_trunc(spans[level], a."timestamp"), a.action,
        coalesce(a.resource_type, ''), a.success, count(*), sum(a.duration_ms), sum(activity_tokens(a.token_usage))
      FROM unnest(fresh) f CROSS JOIN LATERAL activity_of_span(f, until_xid, until_id) a
      GROUP BY 1, 2, 3, 4, 5, 6, 7
    ), added AS (
      INSERT INTO activity_sums AS c (org_id, scope, user_id, span, start, action, resource_type, success, requests,
        duration_ms, tokens)
      SELECT org_id, scope, user_id, spans[level], start, action, resource_type, success, requests, duration_ms, tokens
      FROM sums
      ON CONFLICT (org_id, scope, user_id, span, start, action, resource_type, success) DO UPDATE SET
        requests = c.requests + excluded.requests, duration_ms = c.duration_ms + excluded.duration_ms,
        tokens = c.tokens + excluded.tokens
    ), marginal AS (
      INSERT INTO activity_sums AS c (org_id, scope, user_id, span, start, action, resource_type, success, requests,
        duration_ms, tokens)
      SELECT s.org_id, s.scope, '', spans[level] || m.kept, s.start, m.action, m.resource_type, m.success,
        sum(s.requests), sum(s.duration_ms), sum(s.tokens)
      FROM sums s CROSS JOIN LATERAL activity_margins(s.action, s.resource_type, s.success) m
      WHERE level < 4 AND has_activity_margins(s.scope, s.user_id)
      GROUP BY 1, 2, 4, 5, 6, 7, 8
      ON CONFLICT (org_id, scope, user_id, span, start, action, resource_type, success) DO UPDATE SET
        requests = c.requests + excluded.requests, duration_ms = c.duration_ms + excluded.duration_ms,
        tokens = c.tokens + excluded.tokens
    )
    -- with what there was before: this statement does not see what it adds
    SELECT array_agg((c.org_id, c.scope, c.user_id, spans[level], c.start)::activity_divided) INTO dense
      FROM (SELECT org_id, scope, user_id, start, sum(requests) AS requests FROM sums GROUP BY 1, 2, 3, 4) c
      WHERE level < 4 AND NOT EXISTS (SELECT FROM activity_divided d WHERE d.org_id = c.org_id AND d.scope = c.scope
          AND d.user_id = c.user_id AND d.span = spans[level] AND d.start = c.start)
        AND density < c.requests + coalesce((SELECT sum(s.requests) FROM activity_sums s
          WHERE s.org_id = c.org_id AND s.scope = c.scope AND s.user_id = c.user_id AND s.span = spans[level]
            AND s.start = c.start), 0);
  END LOOP;
  UPDATE activity_fold SET xid = until_xid, record_id = until_id, folded_at = now();
  RETURN until_xid < horizon;
END $$;
