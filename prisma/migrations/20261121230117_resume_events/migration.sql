-- What a reader that comes back has missed is read in the order of commits, which is that of (xid, seq) and not of seq: the old index served
-- nothing else, and a write keeps its cost.
-- CreateIndex
CREATE INDEX "events_org_id_workspace_id_xid_seq_idx" ON "events"("org_id", "workspace_id", "xid", "seq");

-- DropIndex
DROP INDEX "events_org_id_workspace_id_seq_idx";
