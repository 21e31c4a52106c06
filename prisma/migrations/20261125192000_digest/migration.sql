-- AlterTable
ALTER TABLE "notification_preferences" ADD COLUMN     "digest_hour" INTEGER NOT NULL DEFAULT 8;

-- AlterTable
ALTER TABLE "notifications" ADD COLUMN     "digest" TEXT;

-- CreateTable
CREATE TABLE "notification_schedules" (
    "user_id" TEXT NOT NULL,
    "place_id" TEXT NOT NULL DEFAULT '',
    "category" TEXT NOT NULL DEFAULT '',
    "frequency" TEXT NOT NULL,
    "org_id" TEXT,
    "workspace_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "notification_schedules_pkey" PRIMARY KEY ("user_id","place_id","category")
);

-- CreateTable
CREATE TABLE "notification_digests" (
    "user_id" TEXT NOT NULL,
    "hourly_at" TIMESTAMPTZ(3),
    "daily_at" TIMESTAMPTZ(3),

    CONSTRAINT "notification_digests_pkey" PRIMARY KEY ("user_id")
);

-- CreateIndex
CREATE INDEX "notification_schedules_org_id_idx" ON "notification_schedules"("org_id");

-- CreateIndex
CREATE INDEX "notification_schedules_workspace_id_idx" ON "notification_schedules"("workspace_id");

-- AddForeignKey
ALTER TABLE "notification_schedules" ADD CONSTRAINT "notification_schedules_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_schedules" ADD CONSTRAINT "notification_schedules_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_schedules" ADD CONSTRAINT "notification_schedules_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "notification_digests" ADD CONSTRAINT "notification_digests_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE notification_preferences
  ADD CONSTRAINT notification_preferences_digest_hour CHECK (digest_hour BETWEEN 0 AND 23);
ALTER TABLE notifications
  ADD CONSTRAINT notifications_digest CHECK (digest IN ('hourly', 'daily'));
ALTER TABLE notification_schedules
  ADD CONSTRAINT notification_schedules_frequency CHECK (frequency IN ('immediate', 'hourly', 'daily', 'never')),
  ADD CONSTRAINT notification_schedules_place CHECK (place_id = coalesce(workspace_id, org_id, '')
    AND (workspace_id IS NULL OR org_id IS NOT NULL));

-- what waits for a digest of a user
CREATE INDEX notifications_digest ON notifications (recipient_id, digest) WHERE digest IS NOT NULL;

-- the digests that are due: users for whom nothing waits are not in it
CREATE INDEX notification_digests_due ON notification_digests (least(hourly_at, daily_at))
  WHERE least(hourly_at, daily_at) IS NOT NULL;

-- When the next digest of a frequency is due: at the next full hour, or the next time that the clocks of a zone show an
-- hour. An hour that the clocks leave out comes when they have been put forward, and one that comes twice counts once.
-- A zone that this database does not know counts as UTC.
CREATE FUNCTION next_digest(frequency text, zone text, hour int, since timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  today timestamp;
  due timestamptz;
BEGIN
  IF frequency = 'hourly' THEN
    RETURN date_trunc('hour', since, zone) + interval '1 hour';
  END IF;
  today := date_trunc('day', since AT TIME ZONE zone);
  FOR days IN 0..2 LOOP
    due := (today + make_interval(days => days, hours => hour)) AT TIME ZONE zone;
    EXIT WHEN due > since;
  END LOOP;
  RETURN due;
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN next_digest(frequency, 'UTC', hour, since);
END $$;
