import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { appArgs, namespaceArgs, organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { ResourceCounts as ResourceCountsRow } from './kept-counts.ts';
import type {
  ActionAnalytics as ActionAnalyticsRow,
  AppAnalytics as AppAnalyticsRow,
  NamespaceAnalytics as NamespaceAnalyticsRow,
  OrganizationAnalytics as OrganizationAnalyticsRow,
  SecretAnalytics as SecretAnalyticsRow,
  SourceAnalytics as SourceAnalyticsRow,
  WorkspaceAnalytics as WorkspaceAnalyticsRow,
} from './place-numbers.ts';
import type { Point } from './points.ts';
import type { ExecutionMetrics as ExecutionMetricsRow } from './runs.ts';
import type { ExecutionSeries as ExecutionSeriesRow } from './series.service.ts';

const count = (description: string) => ({ type: 'Int53', description }) as const;

const ResourceCounts = builder.objectRef<ResourceCountsRow>('ResourceCounts').implement({
  description: 'How many resources there are.',
  fields: (t) => ({
    sources: t.expose('sources', count('Sources, including sources of namespaces.')),
    augmentations: t.expose('augmentations', count('Augmentations of all apps.')),
    endpoints: t.expose('endpoints', count('Endpoints of all apps.')),
    namespaces: t.expose('namespaces', count('Namespaces, the default one included.')),
    apps: t.expose('apps', count('Apps.')),
    threads: t.expose('threads', count('Threads of all namespaces.')),
    actions: t.expose('actions', count('Actions of all apps.')),
    secrets: t.expose('secrets', count('Secrets, without deleted secrets.')),
    models: t.expose('models', count('Models of an organization; models that a workspace is entitled to.')),
    artifacts: t.expose('artifacts', count('Artifacts of all namespaces that are not deleted, without old versions.')),
  }),
});

const ExecutionMetrics = builder.objectRef<ExecutionMetricsRow>('ExecutionMetrics').implement({
  description:
    'How many executions began in the last 90 days (UTC, today included), and how they ended. Each execution ' +
    'counts once, even after it was deleted with its app.',
  fields: (t) => ({
    total: t.expose('total', count('All executions, including those still running.')),
    success: t.expose('success', count('Completed executions.')),
    failed: t.expose('failed', count('Failed executions.')),
    successRate: t.exposeFloat('successRate', {
      description: 'The share of the ended executions that completed, from 0 to 1. 0 if none has ended.',
    }),
  }),
});

/** The numbers of a workspace. */
export const WorkspaceAnalytics = builder.objectRef<WorkspaceAnalyticsRow>('WorkspaceAnalytics').implement({
  description: 'What there is in a workspace, and how its executions ended.',
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    resources: t.expose('resources', {
      type: ResourceCounts,
      authorize: 'inherited',
      description: 'How many resources it has.',
    }),
    storageBytes: t.expose(
      'storageBytes',
      count('Bytes of its artifacts, with all versions, deleted artifacts and unfinished uploads.'),
    ),
    executions: t.expose('executions', {
      type: ExecutionMetrics,
      authorize: 'inherited',
      description: 'Its executions.',
    }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'The time of this answer. The numbers are current.',
    }),
  }),
});
refersTo(WorkspaceAnalytics, { workspaceId: { kind: 'workspace', required: true } });

/** The numbers of an organization. */
export const OrganizationAnalytics = builder.objectRef<OrganizationAnalyticsRow>('OrganizationAnalytics').implement({
  description: 'What there is in an organization, or in one of its workspaces.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    workspaces: t.expose('workspaces', count('Workspaces.')),
    users: t.expose('users', count('Members of the organization, or of the one workspace.')),
    resources: t.expose('resources', {
      type: ResourceCounts,
      authorize: 'inherited',
      description: 'Resources of all workspaces, and the secrets and models of the organization itself.',
    }),
    storageBytes: t.expose(
      'storageBytes',
      count('Bytes of the artifacts, including artifacts in deleted workspaces until these are removed.'),
    ),
    executions: t.expose('executions', {
      type: ExecutionMetrics,
      authorize: 'inherited',
      description: 'Executions of all workspaces, including deleted workspaces.',
    }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'The time of this answer. The numbers are current.',
    }),
  }),
});
refersTo(OrganizationAnalytics, { orgId: { kind: 'organization', required: true } });

/** Bounds of the name of a time zone. */
export const timezone = { minLength: 1, maxLength: 64 };

/** A point of a series. */
export const SeriesPoint = builder.objectRef<Point>('SeriesPoint').implement({
  description: 'The value of an hour or a day.',
  fields: (t) => ({
    timestamp: t.expose('timestamp', { type: 'DateTime', description: 'When it begins.' }),
    value: t.exposeFloat('value', { description: 'The value. 0 if nothing happened.' }),
  }),
});

const SeriesPeriod = wordEnum<ExecutionSeriesRow['period']>('SeriesPeriod', 'How long each span of a series is.', {
  hourly: 'An hour.',
  daily: 'A day.',
});

const ExecutionSeries = builder.objectRef<ExecutionSeriesRow>('ExecutionSeries').implement({
  description: 'How many executions began in each hour or day of a time zone.',
  fields: (t) => ({
    metric: t.exposeString('metric', { description: 'Always `executions`.' }),
    period: t.expose('period', { type: SeriesPeriod, description: 'How long each span is.' }),
    data: t.field({
      type: [SeriesPoint],
      authorize: 'inherited',
      extensions: { atMost: 17 }, // ten points cost as much as an object
      description: 'As many points as were asked for, oldest first. The last one is the current hour or day.',
      resolve: ({ data }) => [...data],
    }),
  }),
});

/** The numbers of an app. */
export const AppAnalytics = builder.objectRef<AppAnalyticsRow>('AppAnalytics').implement({
  description: 'What an app has.',
  fields: (t) => ({
    appId: t.exposeID('appId', { description: 'The app.' }),
    augmentations: t.expose('augmentations', count('Its augmentations.')),
    namespaces: t.expose('namespaces', count('Namespaces of its workspace: an app may use all of them.')),
    endpoints: t.expose('endpoints', count('Its endpoints.')),
    releases: t.expose('releases', count('Its releases.')),
  }),
});
refersTo(AppAnalytics, { appId: { kind: 'app', required: true } });

/** The numbers of a namespace. */
export const NamespaceAnalytics = builder.objectRef<NamespaceAnalyticsRow>('NamespaceAnalytics').implement({
  description: 'What a namespace has.',
  fields: (t) => ({
    namespaceId: t.exposeID('namespaceId', { description: 'The namespace.' }),
    threads: t.expose('threads', count('Its threads.')),
    sources: t.expose('sources', count('Its sources.')),
  }),
});
refersTo(NamespaceAnalytics, { namespaceId: { kind: 'namespace', required: true } });

const ActionAnalytics = builder.objectRef<ActionAnalyticsRow>('ActionAnalytics').implement({
  description: 'The actions of all apps of a workspace.',
  fields: (t) => ({
    totalActions: t.expose('totalActions', count('All actions.')),
    enabledActions: t.expose('enabledActions', count('Enabled actions, of every kind.')),
    triggerActions: t.expose('triggerActions', count('Actions that an event triggers, enabled or not.')),
    scheduledActions: t.expose('scheduledActions', count('Actions with a schedule, enabled or not.')),
  }),
});

const SecretAnalytics = builder.objectRef<SecretAnalyticsRow>('SecretAnalytics').implement({
  description: 'Numbers of the secrets of a workspace and of its namespaces and environments, without deleted secrets.',
  fields: (t) => ({
    totalSecrets: t.expose('totalSecrets', count('All secrets.')),
    activeSecrets: t.expose('activeSecrets', count('Secrets whose status is `active`, including expired secrets.')),
    secretsByType: t.expose('secretsByType', { type: 'JSONObject', description: 'Number of secrets by their type.' }),
  }),
});

const SourceAnalytics = builder.objectRef<SourceAnalyticsRow>('SourceAnalytics').implement({
  description: 'The sources of a workspace and of its namespaces.',
  fields: (t) => ({
    totalSources: t.expose('totalSources', count('All sources.')),
    indexedSources: t.expose('indexedSources', count('Sources that can be searched: their status is `ready`.')),
    failedSources: t.expose('failedSources', count('Sources that could not be indexed.')),
    pendingSources: t.expose('pendingSources', count('Sources that are not indexed yet.')),
    totalChunks: t.expose('totalChunks', count('Chunks of all sources.')),
    totalTokens: t.expose('totalTokens', count('Tokens of all sources.')),
    totalBytes: t.expose('totalBytes', count('Size of all sources in bytes.')),
    workspaceSources: t.expose('workspaceSources', count('Sources of the whole workspace.')),
    namespaceSources: t.expose('namespaceSources', count('Sources of one namespace.')),
    sourcesByType: t.expose('sourcesByType', { type: 'JSONObject', description: 'Number of sources by their type.' }),
    sourcesByStatus: t.expose('sourcesByStatus', {
      type: 'JSONObject',
      description: 'Number of sources by their status: `pending`, `ready`, `failed`, `disabled`.',
    }),
  }),
});

const WHOLE = 'Refused to tokens that are restricted to a part of it.';

builder.queryFields((t) => ({
  organizationAnalytics: t.field({
    type: OrganizationAnalytics,
    description: `The numbers of an organization, for its administrators, or of a workspace. ${WHOLE}`,
    authorize: { organization: 'organization:access', service: 'analytics:read' },
    args: {
      ...organizationArgs(),
      ...builder.args((of) => ({
        workspaceId: of.id({ constraints: bounds.id, description: 'Only what is in this workspace.' }),
      })),
    },
    resolve: ({ organization }, { workspaceId }, { caller, services }) =>
      services.analytics.ofOrganization(caller, organization, workspaceId),
  }),
  workspaceAnalytics: t.field({
    type: WorkspaceAnalytics,
    description: `The numbers of a workspace. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.analytics.ofWorkspace(caller, workspace),
  }),
  resourceCounts: t.field({
    type: ResourceCounts,
    description: `How many resources a workspace has. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: async ({ workspace }, _args, { caller, services }) =>
      (await services.analytics.ofWorkspace(caller, workspace)).resources,
  }),
  executionMetrics: t.field({
    type: ExecutionMetrics,
    description: `How the executions of a workspace ended. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: async ({ workspace }, _args, { caller, services }) =>
      (await services.analytics.ofWorkspace(caller, workspace)).executions,
  }),
  hourlyExecutions: t.field({
    type: ExecutionSeries,
    description: `The executions of a workspace by hour. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: {
      ...workspaceArgs(),
      ...builder.args((of) => ({
        hours: of.int({
          required: true,
          defaultValue: 24,
          constraints: { min: 1, max: 168 },
          description: 'Number of hours, the current one included.',
        }),
        tz: of.string({
          required: true,
          defaultValue: 'UTC',
          constraints: timezone,
          description: 'IANA time zone: hours begin at its full hours.',
        }),
      })),
    },
    resolve: ({ workspace }, { hours, tz }, { caller, services }) =>
      services.series.ofExecutions(caller, workspace, 'hour', hours, tz),
  }),
  dailyExecutions: t.field({
    type: ExecutionSeries,
    description: `The executions of a workspace by day. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: {
      ...workspaceArgs(),
      ...builder.args((of) => ({
        days: of.int({
          required: true,
          defaultValue: 30,
          constraints: { min: 1, max: 90 },
          description: 'Number of days, the current one included.',
        }),
        tz: of.string({
          required: true,
          defaultValue: 'UTC',
          constraints: timezone,
          description: 'IANA time zone of the days. A day on which the clocks change has 23 or 25 hours.',
        }),
      })),
    },
    resolve: ({ workspace }, { days, tz }, { caller, services }) =>
      services.series.ofExecutions(caller, workspace, 'day', days, tz),
  }),
  appAnalytics: t.field({
    type: AppAnalytics,
    description: 'The numbers of an app.',
    authorize: { workspace: 'analytics:read', in: 'app' },
    args: appArgs(),
    resolve: ({ app }, _args, { caller, services }) => services.analytics.ofApp(caller, app),
  }),
  namespaceAnalytics: t.field({
    type: NamespaceAnalytics,
    description: 'The numbers of a namespace.',
    authorize: { workspace: 'analytics:read', in: 'namespace' },
    args: namespaceArgs(),
    resolve: ({ namespace }, _args, { caller, services }) => services.analytics.ofNamespace(caller, namespace),
  }),
  actionAnalytics: t.field({
    type: ActionAnalytics,
    description: `The numbers of the actions of a workspace. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.analytics.actions(caller, workspace),
  }),
  secretAnalytics: t.field({
    type: SecretAnalytics,
    description: `The numbers of the secrets of a workspace. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.analytics.secrets(caller, workspace),
  }),
  sourceAnalytics: t.field({
    type: SourceAnalytics,
    description: `The numbers of the sources of a workspace. ${WHOLE}`,
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.analytics.sources(caller, workspace),
  }),
}));
