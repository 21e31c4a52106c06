import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { tagMapBounds } from '../models/logical-model.inputs.ts';

const place = { minLength: 1, maxLength: 64 } as const satisfies Constraints;
const credentials = { minLength: 1, maxLength: 512 } as const satisfies Constraints;
const baseUrl = { format: 'uri', maxLength: 2_048 } as const satisfies Constraints;
const bridge = { minLength: 1, maxLength: 128 } as const satisfies Constraints;
const quota = { min: 1, max: Number.MAX_SAFE_INTEGER } as const satisfies Constraints;

const QuotaPolicyInput = builder.inputType('QuotaPolicyInput', {
  description: 'Monthly limits of an account (UTC). Omitted limits do not apply.',
  fields: (t) => ({
    maxTokensPerMonth: t.field({ type: 'Int53', constraints: quota, description: 'Input and output tokens.' }),
    maxRequestsPerMonth: t.field({ type: 'Int53', constraints: quota, description: 'Requests.' }),
  }),
});

const RateLimitPolicyInput = builder.inputType('RateLimitPolicyInput', {
  description: 'How clients should pace requests to an account. Omitted fields get their default.',
  fields: (t) => ({
    requestsPerSecond: t.int({ constraints: { min: 1 }, description: 'Requests per second. Default 1.' }),
    requestsPerMinute: t.int({ constraints: { min: 1 }, description: 'Requests per minute. Default 1.' }),
    inputTokensPerMinute: t.int({ constraints: { min: 1 }, description: 'Input tokens per minute. Default 1.' }),
    outputTokensPerMinute: t.int({ constraints: { min: 1 }, description: 'Output tokens per minute. Default 1.' }),
    maxConcurrency: t.int({ constraints: { min: 1 }, description: 'Requests at the same time. Default 10.' }),
    burstSize: t.int({ constraints: { min: 1 }, description: 'Requests allowed at once after a pause. Default 10.' }),
    queuePolicy: t.string({
      constraints: bounds.open,
      description: 'What happens to a request above the limits: `wait` (default), `reject` or another word.',
    }),
    queueTimeoutSeconds: t.int({
      constraints: { min: 0, max: 86_400 },
      description: 'How long a request waits, in seconds. Default 300.',
    }),
  }),
});

export const CreateProviderAccountInput = builder.inputType('CreateProviderAccountInput', {
  description: 'A new account at a model provider.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    providerType: t.string({
      required: true,
      constraints: bounds.open,
      description:
        '`openai`, `azure_openai`, `anthropic`, `google`, `vertex_ai`, `bedrock`, `mistral`, `cohere`, `groq`, ' +
        '`together`, `huggingface`, `ollama`, `vllm`, `openai_compatible`, `custom` or another word.',
    }),
    region: t.string({ constraints: place, description: 'Where the account is served.' }),
    dataResidency: t.string({ constraints: place, description: 'Where the account keeps data.' }),
    credentialsRef: t.string({
      required: true,
      constraints: credentials,
      description:
        'A reference to the credentials, never the credentials: `secret://name` for a secret of the organization ' +
        'itself, `sec_…` for any secret in the organization, or any text that the client sending the requests ' +
        'understands.',
    }),
    baseUrl: t.string({
      constraints: baseUrl,
      description:
        'Where the API of an `openai_compatible` account is, as `https://models.example.com/v1`: the service asks it ' +
        'for embeddings. The credentials are then `none`, or a secret with an `api_key`.',
    }),
    routingMode: t.string({
      constraints: bounds.open,
      description: '`direct` (default), `bridge` through the bridge `bridgeId`, or another word.',
    }),
    bridgeId: t.string({ constraints: bridge, description: 'Required if the routing mode is `bridge`.' }),
    bridgeEndpointName: t.string({ constraints: bridge, description: 'The endpoint of the bridge.' }),
    enabled: t.boolean({ description: 'Whether the account is in use. Default true.' }),
    tags: t.field({ type: 'StringMap', constraints: tagMapBounds, description: 'Labels by key.' }),
    quotaPolicy: t.field({ type: QuotaPolicyInput, description: 'Monthly limits.' }),
    rateLimitPolicy: t.field({
      type: RateLimitPolicyInput,
      description: 'How clients should pace requests to the account.',
    }),
  }),
});

export const UpdateProviderAccountInput = builder.inputType('UpdateProviderAccountInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    providerType: t.string({
      constraints: { ...bounds.open, notNull: true },
      description: 'The provider of the account.',
    }),
    region: t.string({ constraints: place, description: 'Where the account is served.' }),
    dataResidency: t.string({ constraints: place, description: 'Where the account keeps data.' }),
    credentialsRef: t.string({
      constraints: { ...credentials, notNull: true },
      description: 'A reference to the credentials. New credentials give an account in `error` another chance.',
    }),
    baseUrl: t.string({
      constraints: baseUrl,
      description:
        'Where the API of an `openai_compatible` account is, as `https://models.example.com/v1`: the service asks it ' +
        'for embeddings. The credentials are then `none`, or a secret with an `api_key`.',
    }),
    routingMode: t.string({
      constraints: { ...bounds.open, notNull: true },
      description: '`direct`, `bridge` or another word.',
    }),
    bridgeId: t.string({ constraints: bridge, description: 'Required if the routing mode is `bridge`.' }),
    bridgeEndpointName: t.string({ constraints: bridge, description: 'The endpoint of the bridge.' }),
    enabled: t.boolean({ constraints: { notNull: true }, description: 'Whether the account is in use.' }),
    tags: t.field({
      type: 'StringMap',
      constraints: { ...tagMapBounds, notNull: true },
      description: 'Replaces all tags.',
    }),
    quotaPolicy: t.field({ type: QuotaPolicyInput, description: 'Replaces all limits. `null` removes them.' }),
    rateLimitPolicy: t.field({
      type: RateLimitPolicyInput,
      description: 'Replaces the whole policy. `null` restores the defaults.',
    }),
  }),
});
