-- CreateTable
CREATE TABLE "organization_recipes" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "category" TEXT NOT NULL,
    "icon" TEXT NOT NULL,
    "tags" TEXT[],
    "needs_embedding" BOOLEAN NOT NULL,
    "latest_version" INTEGER NOT NULL DEFAULT 1,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "organization_recipes_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "organization_recipe_versions" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "organization_recipe_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "document" JSONB NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "organization_recipe_versions_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "organization_recipes_org_id_id_idx" ON "organization_recipes"("org_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "organization_recipes_org_id_slug_key" ON "organization_recipes"("org_id", "slug");

-- CreateIndex
CREATE INDEX "organization_recipe_versions_org_id_organization_recipe_id__idx" ON "organization_recipe_versions"("org_id", "organization_recipe_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "organization_recipe_versions_organization_recipe_id_number_key" ON "organization_recipe_versions"("organization_recipe_id", "number");

-- AddForeignKey
ALTER TABLE "organization_recipes" ADD CONSTRAINT "organization_recipes_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "organization_recipe_versions" ADD CONSTRAINT "organization_recipe_versions_organization_recipe_id_fkey" FOREIGN KEY ("organization_recipe_id") REFERENCES "organization_recipes"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The version rises with every change that is visible to clients.
CALL keep_resource_version('organization_recipes');
