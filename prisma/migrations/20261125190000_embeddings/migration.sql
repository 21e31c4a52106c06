-- AlterTable
ALTER TABLE "provider_accounts" ADD COLUMN     "base_url" TEXT;

-- AlterTable
ALTER TABLE "workspaces" ADD COLUMN     "embedding_model_id" TEXT;

-- CreateTable
CREATE TABLE "artifact_chunk_vectors" (
    "artifact_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "org_id" TEXT NOT NULL,
    "namespace_id" TEXT NOT NULL,
    "model_id" TEXT NOT NULL,
    "model_name" TEXT NOT NULL,
    "dimensions" INTEGER NOT NULL,
    "signs" VARBIT NOT NULL,
    "vector" REAL[],

    CONSTRAINT "artifact_chunk_vectors_pkey" PRIMARY KEY ("artifact_id","position")
);

-- CreateTable
CREATE TABLE "embedding_changes" (
    "workspace_id" TEXT NOT NULL,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "is_marked" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "embedding_changes_pkey" PRIMARY KEY ("workspace_id")
);

-- CreateIndex
CREATE INDEX "artifact_chunk_vectors_org_id_namespace_id_model_id_idx" ON "artifact_chunk_vectors"("org_id", "namespace_id", "model_id");

-- AddForeignKey
ALTER TABLE "artifact_chunk_vectors" ADD CONSTRAINT "artifact_chunk_vectors_artifact_id_position_fkey" FOREIGN KEY ("artifact_id", "position") REFERENCES "artifact_chunks"("artifact_id", "position") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "embedding_changes" ADD CONSTRAINT "embedding_changes_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE INDEX embedding_changes_due ON embedding_changes (changed_at) WHERE NOT is_marked;
-- Components of a vector do not compress.
ALTER TABLE artifact_chunk_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;

-- Whoever changes what decides how artifacts are embedded: the next moment a task sees to those of the workspaces that
-- use the model. Counters and the health of targets and accounts are in no list of columns below.
CREATE FUNCTION note_embeddings(of_org text, of_model text, of_workspace text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO embedding_changes (workspace_id, changed_at)
    SELECT w.id, clock_timestamp() FROM workspaces w
    WHERE w.org_id = of_org AND w.embedding_model_id = of_model AND (of_workspace IS NULL OR w.id = of_workspace)
    ORDER BY w.id
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false
$$;

CREATE FUNCTION note_embedding_of_workspace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO embedding_changes (workspace_id, changed_at) VALUES (NEW.id, clock_timestamp())
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false;
  RETURN NULL;
END $$;
CREATE TRIGGER embedding_model AFTER UPDATE OF embedding_model_id ON workspaces FOR EACH ROW
  WHEN (OLD.embedding_model_id IS DISTINCT FROM NEW.embedding_model_id) EXECUTE FUNCTION note_embedding_of_workspace();

CREATE FUNCTION note_embedding_of_entitlement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_embeddings(NEW.org_id, NEW.logical_model_id, NEW.workspace_id);
  RETURN NULL;
END $$;
CREATE TRIGGER embedding_entitlement AFTER INSERT OR UPDATE OF enabled, workspace_limits, allowed_step_types,
  allowed_endpoints, allowed_purposes ON model_entitlements
  FOR EACH ROW EXECUTE FUNCTION note_embedding_of_entitlement();

CREATE FUNCTION note_embedding_of_model() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_embeddings(NEW.org_id, NEW.logical_model_id, NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER embedding_model AFTER INSERT OR UPDATE OF model_type, enabled, status_by_hand, constraints ON logical_models
  FOR EACH ROW EXECUTE FUNCTION note_embedding_of_model();

CREATE FUNCTION note_embedding_of_target() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_embeddings(m.org_id, m.logical_model_id, NULL) FROM logical_models m
    WHERE m.id = coalesce(NEW.model_id, OLD.model_id);
  RETURN NULL;
END $$;
CREATE TRIGGER embedding_target AFTER INSERT OR DELETE OR UPDATE OF position, weight, priority, enabled ON model_targets
  FOR EACH ROW EXECUTE FUNCTION note_embedding_of_target();

CREATE FUNCTION note_embedding_of_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_embeddings(m.org_id, m.logical_model_id, NULL) FROM logical_models m
    WHERE m.id IN (SELECT t.model_id FROM model_targets t WHERE t.provider_account_id = NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER embedding_account AFTER UPDATE OF provider_type, base_url, credentials_ref, enabled, region, data_residency,
  max_tokens_per_month, max_requests_per_month ON provider_accounts
  FOR EACH ROW EXECUTE FUNCTION note_embedding_of_account();
