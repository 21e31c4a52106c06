-- CreateTable
CREATE TABLE "entities" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL DEFAULT 'other',
    "description" TEXT,
    "aliases" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "importance" DOUBLE PRECISION NOT NULL DEFAULT 0.5,
    "mention_count" INTEGER NOT NULL DEFAULT 0,
    "last_referenced_at" TIMESTAMPTZ(3),
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "is_indexed" BOOLEAN NOT NULL DEFAULT false,
    "identity_key" TEXT NOT NULL,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "entities_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "entity_relations" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "source_entity_id" TEXT NOT NULL,
    "target_entity_id" TEXT NOT NULL,
    "relation_type" TEXT NOT NULL,
    "weight" DOUBLE PRECISION NOT NULL DEFAULT 1,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "entity_relations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "memories" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "content" TEXT NOT NULL,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "memories_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "memory_entities" (
    "memory_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,

    CONSTRAINT "memory_entities_pkey" PRIMARY KEY ("memory_id","entity_id")
);

-- CreateIndex
CREATE INDEX "entities_app_id_namespace_id_id_idx" ON "entities"("app_id", "namespace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "entities_app_id_namespace_id_entity_type_id_idx" ON "entities"("app_id", "namespace_id", "entity_type", "id" DESC);

-- CreateIndex
CREATE INDEX "entities_app_id_id_idx" ON "entities"("app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "entities_namespace_id_id_idx" ON "entities"("namespace_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "entities_id_namespace_id_app_id_key" ON "entities"("id", "namespace_id", "app_id");

-- CreateIndex
CREATE UNIQUE INDEX "entities_app_id_namespace_id_entity_type_identity_key_key" ON "entities"("app_id", "namespace_id", "entity_type", "identity_key");

-- CreateIndex
CREATE INDEX "entity_relations_source_entity_id_id_idx" ON "entity_relations"("source_entity_id", "id" DESC);

-- CreateIndex
CREATE INDEX "entity_relations_target_entity_id_id_idx" ON "entity_relations"("target_entity_id", "id" DESC);

-- CreateIndex
CREATE INDEX "entity_relations_source_entity_id_relation_type_id_idx" ON "entity_relations"("source_entity_id", "relation_type", "id" DESC);

-- CreateIndex
CREATE INDEX "entity_relations_target_entity_id_relation_type_id_idx" ON "entity_relations"("target_entity_id", "relation_type", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "entity_relations_source_entity_id_target_entity_id_relation_key" ON "entity_relations"("source_entity_id", "target_entity_id", "relation_type");

-- CreateIndex
CREATE INDEX "memories_app_id_namespace_id_id_idx" ON "memories"("app_id", "namespace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "memories_app_id_id_idx" ON "memories"("app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "memories_namespace_id_id_idx" ON "memories"("namespace_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "memories_id_namespace_id_app_id_key" ON "memories"("id", "namespace_id", "app_id");

-- CreateIndex
CREATE INDEX "memory_entities_entity_id_memory_id_idx" ON "memory_entities"("entity_id", "memory_id" DESC);

-- AddForeignKey
ALTER TABLE "entities" ADD CONSTRAINT "entities_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "entities" ADD CONSTRAINT "entities_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "entity_relations" ADD CONSTRAINT "entity_relations_source_entity_id_namespace_id_app_id_fkey" FOREIGN KEY ("source_entity_id", "namespace_id", "app_id") REFERENCES "entities"("id", "namespace_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "entity_relations" ADD CONSTRAINT "entity_relations_target_entity_id_namespace_id_app_id_fkey" FOREIGN KEY ("target_entity_id", "namespace_id", "app_id") REFERENCES "entities"("id", "namespace_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memories" ADD CONSTRAINT "memories_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memories" ADD CONSTRAINT "memories_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memory_entities" ADD CONSTRAINT "memory_entities_memory_id_namespace_id_app_id_fkey" FOREIGN KEY ("memory_id", "namespace_id", "app_id") REFERENCES "memories"("id", "namespace_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memory_entities" ADD CONSTRAINT "memory_entities_entity_id_namespace_id_app_id_fkey" FOREIGN KEY ("entity_id", "namespace_id", "app_id") REFERENCES "entities"("id", "namespace_id", "app_id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE entity_relations ADD CONSTRAINT entity_relations_of_two CHECK (source_entity_id <> target_entity_id);

-- A relation that is created counts as a mention of both ends, and must not make a client's change fail.
CALL keep_resource_version('entities', '{mention_count,last_referenced_at,is_indexed}');
CALL keep_resource_version('memories');
