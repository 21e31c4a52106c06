-- AlterTable
ALTER TABLE "api_tokens" ADD COLUMN     "reissued_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "refresh_tokens" ADD COLUMN     "reissued_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "users" ADD COLUMN     "purged_at" TIMESTAMPTZ(3);
