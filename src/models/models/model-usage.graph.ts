import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { costBounds, modelArg } from './logical-model.inputs.ts';
import type { UsageSummary as UsageSummaryRow } from './model-usage.service.ts';

const ModelOutcome = builder.enumType('ModelOutcome', {
  description: 'How a request to a target ended.',
  values: {
    SUCCESS: { description: 'The provider answered.' },
    FAILURE: { description: 'The provider failed or could not be reached.' },
    TIMEOUT: { description: 'The provider did not answer in time.' },
    RATE_LIMITED: { description: 'The provider refused the request because there were too many.' },
    AUTH_FAILURE: { description: 'The provider refused the credentials.' },
    INVALID_REQUEST: { description: 'The request itself was wrong. This says nothing about the health of the target.' },
  } as const,
});

const ModelUsageSummary = builder.objectRef<UsageSummaryRow>('ModelUsageSummary').implement({
  description: 'What a workspace has used of a model, including this report.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model.' }),
    requestCount: t.expose('requestCount', { type: 'Int53', description: 'Number of reported requests.' }),
    totalTokens: t.expose('totalTokens', { type: 'Int53', description: 'Number of reported tokens.' }),
    tokensThisMonth: t.expose('tokensThisMonth', { type: 'Int53', description: 'Tokens in the current month (UTC).' }),
    requestsToday: t.expose('requestsToday', { type: 'Int53', description: 'Requests in the current day (UTC).' }),
    requestsThisMinute: t.expose('requestsThisMinute', {
      type: 'Int53',
      description: 'Requests in the current minute.',
    }),
    tokensThisMinute: t.expose('tokensThisMinute', { type: 'Int53', description: 'Tokens in the current minute.' }),
    consecutiveFailures: t.exposeInt('consecutiveFailures', {
      nullable: true,
      description:
        'Failures of the target in a row. `null` if the model has no such target or the entitlement is disabled; ' +
        'then the report did not change the account.',
    }),
  }),
});

refersTo(ModelUsageSummary, {
  orgId: 'organization',
  workspaceId: 'workspace',
  logicalModelId: { kind: 'model', name: 'model' },
});

/** Maximum for one request: a wrong report must not use up a month for everybody. */
const reportedTokens = { min: 0, max: 100_000_000 } as const satisfies Constraints;

const ReportModelUsageInput = builder.inputType('ReportModelUsageInput', {
  description: 'How one request to a target ended.',
  fields: (t) => ({
    providerAccountId: t.id({ required: true, constraints: bounds.id, description: 'The account of the target.' }),
    modelName: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 255 },
      description: "The model's name at the provider.",
    }),
    outcome: t.field({ type: ModelOutcome, required: true, description: 'How the request ended.' }),
    inputTokens: t.int({ constraints: reportedTokens, description: 'Tokens of the request. Default 0.' }),
    outputTokens: t.int({ constraints: reportedTokens, description: 'Tokens of the answer. Default 0.' }),
    latencyMs: t.int({ constraints: { min: 0 }, description: 'How long the request took, in milliseconds.' }),
    cost: t.string({
      constraints: costBounds,
      description: "What the request cost: a decimal number, in the unit of the model's `maxCostPer1kTokens`.",
    }),
    purpose: t.string({ constraints: { minLength: 1, maxLength: 255 }, description: 'What the request was for.' }),
    executionId: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description: 'What the request was part of. Kept in the activity record.',
    }),
  }),
});

builder.mutationField('reportModelUsage', (t) =>
  t.field({
    type: ModelUsageSummary,
    description:
      'Reports how one request to a target ended. Updates the health of the target and the account, and the ' +
      'counters of the account and the entitlement, all at once. Send one report per try, for the model whose ' +
      'target was tried. Reports of refused credentials, latency and cost count only from editors of the ' +
      'workspace and above. From others, refused credentials count as a failure, and latency and cost are ' +
      'ignored.',
    authorize: { workspace: 'model:execute' },
    mayEmit: ['provider_account.updated', 'provider_account.degraded', 'model.updated'],
    args: {
      ...workspaceArgs(),
      ...modelArg(),
      input: t.arg({ type: ReportModelUsageInput, required: true, description: 'The report.' }),
    },
    resolve: ({ workspace }, { logicalModelId, input }, { caller, services }) =>
      services.modelUsage.report(caller, workspace, logicalModelId, input),
  }),
);
