-- AlterTable
ALTER TABLE "events" ADD COLUMN     "recipient_id" TEXT;

-- CreateTable
CREATE TABLE "notifications" (
    "id" TEXT NOT NULL,
    "recipient_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "org_id" TEXT,
    "workspace_id" TEXT,
    "namespace_id" TEXT,
    "environment_id" TEXT,
    "app_id" TEXT,
    "type" TEXT NOT NULL,
    "priority" TEXT NOT NULL,
    "category" TEXT NOT NULL,
    "title" TEXT NOT NULL,
    "message" TEXT NOT NULL,
    "action_url" TEXT,
    "action_label" TEXT,
    "status" TEXT NOT NULL DEFAULT 'unread',
    "source_service" TEXT NOT NULL,
    "source_event" TEXT NOT NULL,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "read_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "notifications_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "notification_preferences" (
    "user_id" TEXT NOT NULL,
    "muted_categories" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "notification_preferences_pkey" PRIMARY KEY ("user_id")
);

-- CreateIndex
CREATE INDEX "notifications_recipient_id_id_idx" ON "notifications"("recipient_id", "id" DESC);

-- CreateIndex
CREATE INDEX "notifications_org_id_idx" ON "notifications"("org_id");

-- CreateIndex
CREATE INDEX "notifications_workspace_id_idx" ON "notifications"("workspace_id");

-- CreateIndex
CREATE INDEX "notifications_expires_at_idx" ON "notifications"("expires_at");

-- AddForeignKey
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_recipient_id_fkey" FOREIGN KEY ("recipient_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_preferences" ADD CONSTRAINT "notification_preferences_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE notifications
  ADD CONSTRAINT notifications_status CHECK (status IN ('unread', 'read', 'archived')
    AND (status <> 'unread' OR read_at IS NULL)),
  ADD CONSTRAINT notifications_scope CHECK (CASE scope
    WHEN 'workspace' THEN org_id IS NOT NULL AND workspace_id IS NOT NULL
    WHEN 'organization' THEN org_id IS NOT NULL AND workspace_id IS NULL
    WHEN 'user' THEN workspace_id IS NULL
    WHEN 'system' THEN org_id IS NULL AND workspace_id IS NULL
    ELSE false END),
  ADD CONSTRAINT notifications_texts CHECK (length(title) BETWEEN 1 AND 200 AND length(message) BETWEEN 1 AND 2000);

-- what a badge counts
CREATE INDEX notifications_unread ON notifications (recipient_id, category) INCLUDE (expires_at)
  WHERE status = 'unread';

-- A name as a part of a sentence: one line without invisible characters, of a bounded length. Code points instead of
-- classes: what a class contains depends on the locale of the database.
CREATE FUNCTION one_line(name text, most int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(btrim(regexp_replace(name,
    '[\u0001-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff'
      || '\ufff9-\ufffb\U000e0000-\U000e007f\ue000-\uf8ff]+', ' ', 'g')), most)
$$;
