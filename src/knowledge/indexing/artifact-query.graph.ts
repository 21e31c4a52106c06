import { builder } from '../../graphql/builder.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { namespaceArgs } from '../../graphql/place-args.ts';
import { Artifact } from '../artifacts/artifact.graph.ts';
import type { FoundArtifact as Found, ArtifactQueryResult as Result } from './artifact-search.ts';

const FoundArtifact = builder.objectRef<Found>('FoundArtifact').implement({
  description: 'An artifact that a query found.',
  fields: (t) => ({
    artifact: t.expose('artifact', {
      type: Artifact,
      authorize: 'inherited',
      description: 'The latest version of the artifact.',
    }),
    score: t.exposeFloat('score', { description: 'How well it fits: from 0 to 1.' }),
    matchedChunk: t.exposeString('matchedChunk', {
      description:
        'The part of the text that fits best, at most 500 characters; the beginning of the artifact, if only its ' +
        'name, tags or other labels fit.',
    }),
  }),
});

const ArtifactQueryResult = builder.objectRef<Result>('ArtifactQueryResult').implement({
  description: 'What a query found.',
  fields: (t) => ({
    results: t.expose('results', {
      type: [FoundArtifact],
      authorize: 'inherited',
      description: 'The artifacts that fit best, the best first.',
    }),
    combinedContext: t.exposeString('combinedContext', {
      description:
        'The chunks of all results, the best first, with `---` between blank lines; at most 8,000 characters.',
    }),
    totalResults: t.exposeInt('totalResults', { description: 'Number of artifacts found, before the limit.' }),
    query: t.exposeString('query', { description: 'The query.' }),
  }),
});

const QueryArtifactsInput = builder.inputType('QueryArtifactsInput', {
  description: 'What to search for.',
  fields: (t) => ({
    query: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 2_000 },
      description: 'Words, or a question. `"…"`, `OR` and `-` are understood.',
    }),
    limit: t.int({
      constraints: { min: 1, max: 50, notNull: true },
      description: 'Maximum number of results, 1 to 50. Default 10.',
    }),
    artifactTypes: t.stringList({
      constraints: { maxItems: 50, item: { minLength: 1, maxLength: 64 } },
      description: 'Only artifacts of these types; empty for all.',
    }),
    threadId: t.id({ constraints: bounds.id, description: 'Only artifacts of this thread.' }),
    minScore: t.float({
      constraints: { min: 0, max: 1, notNull: true },
      description: 'Only artifacts with at least this score, from 0 to 1. Default 0.',
    }),
    includeExpired: t.boolean({
      constraints: { notNull: true },
      description: 'Also artifacts whose lifetime ended in the last seven days. Default false.',
    }),
  }),
});

builder.queryField('queryArtifacts', (t) =>
  t.field({
    type: ArtifactQueryResult,
    description:
      'Searches the latest versions of the artifacts of a namespace: what is indexed of their content, and their ' +
      'names, file names, tags, keywords, descriptions and summaries. Words with typing errors are found too.',
    authorize: { workspace: 'artifact:read', in: 'namespace' },
    extensions: { cost: 1_000 }, // it may take the database a second
    args: { ...namespaceArgs(), ...inputArg(QueryArtifactsInput, 'The query.') },
    resolve: ({ namespace }, { input }, context) => context.services.artifactSearch.query(context, namespace, input),
  }),
);
