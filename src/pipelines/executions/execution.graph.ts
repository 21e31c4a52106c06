import { builder } from '../../graphql/builder.ts';
import { inApp, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { parentKindOf } from '../../graphql/parent-kinds.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import { progressOf, type TokenUsage as TokenUsageRow } from './execution.progress.ts';

const ExecutionStatus = wordEnum('ExecutionStatus', 'Status of an execution.', {
  completed: 'It has ended well.',
  failed: 'It has failed, or no report of it came.',
  running: 'It runs.',
});

const TokenUsage = builder.objectRef<TokenUsageRow>('TokenUsage').implement({
  description: 'Model tokens that were used.',
  fields: (t) => ({
    input: t.expose('input', { type: 'Int53', description: 'Tokens of requests.' }),
    output: t.expose('output', { type: 'Int53', description: 'Tokens of answers.' }),
    total: t.expose('total', { type: 'Int53', description: 'All tokens.' }),
  }),
});

const Execution = builder.prismaObject('Execution', {
  description:
    'A run of an augmentation, as its runner reports it. It is kept when the augmentation, action or endpoint is ' +
    'deleted, and deleted with its app.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    executionId: t.exposeID('executionId', {
      description: 'The identifier that the runner gave it, unique in the workspace.',
    }),
    augmentationId: t.exposeID('augmentationId', { description: 'The augmentation that runs.' }),
    endpointId: t.exposeID('endpointId', {
      nullable: true,
      description: 'The endpoint of its request, if it has one.',
    }),
    actionId: t.exposeID('actionId', { nullable: true, description: 'The action that started it, if one did.' }),
    status: t.expose('status', { type: ExecutionStatus, description: 'Its status.' }),
    stagesCompleted: t.exposeInt('stagesCompleted', { description: 'Number of stages that are done.' }),
    totalStages: t.exposeInt('totalStages', { description: 'Number of all stages.' }),
    tokenUsage: t.field({
      type: TokenUsage,
      authorize: 'inherited',
      description: 'Model tokens of the whole run.',
      resolve: (row) => progressOf(row).tokenUsage,
    }),
    error: t.exposeString('error', { nullable: true, description: 'Why it failed, as its runner says.' }),
    isTimedOut: t.exposeBoolean('isTimedOut', {
      description: 'Whether the service marked it as failed because no report came. A later report resumes it.',
    }),
    startedAt: t.expose('startedAt', { type: 'DateTime', description: 'When it began.' }),
    endedAt: t.expose('endedAt', optionalTime('When it ended. `null` while it runs.')),
    tokenId: t.exposeID('tokenId', { nullable: true, description: 'The token that reported it first, if it was one.' }),
  }),
});
inApp(Execution, 'execution');
tracked(Execution, {
  by: 'The user who reported it first.',
  at: 'When it was reported first.',
  changed: 'When a report last changed it.',
});
refersTo(Execution, {
  appId: { kind: 'app', required: true },
  augmentationId: 'augmentation',
  endpointId: 'endpoint',
  actionId: 'action',
  tokenId: 'api_token',
});

readable(Execution, {
  kind: 'execution',
  below: {
    place: parentKindOf('Workspace'),
    lists: [
      { of: Workspace, reads: ({ executions }) => executions.reads },
      { of: App, reads: ({ executions }) => executions.ofApp },
    ],
  },
  reads: ({ executions }) => executions.reads,
  filters: () =>
    builder.args((t) => ({
      appId: t.id({ constraints: bounds.id, description: 'Only executions of this app.' }),
      status: t.field({ type: ExecutionStatus, description: 'Only executions with this status.' }),
      startedFrom: t.field({ type: 'DateTime', description: 'Only executions that began at this time or later.' }),
      startedBefore: t.field({
        type: 'DateTime',
        description: 'Only executions that began before this time. A time before `startedFrom` is an error.',
      }),
    })),
  one: {
    description: 'An execution by the identifier that its runner gave it.',
    arg: 'executionId',
    argDescription: 'The execution.',
  },
  list: { description: 'The executions of a workspace, newest first.' },
});

/** Most tokens of one run: a wrong report must not spoil every sum. */
const tokens = { min: 0, max: 1_000_000_000 };

const TokenUsageInput = builder.inputType('TokenUsageInput', {
  description: 'Model tokens of the whole run so far.',
  fields: (t) => ({
    input: t.int({ constraints: tokens, description: 'Tokens of requests.' }),
    output: t.int({ constraints: tokens, description: 'Tokens of answers.' }),
    total: t.int({ constraints: tokens, description: 'All tokens, if more than `input` and `output` together.' }),
  }),
});

const ReportExecutionInput = builder.inputType('ReportExecutionInput', {
  description: 'A report of a runner about a run. A report may omit what the runner does not know.',
  fields: (t) => ({
    executionId: t.string({
      required: true,
      constraints: { pattern: '[A-Za-z0-9][A-Za-z0-9._:-]{0,127}' },
      description: 'The identifier of the run, which its runner chooses. Unique in the workspace.',
    }),
    appId: t.id({ required: true, constraints: bounds.id, description: 'The app.' }),
    augmentationId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'The augmentation that runs: one of the app.',
    }),
    endpointId: t.id({ constraints: bounds.id, description: 'The endpoint of its request: one of the app.' }),
    actionId: t.id({ constraints: bounds.id, description: 'The action that started it: one of the app.' }),
    status: t.field({
      type: ExecutionStatus,
      description: 'Its status. Default `running`. An execution that has ended stays so.',
    }),
    stagesCompleted: t.int({ constraints: { min: 0, max: 10_000 }, description: 'Number of stages that are done.' }),
    totalStages: t.int({
      constraints: { min: 0, max: 10_000 },
      description: 'Number of all stages. Default: the number of stages that the augmentation has at the first report.',
    }),
    tokenUsage: t.field({ type: TokenUsageInput, description: 'Model tokens of the whole run so far.' }),
    error: t.string({ constraints: { maxLength: 4_000 }, description: 'Why it failed. Put no secret here.' }),
    startedAt: t.field({ type: 'DateTime', description: 'When it began. Default: at the first report.' }),
    endedAt: t.field({ type: 'DateTime', description: 'When it ended. Default: at the report of its end.' }),
  }),
});

builder.mutationField('reportExecution', (t) =>
  t.field({
    type: Execution,
    description:
      'Reports a run of an augmentation. The first report with an `executionId` creates the execution, later ' +
      'reports advance it. Reports may be repeated and may come late: numbers only grow, and an ended execution ' +
      'stays ended. A report that contradicts an earlier report fails with RESOURCE_CONFLICT and the `fields` in ' +
      'question. An execution that the service marked as failed because no report came resumes with the next ' +
      'report. Editors may report, and so may the app tokens that they create.',
    authorize: { organization: 'organization:access', service: 'execution:create' },
    activity: { action: 'execute', resourceType: 'execution' },
    mayEmit: ['execution.started', 'execution.stage_completed', 'execution.completed', 'execution.failed'],
    args: { ...workspaceArgs(), ...inputArg(ReportExecutionInput, 'The report.') },
    resolve: (_root, { input, ...place }, { caller, services }) => services.executions.report(caller, place, input),
  }),
);
