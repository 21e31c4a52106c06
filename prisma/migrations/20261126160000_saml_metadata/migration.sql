-- AlterTable
ALTER TABLE "identity_providers" ADD COLUMN     "saml_metadata_certificate" TEXT,
ADD COLUMN     "saml_metadata_error" TEXT,
ADD COLUMN     "saml_metadata_failures" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "saml_metadata_fetched_at" TIMESTAMPTZ(3),
ADD COLUMN     "saml_metadata_refresh_at" TIMESTAMPTZ(3),
ADD COLUMN     "saml_metadata_url" TEXT;

-- CreateIndex
CREATE INDEX "identity_providers_saml_metadata_refresh_at_idx" ON "identity_providers"("saml_metadata_refresh_at");

-- What Prisma cannot say. Without an address there is nothing to read, and nothing is known of it.
ALTER TABLE identity_providers ADD CONSTRAINT identity_providers_metadata CHECK (saml_metadata_failures >= 0
  AND CASE WHEN saml_metadata_url IS NULL
    THEN num_nonnulls(saml_metadata_certificate, saml_metadata_fetched_at, saml_metadata_error, saml_metadata_refresh_at) = 0
      AND saml_metadata_failures = 0
    ELSE protocol = 'saml' AND saml_entity_id IS NOT NULL AND saml_metadata_refresh_at IS NOT NULL END);

-- To read it again is no change of a provider; what was read and is new is one.
DROP TRIGGER resource_version ON identity_providers;
DROP FUNCTION identity_providers_content_changed(identity_providers, identity_providers);
CALL keep_resource_version('identity_providers',
  '{certificate_noticed_at,saml_metadata_fetched_at,saml_metadata_error,saml_metadata_failures,saml_metadata_refresh_at}');

-- The closed sets and ranges of columns that were added without: rows are checked in the next step, so that nobody waits.
UPDATE organizations SET step_up = '{}' WHERE step_up IS NULL;
ALTER TABLE organizations
  ADD CONSTRAINT organizations_factor_grace_days CHECK (factor_grace_days BETWEEN 0 AND 30) NOT VALID,
  ADD CONSTRAINT organizations_step_up CHECK (step_up IS NOT NULL AND step_up <@
    '{secret_reveal,sign_in_settings,organization_deletion,member_changes}'::text[]) NOT VALID;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_begun CHECK (begun_snapshot ~ '^\d+:\d+:[\d,]*$' AND begun_xid ~ '^\d{1,20}$')
  NOT VALID;
