import { builder } from '../../graphql/builder.ts';
import { inWorkspace, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import type { Source as SourceRow } from './source.service.ts';

const SourceStatus = wordEnum('SourceStatus', 'Status of a source.', {
  pending: 'Its text is not indexed yet.',
  ready: 'Its text is indexed.',
  failed: 'Its text could not be indexed.',
});

export const Source = builder.objectRef<SourceRow>('Source').implement({
  description: 'Knowledge that the apps of a workspace, or of one of its namespaces, may use.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    namespaceId: t.exposeID('namespaceId', {
      nullable: true,
      description: 'The namespace that it is for; `null` for the whole workspace.',
    }),
    artifactId: t.exposeID('artifactId', {
      nullable: true,
      description:
        'The artifact that it was promoted from. The artifact cannot be deleted while the source exists, except ' +
        'together with it.',
    }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    sourceType: t.exposeString('sourceType', { description: '`artifact`, `manual` or another word.' }),
    status: t.expose('status', { type: SourceStatus, description: 'Its status.' }),
    chunkCount: t.exposeInt('chunkCount', {
      description: 'Number of chunks that the text was split into for the search.',
    }),
    tokenCount: t.exposeInt('tokenCount', { description: 'Number of tokens of its chunks.' }),
    sizeBytes: t.expose('sizeBytes', { type: 'Int53', description: 'The size of its content in bytes.' }),
  }),
});
inWorkspace(Source, 'source');
tracked(Source);
refersTo(Source, {
  workspaceId: 'workspace',
  namespaceId: 'namespace',
  artifactId: 'artifact',
});

const SourceConnection = readable(Source, {
  kind: 'source',
  below: Workspace,
  reads: ({ sources }) => sources.reads,
  filters: () =>
    builder.args((t) => ({
      namespaceId: t.id({ constraints: bounds.id, description: 'Only sources of this namespace itself.' }),
    })),
  list: { description: 'The sources of a workspace and of its namespaces, newest first.' },
  nested: { description: 'The sources of the workspace and of its namespaces, newest first.' },
});

builder.objectField(Namespace, 'sources', (t) =>
  t.field({
    type: SourceConnection,
    description: 'The sources of the namespace itself, newest first.',
    authorize: { workspace: 'source:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.sources.inNamespace.list(context, inside.namespace(row), args),
  }),
);

const target = () => ({ ...workspaceArgs(), ...idArg('The source.') });

const CreateSourceInput = builder.inputType('CreateSourceInput', {
  description: 'A new source.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    sourceType: t.string({ constraints: bounds.open, description: 'What it is. Default `manual`.' }),
    namespaceId: t.id({
      constraints: bounds.id,
      description: 'The namespace that it is for, or `default`. Without one, it is for the whole workspace.',
    }),
  }),
});

const UpdateSourceInput = builder.inputType('UpdateSourceInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const DeleteSourcePayload = deletePayload('DeleteSource', {
  noun: 'source',
  in: ['orgId', 'workspaceId'],
  maybeIn: ['namespaceId'],
});

builder.mutationFields((t) => ({
  createSource: t.field({
    type: Source,
    description: 'Creates a source. The usual way is to promote an artifact.',
    authorize: { workspace: 'source:create' },
    emits: ['source.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateSourceInput, 'The source.') },
    resolve: ({ workspace }, { input }, { caller, services }) => services.sources.create(caller, workspace, input),
  }),
  updateSource: t.field({
    type: Source,
    description: 'Changes a source.',
    authorize: { workspace: 'source:update' },
    emits: ['source.updated'],
    args: { ...target(), ...inputArg(UpdateSourceInput), ...versionArg() },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.sources.update(caller, workspace, id, input),
  }),
  deleteSource: t.field({
    type: DeleteSourcePayload,
    description: 'Deletes a source. An artifact that was promoted to it stays, and may be promoted again.',
    authorize: { workspace: 'source:delete' },
    emits: ['source.deleted'],
    mayEmit: ['artifact.updated'],
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { id }, { caller, services }) => services.sources.delete(caller, workspace, id),
  }),
}));
