-- Case, width and kinds of white space do not count in what entities are found by. It is what fold_search_text gives,
-- but what indexes are made of must not depend on the search path, so each of these has it as a part.

-- A name as others are compared with it. An index entry has a bound.
CREATE FUNCTION entity_name_key(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(btrim(translate(lower(regexp_replace(normalize(name, NFKC), '\s+', ' ', 'g')), 'ς', 'σ')), 253)
$$;

-- What else an entity is found by exactly: `a:` and an alias, `t:` and a tag, `x:` and `metadata.external_id`, each as
-- the key of a name. All of them are folded at once, because each time costs as much. In plpgsql, because a function of
-- SQL that cannot be inlined is planned for each row.
CREATE FUNCTION entity_lookup_keys(aliases text[], tags text[], metadata jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  keys text := translate(lower(regexp_replace(normalize(
    E'\x01a:' || array_to_string(aliases, E'\x01a:') || E'\x01t:' || array_to_string(tags, E'\x01t:')
    || coalesce(E'\x01x:' || left(metadata ->> 'external_id', 255), ''), NFKC), '\s+', ' ', 'g')), 'ς', 'σ');
BEGIN
  keys := substr(rtrim(replace(replace(replace(replace(keys, E' \x01', E'\x01'),
    E'\x01a: ', E'\x01a:'), E'\x01t: ', E'\x01t:'), E'\x01x: ', E'\x01x:')), 2);
  IF length(keys) <= 255 THEN
    RETURN string_to_array(keys, E'\x01');
  END IF;
  RETURN array(SELECT left(one, 255) FROM string_to_table(keys, E'\x01') one);
END $$;

-- The text in which parts and similar words are looked for. A line begins a name, an alias, a tag or the external id.
CREATE FUNCTION entity_search_text(name text, aliases text[], tags text[], metadata jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN translate(lower(regexp_replace(normalize(
    name || E'\x01' || array_to_string(aliases || tags, E'\x01')
    || coalesce(E'\x01' || left(metadata ->> 'external_id', 255), ''), NFKC), '\s+', ' ', 'g')), E'ς\x01', E'σ\n');
END $$;

-- Names in order, so that those which begin with a text are a range.
CREATE INDEX entities_name_key ON entities (app_id, namespace_id, entity_name_key(name) text_pattern_ops);
-- The place is one key: an app may have many namespaces, and a namespace many apps. An import looks for thousands of
-- keys at once, each of which it would compare with each entry that waits to be added.
CREATE INDEX entities_lookup_keys ON entities
  USING gin ((app_id || ' ' || namespace_id), entity_lookup_keys(aliases, tags, metadata)) WITH (fastupdate = off);
CREATE INDEX entities_search_text ON entities
  USING gin ((app_id || ' ' || namespace_id), entity_search_text(name, aliases, tags, metadata) gin_trgm_ops);
