import { builder } from '../../graphql/builder.ts';
import { inWorkspace, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { restrictionsOf } from '../../kernel/token-grant.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import type { Environment as EnvironmentView } from './environment.reads.ts';

const EnvironmentStatus = wordEnum('EnvironmentStatus', 'Status of an environment.', {
  active: 'Releases can be deployed to it.',
  locked: 'Only callers who may update it can deploy and undeploy.',
  archived: 'It accepts nothing but activation.',
});

export const Environment = builder.objectRef<EnvironmentView>('Environment').implement({
  description: 'A named environment of a workspace. Releases of apps are deployed to it.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    slug: t.exposeString('slug', {
      description: 'A short name, unique in the workspace. It cannot be changed once something was deployed.',
    }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    isDefault: t.exposeBoolean('isDefault', { description: 'Whether it is the default environment of the workspace.' }),
    status: t.expose('status', { type: EnvironmentStatus, description: 'Its status.' }),
    activeDeployments: t.field({
      type: 'StringMap',
      authorize: 'inherited',
      description: 'What is deployed now: a map from app ids to release ids.',
      resolve: ({ activeDeployments }, _args, { caller }) => {
        const { appId: visible } = restrictionsOf(caller.principal.token);
        if (!visible) return activeDeployments;
        return Object.fromEntries(Object.entries(activeDeployments).filter(([appId]) => visible.includes(appId)));
      },
    }),
  }),
});
inWorkspace(Environment, 'environment');
refersTo(Environment, { workspaceId: { kind: 'workspace', required: true } });
tracked(Environment, { changed: 'When it last changed. Deployments do not count.' });
readable(Environment, {
  kind: 'environment',
  below: Workspace,
  reads: ({ environments }) => environments.reads,
  filters: () =>
    builder.args((t) => ({
      status: t.field({ type: EnvironmentStatus, description: 'Only environments with this status.' }),
    })),
});

const target = () => ({ ...workspaceArgs(), ...idArg('The environment.') });

const slug = 'A short name, unique in the workspace: lower-case letters and digits in groups joined by `-`.';

const CreateEnvironmentInput = builder.inputType('CreateEnvironmentInput', {
  description: 'A new environment.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    slug: t.string({ required: true, constraints: bounds.slug, description: slug }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isDefault: t.boolean({
      description:
        'Makes it the default environment of the workspace, in place of the current one. The first environment is ' +
        'always the default.',
    }),
  }),
});

const UpdateEnvironmentInput = builder.inputType('UpdateEnvironmentInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    slug: t.string({ constraints: { ...bounds.slug, notNull: true }, description: slug }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isDefault: t.boolean({
      constraints: { notNull: true },
      description:
        'Makes it the default environment of the workspace. To change this, make another environment the default.',
    }),
    status: t.field({
      type: EnvironmentStatus,
      constraints: { notNull: true },
      description:
        '`archived` is accepted only while nothing is deployed. An archived environment must become `active` before ' +
        'any other change.',
    }),
  }),
});

const EnvironmentResult = builder
  .objectRef<{ message: string; environment: EnvironmentView }>('EnvironmentResult')
  .implement({
    description: 'The result of an operation on an environment.',
    fields: (t) => ({
      message: t.exposeString('message', { description: 'What was done.' }),
      environment: t.field({
        type: Environment,
        authorize: 'inherited',
        description: 'The environment as it is now.',
        resolve: ({ environment }) => environment,
      }),
    }),
  });

const DeleteEnvironmentPayload = deletePayload('DeleteEnvironment', {
  noun: 'environment',
  in: ['orgId', 'workspaceId'],
  message: 'Environment deleted successfully',
});

builder.mutationFields((t) => ({
  createEnvironment: t.field({
    type: EnvironmentResult,
    description: 'Creates an environment.',
    authorize: { workspace: 'environment:create' },
    emits: ['environment.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateEnvironmentInput, 'The environment.') },
    resolve: async ({ workspace }, { input }, { caller, services }) => ({
      message: 'Environment created successfully',
      environment: await services.environments.create(caller, workspace, input),
    }),
  }),
  updateEnvironment: t.field({
    type: EnvironmentResult,
    description: 'Changes an environment.',
    authorize: { workspace: 'environment:update' },
    emits: ['environment.updated'],
    args: { ...target(), ...inputArg(UpdateEnvironmentInput), ...versionArg() },
    resolve: async ({ workspace }, { id, input }, { caller, services }) => ({
      message: 'Environment updated successfully',
      environment: await services.environments.update(caller, workspace, id, input),
    }),
  }),
  deleteEnvironment: t.field({
    type: DeleteEnvironmentPayload,
    description:
      'Undeploys everything in an environment and deletes it with its secrets. The default environment can only be ' +
      'deleted last.',
    authorize: { workspace: 'environment:delete' },
    emits: ['environment.deleted'],
    mayEmit: ['deployment.removed', 'secret.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { id }, { caller, services }) => services.environments.delete(caller, workspace, id),
  }),
}));
