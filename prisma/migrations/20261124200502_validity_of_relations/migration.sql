-- AlterTable
ALTER TABLE "entity_relations" ADD COLUMN     "valid_from" TIMESTAMPTZ(3),
ADD COLUMN     "valid_to" TIMESTAMPTZ(3);
