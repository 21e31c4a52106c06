import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime } from '../../graphql/common-fields.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import { modelArg, modelIdBounds } from '../models/logical-model.inputs.ts';
import type { ModelEntitlement as ModelEntitlementRow } from './model-entitlement.service.ts';
import { limitsByName, type WorkspaceLimits as WorkspaceLimitsRow } from './workspace-limits.ts';

const WorkspaceLimits = builder.objectRef<WorkspaceLimitsRow>('WorkspaceLimits').implement({
  description: 'How much a workspace may use a model. `null` is no limit. Months, days and minutes are in UTC.',
  fields: (t) => ({
    maxTokensPerMonth: t.expose('maxTokensPerMonth', {
      type: 'Int53',
      nullable: true,
      description: 'Input and output tokens per month.',
    }),
    maxRequestsPerDay: t.expose('maxRequestsPerDay', {
      type: 'Int53',
      nullable: true,
      description: 'Requests per day.',
    }),
    requestsPerMinute: t.expose('requestsPerMinute', {
      type: 'Int53',
      nullable: true,
      description: 'Requests per minute.',
    }),
    tokensPerMinute: t.expose('tokensPerMinute', {
      type: 'Int53',
      nullable: true,
      description: 'Input and output tokens per minute.',
    }),
    more: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'Other given limits. The service keeps them for clients to read, but does not apply them.',
      resolve: ({ more }) => more ?? {},
    }),
  }),
});

export const ModelEntitlement = builder.objectRef<ModelEntitlementRow>('ModelEntitlement').implement({
  description: 'Grants a model to a workspace, with limits and usage.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    logicalModelId: t.exposeID('logicalModelId', {
      description: 'The model. A workspace has at most one entitlement per model.',
    }),
    workspaceLimits: t.expose('workspaceLimits', {
      type: WorkspaceLimits,
      authorize: 'inherited',
      description: 'How much the workspace may use the model.',
    }),
    limits: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'The same limits as one object: only limits that are set, with their REST names.',
      resolve: ({ workspaceLimits }) => limitsByName(workspaceLimits),
    }),
    allowedStepTypes: t.exposeStringList('allowedStepTypes', { description: 'Allowed step types. Empty allows all.' }),
    allowedEndpoints: t.exposeStringList('allowedEndpoints', { description: 'Allowed endpoints. Empty allows all.' }),
    allowedPurposes: t.exposeStringList('allowedPurposes', { description: 'Allowed purposes. Empty allows all.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the entitlement is in force.' }),
    requestCount: t.expose('requestCount', { type: 'Int53', description: 'Number of reported requests.' }),
    totalTokens: t.expose('totalTokens', { type: 'Int53', description: 'Number of reported tokens.' }),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When a request was last reported.')),
    grantedBy: t.exposeID('grantedBy', { nullable: true, description: 'The user who granted the model.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the model was granted.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the entitlement last changed.' }),
  }),
});

inOrganization(ModelEntitlement, 'model_entitlement');
refersTo(ModelEntitlement, {
  workspaceId: 'workspace',
  logicalModelId: { kind: 'model', name: 'model', required: true },
  grantedBy: 'user',
});
readable(ModelEntitlement, {
  kind: 'model_entitlement',
  below: Workspace,
  reads: ({ modelEntitlements }) => modelEntitlements.reads,
  filters: () =>
    builder.args((t) => ({
      enabledOnly: t.boolean({ required: true, defaultValue: false, description: 'Only entitlements in force.' }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: {
    description: 'The entitlement of a workspace to a model.',
    arg: 'logicalModelId',
    argDescription: 'The model.',
  },
  list: { description: 'The models that a workspace may use, newest grant first.' },
  nested: { description: 'The models that the workspace may use, newest grant first.' },
});

const target = () => ({ ...workspaceArgs(), ...modelArg() });

const limit = { min: 1, max: Number.MAX_SAFE_INTEGER } as const satisfies Constraints;
const allowed = { maxItems: 100, item: { minLength: 1, maxLength: 255 } } as const satisfies Constraints;

const WorkspaceLimitsInput = builder.inputType('WorkspaceLimitsInput', {
  description: 'How much a workspace may use a model. Omitted limits do not apply.',
  // In REST they are on the same level as the other limits.
  extensions: { unknownKeys: 'more' },
  fields: (t) => ({
    maxTokensPerMonth: t.field({
      type: 'Int53',
      constraints: limit,
      description: 'Input and output tokens per month.',
    }),
    maxRequestsPerDay: t.field({ type: 'Int53', constraints: limit, description: 'Requests per day.' }),
    requestsPerMinute: t.field({ type: 'Int53', constraints: limit, description: 'Requests per minute.' }),
    tokensPerMinute: t.field({ type: 'Int53', constraints: limit, description: 'Input and output tokens per minute.' }),
    more: t.field({
      type: 'JSONObject',
      description: 'Other limits. The service keeps them as they are, but does not apply them.',
    }),
  }),
});

const CreateModelEntitlementInput = builder.inputType('CreateModelEntitlementInput', {
  description: 'Grants a model to a workspace.',
  fields: (t) => ({
    logicalModelId: t.string({
      required: true,
      constraints: modelIdBounds,
      description: 'A model of the organization.',
    }),
    workspaceLimits: t.field({ type: WorkspaceLimitsInput, description: 'How much the workspace may use the model.' }),
    allowedStepTypes: t.stringList({ constraints: allowed, description: 'Allowed step types. Empty allows all.' }),
    allowedEndpoints: t.stringList({ constraints: allowed, description: 'Allowed endpoints. Empty allows all.' }),
    allowedPurposes: t.stringList({ constraints: allowed, description: 'Allowed purposes. Empty allows all.' }),
    enabled: t.boolean({ description: 'Whether the entitlement is in force. Default true.' }),
  }),
});

const UpdateModelEntitlementInput = builder.inputType('UpdateModelEntitlementInput', {
  description: 'The fields to change. Omitted fields stay as they are.',
  fields: (t) => ({
    workspaceLimits: t.field({ type: WorkspaceLimitsInput, description: 'Replaces all limits. `null` removes them.' }),
    allowedStepTypes: t.stringList({
      constraints: { ...allowed, notNull: true },
      description: 'Replaces all allowed step types.',
    }),
    allowedEndpoints: t.stringList({
      constraints: { ...allowed, notNull: true },
      description: 'Replaces all allowed endpoints.',
    }),
    allowedPurposes: t.stringList({
      constraints: { ...allowed, notNull: true },
      description: 'Replaces all allowed purposes.',
    }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether the entitlement is in force.' }),
  }),
});

const DeleteModelEntitlementPayload = deletePayload('DeleteModelEntitlement', {
  noun: 'entitlement',
  in: ['orgId', 'workspaceId', 'logicalModelId'],
});

builder.mutationFields((t) => ({
  createModelEntitlement: t.field({
    type: ModelEntitlement,
    description: 'Grants a model to a workspace.',
    authorize: { workspace: 'model_entitlement:create' },
    emits: ['model_entitlement.created'],
    args: { ...workspaceArgs(), ...inputArg(CreateModelEntitlementInput, 'The grant.') },
    resolve: ({ workspace }, { input }, { caller, services }) =>
      services.modelEntitlements.create(caller, workspace, input),
  }),
  updateModelEntitlement: t.field({
    type: ModelEntitlement,
    description: 'Changes how much and for what a workspace may use a model.',
    authorize: { workspace: 'model_entitlement:update' },
    emits: ['model_entitlement.updated'],
    args: { ...target(), ...inputArg(UpdateModelEntitlementInput), ...versionArg() },
    resolve: ({ workspace }, { logicalModelId, input }, { caller, services }) =>
      services.modelEntitlements.update(caller, workspace, logicalModelId, input),
  }),
  deleteModelEntitlement: t.field({
    type: DeleteModelEntitlementPayload,
    description: 'Removes a model from a workspace, with its usage counts. Its usage over time stays.',
    authorize: { workspace: 'model_entitlement:delete' },
    emits: ['model_entitlement.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { logicalModelId }, { caller, services }) =>
      services.modelEntitlements.delete(caller, workspace, logicalModelId),
  }),
}));
