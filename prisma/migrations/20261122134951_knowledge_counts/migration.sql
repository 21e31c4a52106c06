-- With all columns that name the place, an index alone tells how many rows a list has.
-- DropIndex
DROP INDEX "entities_app_id_namespace_id_entity_type_id_idx";

-- DropIndex
DROP INDEX "entities_app_id_namespace_id_id_idx";

-- DropIndex
DROP INDEX "memories_app_id_namespace_id_id_idx";

-- CreateIndex
CREATE INDEX "entities_org_id_workspace_id_app_id_namespace_id_id_idx" ON "entities"("org_id", "workspace_id", "app_id", "namespace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "entities_org_id_workspace_id_app_id_namespace_id_entity_typ_idx" ON "entities"("org_id", "workspace_id", "app_id", "namespace_id", "entity_type", "id" DESC);

-- CreateIndex
CREATE INDEX "memories_org_id_workspace_id_app_id_namespace_id_id_idx" ON "memories"("org_id", "workspace_id", "app_id", "namespace_id", "id" DESC);
