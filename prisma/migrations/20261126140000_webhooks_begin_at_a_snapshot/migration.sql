-- A new webhook reads from the oldest transaction that still runs, and passes over what could be seen when it began.
-- Those that exist have passed that moment.
ALTER TABLE "webhooks" ADD COLUMN     "begun_snapshot" TEXT,
ADD COLUMN     "begun_xid" TEXT;

-- AlterTable
ALTER TABLE "webhooks" ALTER COLUMN "position_xid" SET DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
ALTER COLUMN "position_seq" SET DEFAULT 0,
ALTER COLUMN "begun_snapshot" SET DEFAULT (pg_current_snapshot())::text,
ALTER COLUMN "begun_xid" SET DEFAULT (pg_current_xact_id())::text;

-- Where it reads is no change of a webhook.
DROP TRIGGER resource_version ON webhooks;
DROP FUNCTION webhooks_content_changed(webhooks, webhooks);
CALL keep_resource_version('webhooks', '{failing_since,position_xid,position_seq,begun_snapshot,begun_xid}');
