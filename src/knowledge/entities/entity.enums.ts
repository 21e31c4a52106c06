import { wordEnum } from '../../graphql/word-enum.ts';
import type { MatchedBy } from './entity-matching.ts';
import type { SeenRelation } from './entity-relation.reads.ts';
import type { FoundEntity } from './entity-search.ts';
import type { ImportOutcome } from './import-plan.ts';
import { directions } from './walk-filters.ts';

export const RelationDirection = wordEnum<SeenRelation['direction']>(
  'RelationDirection',
  'How an entity sees a relation.',
  { outgoing: 'The entity is its source.', incoming: 'The entity is its target.' },
);

export const WalkDirection = wordEnum(
  'WalkDirection',
  'Which way relations are followed.',
  { outgoing: 'From source to target.', incoming: 'From target to source.', both: 'Both ways.' },
  directions,
);

export const EntitySearchMatch = wordEnum<FoundEntity['matchedBy']>(
  'EntitySearchMatch',
  'How a search found an entity.',
  {
    name: 'The query is its name.',
    external_id: 'The query is its `metadata.external_id`.',
    name_prefix: 'Its name begins with the query.',
    alias: 'The query is one of its aliases.',
    tag: 'The query is one of its tags.',
    part: 'A name, alias, tag or external id contains the query.',
    similar: 'A name, alias, tag or external id is similar to the query.',
  },
);

export const EntityMatch = wordEnum<MatchedBy>('EntityMatch', 'How an entity that was given is one that is there.', {
  id: 'It has the identifier.',
  external_id: 'It has the `metadata.external_id`.',
  name: 'It has the name.',
  alias: 'It has an alias that is the name.',
});

export const EntityImportOutcome = wordEnum<ImportOutcome>('EntityImportOutcome', 'What became of an entity.', {
  created: 'It was created.',
  updated: 'It was there, and changed.',
  unchanged: 'It was there, and did not change.',
});
