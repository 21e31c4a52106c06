-- AlterTable
ALTER TABLE "oauth_grants" ADD COLUMN     "with_factor" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "factor_grace_days" INTEGER NOT NULL DEFAULT 7,
ADD COLUMN     "factor_required_at" TIMESTAMPTZ(3),
ADD COLUMN     "step_up" TEXT[] DEFAULT ARRAY[]::TEXT[];
