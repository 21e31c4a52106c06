-- What was indexed before is version 0; it is found as before, and is indexed again in the background.
ALTER TABLE artifacts
  ADD COLUMN index_language text,
  ADD COLUMN index_version smallint NOT NULL DEFAULT 0,
  ADD COLUMN label_config text NOT NULL DEFAULT 'english';
ALTER TABLE artifacts ALTER COLUMN index_version SET DEFAULT 1;
CREATE INDEX artifacts_outdated_index ON artifacts (id) WHERE index_version < 1 AND is_latest AND deleted_at IS NULL;

-- Words were those of English, generated. They stay where they are.
ALTER TABLE artifact_chunks ALTER COLUMN words DROP EXPRESSION;
ALTER TABLE artifact_chunks ADD COLUMN config text NOT NULL DEFAULT 'english', ADD COLUMN grams integer[];
-- Prisma cannot name the keys of such indexes, and leaves partial ones alone. What it compares with is never null.
CREATE INDEX artifact_chunks_grams ON artifact_chunks USING gin (namespace_id, grams) WHERE grams IS NOT NULL;

-- CreateTable
CREATE TABLE "artifact_languages" (
    "namespace_id" TEXT NOT NULL,
    "config" TEXT NOT NULL,
    "org_id" TEXT NOT NULL,

    CONSTRAINT "artifact_languages_pkey" PRIMARY KEY ("namespace_id","config")
);

-- AddForeignKey
ALTER TABLE "artifact_languages" ADD CONSTRAINT "artifact_languages_namespace_id_fkey" FOREIGN KEY ("namespace_id") REFERENCES "namespaces"("id") ON DELETE CASCADE ON UPDATE CASCADE;

INSERT INTO artifact_languages (namespace_id, config, org_id)
  SELECT n.id, 'english', n.org_id FROM namespaces n WHERE EXISTS (SELECT FROM artifacts a WHERE a.namespace_id = n.id);

-- The text search configuration of a language (ISO 639-1), of those that come with this PostgreSQL. Without a language it
-- is the one of before there were any.
CREATE FUNCTION search_config(language text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN language IS NULL THEN 'english' ELSE coalesce((
    SELECT c.cfgname::text FROM pg_catalog.pg_ts_config c
    WHERE c.cfgnamespace = 'pg_catalog'::regnamespace AND c.cfgname = CASE language
      WHEN 'ar' THEN 'arabic' WHEN 'ca' THEN 'catalan' WHEN 'da' THEN 'danish' WHEN 'de' THEN 'german'
      WHEN 'el' THEN 'greek' WHEN 'en' THEN 'english' WHEN 'es' THEN 'spanish' WHEN 'et' THEN 'estonian'
      WHEN 'eu' THEN 'basque' WHEN 'fi' THEN 'finnish' WHEN 'fr' THEN 'french' WHEN 'ga' THEN 'irish'
      WHEN 'hi' THEN 'hindi' WHEN 'hu' THEN 'hungarian' WHEN 'hy' THEN 'armenian' WHEN 'id' THEN 'indonesian'
      WHEN 'it' THEN 'italian' WHEN 'lt' THEN 'lithuanian' WHEN 'ms' THEN 'indonesian' WHEN 'ne' THEN 'nepali'
      WHEN 'nl' THEN 'dutch' WHEN 'no' THEN 'norwegian' WHEN 'pt' THEN 'portuguese' WHEN 'ro' THEN 'romanian'
      WHEN 'ru' THEN 'russian' WHEN 'sr' THEN 'serbian' WHEN 'sv' THEN 'swedish' WHEN 'ta' THEN 'tamil'
      WHEN 'tr' THEN 'turkish' WHEN 'yi' THEN 'yiddish' END), 'simple') END
$$;

-- Characters of scripts that put no spaces between words, or as Korean join particles to them: Thai to Tibetan, Burmese,
-- Hangul, Khmer, kana, bopomofo, Yi and Han.
CREATE FUNCTION unspaced() RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT '[\u0E00-\u109F\u1100-\u11FF\u1780-\u17FF\u3005-\u3007\u3040-\u318F\u31F0-\u31FF\u3400-\u4DBF\u4E00-\uA4CF\uA960-\uA97F\uAC00-\uD7FB\uF900-\uFAFF\U00020000-\U0003FFFF]'
$$;
CREATE FUNCTION has_unspaced(content text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT content ~ unspaced()
$$;

-- A text as the parser of PostgreSQL finds words in it: in place of a run of such characters each pair of neighbours, and
-- the last one alone. Of a query only the pairs, or the one that stands alone.
CREATE FUNCTION cut_search_text(given text, is_query boolean) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  content text := normalize(given, NFKC);
BEGIN
  IF NOT has_unspaced(content) THEN RETURN content; END IF;
  RETURN (SELECT string_agg(CASE WHEN NOT is_cut THEN c WHEN cut_after THEN ' ' || c || following || ' '
      WHEN is_query AND cut_before THEN ' ' ELSE ' ' || c || ' ' END, '' ORDER BY at)
    FROM (SELECT c, at, is_cut, lead(c) OVER w AS following, coalesce(lead(is_cut) OVER w, false) AS cut_after,
        coalesce(lag(is_cut) OVER w, false) AS cut_before
      FROM (SELECT c, at, has_unspaced(c) AS is_cut FROM string_to_table(content, NULL) WITH ORDINALITY s(c, at)) s
      WINDOW w AS (ORDER BY at)) t);
END $$;

-- What finds a word in a tsvector. A single character of such a script is in pairs that begin with it.
CREATE FUNCTION search_term(lexeme text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (quote_literal(lexeme) || CASE WHEN length(lexeme) = 1 AND has_unspaced(lexeme) THEN ':*' ELSE '' END)::tsquery
$$;

-- A query with operators, in words of a language. Such a character that stands alone is one here as well.
CREATE FUNCTION search_formula(config regconfig, query text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_replace(websearch_to_tsquery(config, cut_search_text(query, true))::text,
    '''(' || unspaced() || ')''(?!:)', '''\1'':*', 'g')::tsquery
$$;

-- A text as an exact part of another one is looked for in it.
CREATE FUNCTION fold_search_text(content text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(lower(regexp_replace(normalize(content, NFKC), '\s+', ' ', 'g')), 'ς', 'σ')
$$;

-- Labels are in the language of their artifact.
CREATE OR REPLACE FUNCTION write_label_words() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  found text := search_config(NEW.index_language);
  config regconfig := found::regconfig;
BEGIN
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
CREATE TRIGGER label_words BEFORE INSERT OR UPDATE OF name, file_name, tags, keywords, description, summary,
  index_language, index_version ON artifacts FOR EACH ROW EXECUTE FUNCTION write_label_words();

-- What the index keeps for itself is no change that a client sees.
DROP TRIGGER resource_version ON artifacts;
DROP FUNCTION artifacts_content_changed(artifacts, artifacts);
CALL keep_resource_version('artifacts', '{content_preview,content_text,expiry_noticed_at,is_indexed,indexed_at,
  index_collection,index_error,index_attempts,chunk_count,embedding_model_id,index_language,index_version,label_words,
  label_config}');
