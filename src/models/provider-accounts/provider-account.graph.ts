import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { CreateProviderAccountInput, UpdateProviderAccountInput } from './provider-account.inputs.ts';
import type {
  ProviderAccount as ProviderAccountRow,
  QuotaPolicy as QuotaPolicyRow,
  RateLimitPolicy as RateLimitPolicyRow,
} from './provider-account.reads.ts';

const QuotaPolicy = builder.objectRef<QuotaPolicyRow>('QuotaPolicy').implement({
  description: 'Monthly limits of an account (UTC), and its usage in the current month.',
  fields: (t) => ({
    maxTokensPerMonth: t.expose('maxTokensPerMonth', {
      type: 'Int53',
      nullable: true,
      description: 'Input and output tokens. `null` is no limit.',
    }),
    maxRequestsPerMonth: t.expose('maxRequestsPerMonth', {
      type: 'Int53',
      nullable: true,
      description: 'Requests. `null` is no limit.',
    }),
    currentMonthTokens: t.expose('currentMonthTokens', { type: 'Int53', description: 'Tokens in the current month.' }),
    currentMonthRequests: t.expose('currentMonthRequests', {
      type: 'Int53',
      description: 'Requests in the current month.',
    }),
    usagePeriod: t.exposeString('usagePeriod', { description: 'The current month, for example `2026-11`.' }),
  }),
});

const RateLimitPolicy = builder.objectRef<RateLimitPolicyRow>('RateLimitPolicy').implement({
  description:
    'How clients should pace requests to an account. The service passes these limits to the clients; its own ' +
    'requests for embeddings are few, and keep to what the provider answers.',
  fields: (t) => ({
    requestsPerSecond: t.exposeInt('requestsPerSecond', { description: 'Requests per second.' }),
    requestsPerMinute: t.exposeInt('requestsPerMinute', { description: 'Requests per minute.' }),
    inputTokensPerMinute: t.exposeInt('inputTokensPerMinute', { description: 'Input tokens per minute.' }),
    outputTokensPerMinute: t.exposeInt('outputTokensPerMinute', { description: 'Output tokens per minute.' }),
    maxConcurrency: t.exposeInt('maxConcurrency', { description: 'Requests at the same time.' }),
    burstSize: t.exposeInt('burstSize', { description: 'Requests allowed at once after a pause.' }),
    queuePolicy: t.exposeString('queuePolicy', {
      description: 'What happens to a request above the limits: `wait`, `reject` or another word.',
    }),
    queueTimeoutSeconds: t.exposeInt('queueTimeoutSeconds', { description: 'How long a request waits, in seconds.' }),
  }),
});

const ProviderAccountStatus = wordEnum('ProviderAccountStatus', 'Status of an account at a provider.', {
  pending: 'No request has succeeded yet.',
  active: 'Requests succeed.',
  degraded: 'Requests have failed since the last success.',
  error: 'The provider refused the credentials three times.',
  disabled: 'The account is not enabled.',
});

export const ProviderAccount = builder.objectRef<ProviderAccountRow>('ProviderAccount').implement({
  description: 'An account at a model provider. It stores a reference to the credentials, never the credentials.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    providerType: t.exposeString('providerType', { description: '`openai`, `anthropic`, … or another word.' }),
    region: t.exposeString('region', { nullable: true, description: 'Where the account is served.' }),
    dataResidency: t.exposeString('dataResidency', { nullable: true, description: 'Where the account keeps data.' }),
    credentialsRef: t.exposeString('credentialsRef', { description: 'A reference to the credentials.' }),
    baseUrl: t.exposeString('baseUrl', {
      nullable: true,
      description: 'Where the API of an `openai_compatible` account is, for what the service itself sends: embeddings.',
    }),
    status: t.expose('status', { type: ProviderAccountStatus, description: 'Its status.' }),
    statusReason: t.exposeString('statusReason', { nullable: true, description: 'Why the account is not active.' }),
    routingMode: t.exposeString('routingMode', { description: '`direct`, `bridge` or another word.' }),
    bridgeId: t.exposeString('bridgeId', { nullable: true, description: 'The bridge, if one is used.' }),
    bridgeEndpointName: t.exposeString('bridgeEndpointName', {
      nullable: true,
      description: 'The endpoint of the bridge.',
    }),
    quotaPolicy: t.field({
      type: QuotaPolicy,
      authorize: 'inherited',
      description: 'Monthly limits and usage.',
      resolve: (account) => account,
    }),
    rateLimitPolicy: t.expose('rateLimitPolicy', {
      type: RateLimitPolicy,
      authorize: 'inherited',
      description: 'How clients should pace requests to the account.',
    }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether the account is in use.' }),
    tags: t.expose('tags', { type: 'StringMap', description: 'Labels by key.' }),
    lastHealthCheck: t.expose(
      'lastHealthCheck',
      optionalTime('When a request last showed whether the account is healthy.'),
    ),
  }),
});

inOrganization(ProviderAccount, 'provider_account');
tracked(ProviderAccount);
readable(ProviderAccount, {
  kind: 'provider_account',
  below: Organization,
  reads: ({ providerAccounts }) => providerAccounts.reads,
  filters: () =>
    builder.args((t) => ({
      providerType: t.string({ constraints: bounds.open, description: 'Only accounts at this provider.' }),
      status: t.string({
        constraints: bounds.open,
        description: 'Only accounts with this status, as shown. Another word finds nothing.',
      }),
      enabledOnly: t.boolean({
        required: true,
        defaultValue: false,
        description: 'Only enabled accounts, whatever their health.',
      }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: { organization: 'The organization of the account.', argDescription: 'The account.' },
  nested: {
    nullable: true,
    description:
      'The provider accounts of the organization, newest first. `null` with an error if the caller may not ' +
      'read them.',
  },
});

const target = () => ({ ...organizationArgs(), ...idArg('The account.') });

const DeleteProviderAccountPayload = deletePayload('DeleteProviderAccount', { noun: 'account', in: ['orgId'] });

builder.mutationFields((t) => ({
  createProviderAccount: t.field({
    type: ProviderAccount,
    description: 'Adds an account at a provider. It is `pending` until the first request through it succeeds.',
    authorize: { organization: 'provider_account:create' },
    emits: ['provider_account.created'],
    args: { ...organizationArgs(), ...inputArg(CreateProviderAccountInput, 'The account.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.providerAccounts.create(caller, organization, input),
  }),
  updateProviderAccount: t.field({
    type: ProviderAccount,
    description: 'Changes an account. A given policy replaces the whole previous one.',
    authorize: { organization: 'provider_account:update' },
    emits: ['provider_account.updated'],
    mayEmit: ['model.updated'],
    args: { ...target(), ...inputArg(UpdateProviderAccountInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.providerAccounts.update(caller, organization, id, input),
  }),
  deleteProviderAccount: t.field({
    type: DeleteProviderAccountPayload,
    description: 'Deletes an account. Fails while a target of a model uses it.',
    authorize: { organization: 'provider_account:delete' },
    emits: ['provider_account.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.providerAccounts.delete(caller, organization, id),
  }),
}));
