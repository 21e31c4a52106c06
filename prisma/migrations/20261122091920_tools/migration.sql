-- CreateTable
CREATE TABLE "tools" (
    "id" TEXT NOT NULL,
    "org_id" TEXT,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "short_description" TEXT,
    "category" TEXT NOT NULL DEFAULT 'custom',
    "version" TEXT NOT NULL DEFAULT '1.0.0',
    "status" TEXT NOT NULL DEFAULT 'active',
    "icon_url" TEXT,
    "documentation_url" TEXT,
    "connection_service_name" TEXT,
    "author" TEXT,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "supported_actions" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "supported_step_types" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "config_schema" JSONB NOT NULL DEFAULT '[]',
    "credential_schema" JSONB NOT NULL DEFAULT '[]',
    "action_schemas" JSONB NOT NULL DEFAULT '[]',
    "mcp_functions" JSONB NOT NULL DEFAULT '[]',
    "custom_action_type" TEXT NOT NULL DEFAULT 'none',
    "is_mcp_compatible" BOOLEAN NOT NULL DEFAULT false,
    "current_schema_version" INTEGER NOT NULL DEFAULT 1,
    "min_schema_version" INTEGER NOT NULL DEFAULT 1,
    "schema_changelog" JSONB NOT NULL DEFAULT '{}',
    "supports_connection" BOOLEAN NOT NULL DEFAULT false,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "tools_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tool_instances" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT,
    "tool_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "configuration" JSONB NOT NULL DEFAULT '{}',
    "credential_refs" JSONB NOT NULL DEFAULT '{}',
    "custom_action_parameters" JSONB NOT NULL DEFAULT '{}',
    "action_defaults" JSONB NOT NULL DEFAULT '{}',
    "auth_config" JSONB NOT NULL DEFAULT '{}',
    "custom_actions" JSONB NOT NULL DEFAULT '[]',
    "auth_mode" TEXT NOT NULL DEFAULT 'vault',
    "connection_status" TEXT NOT NULL DEFAULT 'not_connected',
    "client_id" TEXT,
    "client_secret_vault_id" TEXT,
    "callback_url" TEXT,
    "scopes_override" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "mcp_description_override" TEXT,
    "mcp_action_filter" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "mcp_action_descriptions" JSONB NOT NULL DEFAULT '{}',
    "mcp_max_calls_per_turn" INTEGER,
    "mcp_requires_confirmation" BOOLEAN NOT NULL DEFAULT false,
    "mcp_parameter_overrides" JSONB NOT NULL DEFAULT '{}',
    "schema_version" INTEGER NOT NULL DEFAULT 1,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "usage_count" INTEGER NOT NULL DEFAULT 0,
    "last_used_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "tool_instances_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "connections" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT,
    "tool_instance_id" TEXT NOT NULL,
    "tool_id" TEXT NOT NULL,
    "auth_type" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'pending',
    "scopes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "account_label" TEXT,
    "expires_at" TIMESTAMPTZ(3),
    "last_refreshed_at" TIMESTAMPTZ(3),
    "last_error" TEXT,
    "refresh_at" TIMESTAMPTZ(3),
    "refresh_failures" INTEGER NOT NULL DEFAULT 0,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "connections_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "credentials" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "tool_instance_id" TEXT,
    "connection_id" TEXT,
    "root_key_id" TEXT NOT NULL,
    "wrapped_key" BYTEA NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "ciphertext" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "credentials_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "oauth_states" (
    "hash" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT,
    "tool_instance_id" TEXT NOT NULL,
    "connection_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "verifier" BYTEA NOT NULL,
    "redirect_uri" TEXT NOT NULL,
    "scopes" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "oauth_states_pkey" PRIMARY KEY ("hash")
);

-- CreateIndex
CREATE INDEX "tools_org_id_id_idx" ON "tools"("org_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "tools_org_id_slug_key" ON "tools"("org_id", "slug");

-- CreateIndex
CREATE INDEX "tool_instances_org_id_workspace_id_id_idx" ON "tool_instances"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "tool_instances_org_id_tool_id_id_idx" ON "tool_instances"("org_id", "tool_id", "id" DESC);

-- CreateIndex
CREATE INDEX "tool_instances_workspace_id_idx" ON "tool_instances"("workspace_id");

-- CreateIndex
CREATE INDEX "tool_instances_namespace_id_idx" ON "tool_instances"("namespace_id");

-- CreateIndex
CREATE INDEX "tool_instances_tool_id_idx" ON "tool_instances"("tool_id");

-- CreateIndex
CREATE INDEX "connections_org_id_workspace_id_id_idx" ON "connections"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "connections_workspace_id_idx" ON "connections"("workspace_id");

-- CreateIndex
CREATE INDEX "connections_namespace_id_idx" ON "connections"("namespace_id");

-- CreateIndex
CREATE INDEX "connections_tool_id_idx" ON "connections"("tool_id");

-- CreateIndex
CREATE UNIQUE INDEX "credentials_tool_instance_id_key" ON "credentials"("tool_instance_id");

-- CreateIndex
CREATE UNIQUE INDEX "credentials_connection_id_key" ON "credentials"("connection_id");

-- CreateIndex
CREATE INDEX "credentials_root_key_id_id_idx" ON "credentials"("root_key_id", "id");

-- CreateIndex
CREATE INDEX "oauth_states_tool_instance_id_idx" ON "oauth_states"("tool_instance_id");

-- CreateIndex
CREATE INDEX "oauth_states_connection_id_idx" ON "oauth_states"("connection_id");

-- CreateIndex
CREATE INDEX "oauth_states_expires_at_idx" ON "oauth_states"("expires_at");

-- AddForeignKey
ALTER TABLE "tools" ADD CONSTRAINT "tools_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tool_instances" ADD CONSTRAINT "tool_instances_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tool_instances" ADD CONSTRAINT "tool_instances_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tool_instances" ADD CONSTRAINT "tool_instances_tool_id_fkey" FOREIGN KEY ("tool_id") REFERENCES "tools"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "connections" ADD CONSTRAINT "connections_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "connections" ADD CONSTRAINT "connections_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "connections" ADD CONSTRAINT "connections_tool_instance_id_fkey" FOREIGN KEY ("tool_instance_id") REFERENCES "tool_instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "connections" ADD CONSTRAINT "connections_tool_id_fkey" FOREIGN KEY ("tool_id") REFERENCES "tools"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_tool_instance_id_fkey" FOREIGN KEY ("tool_instance_id") REFERENCES "tool_instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_connection_id_fkey" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_root_key_id_fkey" FOREIGN KEY ("root_key_id") REFERENCES "root_keys"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "oauth_states" ADD CONSTRAINT "oauth_states_tool_instance_id_fkey" FOREIGN KEY ("tool_instance_id") REFERENCES "tool_instances"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "oauth_states" ADD CONSTRAINT "oauth_states_connection_id_fkey" FOREIGN KEY ("connection_id") REFERENCES "connections"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- A built-in tool belongs to no organization, and the unique index above lets any number of nulls have one slug.
CREATE UNIQUE INDEX tools_built_in_slug ON tools (slug) WHERE org_id IS NULL;

-- A search compares trigrams, so it finds words with typing errors. The extension comes with PostgreSQL and is trusted:
-- the owner of a database may create it.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- What a search for a tool looks at. An index needs an immutable expression; of texts, array_to_string is.
CREATE FUNCTION tool_search_text(name text, slug text, short_description text, description text, tags text[])
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(name || ' ' || slug || ' ' || coalesce(short_description, '') || ' ' || description || ' '
    || array_to_string(tags, ' '))
$$;
CREATE INDEX tools_search ON tools
  USING gin (tool_search_text(name, slug, short_description, description, tags) gin_trgm_ops);

-- An instance has one connection for its workspace, and one for each namespace.
CREATE UNIQUE INDEX connections_one_per_place ON connections (tool_instance_id, coalesce(namespace_id, ''));
-- What the refresh looks for.
CREATE INDEX connections_refresh_due ON connections (refresh_at) WHERE refresh_at IS NOT NULL;
-- Sealed values belong to an instance or to a connection.
ALTER TABLE credentials ADD CONSTRAINT credentials_of_one CHECK (num_nonnulls(tool_instance_id, connection_id) = 1);

CALL keep_resource_version('tools');
CALL keep_resource_version('tool_instances', '{usage_count,last_used_at,connection_status}');
CALL keep_resource_version('connections',
  '{status,expires_at,last_refreshed_at,last_error,refresh_at,refresh_failures}');
