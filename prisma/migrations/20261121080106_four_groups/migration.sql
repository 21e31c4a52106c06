-- AlterTable
ALTER TABLE "events" ADD COLUMN     "app_id" TEXT,
ADD COLUMN     "environment_id" TEXT,
ADD COLUMN     "namespace_id" TEXT;

-- CreateTable
CREATE TABLE "environments" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "description" TEXT,
    "is_default" BOOLEAN NOT NULL DEFAULT false,
    "status" TEXT NOT NULL DEFAULT 'active',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "environments_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "environment_slots" (
    "environment_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "release_id" TEXT,
    "last_number" INTEGER NOT NULL DEFAULT 0,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "environment_slots_pkey" PRIMARY KEY ("environment_id","app_id")
);

-- CreateTable
CREATE TABLE "deployments" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "environment_id" TEXT NOT NULL,
    "app_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "release_id" TEXT NOT NULL,
    "previous_release_id" TEXT,
    "action" TEXT NOT NULL,
    "deployed_by" TEXT,
    "deployed_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "deployments_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "provider_accounts" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "provider_type" TEXT NOT NULL,
    "region" TEXT,
    "data_residency" TEXT,
    "credentials_ref" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "status_reason" TEXT,
    "routing_mode" TEXT NOT NULL DEFAULT 'direct',
    "bridge_id" TEXT,
    "bridge_endpoint_name" TEXT,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "last_health_check" TIMESTAMPTZ(3),
    "consecutive_failures" INTEGER NOT NULL DEFAULT 0,
    "auth_failures" INTEGER NOT NULL DEFAULT 0,
    "tags" JSONB NOT NULL DEFAULT '{}',
    "max_tokens_per_month" BIGINT,
    "max_requests_per_month" BIGINT,
    "current_month_tokens" BIGINT NOT NULL DEFAULT 0,
    "current_month_requests" BIGINT NOT NULL DEFAULT 0,
    "usage_period" TEXT NOT NULL DEFAULT '',
    "rate_limit_policy" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "provider_accounts_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "logical_models" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "logical_model_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "model_type" TEXT NOT NULL DEFAULT 'chat',
    "status_by_hand" TEXT,
    "capabilities" JSONB NOT NULL DEFAULT '{}',
    "default_temperature" DOUBLE PRECISION,
    "default_top_p" DOUBLE PRECISION,
    "default_max_tokens" INTEGER,
    "fallback_chain" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "constraints" JSONB NOT NULL DEFAULT '{}',
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "tags" JSONB NOT NULL DEFAULT '{}',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "logical_models_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "model_targets" (
    "model_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "provider_account_id" TEXT NOT NULL,
    "model_name" TEXT NOT NULL,
    "weight" INTEGER NOT NULL DEFAULT 100,
    "priority" INTEGER NOT NULL DEFAULT 1,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "consecutive_failures" INTEGER NOT NULL DEFAULT 0,
    "last_failure" TIMESTAMPTZ(3),
    "last_success" TIMESTAMPTZ(3),
    "temperature_override" DOUBLE PRECISION,
    "max_tokens_override" INTEGER,

    CONSTRAINT "model_targets_pkey" PRIMARY KEY ("model_id","provider_account_id","model_name")
);

-- CreateTable
CREATE TABLE "model_entitlements" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "model_id" TEXT NOT NULL,
    "logical_model_id" TEXT NOT NULL,
    "workspace_limits" JSONB NOT NULL DEFAULT '{}',
    "allowed_step_types" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "allowed_endpoints" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "allowed_purposes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "request_count" BIGINT NOT NULL DEFAULT 0,
    "total_tokens" BIGINT NOT NULL DEFAULT 0,
    "last_used_at" TIMESTAMPTZ(3),
    "granted_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "model_entitlements_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "model_usage" (
    "entitlement_id" TEXT NOT NULL,
    "window" TEXT NOT NULL,
    "period" TEXT NOT NULL,
    "requests" BIGINT NOT NULL DEFAULT 0,
    "tokens" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "model_usage_pkey" PRIMARY KEY ("entitlement_id","window")
);

-- CreateTable
CREATE TABLE "root_keys" (
    "id" TEXT NOT NULL,
    "canary" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "root_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "secrets" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL DEFAULT 'organization',
    "workspace_id" TEXT,
    "namespace_id" TEXT,
    "environment_id" TEXT,
    "name" TEXT NOT NULL,
    "secret_type" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'active',
    "description" TEXT,
    "vault_version" INTEGER NOT NULL DEFAULT 1,
    "root_key_id" TEXT NOT NULL,
    "wrapped_key" BYTEA NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "rotation_reminder_days" INTEGER,
    "last_rotated_at" TIMESTAMPTZ(3),
    "last_accessed_at" TIMESTAMPTZ(3),
    "access_count" INTEGER NOT NULL DEFAULT 0,
    "rotation_noticed_at" TIMESTAMPTZ(3),
    "expiry_noticed_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "secrets_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "secret_versions" (
    "secret_id" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "ciphertext" BYTEA,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "secret_versions_pkey" PRIMARY KEY ("secret_id","version")
);

-- CreateTable
CREATE TABLE "api_tokens" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "family_id" TEXT NOT NULL,
    "maker_family_id" TEXT,
    "ends_by" TIMESTAMPTZ(3),
    "token_type" TEXT NOT NULL,
    "owner_type" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "created_by_user_id" TEXT NOT NULL,
    "app_id" TEXT,
    "workspace_id" TEXT,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "prefix" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "refresh_hash" TEXT NOT NULL,
    "refresh_expires_at" TIMESTAMPTZ(3),
    "scopes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "permissions" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "workspace_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "namespace_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "environment_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "endpoint_paths" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "rate_limit_rps" INTEGER,
    "rate_limit_burst" INTEGER,
    "issued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "revoked_reason" TEXT,
    "rotated_at" TIMESTAMPTZ(3),
    "successor_id" TEXT,
    "noticed_days" INTEGER,

    CONSTRAINT "api_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "environments_org_id_workspace_id_id_idx" ON "environments"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "environments_workspace_id_slug_key" ON "environments"("workspace_id", "slug");

-- CreateIndex
CREATE INDEX "environment_slots_app_id_idx" ON "environment_slots"("app_id");

-- CreateIndex
CREATE INDEX "environment_slots_release_id_idx" ON "environment_slots"("release_id");

-- CreateIndex
CREATE INDEX "deployments_environment_id_id_idx" ON "deployments"("environment_id", "id" DESC);

-- CreateIndex
CREATE INDEX "deployments_environment_id_app_id_id_idx" ON "deployments"("environment_id", "app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "deployments_app_id_id_idx" ON "deployments"("app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "deployments_release_id_environment_id_idx" ON "deployments"("release_id", "environment_id");

-- CreateIndex
CREATE INDEX "deployments_workspace_id_idx" ON "deployments"("workspace_id");

-- CreateIndex
CREATE UNIQUE INDEX "deployments_environment_id_app_id_number_key" ON "deployments"("environment_id", "app_id", "number");

-- CreateIndex
CREATE INDEX "provider_accounts_org_id_id_idx" ON "provider_accounts"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "logical_models_org_id_id_idx" ON "logical_models"("org_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "logical_models_org_id_logical_model_id_key" ON "logical_models"("org_id", "logical_model_id");

-- CreateIndex
CREATE INDEX "model_targets_provider_account_id_idx" ON "model_targets"("provider_account_id");

-- CreateIndex
CREATE INDEX "model_entitlements_org_id_workspace_id_id_idx" ON "model_entitlements"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "model_entitlements_model_id_idx" ON "model_entitlements"("model_id");

-- CreateIndex
CREATE UNIQUE INDEX "model_entitlements_workspace_id_logical_model_id_key" ON "model_entitlements"("workspace_id", "logical_model_id");

-- CreateIndex
CREATE INDEX "secrets_org_id_id_idx" ON "secrets"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "secrets_org_id_name_idx" ON "secrets"("org_id", "name");

-- CreateIndex
CREATE INDEX "secrets_namespace_id_idx" ON "secrets"("namespace_id");

-- CreateIndex
CREATE INDEX "secrets_environment_id_idx" ON "secrets"("environment_id");

-- CreateIndex
CREATE INDEX "secrets_workspace_id_idx" ON "secrets"("workspace_id");

-- CreateIndex
CREATE INDEX "secrets_root_key_id_id_idx" ON "secrets"("root_key_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "api_tokens_token_hash_key" ON "api_tokens"("token_hash");

-- CreateIndex
CREATE UNIQUE INDEX "api_tokens_refresh_hash_key" ON "api_tokens"("refresh_hash");

-- CreateIndex
CREATE INDEX "api_tokens_org_id_id_idx" ON "api_tokens"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "api_tokens_org_id_created_by_user_id_id_idx" ON "api_tokens"("org_id", "created_by_user_id", "id" DESC);

-- CreateIndex
CREATE INDEX "api_tokens_app_id_id_idx" ON "api_tokens"("app_id", "id" DESC);

-- CreateIndex
CREATE INDEX "api_tokens_created_by_user_id_idx" ON "api_tokens"("created_by_user_id");

-- CreateIndex
CREATE INDEX "api_tokens_family_id_idx" ON "api_tokens"("family_id");

-- CreateIndex
CREATE INDEX "api_tokens_maker_family_id_idx" ON "api_tokens"("maker_family_id");

-- CreateIndex
CREATE INDEX "api_tokens_expires_at_idx" ON "api_tokens"("expires_at");

-- AddForeignKey
ALTER TABLE "environments" ADD CONSTRAINT "environments_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "environment_slots" ADD CONSTRAINT "environment_slots_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "environment_slots" ADD CONSTRAINT "environment_slots_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deployments" ADD CONSTRAINT "deployments_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provider_accounts" ADD CONSTRAINT "provider_accounts_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "logical_models" ADD CONSTRAINT "logical_models_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_targets" ADD CONSTRAINT "model_targets_model_id_fkey" FOREIGN KEY ("model_id") REFERENCES "logical_models"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_targets" ADD CONSTRAINT "model_targets_provider_account_id_fkey" FOREIGN KEY ("provider_account_id") REFERENCES "provider_accounts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_entitlements" ADD CONSTRAINT "model_entitlements_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_entitlements" ADD CONSTRAINT "model_entitlements_model_id_fkey" FOREIGN KEY ("model_id") REFERENCES "logical_models"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "model_usage" ADD CONSTRAINT "model_usage_entitlement_id_fkey" FOREIGN KEY ("entitlement_id") REFERENCES "model_entitlements"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_root_key_id_fkey" FOREIGN KEY ("root_key_id") REFERENCES "root_keys"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "secret_versions" ADD CONSTRAINT "secret_versions_secret_id_fkey" FOREIGN KEY ("secret_id") REFERENCES "secrets"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_created_by_user_id_fkey" FOREIGN KEY ("created_by_user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "api_tokens" ADD CONSTRAINT "api_tokens_app_id_fkey" FOREIGN KEY ("app_id") REFERENCES "apps"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- A name is free again once its secret was deleted.
CREATE UNIQUE INDEX secrets_name ON secrets (org_id, coalesce(environment_id, namespace_id, workspace_id, ''), name)
  WHERE status <> 'deleted';

-- Those that their people may have to be told of.
CREATE INDEX secrets_unnoticed ON secrets (id)
  WHERE status <> 'deleted' AND ((expires_at IS NOT NULL AND expiry_noticed_at IS NULL)
    OR (rotation_reminder_days IS NOT NULL AND rotation_noticed_at IS NULL));

-- A workspace has one default environment.
CREATE UNIQUE INDEX environments_default ON environments (workspace_id) WHERE is_default;
