import type { Constraints } from '../core/constraints.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';

/** An identifier of a model; `.` and `..` are none, because clients drop them from paths. */
export const modelIdBounds = { pattern: '(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,128}' } as const satisfies Constraints;

/** The argument that names a model, beside its place. */
export const modelArg = () =>
  builder.args((t) => ({ logicalModelId: t.id({ required: true, description: 'The model.' }) }));

/** Labels by key: at most 50, of 256 characters. */
export const tagMapBounds = { maxItems: 50, item: { maxLength: 256 } } as const satisfies Constraints;

const modelName = { minLength: 1, maxLength: 255 } as const satisfies Constraints;

const ModelTargetInput = builder.inputType('ModelTargetInput', {
  description: 'Where requests to a model may go. Its failures and successes are counted by the service.',
  fields: (t) => ({
    providerAccountId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'An account of the same organization.',
    }),
    modelName: t.string({
      required: true,
      constraints: modelName,
      description: "The model's name at the provider; each account and name once per model.",
    }),
    weight: t.int({
      constraints: { min: 0, max: 1000 },
      description:
        'Share of the requests among targets of the same priority; 100 unless told. 0: only where nothing else is left.',
    }),
    priority: t.int({ constraints: { min: 1 }, description: 'The lowest is tried first; 1 unless told.' }),
    enabled: t.boolean({ description: 'Whether it is in use; true unless told.' }),
    temperatureOverride: t.float({
      constraints: { min: 0, max: 2 },
      description: "Stands in for the model's temperature.",
    }),
    maxTokensOverride: t.int({ constraints: { min: 1 }, description: "Stands in for the model's maximum of tokens." }),
  }),
});

/** A decimal number as text, so that no cent is lost. */
export const costBounds = { pattern: '\\d{1,12}(?:\\.\\d{1,12})?' } as const satisfies Constraints;

const ModelConstraintsInput = builder.inputType('ModelConstraintsInput', {
  description: 'What a model demands of the accounts that serve it. What is left out is not demanded.',
  fields: (t) => ({
    dataResidency: t.stringList({
      constraints: { maxItems: 50, item: { minLength: 1, maxLength: 64 } },
      description:
        'Where data may be kept: of the accounts, or of their regions where they say nothing of it. Empty: anywhere.',
    }),
    requireAuditLog: t.boolean({
      description: 'Every use has to be recorded: a route is answered only when its record is written. Default false.',
    }),
    maxCostPer1kTokens: t.string({
      constraints: costBounds,
      description: 'A decimal number. A target whose reported cost is above it is not tried for a day.',
    }),
    maxLatencyMs: t.int({
      constraints: { min: 1 },
      description: 'Milliseconds. A target whose reported latency is above it on average is not tried for 5 minutes.',
    }),
    allowCaching: t.boolean({ description: 'Whether answers may be kept; nothing is said unless told.' }),
    cacheTtlSeconds: t.int({ constraints: { min: 1 }, description: 'For how many seconds.' }),
  }),
});

const targets = { maxItems: 50 } as const satisfies Constraints;
/** Models of a fallback chain. */
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
      description: 'The identifier that the organization knows it by; unique there, and it does not change.',
    }),
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    modelType: t.string({
      constraints: bounds.open,
      description:
        'What it does: `chat` (unless told), `completion`, `embedding`, `rerank`, `image`, `transcription`, `speech`, `moderation`, `realtime` or another word.',
    }),
    capabilities: t.field({
      type: 'BooleanMap',
      constraints: capabilities,
      description: 'What it can do, by word: `{"vision": true}`.',
    }),
    defaultTemperature: t.float({ constraints: temperature, description: 'From 0 to 2.' }),
    defaultTopP: t.float({ constraints: topP, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.int({ constraints: { min: 1 }, description: 'At most so many tokens in an answer.' }),
    fallbackChain: t.stringList({
      constraints: chain,
      description: 'Identifiers of models to try after this one, in order; at most 5, without circles.',
    }),
    enabled: t.boolean({ description: 'Whether it is in use; true unless told.' }),
    tags: t.field({ type: 'StringMap', constraints: tagMapBounds, description: 'Labels by key.' }),
    targets: t.field({
      type: [ModelTargetInput],
      constraints: targets,
      description: 'Where requests to it may go; at most 50.',
    }),
    constraints: t.field({
      type: ModelConstraintsInput,
      description: 'What it demands of the accounts that serve it.',
    }),
  }),
});

export const UpdateLogicalModelInput = builder.inputType('UpdateLogicalModelInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    modelType: t.string({ constraints: { ...bounds.open, notNull: true }, description: 'What it does.' }),
    status: t.string({
      constraints: { oneOf: ['active', 'deprecated', 'disabled'] },
      description:
        '`deprecated` or `disabled` by hand, whatever the targets say; `active` and null give the status back to the targets.',
    }),
    capabilities: t.field({
      type: 'BooleanMap',
      constraints: { ...capabilities, notNull: true },
      description: 'Replaces all.',
    }),
    defaultTemperature: t.float({ constraints: temperature, description: 'From 0 to 2.' }),
    defaultTopP: t.float({ constraints: topP, description: 'From 0 to 1.' }),
    defaultMaxTokens: t.int({ constraints: { min: 1 }, description: 'At most so many tokens in an answer.' }),
    fallbackChain: t.stringList({ constraints: { ...chain, notNull: true }, description: 'Replaces the whole chain.' }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether it is in use.' }),
    tags: t.field({ type: 'StringMap', constraints: { ...tagMapBounds, notNull: true }, description: 'Replaces all.' }),
    targets: t.field({
      type: [ModelTargetInput],
      constraints: { ...targets, notNull: true },
      description: 'Replaces all; a target that stays, by account and name, keeps its failures and successes.',
    }),
    constraints: t.field({ type: ModelConstraintsInput, description: 'Replaces all; null demands nothing.' }),
  }),
});
