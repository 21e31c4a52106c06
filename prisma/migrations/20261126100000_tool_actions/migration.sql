-- AlterTable
ALTER TABLE "tool_instances" ADD COLUMN     "action_counts" JSONB NOT NULL DEFAULT '{}';

-- CreateTable
CREATE TABLE "tool_confirmations" (
    "hash" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "tool_instance_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "token_id" TEXT,
    "digest" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "tool_confirmations_pkey" PRIMARY KEY ("hash")
);

-- CreateIndex
CREATE INDEX "tool_confirmations_tool_instance_id_idx" ON "tool_confirmations"("tool_instance_id");

-- CreateIndex
CREATE INDEX "tool_confirmations_expires_at_idx" ON "tool_confirmations"("expires_at");

-- AddForeignKey
ALTER TABLE "tool_confirmations" ADD CONSTRAINT "tool_confirmations_tool_instance_id_fkey" FOREIGN KEY ("tool_instance_id") REFERENCES "tool_instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What is counted is no change of an instance.
DROP TRIGGER resource_version ON tool_instances;
DROP FUNCTION tool_instances_content_changed(tool_instances, tool_instances);
CALL keep_resource_version('tool_instances', '{usage_count,last_used_at,connection_status,action_counts}');
