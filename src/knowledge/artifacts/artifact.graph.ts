import type { Page, PageArgs } from '../../data/page.ts';
import type { ReadContext, RequestCache } from '../../data/request-cache.ts';
import { builder } from '../../graphql/builder.ts';
import { inNamespace, optionalTime, tracked } from '../../graphql/common-fields.ts';
import type { Context } from '../../graphql/context.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, namespaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { TextLanguageEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import type { Checked, NamespacePlace } from '../../kernel/checked-place.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { Thread } from '../threads/thread.graph.ts';
import { ArtifactScope, ArtifactStatus } from './artifact.enums.ts';
import {
  CreateArtifactInput,
  PromoteArtifactInput,
  RestoreArtifactVersionInput,
  UpdateArtifactInput,
} from './artifact.inputs.ts';
import type { ArtifactFilters, Artifact as ArtifactRow } from './artifact.reads.ts';
import type { Promotion } from './artifact.service.ts';

const IN_LISTS = '`null` above 8 KiB in lists and where another object refers to the artifact.';

export const Artifact = builder.objectRef<ArtifactRow>('Artifact').implement({
  description:
    'Text or a file that was produced in a namespace. The artifact keeps its id; each change of the content leaves ' +
    'the old version as an artifact with an id of its own.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    threadId: t.exposeID('threadId', { nullable: true, description: 'The thread that it belongs to.' }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    artifactType: t.exposeString('artifactType', {
      description:
        '`text`, `markdown`, `code`, `json`, `html`, `csv`, `image`, `audio`, `video`, `document`, `file`, `other` ' +
        'or another word.',
    }),
    version: t.exposeInt('version', { description: 'From 1. Each change of the content raises it.' }),
    rootArtifactId: t.exposeID('rootArtifactId', {
      description: 'The artifact that this is a version of; its own id if it is the latest.',
    }),
    isLatest: t.exposeBoolean('isLatest', { description: 'Whether it is the latest version.' }),
    replacedByVersion: t.exposeInt('replacedByVersion', {
      nullable: true,
      description: 'The version after this one; `null` for the latest.',
    }),
    content: t.exposeString('content', { nullable: true, description: `The text. ${IN_LISTS}` }),
    contentPreview: t.exposeString('contentPreview', {
      nullable: true,
      description: 'The first 500 characters of the text.',
    }),
    contentText: t.exposeString('contentText', {
      nullable: true,
      description: `The text that was extracted from the content or the file. ${IN_LISTS}`,
    }),
    hasFile: t.exposeBoolean('hasFile', { description: 'Whether it is a file.' }),
    fileName: t.exposeString('fileName', { nullable: true, description: 'The name of the file, without folders.' }),
    mimeType: t.exposeString('mimeType', { nullable: true, description: 'The media type.' }),
    sizeBytes: t.expose('sizeBytes', { type: 'Int53', description: 'The size of the file or the text in bytes.' }),
    sha256: t.exposeString('sha256', {
      nullable: true,
      description: 'The SHA-256 of the file, or of the text in UTF-8, in hexadecimal; `null` if there is neither.',
    }),
    summary: t.exposeString('summary', { nullable: true, description: 'A short summary of the content.' }),
    keywords: t.exposeStringList('keywords', { description: 'Words that it is about.' }),
    tags: t.exposeStringList('tags', { description: 'Free labels.' }),
    metadata: t.expose('metadata', { type: 'JSONObject', description: 'Free-form data.' }),
    language: t.expose('language', {
      type: TextLanguageEnum,
      nullable: true,
      description: 'The language that was given for its text, as ISO 639-1; `null` if none was given.',
    }),
    indexLanguage: t.expose('indexLanguage', {
      type: TextLanguageEnum,
      nullable: true,
      description:
        "The language that its text is indexed in, as ISO 639-1: the artifact's own language, else the language " +
        'of the workspace, else the operator’s setting, else the detected language. `null` until it is indexed.',
    }),
    source: t.exposeString('source', {
      description: 'Where it comes from: `api`, `upload`, `user`, `agent`, `tool`, `workflow` or another word.',
    }),
    sourceExecutionId: t.exposeString('sourceExecutionId', {
      nullable: true,
      description: 'The execution that produced it.',
    }),
    sourceStepId: t.exposeString('sourceStepId', { nullable: true, description: 'The step that produced it.' }),
    sourceTool: t.exposeString('sourceTool', { nullable: true, description: 'The tool that produced it.' }),
    scope: t.expose('scope', { type: ArtifactScope, description: 'Where it belongs.' }),
    status: t.expose('status', { type: ArtifactStatus, description: 'Its status.' }),
    ttlSeconds: t.exposeInt('ttlSeconds', { nullable: true, description: 'Its lifetime in seconds.' }),
    expiresAt: t.expose('expiresAt', optionalTime('The end of its lifetime; `null` while it is pinned.')),
    isPinned: t.exposeBoolean('isPinned', { description: 'Whether it is kept beyond the end of its lifetime.' }),
    isExpired: t.exposeBoolean('isExpired', {
      description: 'Whether its lifetime has ended. It can be read for seven days after that.',
    }),
    isIndexed: t.exposeBoolean('isIndexed', { description: 'Whether this version is in the search index.' }),
    indexedAt: t.expose('indexedAt', optionalTime('When it was indexed.')),
    indexCollection: t.exposeString('indexCollection', { nullable: true, description: 'The index that contains it.' }),
    indexError: t.exposeString('indexError', {
      nullable: true,
      description: 'Why it is not indexed, or is found by its words alone, in short.',
    }),
    indexAttempts: t.exposeInt('indexAttempts', { description: 'Number of attempts to index this version.' }),
    chunkCount: t.exposeInt('chunkCount', {
      description: 'Number of chunks that the text was split into for the search.',
    }),
    embeddingModelId: t.exposeString('embeddingModelId', {
      nullable: true,
      description: 'The model whose vectors the index has.',
    }),
    promotedToSourceId: t.exposeID('promotedToSourceId', {
      nullable: true,
      description: 'The source that it was promoted to.',
    }),
  }),
});
inNamespace(Artifact, 'artifact');
tracked(Artifact);
refersTo(Artifact, {
  threadId: 'thread',
  rootArtifactId: { kind: 'artifact', required: true },
  promotedToSourceId: 'source',
});

const typesAndExpired = () =>
  builder.args((t) => ({
    artifactTypes: t.stringList({
      constraints: { maxItems: 50, item: { minLength: 1, maxLength: 64 } },
      description: 'Only artifacts of these types; empty for all.',
    }),
    includeExpired: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Also artifacts whose lifetime ended in the last seven days.',
    }),
  }));

type Filters = PageArgs & ArtifactFilters & { threadId?: string | null };

/** Lists and references show short texts only; single artifacts all of theirs (docs/decisions/0017). */
const views = ({ artifacts, threads }: Context['services']) => ({
  async list(
    context: ReadContext,
    place: Checked<NamespacePlace>,
    { threadId, ...args }: Filters,
  ): Promise<Page<ArtifactRow>> {
    if (!threadId) return artifacts.reads.list(context, place, args);
    const thread = await threads.reads.get(context, place, threadId);
    return artifacts.ofThread.list(context, inside.thread(thread), args);
  },
  get: (context: RequestCache, place: Checked<NamespacePlace>, id: string) => artifacts.single.get(context, place, id),
  find: (context: RequestCache, place: Checked<NamespacePlace>, id: string) =>
    artifacts.single.find(context, place, id),
  findInTenant: (context: RequestCache, orgId: string, id: string) => artifacts.reads.findInTenant(context, orgId, id),
  findUnscoped: (context: RequestCache, id: string) => artifacts.single.findUnscoped(context, id),
});

const ArtifactConnection = readable<ArtifactRow, Filters>(Artifact, {
  kind: 'artifact',
  below: Namespace,
  reads: views,
  filters: () => ({
    threadId: builder.args((t) => ({
      threadId: t.id({ constraints: bounds.id, description: 'Only artifacts of this thread.' }),
    })).threadId,
    ...typesAndExpired(),
  }),
  list: { description: 'The latest versions of the artifacts of a namespace, newest first.' },
  nested: { description: 'The latest versions of the artifacts, newest first.' },
});

builder.objectField(Thread, 'artifacts', (t) =>
  t.field({
    type: ArtifactConnection,
    description: 'The latest versions of the artifacts of the thread, newest first.',
    authorize: { workspace: 'artifact:read' },
    args: { ...typesAndExpired(), ...pageArgs() },
    resolve: (row, args, context) => context.services.artifacts.ofThread.list(context, inside.thread(row), args),
  }),
);

builder.objectField(Artifact, 'versions', (t) =>
  t.field({
    type: ArtifactConnection,
    description: 'All versions of the artifact, newest first.',
    authorize: { workspace: 'artifact:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.artifacts.versions.list(context, inside.chain(row), args),
  }),
);

const target = () => ({ ...namespaceArgs(), ...idArg('The artifact, or one of its versions.') });

interface Chain extends NamespacePlace {
  artifactId: string;
  rootArtifactId: string;
  currentVersion: number;
}

const ArtifactVersions = builder.objectRef<Chain>('ArtifactVersions').implement({
  description: 'The versions of an artifact.',
  fields: (t) => ({
    artifactId: t.exposeID('artifactId', { description: 'The artifact: the latest version.' }),
    currentVersion: t.exposeInt('currentVersion', { description: 'The number of the latest version.' }),
    versions: t.field({
      type: ArtifactConnection,
      description: 'All versions, newest first.',
      authorize: 'inherited',
      args: pageArgs(),
      resolve: (chain, args, context) => context.services.artifacts.versions.list(context, inside.chain(chain), args),
    }),
  }),
});
refersTo(ArtifactVersions, { artifactId: { kind: 'artifact', required: true } });

builder.queryField('artifactVersions', (t) =>
  t.field({
    type: ArtifactVersions,
    description: 'The versions of an artifact, found by the identifier of any of them.',
    authorize: { workspace: 'artifact:read', in: 'namespace' },
    args: target(),
    resolve: async ({ namespace }, { id }, context) => {
      const { reads } = context.services.artifacts;
      const { rootArtifactId } = await reads.get(context, namespace, id);
      const { version: currentVersion } = await reads.get(context, namespace, rootArtifactId);
      return { ...namespace, artifactId: rootArtifactId, rootArtifactId, currentVersion };
    },
  }),
);

const PromoteArtifactResult = builder.objectRef<Promotion>('PromoteArtifactResult').implement({
  description: 'What a promotion did.',
  fields: (t) => ({
    artifactId: t.exposeID('artifactId', { description: 'The artifact.' }),
    promotedToSourceId: t.exposeID('promotedToSourceId', { description: 'The source that it is now.' }),
    status: t.string({
      authorize: 'inherited',
      description: 'Always `promoted`.',
      resolve: () => 'promoted',
    }),
  }),
});
refersTo(PromoteArtifactResult, { artifactId: 'artifact', promotedToSourceId: 'source' });

const DeleteArtifactPayload = deletePayload('DeleteArtifact', {
  noun: 'artifact',
  in: ['orgId', 'workspaceId', 'namespaceId'],
});

builder.mutationFields((t) => ({
  createArtifact: t.field({
    type: Artifact,
    description: 'Creates an artifact, or with `rootArtifactId` the next version of an artifact.',
    authorize: { workspace: 'artifact:create', in: 'namespace' },
    mayEmit: ['artifact.created', 'artifact.updated', 'artifact.version_created'],
    args: { ...namespaceArgs(), ...inputArg(CreateArtifactInput, 'The artifact.') },
    resolve: ({ namespace }, { input }, { caller, services }) => services.artifacts.create(caller, namespace, input),
  }),
  updateArtifact: t.field({
    type: Artifact,
    description:
      'Changes an artifact. Different content becomes its next version. Members may change only artifacts that ' +
      'they created.',
    authorize: { workspace: 'artifact:update', in: 'namespace' },
    emits: ['artifact.updated'],
    mayEmit: ['artifact.version_created'],
    args: { ...target(), ...inputArg(UpdateArtifactInput), ...versionArg() },
    resolve: ({ namespace }, { id, input }, { caller, services }) =>
      services.artifacts.update(caller, namespace, id, input),
  }),
  restoreArtifactVersion: t.field({
    type: Artifact,
    description:
      'Makes the content of an old version the content of a new latest version. All versions are kept, and other ' +
      'fields do not change. For the latest version it changes nothing.',
    authorize: { workspace: 'artifact:update', in: 'namespace' },
    emits: ['artifact.updated'],
    mayEmit: ['artifact.version_created'],
    args: { ...target(), ...inputArg(RestoreArtifactVersionInput, 'The version.'), ...versionArg() },
    resolve: ({ namespace }, { id, input }, { caller, services }) =>
      services.artifacts.restoreVersion(caller, namespace, id, input),
  }),
  deleteArtifact: t.field({
    type: DeleteArtifactPayload,
    description:
      'Deletes a version, or with the latest version the whole artifact. Members may delete only artifacts that ' +
      'they created. The source of a promoted artifact is deleted too, which needs `source:delete`. ' +
      '`restoreArtifact` restores what was deleted for 30 days.',
    authorize: { workspace: 'artifact:delete', in: 'namespace' },
    emits: ['artifact.deleted'],
    mayEmit: ['source.deleted'],
    args: {
      ...target(),
      onlyUnused: t.arg.boolean({
        required: true,
        defaultValue: false,
        description:
          'Deletes the artifact only if it is no source of the workspace; otherwise fails with ' +
          '`RESOURCE_CONFLICT`, `in_use`.',
      }),
      ...versionArg(),
    },
    resolve: ({ namespace }, { id, onlyUnused }, { caller, services }) =>
      services.artifacts.delete(caller, namespace, id, { onlyUnused }),
  }),
  promoteArtifact: t.field({
    type: PromoteArtifactResult,
    description: 'Makes an artifact a source of the workspace. If it is a source already, returns that source.',
    authorize: { workspace: 'artifact:promote', in: 'namespace' },
    emits: ['artifact.promoted', 'source.created'],
    args: {
      ...target(),
      input: t.arg({ type: PromoteArtifactInput, description: 'What differs from the artifact.' }),
      ...versionArg(),
    },
    resolve: ({ namespace }, { id, input }, { caller, services }) =>
      services.artifacts.promote(caller, namespace, id, input ?? {}),
  }),
}));
