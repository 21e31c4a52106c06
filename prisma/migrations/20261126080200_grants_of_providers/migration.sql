-- Apart from the new columns, which lock sessions and tokens against everybody.
-- CreateIndex
CREATE INDEX "oauth_grants_identity_provider_id_idx" ON "oauth_grants"("identity_provider_id");

-- Grants that end with a session were given in it.
UPDATE "oauth_grants" g SET "identity_provider_id" = s."identity_provider_id"
FROM "sessions" s WHERE s."id" = g."session_id" AND s."identity_provider_id" IS NOT NULL;
