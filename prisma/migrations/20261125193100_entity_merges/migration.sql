-- CreateTable
CREATE TABLE "entity_merges" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "merged_by" TEXT,
    "merged_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "entity_merges_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "entity_merges_entity_id_id_idx" ON "entity_merges"("entity_id", "id" DESC);

-- AddForeignKey
ALTER TABLE "entity_merges" ADD CONSTRAINT "entity_merges_entity_id_namespace_id_app_id_fkey" FOREIGN KEY ("entity_id", "namespace_id", "app_id") REFERENCES "entities"("id", "namespace_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE entity_merges ADD CONSTRAINT entity_merges_of_another CHECK (id <> entity_id);
