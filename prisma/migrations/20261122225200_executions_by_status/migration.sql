-- CreateIndex
CREATE INDEX "executions_org_id_workspace_id_status_id_idx" ON "executions"("org_id", "workspace_id", "status", "id" DESC);
