-- The address of a member is hidden from the others until the member has used the organization. Those who are there
-- already were seen with theirs. The default is for these rows only: it raises no version.
ALTER TABLE "organization_members" ADD COLUMN "used_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP;
ALTER TABLE "organization_members" ALTER COLUMN "used_at" DROP DEFAULT;

-- Null: the account has its address without holding it (decision 27).
ALTER TABLE "users" ALTER COLUMN "email_key" DROP NOT NULL;
CREATE INDEX "users_without_their_address" ON "users" (lower("email")) WHERE "email_key" IS NULL;

-- The account has left the organization of the provider, or the organization was deleted.
ALTER TABLE "identity_links" ADD COLUMN "ended_at" TIMESTAMPTZ(3);
ALTER TABLE "identity_links" DROP CONSTRAINT "identity_links_reason";
ALTER TABLE "identity_links" ADD CONSTRAINT "identity_links_reason"
  CHECK ("reason" IN ('created', 'proven_domain', 'verified_email', 'managed_account', 'administrator'));
