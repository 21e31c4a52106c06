-- AlterTable
ALTER TABLE "artifacts" ADD COLUMN     "deleted_by" TEXT;

-- AlterTable
ALTER TABLE "workspaces" ADD COLUMN     "deleted_by" TEXT;

-- The lists of what can be restored. Few rows are deleted at any time, and artifacts are in one of 30 days at most.
CREATE INDEX artifacts_restorable ON artifacts (org_id, workspace_id, id DESC) WHERE deleted_at IS NOT NULL;
CREATE INDEX artifacts_restorable_in_namespace ON artifacts (org_id, namespace_id, id DESC) WHERE deleted_at IS NOT NULL;
CREATE INDEX workspaces_restorable ON workspaces (org_id, id DESC) WHERE deleted_at IS NOT NULL;
