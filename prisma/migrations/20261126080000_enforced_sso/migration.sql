-- AlterTable
ALTER TABLE "api_tokens" ADD COLUMN     "suspended_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "identity_providers" ADD COLUMN     "suspends_tokens" BOOLEAN NOT NULL DEFAULT true;

-- AlterTable
ALTER TABLE "oauth_grants" ADD COLUMN     "identity_provider_id" TEXT;

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "sso_break_glass" BOOLEAN NOT NULL DEFAULT true,
ADD COLUMN     "sso_required" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "sso_required_domains" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "break_glass_org_id" TEXT,
ADD COLUMN     "break_glass_until" TIMESTAMPTZ(3),
ADD COLUMN     "id_token" BYTEA;

-- AlterTable
ALTER TABLE "sso_codes" ADD COLUMN     "id_token" BYTEA;
