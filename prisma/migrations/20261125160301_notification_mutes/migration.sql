-- CreateTable
CREATE TABLE "notification_mutes" (
    "user_id" TEXT NOT NULL,
    "place_id" TEXT NOT NULL DEFAULT '',
    "category" TEXT NOT NULL,
    "channel" TEXT NOT NULL,
    "org_id" TEXT,
    "workspace_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "notification_mutes_pkey" PRIMARY KEY ("user_id","place_id","category","channel")
);

-- CreateIndex
CREATE INDEX "notification_mutes_org_id_idx" ON "notification_mutes"("org_id");

-- CreateIndex
CREATE INDEX "notification_mutes_workspace_id_idx" ON "notification_mutes"("workspace_id");

-- AddForeignKey
ALTER TABLE "notification_mutes" ADD CONSTRAINT "notification_mutes_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_mutes" ADD CONSTRAINT "notification_mutes_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_mutes" ADD CONSTRAINT "notification_mutes_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE notification_mutes
  ADD CONSTRAINT notification_mutes_channel CHECK (channel IN ('in_app', 'mail')),
  ADD CONSTRAINT notification_mutes_place CHECK (place_id = coalesce(workspace_id, org_id, '')
    AND (workspace_id IS NULL OR org_id IS NOT NULL));
