-- AlterTable
ALTER TABLE "connections" ADD COLUMN     "claimed_until" TIMESTAMPTZ(3),
ADD COLUMN     "refresh_claim" TEXT;

-- CreateIndex
CREATE INDEX "connections_org_id_namespace_id_id_idx" ON "connections"("org_id", "namespace_id", "id" DESC);

-- A refresh is no change that clients see.
DROP TRIGGER resource_version ON connections;
DROP FUNCTION connections_content_changed(connections, connections);
CALL keep_resource_version('connections',
  '{status,expires_at,last_refreshed_at,last_error,refresh_at,refresh_failures,refresh_claim,claimed_until}');
