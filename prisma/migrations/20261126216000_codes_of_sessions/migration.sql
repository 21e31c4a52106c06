-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "code_hash" TEXT,
ADD COLUMN     "code_used_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "sso_codes" ADD COLUMN     "browser_hash" TEXT;

-- CreateIndex
CREATE UNIQUE INDEX "sessions_code_hash_key" ON "sessions"("code_hash");
