import type { Constraints } from '../core/constraints.ts';
import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { tagMapBounds } from '../models/logical-model.inputs.ts';

const place = { minLength: 1, maxLength: 64 } as const satisfies Constraints;
const credentials = { minLength: 1, maxLength: 512 } as const satisfies Constraints;
const bridge = { minLength: 1, maxLength: 128 } as const satisfies Constraints;
const quota = { min: 1, max: Number.MAX_SAFE_INTEGER } as const satisfies Constraints;

const QuotaPolicyInput = builder.inputType('QuotaPolicyInput', {
  description: 'What an account may use in a month (UTC). What is left out is not limited.',
  fields: (t) => ({
    maxTokensPerMonth: t.field({ type: 'Int53', constraints: quota, description: 'Tokens, input and output.' }),
    maxRequestsPerMonth: t.field({ type: 'Int53', constraints: quota, description: 'Requests.' }),
  }),
});

const RateLimitPolicyInput = builder.inputType('RateLimitPolicyInput', {
  description: 'How requests to an account are to be paced. What is left out is the default.',
  fields: (t) => ({
    requestsPerSecond: t.int({ constraints: { min: 1 }, description: '1 unless told.' }),
    requestsPerMinute: t.int({ constraints: { min: 1 }, description: '1 unless told.' }),
    inputTokensPerMinute: t.int({ constraints: { min: 1 }, description: '1 unless told.' }),
    outputTokensPerMinute: t.int({ constraints: { min: 1 }, description: '1 unless told.' }),
    maxConcurrency: t.int({ constraints: { min: 1 }, description: 'Requests at the same time; 10 unless told.' }),
    burstSize: t.int({ constraints: { min: 1 }, description: '10 unless told.' }),
    queuePolicy: t.string({
      constraints: bounds.open,
      description: 'What happens to a request above the limits: `wait` (default), `reject` or another word.',
    }),
    queueTimeoutSeconds: t.int({
      constraints: { min: 0, max: 86_400 },
      description: 'For how long a request waits; 300 unless told.',
    }),
  }),
});

export const CreateProviderAccountInput = builder.inputType('CreateProviderAccountInput', {
  description: 'A new account at a provider of models.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    providerType: t.string({
      required: true,
      constraints: bounds.open,
      description:
        '`openai`, `azure_openai`, `anthropic`, `google`, `vertex_ai`, `bedrock`, `mistral`, `cohere`, `groq`, `together`, `huggingface`, `ollama`, `vllm`, `openai_compatible`, `custom` or another word.',
    }),
    region: t.string({ constraints: place, description: 'Where it is served.' }),
    dataResidency: t.string({ constraints: place, description: 'Where its data is kept.' }),
    credentialsRef: t.string({
      required: true,
      constraints: credentials,
      description:
        'A reference to the credentials, never the credentials: `secret://name` for a secret of the organization itself, `sec_…` for any secret in it, or any text that whoever sends the requests understands.',
    }),
    routingMode: t.string({
      constraints: bounds.open,
      description: '`direct` (default), `bridge` through the bridge `bridgeId`, or another word.',
    }),
    bridgeId: t.string({ constraints: bridge, description: 'Required where the routing mode is `bridge`.' }),
    bridgeEndpointName: t.string({ constraints: bridge, description: 'The endpoint of the bridge.' }),
    enabled: t.boolean({ description: 'Whether it is in use; true unless told.' }),
    tags: t.field({ type: 'StringMap', constraints: tagMapBounds, description: 'Labels by key.' }),
    quotaPolicy: t.field({ type: QuotaPolicyInput, description: 'What it may use in a month.' }),
    rateLimitPolicy: t.field({ type: RateLimitPolicyInput, description: 'How requests to it are to be paced.' }),
  }),
});

export const UpdateProviderAccountInput = builder.inputType('UpdateProviderAccountInput', {
  description: 'What to change; what is left out stays, null clears.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    providerType: t.string({ constraints: { ...bounds.open, notNull: true }, description: 'Which provider it is at.' }),
    region: t.string({ constraints: place, description: 'Where it is served.' }),
    dataResidency: t.string({ constraints: place, description: 'Where its data is kept.' }),
    credentialsRef: t.string({
      constraints: { ...credentials, notNull: true },
      description: 'A reference to the credentials. New ones give an account in `error` another chance.',
    }),
    routingMode: t.string({
      constraints: { ...bounds.open, notNull: true },
      description: '`direct`, `bridge` or another word.',
    }),
    bridgeId: t.string({ constraints: bridge, description: 'Required where the routing mode is `bridge`.' }),
    bridgeEndpointName: t.string({ constraints: bridge, description: 'The endpoint of the bridge.' }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether it is in use.' }),
    tags: t.field({ type: 'StringMap', constraints: { ...tagMapBounds, notNull: true }, description: 'Replaces all.' }),
    quotaPolicy: t.field({ type: QuotaPolicyInput, description: 'Replaces all; null limits nothing.' }),
    rateLimitPolicy: t.field({ type: RateLimitPolicyInput, description: 'Replaces all; null is the defaults.' }),
  }),
});
