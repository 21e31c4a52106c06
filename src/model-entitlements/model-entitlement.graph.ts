import type { Constraints } from '../core/constraints.ts';
import { builder } from '../graphql/builder.ts';
import { inOrganization, optionalTime } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node } from '../graphql/node.ts';
import { pageArgs } from '../graphql/page-type.ts';
import { workspaceArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { readable } from '../graphql/resource.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { modelArg, modelIdBounds } from '../models/logical-model.inputs.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import type { ModelEntitlement as ModelEntitlementRow } from './model-entitlement.service.ts';
import { limitsByName, type WorkspaceLimits as WorkspaceLimitsRow } from './workspace-limits.ts';

const WorkspaceLimits = builder.objectRef<WorkspaceLimitsRow>('WorkspaceLimits').implement({
  description: 'What a workspace may use of a model; null is no limit. Months, days and minutes are those of UTC.',
  fields: (t) => ({
    maxTokensPerMonth: t.expose('maxTokensPerMonth', { type: 'Int53', nullable: true, description: 'Tokens.' }),
    maxRequestsPerDay: t.expose('maxRequestsPerDay', { type: 'Int53', nullable: true, description: 'Requests.' }),
    requestsPerMinute: t.expose('requestsPerMinute', { type: 'Int53', nullable: true, description: 'Requests.' }),
    tokensPerMinute: t.expose('tokensPerMinute', { type: 'Int53', nullable: true, description: 'Tokens.' }),
    more: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description:
        'Other limits that were given. They are kept for whoever reads them; the service does not apply them.',
      resolve: ({ more }) => more ?? {},
    }),
  }),
});

export const ModelEntitlement = builder.objectRef<ModelEntitlementRow>('ModelEntitlement').implement({
  description: 'The grant of a model to a workspace, with its limits and what was used.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', { description: 'The workspace.' }),
    logicalModelId: t.exposeID('logicalModelId', { description: 'The model; each once per workspace.' }),
    workspaceLimits: t.expose('workspaceLimits', {
      type: WorkspaceLimits,
      authorize: 'inherited',
      description: 'What the workspace may use of it.',
    }),
    limits: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'The same as one object with only those that are set, by their names in REST.',
      resolve: ({ workspaceLimits }) => limitsByName(workspaceLimits),
    }),
    allowedStepTypes: t.exposeStringList('allowedStepTypes', { description: 'Empty: all.' }),
    allowedEndpoints: t.exposeStringList('allowedEndpoints', { description: 'Empty: all.' }),
    allowedPurposes: t.exposeStringList('allowedPurposes', { description: 'Empty: all.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it is in force.' }),
    requestCount: t.expose('requestCount', { type: 'Int53', description: 'Requests that were reported.' }),
    totalTokens: t.expose('totalTokens', { type: 'Int53', description: 'Tokens that were reported.' }),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When a request was last reported.')),
    grantedBy: t.exposeID('grantedBy', { nullable: true, description: 'Who granted it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was granted.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it last changed.' }),
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
      enabledOnly: t.boolean({ required: true, defaultValue: false, description: 'Only those that are in force.' }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: { description: 'What a workspace may use of a model.', arg: 'logicalModelId', argDescription: 'The model.' },
  list: { description: 'The models that a workspace may use, newest grant first.' },
  nested: { description: 'The models that it may use, newest grant first.' },
});

const target = () => ({ ...workspaceArgs(), ...modelArg() });

const limit = { min: 1, max: Number.MAX_SAFE_INTEGER } as const satisfies Constraints;
const allowed = { maxItems: 100, item: { minLength: 1, maxLength: 255 } } as const satisfies Constraints;

const WorkspaceLimitsInput = builder.inputType('WorkspaceLimitsInput', {
  description: 'What a workspace may use of a model. What is left out is not limited.',
  // in REST they stand beside the others
  extensions: { unknownKeys: 'more' },
  fields: (t) => ({
    maxTokensPerMonth: t.field({ type: 'Int53', constraints: limit, description: 'Tokens, input and output.' }),
    maxRequestsPerDay: t.field({ type: 'Int53', constraints: limit, description: 'Requests.' }),
    requestsPerMinute: t.field({ type: 'Int53', constraints: limit, description: 'Requests.' }),
    tokensPerMinute: t.field({ type: 'Int53', constraints: limit, description: 'Tokens, input and output.' }),
    more: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: bounds.json.maxBytes },
      description: 'Other limits, kept as they are. The service does not apply them.',
    }),
  }),
});

const CreateModelEntitlementInput = builder.inputType('CreateModelEntitlementInput', {
  description: 'A grant of a model to a workspace.',
  fields: (t) => ({
    logicalModelId: t.string({
      required: true,
      constraints: modelIdBounds,
      description: 'A model of the organization.',
    }),
    workspaceLimits: t.field({ type: WorkspaceLimitsInput, description: 'What the workspace may use of it.' }),
    allowedStepTypes: t.stringList({ constraints: allowed, description: 'Empty: all.' }),
    allowedEndpoints: t.stringList({ constraints: allowed, description: 'Empty: all.' }),
    allowedPurposes: t.stringList({ constraints: allowed, description: 'Empty: all.' }),
    enabled: t.boolean({ description: 'Whether it is in force; true unless told.' }),
  }),
});

const UpdateModelEntitlementInput = builder.inputType('UpdateModelEntitlementInput', {
  description: 'What to change; what is left out stays.',
  fields: (t) => ({
    workspaceLimits: t.field({ type: WorkspaceLimitsInput, description: 'Replaces all; null limits nothing.' }),
    allowedStepTypes: t.stringList({ constraints: { ...allowed, notNull: true }, description: 'Replaces all.' }),
    allowedEndpoints: t.stringList({ constraints: { ...allowed, notNull: true }, description: 'Replaces all.' }),
    allowedPurposes: t.stringList({ constraints: { ...allowed, notNull: true }, description: 'Replaces all.' }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether it is in force.' }),
  }),
});

builder.mutationFields((t) => ({
  createModelEntitlement: t.field({
    type: ModelEntitlement,
    description: 'Grants a model to a workspace.',
    authorize: { workspace: 'model_entitlement:create' },
    args: { ...workspaceArgs(), ...inputArg(CreateModelEntitlementInput, 'The grant.') },
    resolve: ({ workspace }, { input }, { actor, services }) =>
      services.modelEntitlements.create(actor, workspace, input),
  }),
  updateModelEntitlement: t.field({
    type: ModelEntitlement,
    description: 'Changes what a workspace may use of a model.',
    authorize: { workspace: 'model_entitlement:update' },
    args: { ...target(), ...inputArg(UpdateModelEntitlementInput), ...versionArg() },
    resolve: ({ workspace }, { logicalModelId, input }, { actor, services }) =>
      services.modelEntitlements.update(actor, workspace, logicalModelId, input),
  }),
  deleteModelEntitlement: t.boolean({
    description: 'Takes a model from a workspace, with what was counted of its use.',
    authorize: { workspace: 'model_entitlement:delete' },
    args: { ...target(), ...versionArg() },
    resolve: ({ workspace }, { logicalModelId }, { actor, services }) =>
      services.modelEntitlements.delete(actor, workspace, logicalModelId),
  }),
}));
