-- CreateIndex
CREATE INDEX "connections_org_id_tool_instance_id_id_idx" ON "connections"("org_id", "tool_instance_id", "id" DESC);
