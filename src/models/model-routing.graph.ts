import type { ObjectRef } from '@pothos/core';
import type { Constraints } from '../core/constraints.ts';
import { builder } from '../graphql/builder.ts';
import { workspaceArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { modelArg } from './logical-model.inputs.ts';
import { type Finding, type RouteLimit as RouteLimitRow, routeReasons } from './model-routing.rules.ts';
import type { LeftOut, ModelRoute as ModelRouteRow, RouteTarget as RouteTargetRow } from './model-routing.service.ts';

const RouteReason = builder.enumType('RouteReason', {
  description: 'Why something is not tried.',
  values: Object.fromEntries(
    Object.entries(routeReasons).map(([reason, description]) => [reason, { description }]),
  ) as Record<keyof typeof routeReasons, { description: string }>,
});

const RouteLimitScope = builder.enumType('RouteLimitScope', {
  description: 'Whose limit it is.',
  values: {
    ENTITLEMENT: { description: "The workspace's entitlement for the model." },
    PROVIDER_ACCOUNT: { description: 'The account at the provider.' },
    TOKEN: { description: 'The API token or app token that asks.' },
  } as const,
});

const RouteLimit = builder.objectRef<RouteLimitRow>('RouteLimit').implement({
  description:
    'A limit of requests. In a refusal, the one that the request would break; of several, the one that lasts longest.',
  fields: (t) => ({
    scope: t.expose('scope', { type: RouteLimitScope, description: 'Whose limit it is.' }),
    resourceId: t.exposeID('resourceId', { description: 'The entitlement, the account or the token.' }),
    name: t.exposeString('name', { description: 'Its name, `max_tokens_per_month`.' }),
    maximum: t.expose('maximum', {
      type: 'Int53',
      nullable: true,
      description: "What it allows; null for an account's: see the account.",
    }),
    used: t.expose('used', {
      type: 'Int53',
      nullable: true,
      description: "What was used of it; null for an account's (see the account) and for a token's.",
    }),
  }),
});

refersTo(RouteLimit, { resourceId: { kind: 'node', anywhere: true } });

const retryAfter = 'Whole seconds until it may be different; null where somebody has to change something first.';

/** Why, in words: `message`, `limit` and `retryAfterSeconds`. */
const explained = (type: ObjectRef<typeof builder.$inferSchemaTypes, Finding>) =>
  builder.objectFields(type, (t) => ({
    message: t.exposeString('message', { description: 'Why, in words.' }),
    limit: t.expose('limit', {
      type: RouteLimit,
      nullable: true,
      authorize: 'inherited',
      description: 'The limit that decided; null where it was none.',
    }),
    retryAfterSeconds: t.exposeInt('retryAfterSeconds', { nullable: true, description: retryAfter }),
  }));

const RouteRefusal = builder.objectRef<Finding>('RouteRefusal').implement({
  description: 'Why a request may not be sent at all.',
  fields: (t) => ({
    code: t.expose('reason', { type: RouteReason, description: 'Why.' }),
  }),
});
explained(RouteRefusal);

const RouteTarget = builder.objectRef<RouteTargetRow>('RouteTarget').implement({
  description: 'A target to try, with the settings to use there.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model that it is a target of.' }),
    providerAccountId: t.exposeID('providerAccountId', { description: 'The account.' }),
    modelName: t.exposeString('modelName', { description: "The model's name at the provider." }),
    providerType: t.exposeString('providerType', { description: 'Which provider it is at.' }),
    region: t.exposeString('region', { nullable: true, description: 'Where it is served.' }),
    routingMode: t.exposeString('routingMode', { description: '`direct` or `bridge`.' }),
    bridgeId: t.exposeString('bridgeId', { nullable: true, description: 'The bridge, where one is used.' }),
    bridgeEndpointName: t.exposeString('bridgeEndpointName', {
      nullable: true,
      description: 'The endpoint of the bridge.',
    }),
    priority: t.exposeInt('priority', { description: 'The lowest is tried first.' }),
    weight: t.exposeInt('weight', { description: 'Share of the requests among targets of the same priority.' }),
    temperature: t.exposeFloat('temperature', { nullable: true, description: "The target's own, else the model's." }),
    topP: t.exposeFloat('topP', { nullable: true, description: "The model's." }),
    maxTokens: t.exposeInt('maxTokens', { nullable: true, description: "The target's own, else the model's." }),
    isFallback: t.exposeBoolean('isFallback', { description: 'It is a target of a model of the fallback chain.' }),
    isProbe: t.exposeBoolean('isProbe', {
      description:
        'It failed, and rested long enough to be tried again. It stands behind the others of its model, in one of ten answers before them.',
    }),
  }),
});

const RouteExclusion = builder.objectRef<LeftOut>('RouteExclusion').implement({
  description: 'What is not tried, and why.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model.' }),
    providerAccountId: t.exposeID('providerAccountId', {
      nullable: true,
      description: 'The account of the target; null where it is about the model as a whole.',
    }),
    modelName: t.exposeString('modelName', {
      nullable: true,
      description: "The target's name at the provider; null where it is about the model as a whole.",
    }),
    reason: t.expose('reason', { type: RouteReason, description: 'Why.' }),
  }),
});
explained(RouteExclusion);

const ModelRoute = builder.objectRef<ModelRouteRow>('ModelRoute').implement({
  description: 'Where a request to a model may go now.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model that was asked for.' }),
    targets: t.expose('targets', {
      type: [RouteTarget],
      authorize: 'inherited',
      description: 'The targets to try, one after the other until one answers.',
    }),
    leftOut: t.expose('leftOut', {
      type: [RouteExclusion],
      authorize: 'inherited',
      description: 'The targets and models that are not tried, with the reason for each.',
    }),
    refusal: t.expose('refusal', {
      type: RouteRefusal,
      nullable: true,
      authorize: 'inherited',
      description: 'Why there is nothing to try; null where there is something.',
    }),
    strictestRate: t.expose('strictestRate', {
      type: RouteLimit,
      nullable: true,
      authorize: 'inherited',
      description:
        "Of the rates that the caller's requests are held to, the strictest: the entitlement's `requests_per_minute` or the token's own `rate_limit_rps`, past which the service answers 429. Null where neither sets one.",
    }),
  }),
});

const model = { kind: 'model', name: 'model' } as const;
const account = { kind: 'provider_account', name: 'account' } as const;
refersTo(ModelRoute, { logicalModelId: model });
refersTo(RouteTarget, { logicalModelId: model, providerAccountId: account });
refersTo(RouteExclusion, { logicalModelId: model, providerAccountId: account });

const word = { minLength: 1, maxLength: 255 } as const satisfies Constraints;

builder.queryField('routeModel', (t) =>
  t.field({
    type: ModelRoute,
    description:
      "Which targets a request to a model may try now, and why not the others: the model's own by priority and weight, then those of its fallback chain, each model by its own entitlement. Nothing is sent and nothing is counted: report what came of it with `reportModelUsage`.",
    authorize: { workspace: 'model:execute' },
    // the report of the try that follows is the execution
    activity: { action: 'read', resourceType: 'model' },
    args: {
      ...workspaceArgs(),
      ...modelArg(),
      purpose: t.arg.string({ constraints: word, description: 'What for: asked by entitlements that list purposes.' }),
      stepType: t.arg.string({
        constraints: word,
        description: 'Of which kind the step is: asked by entitlements that list step types.',
      }),
      endpoint: t.arg.string({
        constraints: word,
        description: 'For which endpoint: asked by entitlements that list endpoints.',
      }),
      estimatedTokens: t.arg.int({
        constraints: { min: 0 },
        description: 'Tokens that it will probably use, input and output: limits that have less left are used up.',
      }),
      seed: t.arg.int({ description: 'The same seed gives the same order while nothing else changes.' }),
    },
    resolve: (_root, { orgId, workspaceId, logicalModelId, ...request }, { actor, services }) =>
      services.modelRouting.route(actor, { orgId, workspaceId }, logicalModelId, request),
  }),
);
