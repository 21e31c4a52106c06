import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { LogicalModelStatus } from './logical-model.enums.ts';

/** An identifier of a model. `.` and `..` are not allowed, because clients drop them from paths. */
export const modelIdBounds = { pattern: '(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,128}' } as const satisfies Constraints;

/** The argument that names a model, next to its place. */
export const modelArg = () =>
  builder.args((t) => ({ logicalModelId: t.id({ required: true, description: 'The model.' }) }));

/** Labels by key: at most 50, of 256 characters. */
export const tagMapBounds = { maxItems: 50, item: { maxLength: 256 } } as const satisfies Constraints;

const modelName = { minLength: 1, maxLength: 255 } as const satisfies Constraints;

const ModelTargetInput = builder.inputType('ModelTargetInput', {
  description: 'A destination for requests to a model. The service counts its failures and successes.',
  fields: (t) => ({
    providerAccountId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'An account of the same organization.',
    }),
    modelName: t.string({
      required: true,
      constraints: modelName,
      description: "The model's name at the provider. A model has each account and name at most once.",
    }),
    weight: t.int({
      constraints: { min: 0, max: 1000 },
      description:
        'Share of the requests among targets of the same priority. Default 100. A target with 0 is tried only if ' +
        'no other target is left.',
    }),
    priority: t.int({ constraints: { min: 1 }, description: 'The lowest number is tried first. Default 1.' }),
    enabled: t.boolean({ description: 'Whether the target is in use. Default true.' }),
    temperatureOverride: t.float({
      constraints: { min: 0, max: 2 },
      description: "Replaces the model's default temperature.",
    }),
    maxTokensOverride: t.int({
      constraints: { min: 1 },
      description: "Replaces the model's default maximum number of tokens.",
    }),
  }),
});

/** A decimal number as text, for exact amounts. */
export const costBounds = { pattern: '\\d{1,12}(?:\\.\\d{1,12})?' } as const satisfies Constraints;

const ModelConstraintsInput = builder.inputType('ModelConstraintsInput', {
  description: 'What a model requires of the accounts that serve it. Omitted fields require nothing.',
  fields: (t) => ({
    dataResidency: t.stringList({
      constraints: { maxItems: 50, item: { minLength: 1, maxLength: 64 } },
      description:
        'Where data may be kept: the data residency of the account, or its region if the account does not set ' +
        'one. Empty: anywhere.',
    }),
    requireAuditLog: t.boolean({
      description:
        'Whether every use must be recorded: the service returns a route only after its record is written. ' +
        'Default false.',
    }),
    maxCostPer1kTokens: t.string({
      constraints: costBounds,
      description: 'A decimal number. A target with a higher reported cost is not tried for an hour.',
    }),
    maxLatencyMs: t.int({
      constraints: { min: 1 },
      description: 'Milliseconds. A target with a higher average reported latency is not tried for 5 minutes.',
    }),
    allowCaching: t.boolean({ description: 'Whether answers may be cached. Default: not specified.' }),
    cacheTtlSeconds: t.int({ constraints: { min: 1 }, description: 'How long answers may be cached, in seconds.' }),
  }),
});

const targets = { maxItems: 50 } as const satisfies Constraints;
/** Maximum number of models in a fallback chain. */
export const MAX_FALLBACKS = 5;
const chain = { maxItems: MAX_FALLBACKS, item: modelIdBounds } as const satisfies Constraints;
const capabilities = { maxItems: 100 } as const satisfies Constraints;
const temperature = { min: 0, max: 2 } as const satisfies Constraints;
const topP = { min: 0, max: 1 } as const satisfies Constraints;

export const CreateLogicalModelInput = builder.inputType('CreateLogicalModelInput', {
  description: 'A new model.',
  fields: (t) => ({
    logicalModelId: t.string({
      required: true,
      constraints: modelIdBounds,
      description:
        'The identifier that the organization gives the model. Unique in the organization. It cannot change.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    modelType: t.string({
      constraints: bounds.open,
      description:
        'What the model does: `chat`, `completion`, `embedding`, `rerank`, `image`, `transcription`, `speech`, ' +
        '`moderation`, `realtime` or another word. Default `chat`.',
    }),
    capabilities: t.field({
      type: 'BooleanMap',
      constraints: capabilities,
      description: 'What the model can do, by name: `{"vision": true}`.',
    }),
    defaultTemperature: t.float({ constraints: temperature, description: 'From 0 to 2.' }),
    defaultTopP: t.float({ constraints: topP, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.int({ constraints: { min: 1 }, description: 'Maximum number of tokens in an answer.' }),
    fallbackChain: t.stringList({
      constraints: chain,
      description: 'Identifiers of the models to try after this model, in order. At most 5, without cycles.',
    }),
    enabled: t.boolean({ description: 'Whether the model is in use. Default true.' }),
    tags: t.field({ type: 'StringMap', constraints: tagMapBounds, description: 'Labels by key.' }),
    targets: t.field({
      type: [ModelTargetInput],
      constraints: targets,
      description: 'Where requests to the model may go. At most 50.',
    }),
    constraints: t.field({
      type: ModelConstraintsInput,
      description: 'What the model requires of the accounts that serve it.',
    }),
  }),
});

export const UpdateLogicalModelInput = builder.inputType('UpdateLogicalModelInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    modelType: t.string({ constraints: { ...bounds.open, notNull: true }, description: 'What the model does.' }),
    status: t.field({
      type: LogicalModelStatus,
      constraints: { oneOf: ['active', 'deprecated', 'disabled'] },
      description:
        '`deprecated` and `disabled` override the status derived from the targets. `active` and `null` return to ' +
        'the derived status.',
    }),
    capabilities: t.field({
      type: 'BooleanMap',
      constraints: { ...capabilities, notNull: true },
      description: 'Replaces all capabilities.',
    }),
    defaultTemperature: t.float({ constraints: temperature, description: 'From 0 to 2.' }),
    defaultTopP: t.float({ constraints: topP, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.int({ constraints: { min: 1 }, description: 'Maximum number of tokens in an answer.' }),
    fallbackChain: t.stringList({ constraints: { ...chain, notNull: true }, description: 'Replaces the whole chain.' }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether the model is in use.' }),
    tags: t.field({
      type: 'StringMap',
      constraints: { ...tagMapBounds, notNull: true },
      description: 'Replaces all tags.',
    }),
    targets: t.field({
      type: [ModelTargetInput],
      constraints: { ...targets, notNull: true },
      description:
        'Replaces all targets. A target with the same account and model name keeps its failures and successes.',
    }),
    constraints: t.field({
      type: ModelConstraintsInput,
      description: 'Replaces all constraints. `null` removes them.',
    }),
  }),
});
