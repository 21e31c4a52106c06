import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { appNamespaceArgs } from '../../graphql/place-args.ts';
import { EntitySearchMatch } from './entity.enums.ts';
import { Entity } from './entity.graph.ts';
import type { FoundEntity as Found } from './entity-search.ts';

const FoundEntity = builder.objectRef<Found>('FoundEntity').implement({
  description: 'An entity that a search found.',
  fields: (t) => ({
    entity: t.expose('entity', { type: Entity, authorize: 'inherited', description: 'The entity.' }),
    score: t.exposeFloat('score', { description: 'How well the entity matches, from 0 to 1.' }),
    matchedBy: t.expose('matchedBy', { type: EntitySearchMatch, description: 'How the entity was found.' }),
  }),
});

const EntitySearchResult = builder.objectRef<{ results: Found[] }>('EntitySearchResult').implement({
  description: 'What a search for entities found.',
  fields: (t) => ({
    results: t.expose('results', {
      type: [FoundEntity],
      authorize: 'inherited',
      description: 'The best matches, best first.',
    }),
  }),
});

builder.queryField('searchEntities', (t) =>
  t.field({
    type: EntitySearchResult,
    description:
      'Searches the entities of an app in a namespace by name, alias, tag and `metadata.external_id`. The order: ' +
      'equal names and external ids, names that begin with the query, aliases, tags, parts, and similar texts, ' +
      'such as words with typing errors. Case and white space do not matter.',
    authorize: { workspace: 'entity:read', in: ['app', 'namespace'] },
    extensions: { cost: 500 }, // it may take the database a second
    args: {
      ...appNamespaceArgs(),
      query: t.arg.string({ required: true, constraints: bounds.name, description: 'What to look for.' }),
      entityType: t.arg.string({ constraints: bounds.open, description: 'Only entities of this type.' }),
      tag: t.arg.string({ constraints: bounds.tags.item, description: 'Only entities with this tag, ignoring case.' }),
      minImportance: t.arg.float({
        constraints: { min: 0, max: 1 },
        description: 'Only entities of at least this importance, 0 to 1.',
      }),
      first: t.arg.int({
        required: true,
        defaultValue: 20,
        constraints: { min: 1, max: 100 },
        description: 'Maximum number of entities.',
      }),
    },
    resolve: async ({ appNamespace }, { first, ...query }, { services }) => ({
      results: await services.entities.search(appNamespace, { ...query, limit: first }),
    }),
  }),
);
