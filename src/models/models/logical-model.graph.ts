import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { LogicalModelStatus } from './logical-model.enums.ts';
import { CreateLogicalModelInput, MAX_FALLBACKS, modelArg, UpdateLogicalModelInput } from './logical-model.inputs.ts';
import type {
  LogicalModel as LogicalModelRow,
  ModelConstraints as ModelConstraintsRow,
  ModelTarget as ModelTargetRow,
} from './logical-model.reads.ts';

const ModelTarget = builder.objectRef<ModelTargetRow>('ModelTarget').implement({
  description: 'A destination for requests to a model, and its health.',
  fields: (t) => ({
    providerAccountId: t.exposeID('providerAccountId', { description: 'The provider account.' }),
    modelName: t.exposeString('modelName', { description: "The model's name at the provider." }),
    weight: t.exposeInt('weight', { description: 'Share of the requests among targets of the same priority.' }),
    priority: t.exposeInt('priority', { description: 'The lowest number is tried first.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the target is in use.' }),
    consecutiveFailures: t.exposeInt('consecutiveFailures', {
      description: 'Failed requests in a row. Three make the target unhealthy.',
    }),
    lastFailure: t.expose('lastFailure', optionalTime('When a request last failed.')),
    lastSuccess: t.expose('lastSuccess', optionalTime('When a request last succeeded.')),
    averageLatencyMs: t.exposeFloat('averageLatencyMs', {
      nullable: true,
      description: 'How long its answers took of late, in milliseconds: an average of what was reported.',
    }),
    costPer1kTokens: t.exposeFloat('costPer1kTokens', {
      nullable: true,
      description:
        'What 1,000 tokens cost of late: an average of what was reported, in the unit of the reports. The service ' +
        'keeps no prices.',
    }),
    temperatureOverride: t.exposeFloat('temperatureOverride', {
      nullable: true,
      description: "Replaces the model's default temperature.",
    }),
    maxTokensOverride: t.exposeInt('maxTokensOverride', {
      nullable: true,
      description: "Replaces the model's default maximum number of tokens.",
    }),
  }),
});

refersTo(ModelTarget, { providerAccountId: { kind: 'provider_account', name: 'account' } });

const ModelConstraints = builder.objectRef<ModelConstraintsRow>('ModelConstraints').implement({
  description: 'What a model requires of the accounts that serve it.',
  fields: (t) => ({
    dataResidency: t.exposeStringList('dataResidency', { description: 'Where data may be kept. Empty: anywhere.' }),
    requireAuditLog: t.exposeBoolean('requireAuditLog', { description: 'Whether every use must be recorded.' }),
    maxCostPer1kTokens: t.exposeString('maxCostPer1kTokens', {
      nullable: true,
      description: 'Highest cost per 1,000 tokens, a decimal number.',
    }),
    maxLatencyMs: t.exposeInt('maxLatencyMs', { nullable: true, description: 'Highest latency in milliseconds.' }),
    allowCaching: t.exposeBoolean('allowCaching', { nullable: true, description: 'Whether answers may be cached.' }),
    cacheTtlSeconds: t.exposeInt('cacheTtlSeconds', {
      nullable: true,
      description: 'How long answers may be cached, in seconds.',
    }),
  }),
});

export const LogicalModel = builder.objectRef<LogicalModelRow>('LogicalModel').implement({
  description: 'A model that workspaces use. Requests to it are routed to targets at provider accounts.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    logicalModelId: t.exposeID('logicalModelId', {
      description: 'The identifier that the organization gave the model. Unique in the organization.',
    }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    modelType: t.exposeString('modelType', { description: '`chat`, `embedding`, … or another word.' }),
    status: t.expose('status', {
      type: LogicalModelStatus,
      description: 'Its status: derived from the targets, unless `deprecated` or `disabled` was set by hand.',
    }),
    statusReason: t.exposeString('statusReason', { nullable: true, description: 'Why the model is not active.' }),
    capabilities: t.expose('capabilities', { type: 'BooleanMap', description: 'What the model can do, by name.' }),
    defaultTemperature: t.exposeFloat('defaultTemperature', { nullable: true, description: 'From 0 to 2.' }),
    defaultTopP: t.exposeFloat('defaultTopP', { nullable: true, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.exposeInt('defaultMaxTokens', {
      nullable: true,
      description: 'Maximum number of tokens in an answer.',
    }),
    fallbackChain: t.exposeStringList('fallbackChain', {
      description: 'Identifiers of the models to try after this model, in order.',
    }),
    constraints: t.expose('constraints', {
      type: ModelConstraints,
      authorize: 'inherited',
      description: 'What the model requires of the accounts that serve it.',
    }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the model is in use.' }),
    tags: t.expose('tags', { type: 'StringMap', description: 'Labels by key.' }),
    targets: t.expose('targets', {
      type: [ModelTarget],
      authorize: 'inherited',
      description: 'Where requests to the model may go, in the order in which they were given.',
    }),
    healthyTargetsCount: t.exposeInt('healthyTargetsCount', {
      description:
        'Number of healthy targets: enabled, at an enabled and active account, with fewer than three failures in ' +
        'a row.',
    }),
    totalTargetsCount: t.exposeInt('totalTargetsCount', { description: 'Number of all targets.' }),
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
      modelType: t.string({ constraints: bounds.open, description: 'Only models of this type.' }),
      status: t.string({
        constraints: bounds.open,
        description: 'Only models with this status, as shown. Another word finds nothing.',
      }),
      enabledOnly: t.boolean({
        required: true,
        defaultValue: false,
        description: 'Only enabled models, healthy or not.',
      }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: {
    description: 'A model by the identifier that its organization gave it.',
    arg: 'logicalModelId',
    argDescription: 'The model.',
  },
  list: { description: 'The models of an organization, newest first.' },
  nested: { name: 'models', description: 'The models of the organization, newest first.' },
});

const target = () => ({ ...organizationArgs(), ...modelArg() });

const DeleteLogicalModelPayload = deletePayload('DeleteLogicalModel', { noun: 'model', in: ['orgId'] });

builder.mutationFields((t) => ({
  createLogicalModel: t.field({
    type: LogicalModel,
    description: 'Adds a model to the catalogue of an organization.',
    authorize: { organization: 'model:create' },
    emits: ['model.created'],
    args: { ...organizationArgs(), ...inputArg(CreateLogicalModelInput, 'The model.') },
    resolve: ({ organization }, { input }, { caller, services }) => services.models.create(caller, organization, input),
  }),
  updateLogicalModel: t.field({
    type: LogicalModel,
    description: 'Changes a model. Given targets or constraints replace all previous targets or constraints.',
    authorize: { organization: 'model:update' },
    emits: ['model.updated'],
    args: { ...target(), ...inputArg(UpdateLogicalModelInput), ...versionArg() },
    resolve: ({ organization }, { logicalModelId, input }, { caller, services }) =>
      services.models.update(caller, organization, logicalModelId, input),
  }),
  deleteLogicalModel: t.field({
    type: DeleteLogicalModelPayload,
    description:
      'Deletes a model and its entitlements, and removes it from fallback chains. While steps use the model, it ' +
      'fails with `RESOURCE_CONFLICT`, `in_use`.',
    authorize: { organization: 'model:delete' },
    emits: ['model.deleted'],
    mayEmit: ['model_entitlement.deleted', 'model.updated'],
    args: {
      ...target(),
      force: t.arg.boolean({
        required: true,
        defaultValue: false,
        description:
          'Deletes the model even while steps use it. The steps keep its identifier, and `missingParts` lists it.',
      }),
      ...versionArg(),
    },
    resolve: ({ organization }, { logicalModelId, force }, { caller, services }) =>
      services.models.delete(caller, organization, logicalModelId, { force }),
  }),
}));
