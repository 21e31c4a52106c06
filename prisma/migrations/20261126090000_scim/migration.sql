-- CreateTable
CREATE TABLE "scim_tokens" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "scim_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "scim_users" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "user_id" TEXT,
    "user_name" TEXT NOT NULL,
    "user_name_key" TEXT NOT NULL,
    "external_id" TEXT,
    "display_name" TEXT,
    "formatted_name" TEXT,
    "given_name" TEXT,
    "family_name" TEXT,
    "email" TEXT,
    "account_email" TEXT,
    "saved_roles" JSONB,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "scim_users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "scim_groups" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "display_name" TEXT NOT NULL,
    "display_key" TEXT NOT NULL,
    "external_id" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "scim_groups_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "scim_group_members" (
    "group_id" TEXT NOT NULL,
    "scim_user_id" TEXT NOT NULL,

    CONSTRAINT "scim_group_members_pkey" PRIMARY KEY ("group_id","scim_user_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "scim_tokens_token_hash_key" ON "scim_tokens"("token_hash");

-- CreateIndex
CREATE INDEX "scim_tokens_org_id_id_idx" ON "scim_tokens"("org_id", "id" DESC);

-- CreateIndex
CREATE INDEX "scim_users_org_id_id_idx" ON "scim_users"("org_id", "id");

-- CreateIndex
CREATE INDEX "scim_users_org_id_external_id_idx" ON "scim_users"("org_id", "external_id");

-- CreateIndex
CREATE INDEX "scim_users_user_id_idx" ON "scim_users"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "scim_users_org_id_user_name_key_key" ON "scim_users"("org_id", "user_name_key");

-- CreateIndex
CREATE UNIQUE INDEX "scim_users_org_id_user_id_key" ON "scim_users"("org_id", "user_id");

-- CreateIndex
CREATE INDEX "scim_groups_org_id_id_idx" ON "scim_groups"("org_id", "id");

-- CreateIndex
CREATE INDEX "scim_groups_org_id_external_id_idx" ON "scim_groups"("org_id", "external_id");

-- CreateIndex
CREATE UNIQUE INDEX "scim_groups_org_id_display_key_key" ON "scim_groups"("org_id", "display_key");

-- CreateIndex
CREATE INDEX "scim_group_members_scim_user_id_idx" ON "scim_group_members"("scim_user_id");

-- AddForeignKey
ALTER TABLE "scim_tokens" ADD CONSTRAINT "scim_tokens_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scim_users" ADD CONSTRAINT "scim_users_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scim_users" ADD CONSTRAINT "scim_users_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scim_groups" ADD CONSTRAINT "scim_groups_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scim_group_members" ADD CONSTRAINT "scim_group_members_group_id_fkey" FOREIGN KEY ("group_id") REFERENCES "scim_groups"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scim_group_members" ADD CONSTRAINT "scim_group_members_scim_user_id_fkey" FOREIGN KEY ("scim_user_id") REFERENCES "scim_users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The version rises with every change that is visible to clients.
CALL keep_resource_version('scim_tokens', '{last_used_at}');
CALL keep_resource_version('scim_users', '{account_email,saved_roles}');
CALL keep_resource_version('scim_groups');
