-- CreateIndex
CREATE INDEX "applications_metadata_url_idx" ON "applications"("metadata_url");
