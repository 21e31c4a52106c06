import { builder } from '../../graphql/builder.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { namespaceArgs, organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { Artifact } from '../artifacts/artifact.graph.ts';
import type { VectorUse } from './artifact-ranking.ts';
import type { FoundArtifact as Found, ArtifactQueryResult as Result } from './artifact-search.ts';

const FoundArtifact = builder.objectRef<Found>('FoundArtifact').implement({
  description: 'An artifact that a query found.',
  fields: (t) => ({
    artifact: t.expose('artifact', {
      type: Artifact,
      authorize: 'inherited',
      description: 'The latest version of the artifact.',
    }),
    score: t.exposeFloat('score', {
      description:
        'How well it fits, from 0 to 1: its words, or its meaning if that fits better. Of what both find, the order ' +
        'is that of the ranks in both.',
    }),
    matchedChunk: t.exposeString('matchedChunk', {
      description:
        'The best match in the text, at most 500 characters; the beginning of the artifact if only its name, tags ' +
        'or other labels match.',
    }),
  }),
});

const VectorUseEnum = wordEnum<VectorUse>('VectorUse', 'How far vectors took part in a search.', {
  none: 'Nothing there is embedded, or the query has operators: words alone decide.',
  used: 'All vectors took part.',
  partial: 'Some vectors took part; all artifacts were searched by their words.',
  unavailable: 'The embedding model did not answer, so words alone decided.',
});

const ArtifactQueryResult = builder.objectRef<Result>('ArtifactQueryResult').implement({
  description: 'What a query found.',
  fields: (t) => ({
    results: t.expose('results', {
      type: [FoundArtifact],
      authorize: 'inherited',
      description: 'The best matches, best first.',
    }),
    combinedContext: t.exposeString('combinedContext', {
      description:
        'The chunks of all results, the best first, with `---` between blank lines; at most 8,000 characters.',
    }),
    totalResults: t.exposeInt('totalResults', { description: 'Number of artifacts found, before the limit.' }),
    query: t.exposeString('query', { description: 'The query.' }),
    vectorUse: t.expose('vectorUse', {
      type: VectorUseEnum,
      description: 'Whether artifacts were found by what they mean, and not by their words alone.',
    }),
    vectorReason: t.exposeString('vectorReason', {
      nullable: true,
      description: 'Why vectors that are there took no part, or not all of them.',
    }),
  }),
});

const words = { maxItems: 50, item: { minLength: 1, maxLength: 64 } } as const satisfies Constraints;
const ids = { maxItems: 50, item: bounds.id } as const satisfies Constraints;
const mediaTypes = {
  maxItems: 50,
  item: { pattern: '[a-zA-Z0-9!#$&^_.+-]{1,63}/(?:\\*|[a-zA-Z0-9!#$&^_.+-]{1,127})', maxLength: 191 },
} as const satisfies Constraints;

/** What each query has. */
const common = (t: PothosSchemaTypes.InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>) => ({
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
    constraints: words,
    description: 'Only artifacts of these types; empty for all.',
  }),
  mimeTypes: t.stringList({
    constraints: mediaTypes,
    description: 'Only artifacts of these media types, such as `application/pdf` or `text/*`; empty for all.',
  }),
  tags: t.stringList({ constraints: words, description: 'Only artifacts that have all of these tags.' }),
  metadata: t.field({
    type: 'JSONObject',
    description:
      'Only artifacts whose metadata has each of these keys with this value: a text, a number, `true`, `false` or ' +
      '`null`. At most ten.',
  }),
  createdFrom: t.field({ type: 'DateTime', description: 'Only artifacts that were created at this time or later.' }),
  createdTo: t.field({ type: 'DateTime', description: 'Only artifacts that were created before this time.' }),
  updatedFrom: t.field({ type: 'DateTime', description: 'Only artifacts that last changed at this time or later.' }),
  updatedTo: t.field({ type: 'DateTime', description: 'Only artifacts that last changed before this time.' }),
  minScore: t.float({
    constraints: { min: 0, max: 1, notNull: true },
    description: 'Only artifacts with at least this score, from 0 to 1. Default 0.',
  }),
  includeExpired: t.boolean({
    constraints: { notNull: true },
    description: 'Also artifacts whose lifetime ended in the last seven days. Default false.',
  }),
});

const QueryArtifactsInput = builder.inputType('QueryArtifactsInput', {
  description: 'What to search for.',
  fields: (t) => ({
    ...common(t),
    threadId: t.id({ constraints: bounds.id, description: 'Only artifacts of this thread.' }),
  }),
});

const QueryWorkspaceArtifactsInput = builder.inputType('QueryWorkspaceArtifactsInput', {
  description: 'What to search a workspace for.',
  fields: (t) => ({
    ...common(t),
    namespaceIds: t.idList({
      constraints: ids,
      description: 'Only artifacts of these namespaces; empty for all.',
    }),
  }),
});

const QueryOrganizationArtifactsInput = builder.inputType('QueryOrganizationArtifactsInput', {
  description: 'What to search an organization for.',
  fields: (t) => ({
    ...common(t),
    workspaceIds: t.idList({
      constraints: ids,
      description: 'Only artifacts of these workspaces; empty for all.',
    }),
    namespaceIds: t.idList({
      constraints: ids,
      description: 'Only artifacts of these namespaces; empty for all.',
    }),
  }),
});

const BY =
  'their indexed content, names, file names, tags, keywords, descriptions and summaries; where the workspace has an ' +
  'embedding model, also their meaning.';
const extensions = { cost: 1_000 }; // it may take the database seconds, and a provider

builder.queryFields((t) => ({
  queryArtifacts: t.field({
    type: ArtifactQueryResult,
    description:
      `Searches the latest versions of the artifacts of a namespace: ${BY} ` +
      'Words with typing errors are found too.',
    authorize: { workspace: 'artifact:read', in: 'namespace' },
    extensions,
    args: { ...namespaceArgs(), ...inputArg(QueryArtifactsInput, 'The query.') },
    resolve: ({ namespace }, { input }, context) => context.services.artifactSearch.query(context, namespace, input),
  }),
  queryWorkspaceArtifacts: t.field({
    type: ArtifactQueryResult,
    description:
      'Searches the latest versions of the artifacts in all namespaces of a workspace that the caller may read: ' +
      `${BY} Scores compare the artifacts of all of them. At most 1,000 namespaces that have artifacts.`,
    authorize: { workspace: 'artifact:read' },
    extensions,
    args: { ...workspaceArgs(), ...inputArg(QueryWorkspaceArtifactsInput, 'The query.') },
    resolve: ({ workspace }, { input }, context) =>
      context.services.artifactSearch.queryWorkspace(context, workspace, input),
  }),
  queryOrganizationArtifacts: t.field({
    type: ArtifactQueryResult,
    description:
      'Searches the latest versions of the artifacts in all namespaces of an organization that the caller may read: ' +
      `${BY} Scores compare the artifacts of all of them. At most 1,000 namespaces that have artifacts.`,
    authorize: { organization: 'organization:access', service: 'artifact:read' },
    extensions,
    args: { ...organizationArgs(), ...inputArg(QueryOrganizationArtifactsInput, 'The query.') },
    resolve: ({ organization }, { input }, context) =>
      context.services.artifactSearch.queryOrganization(context, organization, input),
  }),
}));
