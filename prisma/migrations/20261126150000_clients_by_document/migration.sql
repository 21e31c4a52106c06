-- AlterTable
ALTER TABLE "applications" ADD COLUMN     "id_token_signed_response_alg" TEXT NOT NULL DEFAULT 'ES256',
ADD COLUMN     "metadata_url" TEXT;

-- CreateIndex
CREATE UNIQUE INDEX "applications_org_id_metadata_url_key" ON "applications"("org_id", "metadata_url");
