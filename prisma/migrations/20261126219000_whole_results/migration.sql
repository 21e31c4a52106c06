-- AlterTable
ALTER TABLE "files" ADD COLUMN     "tool_instance_id" TEXT;

-- CreateIndex
CREATE INDEX "files_tool_instance_id_idx" ON "files"("tool_instance_id");

-- Results of an instance that is gone are removed with the next files that nobody uses, whichever way it went. A file has
-- no reference to it: its row stays until its bytes are removed.
CREATE FUNCTION let_results_go() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE files SET expires_at = now() WHERE tool_instance_id = OLD.id AND expires_at > now();
  RETURN NULL;
END $$;
CREATE TRIGGER let_results_go AFTER DELETE ON tool_instances FOR EACH ROW EXECUTE FUNCTION let_results_go();
