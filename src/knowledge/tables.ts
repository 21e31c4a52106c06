import type { GroupTables } from '../data/lent-tables.ts';

/** Threads, artifacts with their files and search, sources, and the knowledge graph. */
export const tables: GroupTables = {
  owns: [
    'threads',
    'artifacts',
    'artifact_chunks',
    'artifact_chunk_vectors',
    'artifact_words',
    'artifact_languages',
    'search_language_changes',
    'embedding_changes',
    'search_settings',
    'files',
    'sources',
    'entities',
    'entity_relations',
    'entity_merges',
    'memories',
    'memory_entities',
  ],
  lends: {},
};
