-- CreateTable
CREATE TABLE "presences" (
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "connection_id" TEXT NOT NULL,
    "credential_id" TEXT NOT NULL,
    "joined_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "ends_as" TEXT NOT NULL DEFAULT 'timeout',
    "viewing" JSONB,
    "viewed_at" TIMESTAMPTZ(3),

    CONSTRAINT "presences_pkey" PRIMARY KEY ("workspace_id","user_id","connection_id")
);

-- CreateIndex
CREATE INDEX "presences_connection_id_idx" ON "presences"("connection_id");

-- CreateIndex
CREATE INDEX "presences_expires_at_idx" ON "presences"("expires_at");

-- CreateIndex
CREATE INDEX "presences_user_id_idx" ON "presences"("user_id");

-- AddForeignKey
ALTER TABLE "presences" ADD CONSTRAINT "presences_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "presences" ADD CONSTRAINT "presences_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;
