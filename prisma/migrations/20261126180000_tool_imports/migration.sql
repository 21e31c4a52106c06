-- AlterTable
ALTER TABLE "tools" ADD COLUMN     "import_source" JSONB;
