import { builder } from '../../graphql/builder.ts';
import { inWorkspace, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';

export const Namespace = builder.prismaObject('Namespace', {
  description:
    'A part of a workspace. Each workspace has a namespace with the slug `default`. Wherever a namespace is named, ' +
    '`default` is accepted in place of its id.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    slug: t.exposeString('slug', { description: 'A short name, unique in the workspace.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
  }),
});
inWorkspace(Namespace, 'namespace');
tracked(Namespace);
refersTo(Namespace, { workspaceId: { kind: 'workspace', required: true } });
readable(Namespace, {
  kind: 'namespace',
  below: Workspace,
  reads: ({ namespaces }) => namespaces.reads,
  one: {
    description: 'A namespace by its identifier or by `default`.',
    argDescription: 'The namespace, or `default`.',
  },
});

const target = () => ({ ...workspaceArgs(), ...idArg('The namespace, or `default`.') });

const CreateNamespaceInput = builder.inputType('CreateNamespaceInput', {
  description: 'A new namespace.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    slug: t.string({
      constraints: bounds.slug,
      description: 'A short name, unique in the workspace. Default: derived from the name.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const UpdateNamespaceInput = builder.inputType('UpdateNamespaceInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    slug: t.string({
      constraints: { ...bounds.slug, notNull: true },
      description: 'A short name, unique in the workspace. The slug `default` cannot be changed.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  }),
});

const DeleteNamespacePayload = deletePayload('DeleteNamespace', { noun: 'namespace', in: ['orgId', 'workspaceId'] });

builder.mutationFields((t) => ({
  createNamespace: t.field({
    type: Namespace,
    description: 'Creates a namespace.',
    authorize: { workspace: 'namespace:create' },
    emits: ['namespace.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateNamespaceInput, 'The namespace.') },
    resolve: ({ workspace }, { input }, { caller, services }) => services.namespaces.create(caller, workspace, input),
  }),
  updateNamespace: t.field({
    type: Namespace,
    description: 'Changes a namespace.',
    authorize: { workspace: 'namespace:update' },
    emits: ['namespace.updated'],
    args: { ...target(), ...inputArg(UpdateNamespaceInput), ...versionArg() },
    resolve: ({ workspace }, { id, input }, { caller, services }) =>
      services.namespaces.update(caller, workspace, id, input),
  }),
  deleteNamespace: t.field({
    type: DeleteNamespacePayload,
    description:
      'Deletes a namespace with everything in it. The namespace `default` cannot be deleted. While steps use tool ' +
      'instances of the namespace, it fails with `RESOURCE_CONFLICT`, `in_use`.',
    authorize: { workspace: 'namespace:delete' },
    emits: ['namespace.deleted'],
    mayEmit: ['artifact.deleted', 'source.deleted', 'connection.deleted', 'secret.deleted', 'augmentation.updated'],
    args: {
      ...target(),
      force: t.arg.boolean({
        required: true,
        defaultValue: false,
        description:
          'Deletes the namespace even while steps use its tool instances, which needs `augmentation:update`. The ' +
          'steps then have no instance, and keep the slugs of their tools.',
      }),
      ...versionArg(),
    },
    resolve: ({ workspace }, { id, force }, { caller, services }) =>
      services.namespaces.delete(caller, workspace, id, { force }),
  }),
}));
