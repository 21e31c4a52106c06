-- AlterTable
ALTER TABLE "files" ADD COLUMN     "reserved_bytes" BIGINT;

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "storage_limit_bytes" BIGINT;

-- AlterTable
ALTER TABLE "workspaces" ADD COLUMN     "storage_limit_bytes" BIGINT;

-- What artifacts hold, in `place_counts`: `storage.bytes` of a workspace and of its organization, whose place is its own
-- id, and `artifacts` of a workspace. A file counts by its own row, from the first byte until its bytes are removed, and
-- not by the rows of its pieces; a text by the row of its version. Existing rows are counted here, by two scans: nobody writes artifacts meanwhile. No
-- place has a limit of its own yet. What was stored beyond the settings stays, and only new bytes are refused.
CALL keep_place_sums('artifacts', '(r.workspace_id), (r.org_id)', $$
  ('storage.bytes', CASE WHEN r.file_id IS NULL THEN r.size_bytes ELSE 0 END),
  ('artifacts', (r.is_latest AND r.deleted_at IS NULL AND p.id = r.workspace_id)::int)$$);
CALL keep_place_sums('files', '(r.workspace_id), (r.org_id)', $$
  ('storage.bytes', CASE WHEN r.part_of IS NULL THEN coalesce(r.size_bytes, r.reserved_bytes, 0) ELSE 0 END)$$);

-- The limit of a workspace; null for none. Its own one is not above the setting, unless its organization was granted more.
CREATE FUNCTION storage_limit_of_workspace(own bigint, granted bigint, setting bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN setting = 0 THEN own ELSE least(coalesce(own, setting), greatest(setting, granted)) END
$$;

-- Returns if a workspace may hold so many bytes more, and fails otherwise. Until the transaction ends, nobody else in the
-- organization gets an answer, so call it in the transaction that writes the rows, before they are written, and lock
-- nothing afterwards. The counts are read after the lock, by statements of their own: they have what was committed while
-- it was awaited.
CREATE FUNCTION demand_storage(of_org text, of_workspace text, more bigint, per_workspace bigint, per_organization bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
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
END $$;
