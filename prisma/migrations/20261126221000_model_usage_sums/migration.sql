-- What workspaces use of models, by quarters of an hour: it begins with the reports after this.
CREATE TABLE "model_usage_sums" (
    "workspace_id" TEXT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "logical_model_id" TEXT NOT NULL,
    "provider_account_id" TEXT NOT NULL,
    "model_name" TEXT NOT NULL,
    "requests" BIGINT NOT NULL,
    "errors" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "cost" DECIMAL(38,12) NOT NULL,

    CONSTRAINT "model_usage_sums_pkey" PRIMARY KEY ("workspace_id","start","logical_model_id","provider_account_id","model_name")
);

-- CreateIndex
CREATE INDEX "model_usage_sums_start" ON "model_usage_sums"("start");

-- AddForeignKey
ALTER TABLE "model_usage_sums" ADD CONSTRAINT "model_usage_sums_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;
