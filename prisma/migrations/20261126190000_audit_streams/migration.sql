-- CreateTable
CREATE TABLE "audit_streams" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "target_type" TEXT NOT NULL,
    "url" TEXT NOT NULL,
    "bucket" TEXT,
    "region" TEXT,
    "prefix" TEXT,
    "credentials_ref" TEXT,
    "is_compressed" BOOLEAN NOT NULL DEFAULT false,
    "actions" TEXT[],
    "resource_types" TEXT[],
    "success" BOOLEAN,
    "is_enabled" BOOLEAN NOT NULL DEFAULT true,
    "disabled_reason" TEXT,
    "acts_for" TEXT NOT NULL,
    "failing_since" TIMESTAMPTZ(3),
    "gone_before" TIMESTAMPTZ(3),
    "position_xid" xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    "position_id" TEXT NOT NULL DEFAULT '',
    "position_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "begun_snapshot" TEXT DEFAULT (pg_current_snapshot())::text,
    "begun_xid" TEXT DEFAULT (pg_current_xact_id())::text,
    "last_sequence" INTEGER NOT NULL DEFAULT 0,
    "batch_bytes" INTEGER,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "audit_streams_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "audit_stream_deliveries" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "audit_stream_id" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "is_test" BOOLEAN NOT NULL DEFAULT false,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "tries" INTEGER NOT NULL DEFAULT 0,
    "max_tries" INTEGER NOT NULL DEFAULT 2147483647,
    "attempts" JSONB NOT NULL DEFAULT '[]',
    "place" BIGSERIAL NOT NULL,
    "sequence" INTEGER NOT NULL DEFAULT 0,
    "from_xid" xid8,
    "from_id" TEXT,
    "to_xid" xid8,
    "to_id" TEXT,
    "records" INTEGER NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "first_at" TIMESTAMPTZ(3) NOT NULL,
    "last_at" TIMESTAMPTZ(3) NOT NULL,
    "excerpt" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3),
    "queued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_stream_deliveries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "audit_streams_org_id_id_idx" ON "audit_streams"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "audit_stream_deliveries_org_id_audit_stream_id_id_idx" ON "audit_stream_deliveries"("org_id", "audit_stream_id", "id" DESC);

-- CreateIndex
CREATE INDEX "audit_stream_deliveries_created_at_idx" ON "audit_stream_deliveries"("created_at");

-- CreateIndex
CREATE INDEX "audit_stream_deliveries_audit_stream_id_created_at_idx" ON "audit_stream_deliveries"("audit_stream_id", "created_at");

-- The records of one organization in the order of commits. It takes time in proportion to the records, and writers of
-- records wait meanwhile, unless the operator has made the indexes of the partitions before: an index of a partition
-- that is like this one is taken as it is, whatever its name (docs/operate/upgrade.md).
CREATE INDEX "activity_org_id_xid_id_idx" ON "activity"("org_id", "xid", "id");

-- AddForeignKey
ALTER TABLE "audit_streams" ADD CONSTRAINT "audit_streams_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "audit_stream_deliveries" ADD CONSTRAINT "audit_stream_deliveries_audit_stream_id_fkey" FOREIGN KEY ("audit_stream_id") REFERENCES "audit_streams"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What a stream can be sent now, what waits, and the queue of each resource.
CREATE INDEX audit_stream_deliveries_due ON audit_stream_deliveries (audit_stream_id, due_at, place)
  WHERE due_at IS NOT NULL;
CREATE INDEX audit_stream_deliveries_queue ON audit_stream_deliveries (audit_stream_id, resource_id, place)
  WHERE status = 'pending';
-- All nodes look for streams in use, each second.
CREATE INDEX audit_streams_enabled ON audit_streams (id) WHERE is_enabled;

-- The version rises with every change that is visible to clients and made by them; failures and positions are neither.
CALL keep_resource_version('audit_streams',
  '{failing_since,gone_before,position_xid,position_id,position_at,begun_snapshot,begun_xid,last_sequence,batch_bytes}');
