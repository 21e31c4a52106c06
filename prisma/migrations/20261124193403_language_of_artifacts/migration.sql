-- AlterTable
ALTER TABLE "artifacts" ADD COLUMN     "language" TEXT;

-- AlterTable
ALTER TABLE "workspaces" ADD COLUMN     "language" TEXT;

-- CreateTable
CREATE TABLE "search_language_changes" (
    "workspace_id" TEXT NOT NULL,
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "is_marked" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "search_language_changes_pkey" PRIMARY KEY ("workspace_id")
);

-- CreateTable
CREATE TABLE "search_settings" (
    "name" TEXT NOT NULL,
    "value" TEXT,

    CONSTRAINT "search_settings_pkey" PRIMARY KEY ("name")
);

-- AddForeignKey
ALTER TABLE "search_language_changes" ADD CONSTRAINT "search_language_changes_workspace_id_fkey" FOREIGN KEY ("workspace_id") REFERENCES "workspaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

CREATE INDEX search_language_changes_due ON search_language_changes (changed_at) WHERE NOT is_marked;
INSERT INTO search_settings (name) VALUES ('language');

-- A setting of the operator applies to workspaces that have no language, and theirs to artifacts that have none; what
-- has none of these is in the language that is detected.
CREATE FUNCTION artifact_language(own text, of_workspace text, detected text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce(own, (SELECT w.language FROM workspaces w WHERE w.id = of_workspace),
    (SELECT s.value FROM search_settings s WHERE s.name = 'language'), detected)
$$;

-- The language that is detected is written to `index_language`; what is kept there is the one that counts.
CREATE OR REPLACE FUNCTION write_label_words() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  in_language text := artifact_language(NEW.language, NEW.workspace_id, NEW.index_language);
  found text := search_config(in_language);
  config regconfig := found::regconfig;
BEGIN
  -- what is to be indexed again is still in the language of before
  IF NEW.index_language IS NOT NULL AND NEW.index_version > 0 THEN NEW.index_language := in_language; END IF;
  NEW.label_config := found;
  NEW.label_words := setweight(to_tsvector(config, cut_search_text(translate(concat_ws(' ', NEW.name, NEW.file_name), '_./-', '    '), false)), 'A')
    || setweight(to_tsvector(config, cut_search_text(array_to_string(NEW.tags || NEW.keywords, ' '), false)), 'B')
    || setweight(to_tsvector(config, cut_search_text(concat_ws(' ', NEW.description, NEW.summary), false)), 'C');
  IF NOT EXISTS (SELECT FROM artifact_languages l WHERE l.namespace_id = NEW.namespace_id AND l.config = found) THEN
    INSERT INTO artifact_languages (namespace_id, config, org_id) VALUES (NEW.namespace_id, found, NEW.org_id)
      ON CONFLICT DO NOTHING;
  END IF;
  RETURN NEW;
END $$;
DROP TRIGGER label_words ON artifacts;
CREATE TRIGGER label_words BEFORE INSERT OR UPDATE OF name, file_name, tags, keywords, description, summary, language,
  index_language, index_version ON artifacts FOR EACH ROW EXECUTE FUNCTION write_label_words();

-- Whoever changes the language of a workspace: the next moment a task marks what is to be indexed again.
CREATE FUNCTION note_search_language() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO search_language_changes (workspace_id, changed_at) VALUES (NEW.id, clock_timestamp())
    ON CONFLICT (workspace_id) DO UPDATE SET changed_at = excluded.changed_at, is_marked = false;
  RETURN NULL;
END $$;
CREATE TRIGGER search_language AFTER UPDATE OF language ON workspaces FOR EACH ROW
  WHEN (OLD.language IS DISTINCT FROM NEW.language) EXECUTE FUNCTION note_search_language();
