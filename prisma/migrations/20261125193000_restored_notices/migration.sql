-- AlterTable
ALTER TABLE "notifications" ADD COLUMN     "resolved_with" TEXT;
