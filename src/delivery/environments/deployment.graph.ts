import { builder } from '../../graphql/builder.ts';
import { inApp } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { environmentArgs, idArg, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import type { DeploymentAction as Action } from './deployment.records.ts';
import { Environment } from './environment.graph.ts';

const DeploymentAction = wordEnum<Action>('DeploymentAction', 'What was done to an app in an environment.', {
  deploy: 'A release was deployed.',
  undeploy: 'The release that was deployed was removed.',
  rollback: 'An earlier release replaced the deployed release. Where nothing was deployed, this is a `deploy`.',
  promote: 'A release came from another environment.',
});

export const Deployment = builder.prismaObject('Deployment', {
  description:
    'A record of a deployment, or of a removal, of an app in an environment. It is kept when the environment, the ' +
    'app or the release is deleted.',
  interfaces: [Node],
  fields: (t) => ({
    environmentId: t.exposeID('environmentId', { description: 'The environment.' }),
    number: t.exposeInt('number', {
      description: 'Number of the record within the app and the environment: from 1, without gaps.',
    }),
    action: t.expose('action', { type: DeploymentAction, description: 'What was done.' }),
    releaseId: t.exposeID('releaseId', { description: 'The release that was deployed or removed.' }),
    previousReleaseId: t.exposeID('previousReleaseId', {
      nullable: true,
      description: 'The release that was deployed before. `null` if there was none.',
    }),
    deployedBy: t.exposeID('deployedBy', { nullable: true, description: 'The user who did it.' }),
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
    appId: t.id({ constraints: bounds.id, description: 'Only records of this app.' }),
  })),
  ...pageArgs(),
});

builder.objectFields(Environment, (t) => ({
  deployments: t.field({
    type: DeploymentConnection,
    description: 'The deployment records of the environment, newest first.',
    authorize: { workspace: 'environment:read' },
    args: listArgs(),
    resolve: (row, args, context) => context.services.deployments.history.list(context, inside.environment(row), args),
  }),
  deployed: t.field({
    type: DeploymentConnection,
    description:
      'What is deployed in the environment now: the newest record of each app that is deployed there, newest first.',
    authorize: { workspace: 'environment:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.deployments.current.list(context, inside.environment(row), args),
  }),
}));

builder.prismaObjectFields(App, (t) => ({
  deployments: t.field({
    type: DeploymentConnection,
    description: 'The deployment records of the app in all environments, newest first.',
    authorize: { workspace: 'environment:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.deployments.historyOfApp.list(context, inside.app(row), args),
  }),
  deployed: t.field({
    type: DeploymentConnection,
    description: 'Where the app is deployed now: the newest record of each of these environments, newest first.',
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
    description: 'The deployment records of an environment, newest first.',
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
  description: 'The app to deploy, and the environment to take its release from.',
  fields: (t) => ({
    appId: t.id({ required: true, constraints: bounds.id, description: 'The app.' }),
    fromEnvironmentId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'Another environment of the workspace. The release of the app that is deployed there is used.',
    }),
  }),
});

const DeploymentResult = builder
  .objectRef<{ message: string; deployment: typeof Deployment.$inferType }>('DeploymentResult')
  .implement({
    description: 'The result of an operation on an app in an environment.',
    fields: (t) => ({
      message: t.exposeString('message', { description: 'What was done.' }),
      deployment: t.field({
        type: Deployment,
        authorize: 'inherited',
        description: 'The deployment record.',
        resolve: ({ deployment }) => deployment,
      }),
    }),
  });

builder.mutationFields((t) => ({
  deployRelease: t.field({
    type: DeploymentResult,
    description: 'Deploys a release of an app to an environment, in place of the release that is deployed there.',
    authorize: { workspace: 'deployment:create' },
    activity: { action: 'deploy', resourceType: 'deployment' },
    mayEmit: ['deployment.created', 'deployment.rolled_back'],
    args: {
      ...environmentArgs(),
      ...inputArg(DeployReleaseInput, 'The release.'),
      ...versionArg('the environment'),
    },
    resolve: async ({ workspace }, { environmentId, input }, { caller, services }) => ({
      message: 'App deployed successfully',
      deployment: await services.deployments.deploy(caller, { ...workspace, environmentId }, input),
    }),
  }),
  promoteRelease: t.field({
    type: DeploymentResult,
    description: 'Deploys the release of an app that is deployed in another environment of the workspace.',
    authorize: { workspace: 'deployment:create' },
    activity: { action: 'promote', resourceType: 'deployment' },
    emits: ['deployment.created'],
    args: {
      ...environmentArgs(),
      ...inputArg(PromoteReleaseInput, 'The app, and the environment to take its release from.'),
      ...versionArg('the environment'),
    },
    resolve: async ({ workspace }, { environmentId, input }, { caller, services }) => ({
      message: 'App promoted successfully',
      deployment: await services.deployments.promote(caller, { ...workspace, environmentId }, input),
    }),
  }),
  undeployApp: t.field({
    type: DeploymentResult,
    description: 'Removes the deployed release of an app from an environment.',
    authorize: { workspace: 'deployment:delete', in: 'environment' },
    activity: { action: 'undeploy', resourceType: 'deployment' },
    emits: ['deployment.removed'],
    args: {
      ...environmentArgs(),
      appId: t.arg.id({ required: true, description: 'The app.' }),
      ...versionArg('the environment'),
    },
    resolve: async ({ environment }, { appId }, { caller, services }) => ({
      message: 'App undeployed successfully',
      deployment: await services.deployments.undeploy(caller, environment, appId),
    }),
  }),
}));
