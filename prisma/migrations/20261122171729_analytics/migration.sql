-- CreateTable
CREATE TABLE "execution_sums" (
    "org_id" TEXT NOT NULL,
    "scope_id" TEXT NOT NULL,
    "span" TEXT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "slot" INTEGER NOT NULL,
    "n" BIGINT NOT NULL DEFAULT 0,
    "success" BIGINT NOT NULL DEFAULT 0,
    "failed" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "execution_sums_pkey" PRIMARY KEY ("org_id","scope_id","span","start","slot")
);

-- Keeps sums over the rows of a table, for each place that a row `r` is in: `places` are expressions of an identifier,
-- null for none; `sums` are rows of a counter and an amount. Starts with the rows that are there: their triggers exist
-- from here on, and until the end of this transaction nobody else writes.
CREATE PROCEDURE keep_place_sums(of regclass, places text, sums text) LANGUAGE plpgsql AS $procedure$
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

CALL keep_place_sums('apps', '(r.workspace_id)', $$('apps', 1)$$);
CALL keep_place_sums('namespaces', '(r.workspace_id)', $$('namespaces', 1)$$);
CALL keep_place_sums('threads', '(r.workspace_id), (r.namespace_id)', $$('threads', 1)$$);
CALL keep_place_sums('releases', '(r.workspace_id), (r.app_id)', $$('releases', 1)$$);
CALL keep_place_sums('model_entitlements', '(r.workspace_id)', $$('models', 1)$$);
CALL keep_place_sums('sources', '(r.workspace_id), (r.namespace_id)', $$
  ('sources', 1), ('sources.status ' || r.status, 1), ('sources.type ' || r.source_type, 1),
  ('sources.of_workspace', (r.namespace_id IS NULL)::int), ('sources.chunks', r.chunk_count),
  ('sources.tokens', r.token_count), ('sources.bytes', r.size_bytes)$$);
-- A secret of the organization is in no workspace. Deleted ones may come back until they are destroyed.
CALL keep_place_sums('secrets', '(coalesce(r.workspace_id, r.org_id))', $$
  ('secrets', (r.status <> 'deleted')::int), ('secrets.active', (r.status = 'active')::int),
  ('secrets.type ' || r.secret_type, (r.status <> 'deleted')::int)$$);

-- What a run counts for: the organization, workspace, app, token and user, in the hour and the day in which it began.
-- None of these changes in the course of a run.
CREATE FUNCTION spans_of_run(scopes text[], started_at timestamptz)
RETURNS TABLE (scope_id text, span text, start timestamptz) LANGUAGE sql IMMUTABLE AS $$
  SELECT p.id, k.span, date_trunc(k.span, started_at, 'UTC')
  FROM unnest(scopes) p(id) CROSS JOIN (VALUES ('hour'), ('day')) k(span) WHERE p.id IS NOT NULL
$$;

-- A run counts once, however often it is reported. What is deleted later, by retention or with its app, has happened
-- nevertheless: no deletion changes the sums.
CREATE FUNCTION sum_begun_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, n, success, failed)
    SELECT r.org_id, p.scope_id, p.span, p.start, pg_backend_pid() % 8, count(*),
      count(*) FILTER (WHERE r.status = 'completed'), count(*) FILTER (WHERE r.status = 'failed')
    FROM new_rows r
    CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (org_id, scope_id, span, start, slot)
      DO UPDATE SET n = s.n + excluded.n, success = s.success + excluded.success, failed = s.failed + excluded.failed;
  RETURN NULL;
END $$;

CREATE FUNCTION sum_ended_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO execution_sums AS s (org_id, scope_id, span, start, slot, success, failed)
    SELECT r.org_id, p.scope_id, p.span, p.start, pg_backend_pid() % 8,
      sum((r.status = 'completed')::int - (o.status = 'completed')::int),
      sum((r.status = 'failed')::int - (o.status = 'failed')::int)
    FROM new_rows r JOIN old_rows o ON o.id = r.id AND o.status <> r.status
    CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (org_id, scope_id, span, start, slot)
      DO UPDATE SET success = s.success + excluded.success, failed = s.failed + excluded.failed;
  RETURN NULL;
END $$;

CREATE TRIGGER executions_summed_insert AFTER INSERT ON executions REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION sum_begun_executions();
CREATE TRIGGER executions_summed_update AFTER UPDATE ON executions REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION sum_ended_executions();
INSERT INTO execution_sums (org_id, scope_id, span, start, slot, n, success, failed)
  SELECT r.org_id, p.scope_id, p.span, p.start, 0, count(*), count(*) FILTER (WHERE r.status = 'completed'),
    count(*) FILTER (WHERE r.status = 'failed')
  FROM executions r
  CROSS JOIN LATERAL spans_of_run(ARRAY[r.org_id, r.workspace_id, r.app_id, r.token_id, r.created_by], r.started_at) p
  GROUP BY 1, 2, 3, 4;
CREATE INDEX execution_sums_start ON execution_sums USING brin (start);
