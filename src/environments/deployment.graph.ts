import { App } from '../apps/app.graph.ts';
import { builder } from '../graphql/builder.ts';
import { inApp } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { environmentArgs, idArg, workspaceArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { inside } from '../graphql/row-places.ts';
import { versionArg } from '../graphql/versions.ts';
import { Environment } from './environment.graph.ts';

export const Deployment = builder.prismaObject('Deployment', {
  description:
    'A record of what was done to an app in an environment. It outlives the environment, the app and the release.',
  interfaces: [Node],
  fields: (t) => ({
    environmentId: t.exposeID('environmentId', { description: 'The environment.' }),
    number: t.exposeInt('number', { description: 'Counts from 1 within the app and the environment, without gaps.' }),
    action: t.exposeString('action', {
      description:
        '`deploy`; `rollback`: from another release to one that was deployed there before (where nothing is deployed now, that is a `deploy`: there is nothing to roll back from); `promote`: from another environment; `undeploy`.',
    }),
    releaseId: t.exposeID('releaseId', { description: 'The release that was deployed, or taken out.' }),
    previousReleaseId: t.exposeID('previousReleaseId', {
      nullable: true,
      description: 'What was deployed until then; null for nothing.',
    }),
    deployedBy: t.exposeID('deployedBy', { nullable: true, description: 'Who did it.' }),
    deployedAt: t.expose('deployedAt', { type: 'DateTime', description: 'When it was done.' }),
  }),
});
inApp(Deployment, 'deployment');
refersTo(Deployment, {
  environmentId: 'environment',
  appId: 'app',
  releaseId: 'release',
  previousReleaseId: 'release',
  deployedBy: 'user',
});

export const DeploymentConnection = pageType('Deployment', Deployment);

registerNode('deployment', Deployment, (context, id) => context.services.deployments.find(context, id));

const listArgs = () => ({
  ...builder.args((t) => ({
    appId: t.id({ constraints: bounds.id, description: 'Only those of this app.' }),
  })),
  ...pageArgs(),
});

builder.objectFields(Environment, (t) => ({
  deployments: t.field({
    type: DeploymentConnection,
    description: 'What was done here, newest first.',
    authorize: { workspace: 'environment:read' },
    args: listArgs(),
    resolve: (row, args, context) => context.services.deployments.history.list(context, inside.environment(row), args),
  }),
  deployed: t.field({
    type: DeploymentConnection,
    description: 'What is deployed here now: the newest record of each app that has something deployed, newest first.',
    authorize: { workspace: 'environment:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.deployments.current.list(context, inside.environment(row), args),
  }),
}));

builder.prismaObjectFields(App, (t) => ({
  deployments: t.field({
    type: DeploymentConnection,
    description: 'What was done to the app in all environments, newest first.',
    authorize: { workspace: 'environment:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.deployments.historyOfApp.list(context, inside.app(row), args),
  }),
  deployed: t.field({
    type: DeploymentConnection,
    description: 'Where the app is deployed now: the newest record of each such environment, newest first.',
    authorize: { workspace: 'environment:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.deployments.currentOfApp.list(context, inside.app(row), args),
  }),
}));

builder.queryFields((t) => ({
  deployment: t.field({
    type: Deployment,
    description: 'A deployment record by its identifier.',
    authorize: { workspace: 'environment:read' },
    activity: { action: 'read', resourceType: 'deployment' },
    args: { ...workspaceArgs(), ...idArg('The deployment record.') },
    resolve: ({ workspace }, { id }, context) => context.services.deployments.get(context, workspace, id),
  }),
  deployments: t.field({
    type: DeploymentConnection,
    description: 'What was done in an environment, newest first.',
    authorize: { workspace: 'environment:read', in: 'environment' },
    activity: { action: 'list', resourceType: 'deployment' },
    args: { ...environmentArgs(), ...listArgs() },
    resolve: ({ environment }, args, context) => context.services.deployments.list(context, environment, args),
  }),
}));

const DeployReleaseInput = builder.inputType('DeployReleaseInput', {
  description: 'What to deploy.',
  fields: (t) => ({
    appId: t.id({ required: true, constraints: bounds.id, description: 'The app.' }),
    releaseId: t.id({ required: true, constraints: bounds.id, description: 'A release of the app.' }),
  }),
});

const PromoteReleaseInput = builder.inputType('PromoteReleaseInput', {
  description: 'What to deploy, and where it is deployed already.',
  fields: (t) => ({
    appId: t.id({ required: true, constraints: bounds.id, description: 'The app.' }),
    fromEnvironmentId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'Another environment of the workspace: what it has of the app is deployed.',
    }),
  }),
});

const DeploymentResult = builder
  .objectRef<{ message: string; deployment: typeof Deployment.$inferType }>('DeploymentResult')
  .implement({
    description: 'What was done to an app in an environment.',
    fields: (t) => ({
      message: t.exposeString('message', { description: 'What was done.' }),
      deployment: t.field({
        type: Deployment,
        authorize: 'inherited',
        description: 'The record of it.',
        resolve: ({ deployment }) => deployment,
      }),
    }),
  });

builder.mutationFields((t) => ({
  deployRelease: t.field({
    type: DeploymentResult,
    description: 'Deploys a release of an app: from now on it is the one of that environment.',
    authorize: { workspace: 'deployment:create' },
    activity: { action: 'deploy', resourceType: 'deployment' },
    args: {
      ...environmentArgs(),
      ...inputArg(DeployReleaseInput, 'The release.'),
      ...versionArg('the environment'),
    },
    resolve: async ({ workspace }, { environmentId, input }, { actor, services }) => ({
      message: 'App deployed successfully',
      deployment: await services.deployments.deploy(actor, { ...workspace, environmentId }, input),
    }),
  }),
  promoteRelease: t.field({
    type: DeploymentResult,
    description: 'Deploys the release of an app that another environment of the workspace has.',
    authorize: { workspace: 'deployment:create' },
    activity: { action: 'promote', resourceType: 'deployment' },
    args: {
      ...environmentArgs(),
      ...inputArg(PromoteReleaseInput, 'The app and where it comes from.'),
      ...versionArg('the environment'),
    },
    resolve: async ({ workspace }, { environmentId, input }, { actor, services }) => ({
      message: 'App promoted successfully',
      deployment: await services.deployments.promote(actor, { ...workspace, environmentId }, input),
    }),
  }),
  undeployApp: t.field({
    type: DeploymentResult,
    description: 'Takes out what is deployed of an app in an environment.',
    authorize: { workspace: 'deployment:delete', in: 'environment' },
    activity: { action: 'undeploy', resourceType: 'deployment' },
    args: {
      ...environmentArgs(),
      appId: t.arg.id({ required: true, description: 'The app.' }),
      ...versionArg('the environment'),
    },
    resolve: async ({ environment }, { appId }, { actor, services }) => ({
      message: 'App undeployed successfully',
      deployment: await services.deployments.undeploy(actor, environment, appId),
    }),
  }),
}));
