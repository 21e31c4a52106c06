import { builder } from '../../graphql/builder.ts';
import { inNamespace, tracked } from '../../graphql/common-fields.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg, namespaceArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { versionArg } from '../../graphql/versions.ts';
import { Artifact } from './artifact.graph.ts';
import type { DeletedArtifact as DeletedArtifactRow } from './deleted-artifact.reads.ts';

const DeletedArtifact = builder.objectRef<DeletedArtifactRow>('DeletedArtifact').implement({
  description: 'A deleted artifact, or a deleted version of an artifact that still exists. It can be restored.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its label.' }),
    artifactType: t.exposeString('artifactType', { description: 'What it is, such as `text` or `image`.' }),
    version: t.exposeInt('version', { description: 'The number of the version; of an artifact, of its latest one.' }),
    isLatest: t.exposeBoolean('isLatest', {
      description: 'Whether it is a whole artifact. Restoring it restores all versions that were deleted with it.',
    }),
    rootArtifactId: t.exposeID('rootArtifactId', {
      description: 'The artifact that this is a version of; its own id if it is the latest.',
    }),
    fileName: t.exposeString('fileName', { nullable: true, description: 'The name of the file, without folders.' }),
    mimeType: t.exposeString('mimeType', { nullable: true, description: 'The media type.' }),
    sizeBytes: t.expose('sizeBytes', { type: 'Int53', description: 'The size of the file or the text in bytes.' }),
    deletedAt: t.expose('deletedAt', { type: 'DateTime', description: 'When it was deleted.' }),
    deletedBy: t.exposeID('deletedBy', {
      nullable: true,
      description: 'The user who deleted it; `null` if it was deleted before the service recorded this.',
    }),
    restorableUntil: t.expose('restorableUntil', {
      type: 'DateTime',
      description: 'Until when it can be restored: 30 days after its deletion.',
    }),
  }),
});
inNamespace(DeletedArtifact, 'artifact');
tracked(DeletedArtifact);
refersTo(DeletedArtifact, {
  rootArtifactId: {
    kind: 'artifact',
    description: 'The artifact in `rootArtifactId`; `null` if that is deleted itself.',
  },
  deletedBy: 'user',
});

const DeletedArtifactConnection = pageType('DeletedArtifact', DeletedArtifact);
const OWN = 'Members see and restore only the artifacts that they created.';

builder.queryFields((t) => ({
  deletedArtifacts: t.field({
    type: DeletedArtifactConnection,
    description: `The deleted artifacts of a namespace that the caller may restore, newest first. ${OWN}`,
    authorize: { workspace: 'artifact:delete', in: 'namespace' },
    activity: { action: 'list', resourceType: 'artifact' },
    args: { ...namespaceArgs(), ...pageArgs() },
    resolve: ({ namespace }, args, context) => context.services.deletedArtifacts.list(context, namespace, args),
  }),
  workspaceDeletedArtifacts: t.field({
    type: DeletedArtifactConnection,
    description: `The deleted artifacts of a workspace that the caller may restore, newest first. ${OWN}`,
    authorize: { workspace: 'artifact:delete' },
    activity: { action: 'list', resourceType: 'artifact' },
    args: { ...workspaceArgs(), ...pageArgs() },
    resolve: ({ workspace }, args, context) => context.services.deletedArtifacts.list(context, workspace, args),
  }),
}));

builder.mutationField('restoreArtifact', (t) =>
  t.field({
    type: Artifact,
    description:
      'Restores an artifact within 30 days of its deletion, with the versions that were deleted with it; or a ' +
      'version that was deleted by itself. The search finds it again. A source that it was promoted to does not ' +
      `come back. What is not deleted stays as it is. ${OWN}`,
    authorize: { workspace: 'artifact:delete', in: 'namespace' },
    activity: { action: 'restore', resourceType: 'artifact' },
    emits: ['artifact.restored'],
    args: { ...namespaceArgs(), ...idArg('The deleted artifact, or the deleted version.'), ...versionArg() },
    resolve: ({ namespace }, { id }, { caller, services }) => services.deletedArtifacts.restore(caller, namespace, id),
  }),
);
