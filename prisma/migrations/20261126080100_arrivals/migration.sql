-- AlterTable
ALTER TABLE "identity_providers" ADD COLUMN     "default_workspace_id" TEXT,
ADD COLUMN     "default_workspace_role" TEXT NOT NULL DEFAULT 'member';
