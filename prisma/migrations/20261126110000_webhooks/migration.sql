-- CreateTable
CREATE TABLE "webhooks" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "url" TEXT NOT NULL,
    "event_types" TEXT[],
    "is_enabled" BOOLEAN NOT NULL DEFAULT true,
    "disabled_reason" TEXT,
    "headers_ref" TEXT,
    "acts_for" TEXT NOT NULL,
    "secret_rotated_at" TIMESTAMPTZ(3),
    "failing_since" TIMESTAMPTZ(3),
    "position_xid" xid8 NOT NULL DEFAULT pg_current_xact_id(),
    "position_seq" BIGINT NOT NULL DEFAULT 9223372036854775807,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "webhooks_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_deliveries" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "webhook_id" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "event_type" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "body" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "tries" INTEGER NOT NULL DEFAULT 0,
    "max_tries" INTEGER NOT NULL DEFAULT 8,
    "attempts" JSONB NOT NULL DEFAULT '[]',
    "place" BIGSERIAL NOT NULL,
    "due_at" TIMESTAMPTZ(3),
    "queued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id")
);

-- AlterTable
ALTER TABLE "credentials" ADD COLUMN     "webhook_id" TEXT;

-- CreateIndex
CREATE INDEX "webhooks_org_id_id_idx" ON "webhooks"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "webhooks_workspace_id_idx" ON "webhooks"("workspace_id");

-- CreateIndex
CREATE INDEX "webhook_deliveries_org_id_webhook_id_id_idx" ON "webhook_deliveries"("org_id", "webhook_id", "id" DESC);

-- CreateIndex
CREATE INDEX "webhook_deliveries_created_at_idx" ON "webhook_deliveries"("created_at");

-- CreateIndex
CREATE UNIQUE INDEX "credentials_webhook_id_key" ON "credentials"("webhook_id");

-- CreateIndex
CREATE INDEX "webhook_deliveries_log" ON "webhook_deliveries"("webhook_id", "created_at");

-- AddForeignKey
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_webhook_id_fkey" FOREIGN KEY ("webhook_id") REFERENCES "webhooks"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_webhook_id_fkey" FOREIGN KEY ("webhook_id") REFERENCES "webhooks"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE credentials DROP CONSTRAINT credentials_of_one;
ALTER TABLE credentials ADD CONSTRAINT credentials_of_one
  CHECK (num_nonnulls(tool_instance_id, connection_id, webhook_id) = 1);

-- What a webhook can be sent now, what waits, and the queue of each resource.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, place) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_queue ON webhook_deliveries (webhook_id, resource_id, place)
  WHERE status = 'pending';
-- All nodes look for webhooks in use, many times a second.
CREATE INDEX webhooks_enabled ON webhooks (id) WHERE is_enabled;

-- The version rises with every change that is visible to clients and made by them; failures and positions are neither.
CALL keep_resource_version('webhooks', '{failing_since,position_xid,position_seq}');
