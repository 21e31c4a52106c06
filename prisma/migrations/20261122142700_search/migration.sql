-- Compares keys of tenants in the same index as words. It comes with PostgreSQL and is trusted, as pg_trgm is.
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- DropIndex
DROP INDEX "artifact_chunks_trigrams";

-- DropIndex
DROP INDEX "artifact_chunks_words";

-- AlterTable
ALTER TABLE "artifacts" ADD COLUMN     "label_words" tsvector;

-- CreateTable
CREATE TABLE "artifact_words" (
    "namespace_id" TEXT NOT NULL,
    "word" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,

    CONSTRAINT "artifact_words_pkey" PRIMARY KEY ("namespace_id","word")
);

-- AddForeignKey
ALTER TABLE "artifact_words" ADD CONSTRAINT "artifact_words_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What the search finds of a head before anything of its content is indexed. Dots and the like are between words.
CREATE FUNCTION write_label_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.label_words := setweight(to_tsvector('english', translate(concat_ws(' ', NEW.name, NEW.file_name), '_./-', '    ')), 'A')
    || setweight(to_tsvector('english', array_to_string(NEW.tags || NEW.keywords, ' ')), 'B')
    || setweight(to_tsvector('english', concat_ws(' ', NEW.description, NEW.summary)), 'C');
  RETURN NEW;
END $$;
CREATE TRIGGER label_words BEFORE INSERT OR UPDATE OF name, file_name, tags, keywords, description, summary ON artifacts
  FOR EACH ROW EXECUTE FUNCTION write_label_words();
UPDATE artifacts SET name = name;

CREATE INDEX artifacts_label_words ON artifacts USING gin (namespace_id, label_words) WHERE is_latest AND deleted_at IS NULL;
CREATE INDEX artifacts_name_trigrams ON artifacts USING gin (namespace_id, name gin_trgm_ops) WHERE is_latest AND deleted_at IS NULL;
-- Prisma cannot name the keys of such indexes, and leaves partial ones alone. What they compare with is never null.
CREATE INDEX artifact_chunks_words ON artifact_chunks USING gin (namespace_id, words) WHERE words IS NOT NULL;
CREATE INDEX artifact_words_trigrams ON artifact_words USING gin (namespace_id, word gin_trgm_ops) WHERE word IS NOT NULL;
