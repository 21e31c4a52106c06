-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "identity_provider_id" TEXT,
ADD COLUMN     "method" TEXT NOT NULL DEFAULT 'password',
ADD COLUMN     "name_id_format" TEXT,
ADD COLUMN     "session_index" TEXT,
ADD COLUMN     "subject" TEXT;

-- CreateTable
CREATE TABLE "identity_providers" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "protocol" TEXT NOT NULL,
    "saml_entity_id" TEXT,
    "saml_sso_url" TEXT,
    "saml_slo_url" TEXT,
    "saml_certificate" TEXT,
    "saml_sign_authn_requests" BOOLEAN NOT NULL DEFAULT false,
    "saml_name_id_format" TEXT,
    "saml_allows_unsolicited" BOOLEAN NOT NULL DEFAULT false,
    "oidc_client_id" TEXT,
    "oidc_client_secret_ref" TEXT,
    "oidc_discovery_url" TEXT,
    "oidc_scopes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "verified_domains" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "group_mappings" JSONB NOT NULL DEFAULT '[]',
    "group_attribute" TEXT NOT NULL DEFAULT 'groups',
    "default_role_id" TEXT NOT NULL DEFAULT 'member',
    "auto_create_users" BOOLEAN NOT NULL DEFAULT true,
    "auto_update_profile" BOOLEAN NOT NULL DEFAULT true,
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "authority" TEXT NOT NULL,
    "certificate_ends_at" TIMESTAMPTZ(3),
    "certificate_noticed_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "identity_providers_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "identity_provider_domains" (
    "domain" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "identity_provider_id" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'claimed',
    "proof_method" TEXT,
    "proof_token" TEXT,
    "proof_code_hash" TEXT,
    "proof_started_at" TIMESTAMPTZ(3),
    "proven_at" TIMESTAMPTZ(3),
    "proven_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "identity_provider_domains_pkey" PRIMARY KEY ("domain")
);

-- CreateTable
CREATE TABLE "identity_links" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "identity_provider_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "linked_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_sign_in_at" TIMESTAMPTZ(3),

    CONSTRAINT "identity_links_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "identity_grants" (
    "identity_provider_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "place_id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT,
    "role" TEXT NOT NULL,
    "own_role" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "identity_grants_pkey" PRIMARY KEY ("identity_provider_id","user_id","place_id")
);

-- CreateTable
CREATE TABLE "identity_provider_tests" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "identity_provider_id" TEXT NOT NULL,
    "started_by" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "failure" TEXT,
    "result" JSONB,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "identity_provider_tests_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "sso_states" (
    "hash" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "identity_provider_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL DEFAULT 'sign_in',
    "test_id" TEXT,
    "nonce" TEXT,
    "verifier" BYTEA,
    "request_id" TEXT,
    "browser_hash" TEXT,
    "redirect_uri" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "sso_states_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "sso_assertions" (
    "identity_provider_id" TEXT NOT NULL,
    "assertion_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sso_assertions_pkey" PRIMARY KEY ("identity_provider_id","assertion_id")
);

-- CreateTable
CREATE TABLE "sso_codes" (
    "hash" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "identity_provider_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "session_index" TEXT,
    "name_id_format" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "sso_codes_pkey" PRIMARY KEY ("hash")
);

-- CreateIndex
CREATE INDEX "identity_providers_org_id_id_idx" ON "identity_providers"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "identity_provider_domains_identity_provider_id_idx" ON "identity_provider_domains"("identity_provider_id");

-- CreateIndex
CREATE INDEX "identity_provider_domains_org_id_domain_idx" ON "identity_provider_domains"("org_id", "domain");

-- CreateIndex
CREATE INDEX "identity_links_user_id_idx" ON "identity_links"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "identity_links_identity_provider_id_subject_key" ON "identity_links"("identity_provider_id", "subject");

-- CreateIndex
CREATE UNIQUE INDEX "identity_links_identity_provider_id_user_id_key" ON "identity_links"("identity_provider_id", "user_id");

-- CreateIndex
CREATE INDEX "identity_grants_user_id_place_id_idx" ON "identity_grants"("user_id", "place_id");

-- CreateIndex
CREATE INDEX "identity_grants_workspace_id_idx" ON "identity_grants"("workspace_id");

-- CreateIndex
CREATE INDEX "identity_provider_tests_identity_provider_id_id_idx" ON "identity_provider_tests"("identity_provider_id", "id" DESC);

-- CreateIndex
CREATE INDEX "identity_provider_tests_expires_at_idx" ON "identity_provider_tests"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "sso_states_request_id_key" ON "sso_states"("request_id");

-- CreateIndex
CREATE INDEX "sso_states_identity_provider_id_idx" ON "sso_states"("identity_provider_id");

-- CreateIndex
CREATE INDEX "sso_states_test_id_idx" ON "sso_states"("test_id");

-- CreateIndex
CREATE INDEX "sso_states_expires_at_idx" ON "sso_states"("expires_at");

-- CreateIndex
CREATE INDEX "sso_assertions_expires_at_idx" ON "sso_assertions"("expires_at");

-- CreateIndex
CREATE INDEX "sso_codes_identity_provider_id_idx" ON "sso_codes"("identity_provider_id");

-- CreateIndex
CREATE INDEX "sso_codes_user_id_idx" ON "sso_codes"("user_id");

-- CreateIndex
CREATE INDEX "sso_codes_expires_at_idx" ON "sso_codes"("expires_at");

-- AddForeignKey
ALTER TABLE "identity_providers" ADD CONSTRAINT "identity_providers_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_provider_domains" ADD CONSTRAINT "identity_provider_domains_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_links" ADD CONSTRAINT "identity_links_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_links" ADD CONSTRAINT "identity_links_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_grants" ADD CONSTRAINT "identity_grants_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_grants" ADD CONSTRAINT "identity_grants_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_grants" ADD CONSTRAINT "identity_grants_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "identity_provider_tests" ADD CONSTRAINT "identity_provider_tests_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sso_states" ADD CONSTRAINT "sso_states_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sso_states" ADD CONSTRAINT "sso_states_test_id_fkey" FOREIGN KEY ("test_id") REFERENCES "identity_provider_tests"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sso_assertions" ADD CONSTRAINT "sso_assertions_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sso_codes" ADD CONSTRAINT "sso_codes_identity_provider_id_fkey" FOREIGN KEY ("identity_provider_id") REFERENCES "identity_providers"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sso_codes" ADD CONSTRAINT "sso_codes_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

ALTER TABLE identity_providers
  ADD CONSTRAINT identity_providers_protocol CHECK (CASE protocol
    WHEN 'saml' THEN oidc_client_id IS NULL AND oidc_client_secret_ref IS NULL AND oidc_discovery_url IS NULL
    WHEN 'oidc' THEN saml_entity_id IS NULL AND saml_sso_url IS NULL AND saml_slo_url IS NULL
      AND saml_certificate IS NULL
    ELSE false END),
  ADD CONSTRAINT identity_providers_config CHECK (num_nulls(oidc_client_id, oidc_discovery_url) <> 1
    AND num_nulls(saml_entity_id, saml_sso_url, saml_certificate) IN (0, 3)),
  ADD CONSTRAINT identity_providers_roles CHECK (authority IN ('admin', 'owner')
    AND default_role_id IN ('viewer', 'member', 'editor', 'admin', 'owner'));
CALL keep_resource_version('identity_providers', '{certificate_noticed_at}');

ALTER TABLE identity_provider_domains
  ADD CONSTRAINT identity_provider_domains_state CHECK (CASE state
    WHEN 'claimed' THEN proven_at IS NULL WHEN 'proven' THEN proven_at IS NOT NULL ELSE false END),
  ADD CONSTRAINT identity_provider_domains_domain CHECK (domain = lower(domain) AND length(domain) BETWEEN 1 AND 253),
  ADD CONSTRAINT identity_provider_domains_method CHECK (proof_method IN ('dns', 'mail'));

ALTER TABLE identity_links
  ADD CONSTRAINT identity_links_subject CHECK (length(subject) BETWEEN 1 AND 1024),
  ADD CONSTRAINT identity_links_reason
    CHECK (reason IN ('created', 'proven_domain', 'verified_email', 'administrator'));

ALTER TABLE identity_grants
  ADD CONSTRAINT identity_grants_place CHECK (place_id = coalesce(workspace_id, org_id)),
  ADD CONSTRAINT identity_grants_roles CHECK (role IN ('viewer', 'member', 'editor', 'admin', 'owner')
    AND own_role IN ('viewer', 'member', 'editor', 'admin', 'owner'));

ALTER TABLE identity_provider_tests
  ADD CONSTRAINT identity_provider_tests_status CHECK (CASE status
    WHEN 'pending' THEN finished_at IS NULL AND result IS NULL AND failure IS NULL
    WHEN 'succeeded' THEN finished_at IS NOT NULL AND result IS NOT NULL AND failure IS NULL
    WHEN 'failed' THEN finished_at IS NOT NULL AND failure IS NOT NULL
    ELSE false END);

ALTER TABLE sso_states
  ADD CONSTRAINT sso_states_kind CHECK (CASE kind
    WHEN 'sign_in' THEN test_id IS NULL WHEN 'test' THEN test_id IS NOT NULL ELSE false END);

ALTER TABLE sessions
  ADD CONSTRAINT sessions_method CHECK (CASE method
    WHEN 'password' THEN identity_provider_id IS NULL
    WHEN 'saml' THEN identity_provider_id IS NOT NULL
    WHEN 'oidc' THEN identity_provider_id IS NOT NULL
    ELSE false END) NOT VALID;
ALTER TABLE sessions VALIDATE CONSTRAINT sessions_method;

-- the sessions that end with their provider, or with a sign-out there
CREATE INDEX sessions_of_provider ON sessions (identity_provider_id, subject) WHERE identity_provider_id IS NOT NULL;
