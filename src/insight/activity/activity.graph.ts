import type { Activity as ActivityRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { isNodeKind } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { appArgs, organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { ApiTokenTypeEnum, PrincipalTypeEnum } from '../../graphql/shared-enums.ts';
import { kindOfId } from '../../kernel/ids.ts';
import type { ActivitySummary as ActivitySummaryRow } from './activity.service.ts';

const Activity = builder.objectRef<ActivityRow>('Activity').implement({
  description:
    'A record of one operation of an authenticated caller, successful or not, or of a failed sign-in. Bodies are ' +
    'never recorded. A record is kept for at least 90 days: records are removed a whole month at a time.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `act_…`.' }),
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When the operation ended.' }),
    traceId: t.exposeString('traceId', { nullable: true, description: 'The trace of the request.' }),
    orgId: t.exposeID('orgId', { nullable: true, description: 'The organization.' }),
    userId: t.exposeID('userId', {
      nullable: true,
      description: 'The user whose permissions applied. For a failed sign-in, the user of the account.',
    }),
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'The workspace that the operation named, if any.',
    }),
    appId: t.exposeID('appId', { nullable: true, description: 'The app that the operation named, if any.' }),
    principalType: t.expose('principalType', { type: PrincipalTypeEnum, description: 'Who acted.' }),
    principalId: t.exposeString('principalId', {
      nullable: true,
      description: 'The token that was used, otherwise the user.',
    }),
    tokenId: t.exposeString('tokenId', { nullable: true, description: 'The token, if one was used.' }),
    tokenType: t.expose('tokenType', {
      type: ApiTokenTypeEnum,
      nullable: true,
      description: 'What kind of token it was, if one was used.',
    }),
    method: t.exposeString('method', { nullable: true, description: 'HTTP method; `WS` over a WebSocket.' }),
    path: t.exposeString('path', { nullable: true, description: 'Path of the request, without its query.' }),
    resourceType: t.exposeString('resourceType', {
      nullable: true,
      description: 'The resource word, the same as in permissions: `secret`, `tool_instance`.',
    }),
    resourceId: t.exposeString('resourceId', {
      nullable: true,
      description: 'What the operation was about. `null` for lists, and if nothing was created.',
    }),
    action: t.exposeString('action', {
      description: 'What was done: `create`, `read`, `list`, `rotate`, `deploy`, … or another word.',
    }),
    statusCode: t.exposeInt('statusCode', { description: 'HTTP status of the answer.' }),
    success: t.exposeBoolean('success', {
      description:
        'Whether the operation succeeded: its status is below 400. A test of a tool instance must have succeeded, too.',
    }),
    errorCode: t.exposeString('errorCode', { nullable: true, description: 'The error code. `null` for a success.' }),
    durationMs: t.exposeInt('durationMs', { description: 'How long it took, in milliseconds.' }),
    executionId: t.exposeString('executionId', {
      nullable: true,
      description: 'The execution that the operation was part of.',
    }),
    augmentationId: t.exposeString('augmentationId', {
      nullable: true,
      description: 'The augmentation of the run that was reported.',
    }),
    stagesCompleted: t.exposeInt('stagesCompleted', { nullable: true, description: 'Stages that the run completed.' }),
    totalStages: t.exposeInt('totalStages', { nullable: true, description: 'Stages that the run has.' }),
    tokenUsage: t.expose('tokenUsage', {
      type: 'JSONObject',
      description: 'Model tokens that it used: `input`, `output` and `total`. Empty for none.',
    }),
    metadata: t.expose('metadata', {
      type: 'JSONObject',
      description:
        'Further details, depending on the action. For a GraphQL operation, `graphql_field` is the root field.',
    }),
  }),
});
refersTo(Activity, {
  orgId: 'organization',
  userId: 'user',
  workspaceId: 'workspace',
  appId: 'app',
  augmentationId: 'augmentation',
  tokenId: { kind: 'api_token', name: 'token' },
  resourceId: {
    kind: 'node',
    name: 'resource',
    // identifiers of failed requests are whatever the caller wrote
    idOf: ({ resourceId }) => {
      const kind = resourceId === null ? null : kindOfId(resourceId);
      return kind && isNodeKind(kind) ? resourceId : null;
    },
  },
});

export const ActivityConnection = pageType('Activity', Activity);

const ActivitySummary = builder.objectRef<ActivitySummaryRow>('ActivitySummary').implement({
  description: 'Totals of the operations of the last hours.',
  fields: (t) => ({
    totalRequests: t.expose('totalRequests', { type: 'Int53', description: 'Number of operations.' }),
    successfulRequests: t.expose('successfulRequests', {
      type: 'Int53',
      description: 'Number of successful operations.',
    }),
    failedRequests: t.expose('failedRequests', { type: 'Int53', description: 'Number of failed operations.' }),
    avgDurationMs: t.exposeFloat('avgDurationMs', { description: 'Average duration in milliseconds. 0 if empty.' }),
    totalTokensUsed: t.expose('totalTokensUsed', {
      type: 'Int53',
      description: 'Model tokens that the operations used.',
    }),
    byAction: t.expose('byAction', { type: 'JSONObject', description: 'Number of operations by action.' }),
    byResource: t.expose('byResource', { type: 'JSONObject', description: 'Number of operations by resource word.' }),
    startTime: t.expose('startTime', {
      type: 'DateTime',
      description: 'Start of the period: the requested number of hours before `endTime`.',
    }),
    endTime: t.expose('endTime', { type: 'DateTime', description: 'The time of this answer.' }),
  }),
});

/** The arguments of every list of records. */
export const timeArgs = () =>
  builder.args((t) => ({
    startTime: t.field({ type: 'DateTime', description: 'Only records from this time on.' }),
    endTime: t.field({
      type: 'DateTime',
      description: 'Only records before this time. An end before the start is an error.',
    }),
  }));

/** Arguments of a list that are no part of the REST API. */
export const kindArgs = () =>
  builder.args((t) => ({
    action: t.string({ constraints: bounds.open, description: 'Only records of this action.' }),
    resourceType: t.string({ constraints: bounds.open, description: 'Only records about resources of this kind.' }),
    tokenId: t.id({ constraints: bounds.id, description: 'Only records of this token.' }),
    success: t.boolean({ description: 'Only successful operations, or only failed operations.' }),
    withoutReads: t.boolean({
      description:
        'Whether to leave out what was only read, listed or viewed, unless that failed: also the routes to a model ' +
        'whose `requireAuditLog` demands a record, which are reads.',
    }),
  }));

const resourceArg = () =>
  builder.args((t) => ({
    resourceId: t.id({ constraints: bounds.id, description: 'Only records about this resource.' }),
  }));

const userArg = () =>
  builder.args((t) => ({ userId: t.id({ constraints: bounds.id, description: 'Only records of this user.' }) }));

const hoursArg = () =>
  builder.args((t) => ({
    hours: t.int({
      required: true,
      defaultValue: 24,
      constraints: { min: 1, max: 168 },
      description: 'How many hours to look back.',
    }),
  }));

const userOf = () => builder.args((t) => ({ userId: t.id({ required: true, description: 'The user.' }) }));

const SEES = "Callers without the permission for everybody's records get their own.";

builder.queryFields((t) => ({
  organizationActivity: t.field({
    type: ActivityConnection,
    description: `The activity records of an organization, newest first. ${SEES}`,
    authorize: { organization: 'activity:read' },
    args: { ...organizationArgs(), ...timeArgs(), ...kindArgs(), ...resourceArg(), ...userArg(), ...pageArgs() },
    resolve: ({ organization }, args, context) =>
      context.services.activityLog.list(context, { orgId: organization.orgId }, organization.asked.grant, args),
  }),
  organizationActivitySummary: t.field({
    type: ActivitySummary,
    description: `Totals of the activity records of an organization. ${SEES}`,
    authorize: { organization: 'activity:read' },
    args: { ...organizationArgs(), ...hoursArg() },
    resolve: ({ organization }, { hours }, { caller, services }) =>
      services.activityLog.summary(caller, { orgId: organization.orgId }, organization.asked.grant, hours),
  }),
  workspaceActivity: t.field({
    type: ActivityConnection,
    description: `The activity records of a workspace, newest first. ${SEES}`,
    authorize: { workspace: 'activity:read' },
    args: { ...workspaceArgs(), ...timeArgs(), ...kindArgs(), ...resourceArg(), ...userArg(), ...pageArgs() },
    resolve: ({ workspace }, args, context) =>
      context.services.activityLog.list(context, inWorkspace(workspace), workspace.asked.grant, args),
  }),
  workspaceActivitySummary: t.field({
    type: ActivitySummary,
    description: `Totals of the activity records of a workspace. ${SEES}`,
    authorize: { workspace: 'activity:read' },
    args: { ...workspaceArgs(), ...hoursArg() },
    resolve: ({ workspace }, { hours }, { caller, services }) =>
      services.activityLog.summary(caller, inWorkspace(workspace), workspace.asked.grant, hours),
  }),
  appActivity: t.field({
    type: ActivityConnection,
    description: `The activity records of an app, newest first. ${SEES}`,
    authorize: { workspace: 'activity:read', in: 'app' },
    args: { ...appArgs(), ...timeArgs(), ...kindArgs(), ...resourceArg(), ...userArg(), ...pageArgs() },
    resolve: ({ app }, args, context) =>
      context.services.activityLog.list(context, { orgId: app.orgId, app: app.appId }, app.asked.grant, args),
  }),
  endpointActivity: t.field({
    type: ActivityConnection,
    description: `The activity records about an endpoint of an app, newest first. ${SEES}`,
    authorize: { workspace: 'activity:read', in: 'app' },
    args: {
      ...appArgs(),
      ...builder.args((of) => ({ endpointId: of.id({ required: true, description: 'The endpoint.' }) })),
      ...timeArgs(),
      ...kindArgs(),
      ...userArg(),
      ...pageArgs(),
    },
    resolve: async ({ app }, { endpointId, ...args }, context) => {
      const { activityLog, endpoints } = context.services;
      const { id } = await endpoints.reads.get(context, app, endpointId);
      return activityLog.list(context, { orgId: app.orgId, resource: id }, app.asked.grant, args);
    },
  }),
  userActivity: t.field({
    type: ActivityConnection,
    description: 'The activity records of a user in an organization, newest first. Everybody may read their own.',
    authorize: { organization: 'organization:access', service: 'activity:read' },
    args: {
      ...organizationArgs(),
      ...userOf(),
      ...builder.args((of) => ({
        workspaceId: of.id({ constraints: bounds.id, description: 'Only records in this workspace.' }),
      })),
      ...timeArgs(),
      ...kindArgs(),
      ...resourceArg(),
      ...pageArgs(),
    },
    resolve: async ({ organization }, { workspaceId, ...args }, context) => {
      const { activityLog } = context.services;
      const grant = await activityLog.grantFor(context.caller, organization, args.userId, workspaceId);
      const place = { orgId: organization.orgId, ...(workspaceId && { workspace: workspaceId }) };
      return activityLog.list(context, place, grant, args);
    },
  }),
  userActivitySummary: t.field({
    type: ActivitySummary,
    description: 'Totals of the activity records of a user in an organization.',
    authorize: { organization: 'organization:access', service: 'activity:read' },
    args: { ...organizationArgs(), ...userOf(), ...hoursArg() },
    resolve: async ({ organization }, { userId, hours }, { caller, services }) => {
      const grant = await services.activityLog.grantFor(caller, organization, userId);
      return services.activityLog.summary(caller, { orgId: organization.orgId }, grant, hours, userId);
    },
  }),
}));

const inWorkspace = ({ orgId, workspaceId }: { orgId: string; workspaceId: string }) => ({
  orgId,
  workspace: workspaceId,
});
