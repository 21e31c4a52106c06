-- CreateTable
CREATE TABLE "executions" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "execution_id" TEXT NOT NULL,
    "augmentation_id" TEXT NOT NULL,
    "endpoint_id" TEXT,
    "action_id" TEXT,
    "status" TEXT NOT NULL,
    "stages_completed" INTEGER NOT NULL DEFAULT 0,
    "total_stages" INTEGER NOT NULL,
    "token_usage" JSONB NOT NULL DEFAULT '{}',
    "error" TEXT,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "token_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "executions_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "executions_org_id_workspace_id_id_idx" ON "executions"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "executions_org_id_workspace_id_app_id_id_idx" ON "executions"("org_id", "workspace_id", "app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "executions_org_id_workspace_id_ended_at_idx" ON "executions"("org_id", "workspace_id", "ended_at");

-- CreateIndex
CREATE INDEX "executions_app_id_idx" ON "executions"("app_id");

-- CreateIndex
CREATE INDEX "executions_by_time" ON "executions" USING BRIN ("created_at");

-- CreateIndex
CREATE UNIQUE INDEX "executions_org_id_workspace_id_execution_id_key" ON "executions"("org_id", "workspace_id", "execution_id");

-- AddForeignKey
ALTER TABLE "executions" ADD CONSTRAINT "executions_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE executions ADD CONSTRAINT executions_status CHECK (status IN ('running', 'completed', 'failed')
  AND (status = 'running') = (ended_at IS NULL) AND (error IS NULL OR status = 'failed'));

CALL keep_resource_version('executions');
CALL keep_place_counts('executions', '{"executions": "true", "executions.running": "r.status = ''running''",
  "executions.success": "r.status = ''completed''", "executions.failed": "r.status = ''failed''"}');
