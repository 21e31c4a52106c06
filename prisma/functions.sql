-- Written by `npm run generate`: the functions and triggers of the database after all migrations.
-- To change one, add a migration.

CREATE OR REPLACE FUNCTION public.actions_content_changed(before actions, after actions)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.next_fire_at := before.next_fire_at; after.last_fired_at := before.last_fired_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.actions_counted_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('actions', true), ('actions.enabled', r.enabled), ('actions.manual', r.kind = 'manual'), ('actions.scheduled', r.kind = 'scheduled'), ('actions.trigger', r.kind = 'trigger')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.actions_counted_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('actions', true), ('actions.enabled', r.enabled), ('actions.manual', r.kind = 'manual'), ('actions.scheduled', r.kind = 'scheduled'), ('actions.trigger', r.kind = 'trigger')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.actions_counted_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('actions', true), ('actions.enabled', r.enabled), ('actions.manual', r.kind = 'manual'), ('actions.scheduled', r.kind = 'scheduled'), ('actions.trigger', r.kind = 'trigger')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.activity_margins(of_action text, of_type text, of_success boolean)
 RETURNS TABLE(kept text, action text, resource_type text, success boolean)
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT *
  FROM (VALUES (' total', '', '', of_success), (' margin', of_action, '', true), (' margin', '', of_type, true)) m
  WHERE m.column1 = ' total' OR m.column2 <> '' OR m.column3 <> ''
$function$;

CREATE OR REPLACE FUNCTION public.activity_of_span(part activity_divided, until_xid xid8, until_id text)
 RETURNS SETOF activity
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  kind text := split_part(part.scope, ' ', 1);
BEGIN
  RETURN QUERY EXECUTE format('SELECT * FROM activity a WHERE a.org_id = $1 %s %s AND a."timestamp" >= $4
    AND a."timestamp" < $4 + $5::interval AND (a.xid, a.id) < ($6, $7)',
    CASE kind WHEN 'organization' THEN '' ELSE format('AND a.%I = $2', kind || '_id') END,
    CASE part.user_id WHEN '' THEN '' ELSE 'AND a.user_id = $3' END)
  USING part.org_id, substr(part.scope, length(kind) + 2), part.user_id, part.start, '1 ' || part.span, until_xid,
    until_id;
END $function$;

CREATE OR REPLACE FUNCTION public.activity_prepared_until()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
 SET "TimeZone" TO 'UTC'
AS $function$
  SELECT max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \(''([^'']+)''\)'))[1]::timestamptz)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'activity'::regclass
$function$;

CREATE OR REPLACE FUNCTION public.activity_tokens(usage jsonb)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN jsonb_typeof(usage -> 'total') = 'number' THEN (usage ->> 'total')::numeric::bigint ELSE 0 END
$function$;

CREATE OR REPLACE FUNCTION public.add_activity_uses(since_xid xid8, since_id text, until_xid xid8, until_id text)
 RETURNS void
 LANGUAGE sql
 SET "TimeZone" TO 'UTC'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.add_latencies(since_xid xid8, since_id text, until_xid xid8, until_id text)
 RETURNS void
 LANGUAGE sql
 SET "TimeZone" TO 'UTC'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.api_tokens_content_changed(before api_tokens, after api_tokens)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN  after.last_used_at := before.last_used_at; after.noticed_days := before.noticed_days; after.reissued_at := before.reissued_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.apps_content_changed(before apps, after apps)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.last_release := before.last_release; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.apps_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('apps', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.apps_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('apps', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.apps_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('apps', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.artifact_language(own text, of_workspace text, detected text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT coalesce(own, (SELECT w.language FROM workspaces w WHERE w.id = of_workspace),
    (SELECT s.value FROM search_settings s WHERE s.name = 'language'), detected)
$function$;

CREATE OR REPLACE FUNCTION public.artifacts_content_changed(before artifacts, after artifacts)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.content_preview := before.content_preview; after.content_text := before.content_text; after.expiry_noticed_at := before.expiry_noticed_at; after.is_indexed := before.is_indexed; after.indexed_at := before.indexed_at; after.index_collection := before.index_collection; after.index_error := before.index_error; after.index_attempts := before.index_attempts; after.chunk_count := before.chunk_count; after.embedding_model_id := before.embedding_model_id; after.index_language := before.index_language; after.index_version := before.index_version; after.label_words := before.label_words; after.label_config := before.label_config; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.artifacts_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.file_id IS NULL THEN r.size_bytes ELSE 0 END),
  ('artifacts', (r.is_latest AND r.deleted_at IS NULL AND p.id = r.workspace_id)::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.artifacts_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.file_id IS NULL THEN r.size_bytes ELSE 0 END),
  ('artifacts', (r.is_latest AND r.deleted_at IS NULL AND p.id = r.workspace_id)::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.artifacts_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.file_id IS NULL THEN r.size_bytes ELSE 0 END),
  ('artifacts', (r.is_latest AND r.deleted_at IS NULL AND p.id = r.workspace_id)::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.audit_streams_content_changed(before audit_streams, after audit_streams)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.failing_since := before.failing_since; after.gone_before := before.gone_before; after.position_xid := before.position_xid; after.position_id := before.position_id; after.position_at := before.position_at; after.begun_snapshot := before.begun_snapshot; after.begun_xid := before.begun_xid; after.last_sequence := before.last_sequence; after.batch_bytes := before.batch_bytes; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.augmentations_counted_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('augmentations', true), ('augmentations.active', r.status = 'active')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.augmentations_counted_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('augmentations', true), ('augmentations.active', r.status = 'active')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.augmentations_counted_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('augmentations', true), ('augmentations.active', r.status = 'active')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.connections_content_changed(before connections, after connections)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.status := before.status; after.expires_at := before.expires_at; after.last_refreshed_at := before.last_refreshed_at; after.last_error := before.last_error; after.refresh_at := before.refresh_at; after.refresh_failures := before.refresh_failures; after.refresh_claim := before.refresh_claim; after.claimed_until := before.claimed_until; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.cut_search_text(given text, is_query boolean)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
DECLARE
  content text := normalize(given, NFKC);
BEGIN
  IF NOT has_unspaced(content) THEN RETURN content; END IF;
  RETURN (SELECT string_agg(CASE WHEN NOT is_cut THEN c WHEN cut_after THEN ' ' || c || following || ' '
      WHEN is_query AND cut_before THEN ' ' ELSE ' ' || c || ' ' END, '' ORDER BY at)
    FROM (SELECT c, at, is_cut, lead(c) OVER w AS following, coalesce(lead(is_cut) OVER w, false) AS cut_after,
        coalesce(lag(is_cut) OVER w, false) AS cut_before
      FROM (SELECT c, at, has_unspaced(c) AS is_cut FROM string_to_table(content, NULL) WITH ORDINALITY s(c, at)) s
      WINDOW w AS (ORDER BY at)) t);
END $function$;

CREATE OR REPLACE PROCEDURE public.define_content_changed(IN of regclass, IN quiet text[])
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  unknown text := (SELECT string_agg(q, ', ') FROM unnest(quiet) q
    WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = of AND a.attname = q AND a.attnum > 0 AND NOT a.attisdropped));
  has_time boolean := EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = of AND a.attname = 'updated_at' AND NOT a.attisdropped);
  touched text := CASE WHEN has_time
    THEN 'after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF;' ELSE '' END;
  calmed text := (SELECT string_agg(format('after.%1$I := before.%1$I;', q), ' ') FROM unnest(quiet) q);
BEGIN
  IF unknown IS NOT NULL THEN RAISE EXCEPTION '% has no column %', of, unknown; END IF;
  EXECUTE format('CREATE FUNCTION %I(before %s, after %s) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS %L',
    of || '_content_changed', of, of, format('BEGIN %s %s RETURN after IS DISTINCT FROM before; END', touched, calmed));
END $procedure$;

CREATE OR REPLACE FUNCTION public.demand_result_storage(of_workspace text, more bigint, most bigint)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
DECLARE
  used bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('results of ' || of_workspace, 0));
  SELECT coalesce(sum(coalesce(size_bytes, reserved_bytes)), 0) INTO used FROM files
    WHERE workspace_id = of_workspace AND tool_instance_id IS NOT NULL;
  IF used + more > most THEN
    RAISE EXCEPTION 'no storage left' USING ERRCODE = 'QS001', DETAIL = json_build_object('resource_type', 'workspace',
      'resource_id', of_workspace, 'used_bytes', used, 'limit_bytes', most, 'requested_bytes', more);
  END IF;
  RETURN true;
END $function$;

CREATE OR REPLACE FUNCTION public.demand_storage(of_org text, of_workspace text, more bigint, per_workspace bigint, per_organization bigint)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
DECLARE
  granted bigint := (SELECT o.storage_limit_bytes FROM organizations o WHERE o.id = of_org);
  own bigint := (SELECT w.storage_limit_bytes FROM workspaces w WHERE w.id = of_workspace);
  place record;
  used bigint;
BEGIN
  IF more <= 0 THEN RETURN true; END IF;
  FOR place IN SELECT * FROM (VALUES
      ('workspace', of_workspace, storage_limit_of_workspace(own, granted, per_workspace)),
      ('organization', of_org, coalesce(granted, nullif(per_organization, 0)))) p(kind, id, limit_bytes)
      WHERE limit_bytes IS NOT NULL LOOP
    PERFORM pg_advisory_xact_lock(hashtextextended('storage of ' || of_org, 0));
    SELECT coalesce(sum(c.n), 0) INTO used FROM place_counts c
      WHERE c.org_id = of_org AND c.place_id = place.id AND c.counter = 'storage.bytes';
    IF used + more > place.limit_bytes THEN
      RAISE EXCEPTION 'no storage left' USING ERRCODE = 'QS001', DETAIL = json_build_object('resource_type', place.kind,
        'resource_id', place.id, 'used_bytes', used, 'limit_bytes', place.limit_bytes, 'requested_bytes', more);
    END IF;
  END LOOP;
  RETURN true;
END $function$;

CREATE OR REPLACE FUNCTION public.drop_activity_before(cutoff timestamp with time zone)
 RETURNS SETOF text
 LANGUAGE plpgsql
 SET "TimeZone" TO 'UTC'
 SET lock_timeout TO '5s'
AS $function$
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
    DELETE FROM activity_divided WHERE start < until;
  END IF;
END $function$;

CREATE OR REPLACE FUNCTION public.endpoints_counted_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('endpoints', true), ('endpoints.enabled', r.enabled)) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.endpoints_counted_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('endpoints', true), ('endpoints.enabled', r.enabled)) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.endpoints_counted_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('endpoints', true), ('endpoints.enabled', r.enabled)) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.entities_content_changed(before entities, after entities)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.mention_count := before.mention_count; after.last_referenced_at := before.last_referenced_at; after.is_indexed := before.is_indexed; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.entity_lookup_keys(aliases text[], tags text[], metadata jsonb)
 RETURNS text[]
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
DECLARE
  keys text := translate(lower(regexp_replace(normalize(
    E'\x01a:' || array_to_string(aliases, E'\x01a:') || E'\x01t:' || array_to_string(tags, E'\x01t:')
    || coalesce(E'\x01x:' || left(metadata ->> 'external_id', 255), ''), NFKC), '\s+', ' ', 'g')), 'ς', 'σ');
BEGIN
  keys := substr(rtrim(replace(replace(replace(replace(keys, E' \x01', E'\x01'),
    E'\x01a: ', E'\x01a:'), E'\x01t: ', E'\x01t:'), E'\x01x: ', E'\x01x:')), 2);
  IF length(keys) <= 255 THEN
    RETURN string_to_array(keys, E'\x01');
  END IF;
  RETURN array(SELECT left(one, 255) FROM string_to_table(keys, E'\x01') one);
END $function$;

CREATE OR REPLACE FUNCTION public.entity_name_key(name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT left(btrim(translate(lower(regexp_replace(normalize(name, NFKC), '\s+', ' ', 'g')), 'ς', 'σ')), 253)
$function$;

CREATE OR REPLACE FUNCTION public.entity_search_text(name text, aliases text[], tags text[], metadata jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
BEGIN
  RETURN translate(lower(regexp_replace(normalize(
    name || E'\x01' || array_to_string(aliases || tags, E'\x01')
    || coalesce(E'\x01' || left(metadata ->> 'external_id', 255), ''), NFKC), '\s+', ' ', 'g')), E'ς\x01', E'σ\n');
END $function$;

CREATE OR REPLACE FUNCTION public.executions_content_changed(before executions, after executions)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.reported_at := before.reported_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.executions_counted_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('executions', true), ('executions.failed', r.status = 'failed'), ('executions.running', r.status = 'running'), ('executions.success', r.status = 'completed')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.executions_counted_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('executions', true), ('executions.failed', r.status = 'failed'), ('executions.running', r.status = 'running'), ('executions.success', r.status = 'completed')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.executions_counted_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('executions', true), ('executions.failed', r.status = 'failed'), ('executions.running', r.status = 'running'), ('executions.success', r.status = 'completed')) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.files_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.part_of IS NULL THEN coalesce(r.size_bytes, r.reserved_bytes, 0) ELSE 0 END)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.files_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.part_of IS NULL THEN coalesce(r.size_bytes, r.reserved_bytes, 0) ELSE 0 END)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.files_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.org_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('storage.bytes', CASE WHEN r.part_of IS NULL THEN coalesce(r.size_bytes, r.reserved_bytes, 0) ELSE 0 END)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.fold_activity(batch integer, density integer DEFAULT 500)
 RETURNS boolean
 LANGUAGE plpgsql
 SET "TimeZone" TO 'UTC'
 SET work_mem TO '64MB'
 SET plan_cache_mode TO 'force_custom_plan'
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION public.fold_search_text(content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT translate(lower(regexp_replace(normalize(content, NFKC), '\s+', ' ', 'g')), 'ς', 'σ')
$function$;

CREATE OR REPLACE FUNCTION public.has_activity_margins(scope text, user_id text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT user_id = '' AND split_part(scope, ' ', 1) IN ('organization', 'workspace', 'app')
$function$;

CREATE OR REPLACE FUNCTION public.has_unspaced(content text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT content ~ unspaced()
$function$;

CREATE OR REPLACE FUNCTION public.identity_providers_content_changed(before identity_providers, after identity_providers)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.certificate_noticed_at := before.certificate_noticed_at; after.saml_metadata_fetched_at := before.saml_metadata_fetched_at; after.saml_metadata_error := before.saml_metadata_error; after.saml_metadata_failures := before.saml_metadata_failures; after.saml_metadata_refresh_at := before.saml_metadata_refresh_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.keep_live_count()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  slot_of_writer int := pg_backend_pid() % 8;
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO resource_counts AS c (org_id, resource, slot, n)
      SELECT org_id, TG_ARGV[0], slot_of_writer, count(*) FROM new_rows WHERE deleted_at IS NULL GROUP BY org_id ORDER BY org_id
      ON CONFLICT (org_id, resource, slot) DO UPDATE SET n = c.n + excluded.n;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO resource_counts AS c (org_id, resource, slot, n)
      SELECT org_id, TG_ARGV[0], slot_of_writer, -count(*) FROM old_rows WHERE deleted_at IS NULL GROUP BY org_id ORDER BY org_id
      ON CONFLICT (org_id, resource, slot) DO UPDATE SET n = c.n + excluded.n;
  ELSE
    INSERT INTO resource_counts AS c (org_id, resource, slot, n)
      SELECT org_id, TG_ARGV[0], slot_of_writer, sum(delta) FROM (
        SELECT org_id, 1 AS delta FROM new_rows WHERE deleted_at IS NULL
        UNION ALL SELECT org_id, -1 FROM old_rows WHERE deleted_at IS NULL
      ) changed GROUP BY org_id HAVING sum(delta) <> 0 ORDER BY org_id
      ON CONFLICT (org_id, resource, slot) DO UPDATE SET n = c.n + excluded.n;
  END IF;
  RETURN NULL;
END $function$;

CREATE OR REPLACE PROCEDURE public.keep_place_counts(IN of regclass, IN counters jsonb)
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  listed text;
  operation text;
  changed text;
  transition text;
BEGIN
  SELECT string_agg(format('(%L, %s)', key, value), ', ' ORDER BY key) INTO listed FROM jsonb_each_text(counters);
  FOREACH operation IN ARRAY '{insert,delete,update}'::text[] LOOP
    changed := concat_ws(' UNION ALL ',
      CASE WHEN operation <> 'delete' THEN 'SELECT *, 1 AS delta FROM new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'SELECT *, -1 AS delta FROM old_rows' END);
    transition := concat_ws(' ', CASE WHEN operation <> 'delete' THEN 'NEW TABLE AS new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'OLD TABLE AS old_rows' END);
    EXECUTE format($function$
      CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
      BEGIN
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() %% 8, sum(r.delta) FROM (%2$s) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES %3$s) k(counter, holds)
          WHERE k.holds GROUP BY 1, 2, 3 HAVING sum(r.delta) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $body$ $function$, format('%s_counted_%s', of, operation), changed, listed);
    EXECUTE format('CREATE TRIGGER %1$I AFTER %2$s ON %3$s REFERENCING %4$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I()',
      format('%s_counted_%s', of, operation), operation, of, transition);
  END LOOP;
END $procedure$;

CREATE OR REPLACE PROCEDURE public.keep_place_sums(IN of regclass, IN places text, IN sums text)
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  operation text;
  changed text;
  transition text;
  add_up text := $add$
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() %% 8, sum(r.delta * k.amount) FROM (%1$s) r
          CROSS JOIN LATERAL (VALUES %2$s) p(id)
          CROSS JOIN LATERAL (VALUES %3$s) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n$add$;
BEGIN
  FOREACH operation IN ARRAY '{insert,delete,update}'::text[] LOOP
    changed := concat_ws(' UNION ALL ',
      CASE WHEN operation <> 'delete' THEN 'SELECT *, 1 AS delta FROM new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'SELECT *, -1 AS delta FROM old_rows' END);
    transition := concat_ws(' ', CASE WHEN operation <> 'delete' THEN 'NEW TABLE AS new_rows' END,
      CASE WHEN operation <> 'insert' THEN 'OLD TABLE AS old_rows' END);
    EXECUTE format($function$
      CREATE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS $body$
      BEGIN
        %2$s;
        RETURN NULL;
      END $body$ $function$, format('%s_summed_%s', of, operation), format(add_up, changed, places, sums));
    EXECUTE format('CREATE TRIGGER %1$I AFTER %2$s ON %3$s REFERENCING %4$s FOR EACH STATEMENT EXECUTE FUNCTION %1$I()',
      format('%s_summed_%s', of, operation), operation, of, transition);
  END LOOP;
  EXECUTE format(add_up, format('SELECT *, 1 AS delta FROM %s', of), places, sums);
END $procedure$;

CREATE OR REPLACE PROCEDURE public.keep_resource_version(IN of regclass, IN quiet text[] DEFAULT '{}'::text[])
 LANGUAGE plpgsql
AS $procedure$
DECLARE
  more text := '';
BEGIN
  IF quiet <> '{}' THEN
    CALL define_content_changed(of, quiet);
    more := format(' AND %I(OLD, NEW)', of || '_content_changed');
  END IF;
  EXECUTE format('CREATE TRIGGER resource_version BEFORE UPDATE ON %s FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*%s)
    EXECUTE FUNCTION raise_resource_version()', of, more);
END $procedure$;

CREATE OR REPLACE FUNCTION public.keep_version_of_environment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE environments SET resource_version = resource_version + OLD.last_number + 1 WHERE id = OLD.environment_id;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.latency_bucket(duration_ms integer)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN duration_ms <= 0 THEN 0 ELSE 1 + ceil(ln(duration_ms::float8) / ln(1.1::float8))::int END
$function$;

CREATE OR REPLACE FUNCTION public.let_results_go()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE files SET expires_at = now()
    WHERE workspace_id = OLD.workspace_id AND tool_instance_id = OLD.id AND expires_at > now();
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.model_entitlements_content_changed(before model_entitlements, after model_entitlements)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.request_count := before.request_count; after.total_tokens := before.total_tokens; after.last_used_at := before.last_used_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.model_entitlements_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('models', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.model_entitlements_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('models', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.model_entitlements_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('models', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.model_targets_content_changed(before model_targets, after model_targets)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN  after.consecutive_failures := before.consecutive_failures; after.last_failure := before.last_failure; after.last_success := before.last_success; after.average_latency_ms := before.average_latency_ms; after.latency_at := before.latency_at; after.cost_per_1k_tokens := before.cost_per_1k_tokens; after.cost_at := before.cost_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.namespaces_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('namespaces', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.namespaces_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('namespaces', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.namespaces_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('namespaces', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.next_digest(frequency text, zone text, hour integer, since timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
AS $function$
DECLARE
  today timestamp;
  due timestamptz;
BEGIN
  IF frequency = 'hourly' THEN
    RETURN date_trunc('hour', since, zone) + interval '1 hour';
  END IF;
  today := date_trunc('day', since AT TIME ZONE zone);
  FOR days IN 0..2 LOOP
    due := (today + make_interval(days => days, hours => hour)) AT TIME ZONE zone;
    EXIT WHEN due > since;
  END LOOP;
  RETURN due;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN next_digest(frequency, 'UTC', hour, since);
END $function$;

CREATE OR REPLACE FUNCTION public.note_embedding_of_account()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM note_embeddings(m.org_id, m.logical_model_id, NULL) FROM logical_models m
    WHERE m.id IN (SELECT t.model_id FROM model_targets t WHERE t.provider_account_id = NEW.id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.note_embedding_of_entitlement()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM note_embeddings(NEW.org_id, NEW.logical_model_id, NEW.workspace_id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.note_embedding_of_model()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM note_embeddings(NEW.org_id, NEW.logical_model_id, NULL);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.note_embedding_of_target()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM note_embeddings(m.org_id, m.logical_model_id, NULL) FROM logical_models m
    WHERE m.id = coalesce(NEW.model_id, OLD.model_id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.note_embedding_of_workspace()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO embedding_changes (workspace_id, changed_at) VALUES (NEW.id, clock_timestamp())
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.note_embeddings(of_org text, of_model text, of_workspace text)
 RETURNS void
 LANGUAGE sql
AS $function$
  INSERT INTO embedding_changes (workspace_id, changed_at)
    SELECT w.id, clock_timestamp() FROM workspaces w
    WHERE w.org_id = of_org AND w.embedding_model_id = of_model AND (of_workspace IS NULL OR w.id = of_workspace)
    ORDER BY w.id
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false
$function$;

CREATE OR REPLACE FUNCTION public.note_search_language()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO search_language_changes (workspace_id, changed_at) VALUES (NEW.id, clock_timestamp())
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false;
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.one_line(name text, most integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT left(btrim(regexp_replace(name,
    '[\u0001-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff'
      || '\ufff9-\ufffb\U000e0000-\U000e007f\ue000-\uf8ff]+', ' ', 'g')), most)
$function$;

CREATE OR REPLACE FUNCTION public.prepare_activity_months(ahead integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET "TimeZone" TO 'UTC'
 SET lock_timeout TO '5s'
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION public.provider_accounts_content_changed(before provider_accounts, after provider_accounts)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.status := before.status; after.status_reason := before.status_reason; after.last_health_check := before.last_health_check; after.consecutive_failures := before.consecutive_failures; after.auth_failures := before.auth_failures; after.current_month_tokens := before.current_month_tokens; after.current_month_requests := before.current_month_requests; after.usage_period := before.usage_period; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.raise_resource_version()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  NEW.resource_version := greatest(NEW.resource_version, OLD.resource_version + 1);
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.raise_resource_version_of()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  EXECUTE format('UPDATE %I SET resource_version = resource_version + 1 WHERE %I = $1 AND xmin <> pg_current_xact_id()::xid',
    TG_ARGV[0], TG_ARGV[1]) USING to_jsonb(coalesce(NEW, OLD)) ->> TG_ARGV[2];
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.release_file_of_artifact()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  PERFORM 1 FROM files WHERE id = OLD.file_id FOR UPDATE;
  UPDATE files SET state = 'removing' WHERE id = OLD.file_id
    AND NOT EXISTS (SELECT 1 FROM artifacts WHERE file_id = OLD.file_id);
  RETURN NULL;
END $function$;

CREATE OR REPLACE FUNCTION public.releases_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('releases', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.releases_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('releases', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.releases_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.app_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('releases', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.scim_tokens_content_changed(before scim_tokens, after scim_tokens)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.last_used_at := before.last_used_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.scim_users_content_changed(before scim_users, after scim_users)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.account_email := before.account_email; after.saved_roles := before.saved_roles; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.search_config(language text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  SELECT CASE WHEN language IS NULL THEN 'english' ELSE coalesce((
    SELECT c.cfgname::text FROM pg_catalog.pg_ts_config c
    WHERE c.cfgnamespace = 'pg_catalog'::regnamespace AND c.cfgname = CASE language
      WHEN 'ar' THEN 'arabic' WHEN 'ca' THEN 'catalan' WHEN 'da' THEN 'danish' WHEN 'de' THEN 'german'
      WHEN 'el' THEN 'greek' WHEN 'en' THEN 'english' WHEN 'es' THEN 'spanish' WHEN 'et' THEN 'estonian'
      WHEN 'eu' THEN 'basque' WHEN 'fi' THEN 'finnish' WHEN 'fr' THEN 'french' WHEN 'ga' THEN 'irish'
      WHEN 'hi' THEN 'hindi' WHEN 'hu' THEN 'hungarian' WHEN 'hy' THEN 'armenian' WHEN 'id' THEN 'indonesian'
      WHEN 'it' THEN 'italian' WHEN 'lt' THEN 'lithuanian' WHEN 'ms' THEN 'indonesian' WHEN 'ne' THEN 'nepali'
      WHEN 'nl' THEN 'dutch' WHEN 'no' THEN 'norwegian' WHEN 'pt' THEN 'portuguese' WHEN 'ro' THEN 'romanian'
      WHEN 'ru' THEN 'russian' WHEN 'sr' THEN 'serbian' WHEN 'sv' THEN 'swedish' WHEN 'ta' THEN 'tamil'
      WHEN 'tr' THEN 'turkish' WHEN 'yi' THEN 'yiddish' END), 'simple') END
$function$;

CREATE OR REPLACE FUNCTION public.search_formula(config regconfig, query text)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT regexp_replace(websearch_to_tsquery(config, cut_search_text(query, true))::text,
    '''(' || unspaced() || ')''(?!:)', '''\1'':*', 'g')::tsquery
$function$;

CREATE OR REPLACE FUNCTION public.search_term(lexeme text)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT (quote_literal(lexeme) || CASE WHEN length(lexeme) = 1 AND has_unspaced(lexeme) THEN ':*' ELSE '' END)::tsquery
$function$;

CREATE OR REPLACE FUNCTION public.secrets_content_changed(before secrets, after secrets)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.access_count := before.access_count; after.last_accessed_at := before.last_accessed_at; after.root_key_id := before.root_key_id; after.wrapped_key := before.wrapped_key; after.rotation_noticed_at := before.rotation_noticed_at; after.expiry_noticed_at := before.expiry_noticed_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.secrets_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (coalesce(r.workspace_id, r.org_id))) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('secrets', (r.status <> 'deleted')::int), ('secrets.active', (r.status = 'active')::int),
  ('secrets.type ' || r.secret_type, (r.status <> 'deleted')::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.secrets_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (coalesce(r.workspace_id, r.org_id))) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('secrets', (r.status <> 'deleted')::int), ('secrets.active', (r.status = 'active')::int),
  ('secrets.type ' || r.secret_type, (r.status <> 'deleted')::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.secrets_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (coalesce(r.workspace_id, r.org_id))) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('secrets', (r.status <> 'deleted')::int), ('secrets.active', (r.status = 'active')::int),
  ('secrets.type ' || r.secret_type, (r.status <> 'deleted')::int)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.sources_content_changed(before sources, after sources)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.status := before.status; after.chunk_count := before.chunk_count; after.token_count := before.token_count; after.size_bytes := before.size_bytes; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.sources_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('sources', 1), ('sources.status ' || r.status, 1), ('sources.type ' || r.source_type, 1),
  ('sources.of_workspace', (r.namespace_id IS NULL)::int), ('sources.chunks', r.chunk_count),
  ('sources.tokens', r.token_count), ('sources.bytes', r.size_bytes)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.sources_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('sources', 1), ('sources.status ' || r.status, 1), ('sources.type ' || r.source_type, 1),
  ('sources.of_workspace', (r.namespace_id IS NULL)::int), ('sources.chunks', r.chunk_count),
  ('sources.tokens', r.token_count), ('sources.bytes', r.size_bytes)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.sources_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES 
  ('sources', 1), ('sources.status ' || r.status, 1), ('sources.type ' || r.source_type, 1),
  ('sources.of_workspace', (r.namespace_id IS NULL)::int), ('sources.chunks', r.chunk_count),
  ('sources.tokens', r.token_count), ('sources.bytes', r.size_bytes)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.spans_of_run(scopes text[], started_at timestamp with time zone)
 RETURNS TABLE(scope_id text, span text, start timestamp with time zone)
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT p.id, k.span,
    CASE k.span WHEN 'quarter' THEN date_bin('15 minutes', started_at, '2000-01-01 00:00:00+00')
      ELSE date_trunc(k.span, started_at, 'UTC') END
  FROM unnest(scopes) p(id) CROSS JOIN (VALUES ('quarter'), ('hour'), ('day')) k(span) WHERE p.id IS NOT NULL
$function$;

CREATE OR REPLACE FUNCTION public.storage_limit_of_workspace(own bigint, granted bigint, setting bigint)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN setting = 0 THEN own ELSE least(coalesce(own, setting), greatest(setting, granted)) END
$function$;

CREATE OR REPLACE FUNCTION public.sum_begun_executions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION public.sum_ended_executions()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION public.sum_further()
 RETURNS trigger
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_custom_plan'
AS $function$
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
END $function$;

CREATE OR REPLACE FUNCTION public.threads_summed_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('threads', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.threads_summed_insert()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('threads', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.threads_summed_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
      BEGIN
        
        INSERT INTO place_counts AS c (org_id, place_id, counter, slot, n)
          SELECT r.org_id, p.id, k.counter, pg_backend_pid() % 8, sum(r.delta * k.amount) FROM (SELECT *, 1 AS delta FROM new_rows UNION ALL SELECT *, -1 AS delta FROM old_rows) r
          CROSS JOIN LATERAL (VALUES (r.workspace_id), (r.namespace_id)) p(id)
          CROSS JOIN LATERAL (VALUES ('threads', 1)) k(counter, amount)
          WHERE p.id IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(r.delta * k.amount) <> 0 ORDER BY 1, 2, 3
          ON CONFLICT (org_id, place_id, counter, slot) DO UPDATE SET n = c.n + excluded.n;
        RETURN NULL;
      END $function$;

CREATE OR REPLACE FUNCTION public.tool_instances_content_changed(before tool_instances, after tool_instances)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.usage_count := before.usage_count; after.last_used_at := before.last_used_at; after.connection_status := before.connection_status; after.action_counts := before.action_counts; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.tool_search_text(name text, slug text, short_description text, description text, tags text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT lower(name || ' ' || slug || ' ' || coalesce(short_description, '') || ' ' || description || ' '
    || array_to_string(tags, ' '))
$function$;

CREATE OR REPLACE FUNCTION public.unspaced()
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  SELECT '[\u0E00-\u109F\u1100-\u11FF\u1780-\u17FF\u3005-\u3007\u3040-\u318F\u31F0-\u31FF\u3400-\u4DBF\u4E00-\uA4CF\uA960-\uA97F\uAC00-\uD7FB\uF900-\uFAFF\U00020000-\U0003FFFF]'
$function$;

CREATE OR REPLACE FUNCTION public.users_content_changed(before users, after users)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.last_login := before.last_login; after.purged_at := before.purged_at; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.webhooks_content_changed(before webhooks, after webhooks)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.failing_since := before.failing_since; after.position_xid := before.position_xid; after.position_seq := before.position_seq; after.begun_snapshot := before.begun_snapshot; after.begun_xid := before.begun_xid; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.workspaces_content_changed(before workspaces, after workspaces)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$BEGIN after.updated_at := before.updated_at; IF after IS NOT DISTINCT FROM before THEN RETURN true; END IF; after.bucket_status := before.bucket_status; RETURN after IS DISTINCT FROM before; END$function$;

CREATE OR REPLACE FUNCTION public.write_label_words()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
DECLARE
  in_language text := artifact_language(NEW.language, NEW.workspace_id, NEW.index_language);
  found text := search_config(in_language);
  config regconfig := found::regconfig;
BEGIN
  -- what is to be indexed again is still in the language of before
  IF NEW.index_language IS NOT NULL AND NEW.index_version > 0 THEN NEW.index_language := in_language; END IF;
  NEW.label_config := found;
  NEW.label_words := setweight(to_tsvector(config, cut_search_text(translate(concat_ws(' ', NEW.name, NEW.file_name), '_./-', '    '), false)), 'A')
    || setweight(to_tsvector(config, cut_search_text(array_to_string(NEW.tags || NEW.keywords, ' '), false)), 'B')
    || setweight(to_tsvector(config, cut_search_text(concat_ws(' ', NEW.description, NEW.summary), false)), 'C');
  IF NOT EXISTS (SELECT FROM artifact_languages l WHERE l.namespace_id = NEW.namespace_id AND l.config = found) THEN
    INSERT INTO artifact_languages (namespace_id, config, org_id) VALUES (NEW.namespace_id, found, NEW.org_id)
      ON CONFLICT DO NOTHING;
  END IF;
  RETURN NEW;
END $function$;

CREATE TRIGGER actions_counted_delete AFTER DELETE ON public.actions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION actions_counted_delete();

CREATE TRIGGER actions_counted_insert AFTER INSERT ON public.actions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION actions_counted_insert();

CREATE TRIGGER actions_counted_update AFTER UPDATE ON public.actions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION actions_counted_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.actions FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND actions_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER activity_fold_further AFTER UPDATE ON public.activity_fold FOR EACH ROW EXECUTE FUNCTION sum_further();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.api_tokens FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND api_tokens_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.applications FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER apps_summed_delete AFTER DELETE ON public.apps REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION apps_summed_delete();

CREATE TRIGGER apps_summed_insert AFTER INSERT ON public.apps REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION apps_summed_insert();

CREATE TRIGGER apps_summed_update AFTER UPDATE ON public.apps REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION apps_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.apps FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND apps_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER artifacts_summed_delete AFTER DELETE ON public.artifacts REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION artifacts_summed_delete();

CREATE TRIGGER artifacts_summed_insert AFTER INSERT ON public.artifacts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION artifacts_summed_insert();

CREATE TRIGGER artifacts_summed_update AFTER UPDATE ON public.artifacts REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION artifacts_summed_update();

CREATE TRIGGER label_words BEFORE INSERT OR UPDATE OF name, file_name, tags, keywords, description, summary, language, index_language, index_version ON public.artifacts FOR EACH ROW EXECUTE FUNCTION write_label_words();

CREATE TRIGGER release_file AFTER DELETE ON public.artifacts FOR EACH ROW WHEN ((old.file_id IS NOT NULL)) EXECUTE FUNCTION release_file_of_artifact();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.artifacts FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND artifacts_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.audit_streams FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND audit_streams_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER augmentations_counted_delete AFTER DELETE ON public.augmentations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION augmentations_counted_delete();

CREATE TRIGGER augmentations_counted_insert AFTER INSERT ON public.augmentations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION augmentations_counted_insert();

CREATE TRIGGER augmentations_counted_update AFTER UPDATE ON public.augmentations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION augmentations_counted_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.augmentations FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.connections FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND connections_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER endpoints_counted_delete AFTER DELETE ON public.endpoints REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION endpoints_counted_delete();

CREATE TRIGGER endpoints_counted_insert AFTER INSERT ON public.endpoints REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION endpoints_counted_insert();

CREATE TRIGGER endpoints_counted_update AFTER UPDATE ON public.endpoints REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION endpoints_counted_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.endpoints FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.entities FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND entities_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.entity_relations FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version_of_environment AFTER DELETE ON public.environment_slots FOR EACH ROW EXECUTE FUNCTION keep_version_of_environment();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.environments FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER executions_counted_delete AFTER DELETE ON public.executions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION executions_counted_delete();

CREATE TRIGGER executions_counted_insert AFTER INSERT ON public.executions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION executions_counted_insert();

CREATE TRIGGER executions_counted_update AFTER UPDATE ON public.executions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION executions_counted_update();

CREATE TRIGGER executions_summed_insert AFTER INSERT ON public.executions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sum_begun_executions();

CREATE TRIGGER executions_summed_update AFTER UPDATE ON public.executions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sum_ended_executions();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.executions FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND executions_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER files_summed_delete AFTER DELETE ON public.files REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION files_summed_delete();

CREATE TRIGGER files_summed_insert AFTER INSERT ON public.files REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION files_summed_insert();

CREATE TRIGGER files_summed_update AFTER UPDATE ON public.files REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION files_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.identity_providers FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND identity_providers_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.invitations FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER embedding_model AFTER INSERT OR UPDATE OF model_type, enabled, status_by_hand, constraints ON public.logical_models FOR EACH ROW EXECUTE FUNCTION note_embedding_of_model();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.logical_models FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.memories FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER embedding_entitlement AFTER INSERT OR UPDATE OF enabled, workspace_limits, allowed_step_types, allowed_endpoints, allowed_purposes ON public.model_entitlements FOR EACH ROW EXECUTE FUNCTION note_embedding_of_entitlement();

CREATE TRIGGER model_entitlements_summed_delete AFTER DELETE ON public.model_entitlements REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION model_entitlements_summed_delete();

CREATE TRIGGER model_entitlements_summed_insert AFTER INSERT ON public.model_entitlements REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION model_entitlements_summed_insert();

CREATE TRIGGER model_entitlements_summed_update AFTER UPDATE ON public.model_entitlements REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION model_entitlements_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.model_entitlements FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND model_entitlements_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER embedding_target AFTER INSERT OR DELETE OR UPDATE OF "position", weight, priority, enabled ON public.model_targets FOR EACH ROW EXECUTE FUNCTION note_embedding_of_target();

CREATE TRIGGER resource_version_of_changed_model AFTER UPDATE ON public.model_targets FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND model_targets_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version_of('logical_models', 'id', 'model_id');

CREATE TRIGGER resource_version_of_model AFTER INSERT OR DELETE ON public.model_targets FOR EACH ROW EXECUTE FUNCTION raise_resource_version_of('logical_models', 'id', 'model_id');

CREATE TRIGGER namespaces_summed_delete AFTER DELETE ON public.namespaces REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION namespaces_summed_delete();

CREATE TRIGGER namespaces_summed_insert AFTER INSERT ON public.namespaces REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION namespaces_summed_insert();

CREATE TRIGGER namespaces_summed_update AFTER UPDATE ON public.namespaces REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION namespaces_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.namespaces FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.organization_members FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.organization_recipes FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.organizations FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER embedding_account AFTER UPDATE OF provider_type, base_url, credentials_ref, enabled, region, data_residency, max_tokens_per_month, max_requests_per_month ON public.provider_accounts FOR EACH ROW EXECUTE FUNCTION note_embedding_of_account();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.provider_accounts FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND provider_accounts_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER releases_summed_delete AFTER DELETE ON public.releases REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION releases_summed_delete();

CREATE TRIGGER releases_summed_insert AFTER INSERT ON public.releases REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION releases_summed_insert();

CREATE TRIGGER releases_summed_update AFTER UPDATE ON public.releases REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION releases_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.releases FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.scim_groups FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.scim_tokens FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND scim_tokens_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.scim_users FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND scim_users_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.secrets FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND secrets_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER secrets_summed_delete AFTER DELETE ON public.secrets REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION secrets_summed_delete();

CREATE TRIGGER secrets_summed_insert AFTER INSERT ON public.secrets REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION secrets_summed_insert();

CREATE TRIGGER secrets_summed_update AFTER UPDATE ON public.secrets REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION secrets_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.sources FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND sources_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER sources_summed_delete AFTER DELETE ON public.sources REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION sources_summed_delete();

CREATE TRIGGER sources_summed_insert AFTER INSERT ON public.sources REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sources_summed_insert();

CREATE TRIGGER sources_summed_update AFTER UPDATE ON public.sources REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION sources_summed_update();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.threads FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER threads_summed_delete AFTER DELETE ON public.threads REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION threads_summed_delete();

CREATE TRIGGER threads_summed_insert AFTER INSERT ON public.threads REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION threads_summed_insert();

CREATE TRIGGER threads_summed_update AFTER UPDATE ON public.threads REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION threads_summed_update();

CREATE TRIGGER let_results_go AFTER DELETE ON public.tool_instances FOR EACH ROW EXECUTE FUNCTION let_results_go();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.tool_instances FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND tool_instances_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.tools FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.users FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND users_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version_of_organization_members AFTER UPDATE ON public.users FOR EACH ROW WHEN (((((old.username IS DISTINCT FROM new.username) OR (old.email IS DISTINCT FROM new.email)) OR (old.full_name IS DISTINCT FROM new.full_name)) OR (old.avatar_url IS DISTINCT FROM new.avatar_url))) EXECUTE FUNCTION raise_resource_version_of('organization_members', 'user_id', 'id');

CREATE TRIGGER resource_version_of_workspace_members AFTER UPDATE ON public.users FOR EACH ROW WHEN (((((old.username IS DISTINCT FROM new.username) OR (old.email IS DISTINCT FROM new.email)) OR (old.full_name IS DISTINCT FROM new.full_name)) OR (old.avatar_url IS DISTINCT FROM new.avatar_url))) EXECUTE FUNCTION raise_resource_version_of('workspace_members', 'user_id', 'id');

CREATE TRIGGER resource_version BEFORE UPDATE ON public.webhooks FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND webhooks_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.workspace_members FOR EACH ROW WHEN ((old.* IS DISTINCT FROM new.*)) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER embedding_model AFTER UPDATE OF embedding_model_id ON public.workspaces FOR EACH ROW WHEN ((old.embedding_model_id IS DISTINCT FROM new.embedding_model_id)) EXECUTE FUNCTION note_embedding_of_workspace();

CREATE TRIGGER resource_version BEFORE UPDATE ON public.workspaces FOR EACH ROW WHEN (((old.* IS DISTINCT FROM new.*) AND workspaces_content_changed(old.*, new.*))) EXECUTE FUNCTION raise_resource_version();

CREATE TRIGGER search_language AFTER UPDATE OF language ON public.workspaces FOR EACH ROW WHEN ((old.language IS DISTINCT FROM new.language)) EXECUTE FUNCTION note_search_language();

CREATE TRIGGER workspaces_counted_delete AFTER DELETE ON public.workspaces REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_live_count('workspace');

CREATE TRIGGER workspaces_counted_insert AFTER INSERT ON public.workspaces REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_live_count('workspace');

CREATE TRIGGER workspaces_counted_update AFTER UPDATE ON public.workspaces REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_live_count('workspace');
