import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { Node, readableInWorkspace, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { workspaceArgs } from '../graphql/place-args.ts';
import { MessageResult } from '../graphql/results.ts';
import { around } from '../graphql/row-places.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import type { Environment as EnvironmentView } from './environment.reads.ts';

const status = { oneOf: ['active', 'locked', 'archived'] };

export const Environment = builder.objectRef<EnvironmentView>('Environment').implement({
  description: 'A named place of a workspace that releases of apps are deployed to.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `env_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The organization of the workspace.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    slug: t.exposeString('slug', {
      description: 'A short name, unique in the workspace; it stays once something was deployed.',
    }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    isDefault: t.exposeBoolean('isDefault', { description: 'Whether it is the default one of the workspace.' }),
    status: t.exposeString('status', {
      description:
        '`active`; `locked`: only those who may update it deploy and undeploy; `archived`: it takes nothing but activation.',
    }),
    activeDeployments: t.field({
      type: 'StringMap',
      authorize: 'inherited',
      description: 'What is deployed now: the id of the release by the id of its app.',
      resolve: ({ activeDeployments }, _args, { actor, services }) => {
        const visible = services.access.visibleApps(actor);
        if (!visible) return activeDeployments;
        return Object.fromEntries(Object.entries(activeDeployments).filter(([appId]) => visible.includes(appId)));
      },
    }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who made it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'When it last changed; deployments do not count.',
    }),
    workspace: t.field({
      type: Workspace,
      description: 'The workspace that it belongs to.',
      authorize: { workspace: 'workspace:read' },
      resolve: (row, _args, context) =>
        context.services.workspaces.reads.get(context, around.organization(row), row.workspaceId),
    }),
  }),
});

export const EnvironmentConnection = pageType('Environment', Environment);

registerNode('environment', Environment, async (context, id) =>
  readableInWorkspace(context, 'environment:read', await context.services.environments.reads.findAnywhere(id)),
);

const listArgs = () => ({
  ...builder.args((t) => ({ status: t.string({ constraints: status, description: 'Only those with this status.' }) })),
  ...pageArgs(),
});

builder.prismaObjectField(Workspace, 'environments', (t) =>
  t.field({
    type: EnvironmentConnection,
    description: 'The environments, newest first.',
    authorize: { workspace: 'environment:read' },
    args: listArgs(),
    resolve: ({ orgId, id }, args, context) =>
      context.services.environments.reads.nestedPage(context, { orgId, workspaceId: id }, args),
  }),
);

const target = () => ({
  ...workspaceArgs(),
  ...builder.args((t) => ({ id: t.id({ required: true, description: 'The environment.' }) })),
});

builder.queryFields((t) => ({
  environment: t.field({
    type: Environment,
    description: 'An environment by its identifier.',
    authorize: { workspace: 'environment:read' },
    args: target(),
    resolve: (_root, { id, ...place }, { services }) => services.environments.reads.get(place, id),
  }),
  environments: t.field({
    type: EnvironmentConnection,
    description: 'The environments of a workspace, newest first.',
    authorize: { workspace: 'environment:read' },
    args: { ...workspaceArgs(), ...listArgs() },
    resolve: (_root, { orgId, workspaceId, ...args }, { actor, services }) =>
      services.environments.reads.page(actor, { orgId, workspaceId }, args),
  }),
}));

const slug = 'A short name, unique in the workspace: lower-case letters and digits in groups joined by `-`.';

const CreateEnvironmentInput = builder.inputType('CreateEnvironmentInput', {
  description: 'A new environment.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    slug: t.string({ required: true, constraints: bounds.slug, description: slug }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isDefault: t.boolean({
      description: 'Makes it the default one of the workspace, instead of the one that is. The first one always is.',
    }),
  }),
});

const UpdateEnvironmentInput = builder.inputType('UpdateEnvironmentInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    slug: t.string({ constraints: { ...bounds.slug, notNull: true }, description: slug }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    isDefault: t.boolean({
      constraints: { notNull: true },
      description: 'Makes it the default one of the workspace; to end that, make another one the default.',
    }),
    status: t.string({
      constraints: { ...status, notNull: true },
      description: '`archived` only when nothing is deployed; an archived one becomes `active` first.',
    }),
  }),
});

const EnvironmentResult = builder
  .objectRef<{ message: string; environment: EnvironmentView }>('EnvironmentResult')
  .implement({
    description: 'What was done to an environment.',
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

builder.mutationFields((t) => ({
  createEnvironment: t.field({
    type: EnvironmentResult,
    description: 'Makes an environment.',
    authorize: { workspace: 'environment:create' },
    args: {
      ...workspaceArgs(),
      input: t.arg({ type: CreateEnvironmentInput, required: true, description: 'The environment.' }),
    },
    resolve: async (_root, { input, ...place }, { actor, services }) => ({
      message: 'Environment created successfully',
      environment: await services.environments.create(actor, place, input),
    }),
  }),
  updateEnvironment: t.field({
    type: EnvironmentResult,
    description: 'Changes an environment.',
    authorize: { workspace: 'environment:update' },
    args: {
      ...target(),
      input: t.arg({ type: UpdateEnvironmentInput, required: true, description: 'The changes.' }),
      ...versionArg(),
    },
    resolve: async (_root, { id, input, ...place }, { actor, services }) => ({
      message: 'Environment updated successfully',
      environment: await services.environments.update(actor, place, id, input),
    }),
  }),
  deleteEnvironment: t.field({
    type: MessageResult,
    description: 'Undeploys everything in an environment and deletes it with its secrets. The default one goes last.',
    authorize: { workspace: 'environment:delete' },
    args: { ...target(), ...versionArg() },
    resolve: async (_root, { id, ...place }, { actor, services }) => {
      await services.environments.delete(actor, place, id);
      return { message: 'Environment deleted successfully' };
    },
  }),
}));
