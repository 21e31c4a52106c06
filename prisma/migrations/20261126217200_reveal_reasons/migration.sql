-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "reveal_reason_required" BOOLEAN NOT NULL DEFAULT false;
