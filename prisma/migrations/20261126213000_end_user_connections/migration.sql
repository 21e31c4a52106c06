-- AlterTable
ALTER TABLE "connections" ADD COLUMN     "end_user_email" TEXT,
ADD COLUMN     "end_user_id" TEXT,
ADD COLUMN     "end_user_name" TEXT;

-- AlterTable
ALTER TABLE "tool_instances" ADD COLUMN     "return_addresses" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- CreateTable
CREATE TABLE "connect_links" (
    "hash" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "tool_instance_id" TEXT NOT NULL,
    "end_user_id" TEXT NOT NULL,
    "end_user_name" TEXT,
    "end_user_email" TEXT,
    "return_to" TEXT,
    "user_id" TEXT NOT NULL,
    "token_id" TEXT,
    "browser_hash" TEXT,
    "state_hash" TEXT,
    "verifier" BYTEA,
    "redirect_uri" TEXT,
    "scopes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "connect_links_pkey" PRIMARY KEY ("hash")
);

-- CreateIndex
CREATE UNIQUE INDEX "connect_links_state_hash_key" ON "connect_links"("state_hash");

-- CreateIndex
CREATE INDEX "connect_links_tool_instance_id_end_user_id_idx" ON "connect_links"("tool_instance_id", "end_user_id");

-- CreateIndex
CREATE INDEX "connect_links_expires_at_idx" ON "connect_links"("expires_at");

-- CreateIndex
CREATE INDEX "connections_tool_instance_id_idx" ON "connections"("tool_instance_id");

-- AddForeignKey
ALTER TABLE "connect_links" ADD CONSTRAINT "connect_links_tool_instance_id_fkey" FOREIGN KEY ("tool_instance_id") REFERENCES "tool_instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- An instance has one connection for its workspace, one for each namespace, and one for each end user.
DROP INDEX connections_one_per_place;
CREATE UNIQUE INDEX connections_one_per_place ON connections (tool_instance_id, coalesce(namespace_id, ''))
  WHERE end_user_id IS NULL;
CREATE UNIQUE INDEX connections_one_per_end_user ON connections (tool_instance_id, end_user_id)
  WHERE end_user_id IS NOT NULL;
-- The lists of connections that are of no end user do not walk past those of thousands of end users.
CREATE INDEX connections_of_workspaces ON connections (org_id, workspace_id, id DESC) WHERE end_user_id IS NULL;
CREATE INDEX connections_of_namespaces ON connections (org_id, namespace_id, id DESC) WHERE end_user_id IS NULL;
CREATE INDEX connections_of_instances ON connections (org_id, tool_instance_id, id DESC) WHERE end_user_id IS NULL;
