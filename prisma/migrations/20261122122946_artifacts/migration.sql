-- CreateTable
CREATE TABLE "artifacts" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "thread_id" TEXT,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "artifact_type" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "root_artifact_id" TEXT NOT NULL,
    "is_latest" BOOLEAN NOT NULL DEFAULT true,
    "replaced_by_version" INTEGER,
    "content" TEXT,
    "content_preview" TEXT,
    "content_text" TEXT,
    "file_id" TEXT,
    "file_name" TEXT,
    "mime_type" TEXT,
    "size_bytes" BIGINT NOT NULL DEFAULT 0,
    "summary" TEXT,
    "keywords" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "source" TEXT NOT NULL DEFAULT 'api',
    "source_execution_id" TEXT,
    "source_step_id" TEXT,
    "source_tool" TEXT,
    "status" TEXT NOT NULL DEFAULT 'active',
    "ttl_seconds" INTEGER,
    "expires_at" TIMESTAMPTZ(3),
    "is_pinned" BOOLEAN NOT NULL DEFAULT false,
    "expiry_noticed_at" TIMESTAMPTZ(3),
    "is_indexed" BOOLEAN NOT NULL DEFAULT false,
    "indexed_at" TIMESTAMPTZ(3),
    "index_collection" TEXT,
    "index_error" TEXT,
    "index_attempts" INTEGER NOT NULL DEFAULT 0,
    "chunk_count" INTEGER NOT NULL DEFAULT 0,
    "embedding_model_id" TEXT,
    "promoted_to_source_id" TEXT,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "artifacts_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "files" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT,
    "storage_key" TEXT NOT NULL,
    "size_bytes" BIGINT,
    "sha256" TEXT,
    "mime_type" TEXT,
    "claimed_mime_type" TEXT,
    "file_name" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'receiving',
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "files_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "artifact_chunks" (
    "artifact_id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "content" TEXT NOT NULL,
    "token_count" INTEGER NOT NULL,
    "words" tsvector GENERATED ALWAYS AS (to_tsvector('english', "content")) STORED,

    CONSTRAINT "artifact_chunks_pkey" PRIMARY KEY ("artifact_id","position")
);

-- CreateTable
CREATE TABLE "sources" (
    "id" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,
    "workspace_id" TEXT NOT NULL,
    "namespace_id" TEXT,
    "artifact_id" TEXT,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "source_type" TEXT NOT NULL DEFAULT 'manual',
    "status" TEXT NOT NULL DEFAULT 'pending',
    "chunk_count" INTEGER NOT NULL DEFAULT 0,
    "token_count" INTEGER NOT NULL DEFAULT 0,
    "size_bytes" BIGINT NOT NULL DEFAULT 0,
    "created_by" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "resource_version" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "sources_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "artifacts_namespace_id_idx" ON "artifacts"("namespace_id");

-- CreateIndex
CREATE INDEX "artifacts_thread_id_idx" ON "artifacts"("thread_id");

-- CreateIndex
CREATE INDEX "artifacts_promoted_to_source_id_idx" ON "artifacts"("promoted_to_source_id");

-- CreateIndex
CREATE UNIQUE INDEX "files_storage_key_key" ON "files"("storage_key");

-- CreateIndex
CREATE INDEX "files_state_created_at_idx" ON "files"("state", "created_at");

-- CreateIndex
CREATE INDEX "artifact_chunks_org_id_namespace_id_idx" ON "artifact_chunks"("org_id", "namespace_id");

-- CreateIndex
CREATE UNIQUE INDEX "sources_artifact_id_key" ON "sources"("artifact_id");

-- CreateIndex
CREATE INDEX "sources_org_id_workspace_id_id_idx" ON "sources"("org_id", "workspace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "sources_org_id_namespace_id_id_idx" ON "sources"("org_id", "namespace_id", "id" DESC);

-- CreateIndex
CREATE INDEX "sources_workspace_id_idx" ON "sources"("workspace_id");

-- CreateIndex
CREATE INDEX "sources_namespace_id_idx" ON "sources"("namespace_id");

-- AddForeignKey
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_thread_id_fkey" FOREIGN KEY ("thread_id") REFERENCES "threads"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_root_artifact_id_fkey" FOREIGN KEY ("root_artifact_id") REFERENCES "artifacts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_file_id_fkey" FOREIGN KEY ("file_id") REFERENCES "files"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "artifacts" ADD CONSTRAINT "artifacts_promoted_to_source_id_fkey" FOREIGN KEY ("promoted_to_source_id") REFERENCES "sources"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "artifact_chunks" ADD CONSTRAINT "artifact_chunks_artifact_id_fkey" FOREIGN KEY ("artifact_id") REFERENCES "artifacts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sources" ADD CONSTRAINT "sources_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sources" ADD CONSTRAINT "sources_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sources" ADD CONSTRAINT "sources_artifact_id_fkey" FOREIGN KEY ("artifact_id") REFERENCES "artifacts"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- While a version moves from the head to a row of its own, both rows have its number and its file.
ALTER TABLE artifacts
  ADD CONSTRAINT artifacts_root_artifact_id_version_key UNIQUE (root_artifact_id, version) DEFERRABLE INITIALLY DEFERRED,
  ADD CONSTRAINT artifacts_file_id_key UNIQUE (file_id) DEFERRABLE INITIALLY DEFERRED;

-- What lists walk: the heads of a namespace, and those of a thread. They are counted without reading rows.
CREATE INDEX artifacts_heads ON artifacts (org_id, namespace_id, id DESC) INCLUDE (workspace_id, expires_at)
  WHERE is_latest AND deleted_at IS NULL;
CREATE INDEX artifacts_heads_of_thread ON artifacts (org_id, thread_id, id DESC)
  INCLUDE (workspace_id, namespace_id, expires_at) WHERE is_latest AND deleted_at IS NULL;
-- What the jobs look for: heads whose expiry nobody was told of, what is swept, and what was deleted.
CREATE INDEX artifacts_expiry_due ON artifacts (expires_at)
  WHERE is_latest AND expires_at IS NOT NULL AND expiry_noticed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX artifacts_expires_at ON artifacts (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX artifacts_deleted_at ON artifacts (deleted_at) WHERE deleted_at IS NOT NULL;

-- Words find inflections, trigrams typing errors.
CREATE INDEX artifact_chunks_words ON artifact_chunks USING gin (words);
CREATE INDEX artifact_chunks_trigrams ON artifact_chunks USING gin (content gin_trgm_ops);

ALTER TABLE artifacts
  ADD CONSTRAINT artifacts_head CHECK (is_latest = (id = root_artifact_id)
    AND is_latest = (replaced_by_version IS NULL) AND coalesce(replaced_by_version = version + 1, true)),
  ADD CONSTRAINT artifacts_content_or_file CHECK (content IS NULL OR file_id IS NULL),
  ADD CONSTRAINT artifacts_content_size CHECK (octet_length(content) <= 1048576),
  ADD CONSTRAINT artifacts_content_text_size CHECK (octet_length(content_text) <= 2097152),
  ADD CONSTRAINT artifacts_pinned CHECK (NOT is_pinned OR expires_at IS NULL);
ALTER TABLE files ADD CONSTRAINT files_state CHECK (state IN ('receiving', 'kept', 'removing'));

-- Bytes go after the row that shows them, however it goes.
CREATE FUNCTION release_file_of_artifact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE files SET state = 'removing' WHERE id = OLD.file_id;
  RETURN NULL;
END $$;
CREATE TRIGGER release_file AFTER DELETE ON artifacts FOR EACH ROW WHEN (OLD.file_id IS NOT NULL)
  EXECUTE FUNCTION release_file_of_artifact();

CALL keep_resource_version('artifacts', '{content_preview,content_text,expiry_noticed_at,is_indexed,indexed_at,
  index_collection,index_error,index_attempts,chunk_count,embedding_model_id}');
CALL keep_resource_version('sources', '{status,chunk_count,token_count,size_bytes}');
