-- AlterTable
ALTER TABLE "files" ADD COLUMN     "tool_instance_id" TEXT;

-- of results only: there are none yet, and no other file pays for it
CREATE INDEX files_of_results ON files (workspace_id) WHERE tool_instance_id IS NOT NULL;

-- Whether the results of a workspace may have so many bytes more, as `demand_storage` is asked for all of its files: who
-- asks at the same time waits, and sees what was written before.
CREATE FUNCTION demand_result_storage(of_workspace text, more bigint, most bigint) RETURNS boolean LANGUAGE plpgsql AS $$
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
END $$;

-- Results of an instance that is gone are removed with the next files that nobody uses, whichever way it went. A file has
-- no reference to it: its row stays until its bytes are removed.
CREATE FUNCTION let_results_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE files SET expires_at = now()
    WHERE workspace_id = OLD.workspace_id AND tool_instance_id = OLD.id AND expires_at > now();
  RETURN NULL;
END $$;
CREATE TRIGGER let_results_go AFTER DELETE ON tool_instances FOR EACH ROW EXECUTE FUNCTION let_results_go();
