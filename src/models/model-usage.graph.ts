import type { Constraints } from '../core/constraints.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { workspaceArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { costBounds, modelArg } from './logical-model.inputs.ts';
import type { UsageSummary as UsageSummaryRow } from './model-usage.service.ts';

const ModelOutcome = builder.enumType('ModelOutcome', {
  description: 'How a request to a target ended.',
  values: {
    SUCCESS: { description: 'It was answered.' },
    FAILURE: { description: 'The provider failed, or could not be reached.' },
    TIMEOUT: { description: 'The provider did not answer in time.' },
    RATE_LIMITED: { description: 'The provider refused it as one too many.' },
    AUTH_FAILURE: { description: 'The provider refused the credentials.' },
    INVALID_REQUEST: { description: 'The request was wrong in itself: it says nothing of the health of the target.' },
  } as const,
});

const ModelUsageSummary = builder.objectRef<UsageSummaryRow>('ModelUsageSummary').implement({
  description: 'What a workspace has used of a model, the report included.',
  fields: (t) => ({
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model.' }),
    requestCount: t.expose('requestCount', { type: 'Int53', description: 'Requests that were reported.' }),
    totalTokens: t.expose('totalTokens', { type: 'Int53', description: 'Tokens that were reported.' }),
    tokensThisMonth: t.expose('tokensThisMonth', { type: 'Int53', description: 'Tokens in the running month (UTC).' }),
    requestsToday: t.expose('requestsToday', { type: 'Int53', description: 'Requests in the running day (UTC).' }),
    requestsThisMinute: t.expose('requestsThisMinute', {
      type: 'Int53',
      description: 'Requests in the running minute.',
    }),
    tokensThisMinute: t.expose('tokensThisMinute', { type: 'Int53', description: 'Tokens in the running minute.' }),
    consecutiveFailures: t.exposeInt('consecutiveFailures', {
      nullable: true,
      description:
        'Failures in a row of the target; null where the model has no such target or the entitlement is disabled: then the account was not touched.',
    }),
  }),
});

refersTo(ModelUsageSummary, {
  orgId: 'organization',
  workspaceId: 'workspace',
  logicalModelId: { kind: 'model', name: 'model' },
});

/** What one request can use: a wrong report must not use up a month for everybody. */
const reportedTokens = { min: 0, max: 100_000_000 } as const satisfies Constraints;

const ReportModelUsageInput = builder.inputType('ReportModelUsageInput', {
  description: 'How one request to a target ended.',
  fields: (t) => ({
    providerAccountId: t.id({ required: true, constraints: bounds.id, description: 'The account of the target.' }),
    modelName: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 255 },
      description: "The target's name at the provider.",
    }),
    outcome: t.field({ type: ModelOutcome, required: true, description: 'How it ended.' }),
    inputTokens: t.int({ constraints: reportedTokens, description: 'Tokens of the request; 0 unless told.' }),
    outputTokens: t.int({ constraints: reportedTokens, description: 'Tokens of the answer; 0 unless told.' }),
    latencyMs: t.int({ constraints: { min: 0 }, description: 'How long it took.' }),
    cost: t.string({
      constraints: costBounds,
      description: "What it cost: a decimal number, in the unit of the model's `maxCostPer1kTokens`.",
    }),
    purpose: t.string({ constraints: { minLength: 1, maxLength: 255 }, description: 'What it was for.' }),
    executionId: t.string({
      constraints: { minLength: 1, maxLength: 128 },
      description: 'What it was part of; kept in the activity record.',
    }),
  }),
});

builder.mutationField('reportModelUsage', (t) =>
  t.field({
    type: ModelUsageSummary,
    description:
      'Says how one request to a target ended. Moves the health of target and account, and the counters of account and entitlement, at once. Send it once per try, of the model whose target was tried. Refused credentials, latency and cost are believed of editors of the workspace and above; from others refused credentials count as a failure.',
    authorize: { workspace: 'model:execute' },
    args: {
      ...workspaceArgs(),
      ...modelArg(),
      input: t.arg({ type: ReportModelUsageInput, required: true, description: 'The report.' }),
    },
    resolve: (_root, { logicalModelId, input, ...place }, { actor, services }) =>
      services.modelUsage.report(actor, place, logicalModelId, input),
  }),
);
