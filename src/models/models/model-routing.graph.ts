import type { ObjectRef } from '@pothos/core';
import { builder } from '../../graphql/builder.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { modelArg } from './logical-model.inputs.ts';
import { type RouteFinding, type RouteLimit as RouteLimitRow, routeReasons } from './model-routing.rules.ts';
import type { LeftOut, ModelRoute as ModelRouteRow, RouteTarget as RouteTargetRow } from './model-routing.service.ts';

const RouteReason = builder.enumType('RouteReason', {
  description: 'Why a request is refused, or a model or target is not tried.',
  values: Object.fromEntries(
    Object.entries(routeReasons).map(([reason, description]) => [reason, { description }]),
  ) as Record<keyof typeof routeReasons, { description: string }>,
});

const RouteLimitScope = builder.enumType('RouteLimitScope', {
  description: 'What the limit belongs to.',
  values: {
    ENTITLEMENT: { description: "The workspace's entitlement for the model." },
    PROVIDER_ACCOUNT: { description: 'The account at the provider.' },
    TOKEN: { description: "The caller's API token or app token." },
  } as const,
});

const RouteLimit = builder.objectRef<RouteLimitRow>('RouteLimit').implement({
  description:
    'A limit on requests. In a refusal, the limit that the request would exceed: of several limits, the one that ' +
    'applies longest.',
  fields: (t) => ({
    scope: t.expose('scope', { type: RouteLimitScope, description: 'What the limit belongs to.' }),
    resourceId: t.exposeID('resourceId', { description: 'The entitlement, the account or the token.' }),
    name: t.exposeString('name', { description: 'Name of the limit, for example `max_tokens_per_month`.' }),
    maximum: t.expose('maximum', {
      type: 'Int53',
      nullable: true,
      description: 'What the limit allows. `null` for a limit of an account: see the account.',
    }),
    used: t.expose('used', {
      type: 'Int53',
      nullable: true,
      description: 'What was used. `null` for a limit of an account (see the account) or of a token.',
    }),
  }),
});

refersTo(RouteLimit, { resourceId: { kind: 'node', anywhere: true } });

const retryAfter = 'Whole seconds until this may change. `null` if somebody has to change something first.';

/** Adds the explanation of a finding: `message`, `limit` and `retryAfterSeconds`. */
const explained = (type: ObjectRef<typeof builder.$inferSchemaTypes, RouteFinding>) =>
  builder.objectFields(type, (t) => ({
    message: t.exposeString('message', { description: 'The reason in words.' }),
    limit: t.expose('limit', {
      type: RouteLimit,
      nullable: true,
      authorize: 'inherited',
      description: 'The limit that decided. `null` if none did.',
    }),
    retryAfterSeconds: t.exposeInt('retryAfterSeconds', { nullable: true, description: retryAfter }),
  }));

const RouteRefusal = builder.objectRef<RouteFinding>('RouteRefusal').implement({
  description: 'Why the request may not be sent at all.',
  fields: (t) => ({
    code: t.expose('reason', { type: RouteReason, description: 'The reason.' }),
  }),
});
explained(RouteRefusal);

const RouteTarget = builder.objectRef<RouteTargetRow>('RouteTarget').implement({
  description: 'A target to try, with the settings to use.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model that the target belongs to.' }),
    providerAccountId: t.exposeID('providerAccountId', { description: 'The provider account.' }),
    modelName: t.exposeString('modelName', { description: "The model's name at the provider." }),
    providerType: t.exposeString('providerType', { description: 'The provider of the account.' }),
    region: t.exposeString('region', { nullable: true, description: 'Where the account is served.' }),
    routingMode: t.exposeString('routingMode', { description: '`direct`, `bridge` or another word.' }),
    bridgeId: t.exposeString('bridgeId', { nullable: true, description: 'The bridge, if one is used.' }),
    bridgeEndpointName: t.exposeString('bridgeEndpointName', {
      nullable: true,
      description: 'The endpoint of the bridge.',
    }),
    priority: t.exposeInt('priority', { description: 'The lowest number is tried first.' }),
    weight: t.exposeInt('weight', { description: 'Share of the requests among targets of the same priority.' }),
    temperature: t.exposeFloat('temperature', {
      nullable: true,
      description: "The target's override, else the model's default.",
    }),
    topP: t.exposeFloat('topP', { nullable: true, description: "The model's default." }),
    maxTokens: t.exposeInt('maxTokens', {
      nullable: true,
      description: "The target's override, else the model's default.",
    }),
    isFallback: t.exposeBoolean('isFallback', {
      description: 'Whether the target belongs to a model of the fallback chain.',
    }),
    isProbe: t.exposeBoolean('isProbe', {
      description:
        'Whether the target failed and has rested long enough to be tried again. It comes after the other ' +
        'targets of its model; in one of ten answers, before them.',
    }),
  }),
});

const RouteExclusion = builder.objectRef<LeftOut>('RouteExclusion').implement({
  description: 'A model or target that is not tried, and why.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model.' }),
    providerAccountId: t.exposeID('providerAccountId', {
      nullable: true,
      description: 'The account of the target. `null` if the whole model is not tried.',
    }),
    modelName: t.exposeString('modelName', {
      nullable: true,
      description: "The model's name at the provider. `null` if the whole model is not tried.",
    }),
    reason: t.expose('reason', { type: RouteReason, description: 'The reason.' }),
  }),
});
explained(RouteExclusion);

const ModelRoute = builder.objectRef<ModelRouteRow>('ModelRoute').implement({
  description: 'Where a request to a model may go now.',
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', { description: 'The requested model.' }),
    targets: t.expose('targets', {
      type: [RouteTarget],
      authorize: 'inherited',
      description: 'The targets to try, one after another until one answers.',
    }),
    leftOut: t.expose('leftOut', {
      type: [RouteExclusion],
      authorize: 'inherited',
      description: 'The targets and models that are not tried, each with the reason.',
    }),
    refusal: t.expose('refusal', {
      type: RouteRefusal,
      nullable: true,
      authorize: 'inherited',
      description: 'Why there is nothing to try. `null` if there is a target to try.',
    }),
    strictestRate: t.expose('strictestRate', {
      type: RouteLimit,
      nullable: true,
      authorize: 'inherited',
      description:
        "The strictest rate limit on the caller's requests: the entitlement's `requests_per_minute`, or the " +
        "token's own `rate_limit_rps`, above which the service answers 429. `null` if neither is set.",
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
      "Returns the targets that a request to a model may try now, and why it may not try the others. The model's " +
      'own targets come first, by priority and weight, then the targets of its fallback chain. Each model needs ' +
      'its own entitlement. Nothing is sent or counted: report the result with `reportModelUsage`.',
    authorize: { workspace: 'model:execute' },
    // The later report of the try is the execution.
    activity: { action: 'read', resourceType: 'model' },
    args: {
      ...workspaceArgs(),
      ...modelArg(),
      purpose: t.arg.string({
        constraints: word,
        description: 'Purpose of the request. Required by entitlements that list purposes.',
      }),
      stepType: t.arg.string({
        constraints: word,
        description: 'Type of the step. Required by entitlements that list step types.',
      }),
      endpoint: t.arg.string({
        constraints: word,
        description: 'Endpoint of the request. Required by entitlements that list endpoints.',
      }),
      estimatedTokens: t.arg.int({
        constraints: { min: 0 },
        description:
          'Input and output tokens that the request will probably use. A limit with fewer tokens left counts as ' +
          'used up.',
      }),
      seed: t.arg.int({ description: 'The same seed gives the same order while nothing else changes.' }),
    },
    resolve: (_root, { orgId, workspaceId, logicalModelId, ...request }, { caller, services }) =>
      services.modelRouting.route(caller, { orgId, workspaceId }, logicalModelId, request),
  }),
);
