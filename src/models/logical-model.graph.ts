import { builder } from '../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node } from '../graphql/node.ts';
import { pageArgs } from '../graphql/page-type.ts';
import { organizationArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { readable } from '../graphql/resource.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Organization } from '../organizations/organization.graph.ts';
import { CreateLogicalModelInput, MAX_FALLBACKS, modelArg, UpdateLogicalModelInput } from './logical-model.inputs.ts';
import type {
  LogicalModel as LogicalModelRow,
  ModelConstraints as ModelConstraintsRow,
  ModelTarget as ModelTargetRow,
} from './logical-model.source.ts';

const ModelTarget = builder.objectRef<ModelTargetRow>('ModelTarget').implement({
  description: 'Where requests to a model may go, and how it went.',
  fields: (t) => ({
    providerAccountId: t.exposeID('providerAccountId', { description: 'The account.' }),
    modelName: t.exposeString('modelName', { description: "The model's name at the provider." }),
    weight: t.exposeInt('weight', { description: 'Share of the requests among targets of the same priority.' }),
    priority: t.exposeInt('priority', { description: 'The lowest is tried first.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it is in use.' }),
    consecutiveFailures: t.exposeInt('consecutiveFailures', {
      description: 'Requests in a row that failed; three make the target unhealthy.',
    }),
    lastFailure: t.expose('lastFailure', optionalTime('When a request last failed.')),
    lastSuccess: t.expose('lastSuccess', optionalTime('When a request last succeeded.')),
    temperatureOverride: t.exposeFloat('temperatureOverride', {
      nullable: true,
      description: "Stands in for the model's temperature.",
    }),
    maxTokensOverride: t.exposeInt('maxTokensOverride', {
      nullable: true,
      description: "Stands in for the model's maximum of tokens.",
    }),
  }),
});

refersTo(ModelTarget, { providerAccountId: { kind: 'provider_account', name: 'account' } });

const ModelConstraints = builder.objectRef<ModelConstraintsRow>('ModelConstraints').implement({
  description: 'What a model demands of the accounts that serve it.',
  fields: (t) => ({
    dataResidency: t.exposeStringList('dataResidency', { description: 'Where data may be kept; empty: anywhere.' }),
    requireAuditLog: t.exposeBoolean('requireAuditLog', { description: 'Every use has to be recorded.' }),
    maxCostPer1kTokens: t.exposeString('maxCostPer1kTokens', { nullable: true, description: 'A decimal number.' }),
    maxLatencyMs: t.exposeInt('maxLatencyMs', { nullable: true, description: 'Milliseconds.' }),
    allowCaching: t.exposeBoolean('allowCaching', { nullable: true, description: 'Whether answers may be kept.' }),
    cacheTtlSeconds: t.exposeInt('cacheTtlSeconds', { nullable: true, description: 'For how many seconds.' }),
  }),
});

export const LogicalModel = builder.objectRef<LogicalModelRow>('LogicalModel').implement({
  description: 'A model as workspaces know it, routed to targets at provider accounts.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', {
      description: 'The identifier that the organization knows it by; unique there.',
    }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    modelType: t.exposeString('modelType', { description: '`chat`, `embedding`, … or another word.' }),
    status: t.exposeString('status', {
      description:
        'From its targets: `active` (all are healthy, or there are none), `degraded` (some), `unavailable` (none); or `deprecated`, `disabled` where it was set by hand.',
    }),
    statusReason: t.exposeString('statusReason', { nullable: true, description: 'Why it is not active.' }),
    capabilities: t.expose('capabilities', { type: 'BooleanMap', description: 'What it can do, by word.' }),
    defaultTemperature: t.exposeFloat('defaultTemperature', { nullable: true, description: 'From 0 to 2.' }),
    defaultTopP: t.exposeFloat('defaultTopP', { nullable: true, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.exposeInt('defaultMaxTokens', {
      nullable: true,
      description: 'At most so many tokens in an answer.',
    }),
    fallbackChain: t.exposeStringList('fallbackChain', {
      description: 'Identifiers of models to try after this one, in order.',
    }),
    constraints: t.expose('constraints', {
      type: ModelConstraints,
      authorize: 'inherited',
      description: 'What it demands of the accounts that serve it.',
    }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it is in use.' }),
    tags: t.expose('tags', { type: 'StringMap', description: 'Labels by key.' }),
    targets: t.expose('targets', {
      type: [ModelTarget],
      authorize: 'inherited',
      description: 'Where requests to it may go, in the order in which they were given.',
    }),
    healthyTargetsCount: t.exposeInt('healthyTargetsCount', {
      description:
        'Targets that are enabled, at an enabled and active account, and failed less than three times in a row.',
    }),
    totalTargetsCount: t.exposeInt('totalTargetsCount', { description: 'All targets.' }),
  }),
});

inOrganization(LogicalModel, 'model');
tracked(LogicalModel);
refersTo(LogicalModel, { fallbackChain: { kind: 'model', name: 'fallbackModels', atMost: MAX_FALLBACKS } });
readable(LogicalModel, {
  kind: 'model',
  below: Organization,
  reads: ({ models }) => models.reads,
  filters: () =>
    builder.args((t) => ({
      modelType: t.string({ constraints: bounds.open, description: 'Only those of this type.' }),
      status: t.string({ constraints: bounds.open, description: 'Only those with this status, as it is shown.' }),
      enabledOnly: t.boolean({
        required: true,
        defaultValue: false,
        description: 'Only those that are enabled, healthy or not.',
      }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: {
    description: 'A model by the identifier that its organization knows it by.',
    arg: 'logicalModelId',
    argDescription: 'The model.',
  },
  list: { description: 'The models of an organization, newest first.' },
  nested: { name: 'models', description: 'Its models, newest first.' },
});

const target = () => ({ ...organizationArgs(), ...modelArg() });

builder.mutationFields((t) => ({
  createLogicalModel: t.field({
    type: LogicalModel,
    description: 'Adds a model to the catalogue of an organization.',
    authorize: { organization: 'model:create' },
    args: { ...organizationArgs(), ...inputArg(CreateLogicalModelInput, 'The model.') },
    resolve: ({ organization }, { input }, { actor, services }) => services.models.create(actor, organization, input),
  }),
  updateLogicalModel: t.field({
    type: LogicalModel,
    description: 'Changes a model. Targets and constraints are replaced whole where they are given.',
    authorize: { organization: 'model:update' },
    args: { ...target(), ...inputArg(UpdateLogicalModelInput), ...versionArg() },
    resolve: ({ organization }, { logicalModelId, input }, { actor, services }) =>
      services.models.update(actor, organization, logicalModelId, input),
  }),
  deleteLogicalModel: t.boolean({
    description: 'Deletes a model, its entitlements and its place in fallback chains.',
    authorize: { organization: 'model:delete' },
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { logicalModelId }, { actor, services }) =>
      services.models.delete(actor, organization, logicalModelId),
  }),
}));
