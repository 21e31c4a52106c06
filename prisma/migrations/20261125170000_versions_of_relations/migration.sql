-- AlterTable
ALTER TABLE "entity_relations" ADD COLUMN     "resource_version" INTEGER NOT NULL DEFAULT 1;

CALL keep_resource_version('entity_relations');
