import { builder } from '../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node } from '../graphql/node.ts';
import { pageArgs } from '../graphql/page-type.ts';
import { idArg, organizationArgs } from '../graphql/place-args.ts';
import { readable } from '../graphql/resource.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Organization } from '../organizations/organization.graph.ts';
import { CreateProviderAccountInput, UpdateProviderAccountInput } from './provider-account.inputs.ts';
import type {
  ProviderAccount as ProviderAccountRow,
  QuotaPolicy as QuotaPolicyRow,
  RateLimitPolicy as RateLimitPolicyRow,
} from './provider-account.source.ts';

const QuotaPolicy = builder.objectRef<QuotaPolicyRow>('QuotaPolicy').implement({
  description: 'What an account may use in a month (UTC), and what it used of it in the running one.',
  fields: (t) => ({
    maxTokensPerMonth: t.expose('maxTokensPerMonth', {
      type: 'Int53',
      nullable: true,
      description: 'Tokens, input and output; null is no limit.',
    }),
    maxRequestsPerMonth: t.expose('maxRequestsPerMonth', {
      type: 'Int53',
      nullable: true,
      description: 'Requests; null is no limit.',
    }),
    currentMonthTokens: t.expose('currentMonthTokens', { type: 'Int53', description: 'Tokens in the running month.' }),
    currentMonthRequests: t.expose('currentMonthRequests', {
      type: 'Int53',
      description: 'Requests in the running month.',
    }),
    usagePeriod: t.exposeString('usagePeriod', { description: 'The running month, `2026-11`.' }),
  }),
});

const RateLimitPolicy = builder.objectRef<RateLimitPolicyRow>('RateLimitPolicy').implement({
  description:
    'How requests to an account are to be paced. It is told to whoever sends them; the service itself sends none.',
  fields: (t) => ({
    requestsPerSecond: t.exposeInt('requestsPerSecond', { description: 'Requests.' }),
    requestsPerMinute: t.exposeInt('requestsPerMinute', { description: 'Requests.' }),
    inputTokensPerMinute: t.exposeInt('inputTokensPerMinute', { description: 'Tokens of the requests.' }),
    outputTokensPerMinute: t.exposeInt('outputTokensPerMinute', { description: 'Tokens of the answers.' }),
    maxConcurrency: t.exposeInt('maxConcurrency', { description: 'Requests at the same time.' }),
    burstSize: t.exposeInt('burstSize', { description: 'Requests that may come at once after a rest.' }),
    queuePolicy: t.exposeString('queuePolicy', {
      description: 'What happens to a request above the limits: `wait` or `reject`.',
    }),
    queueTimeoutSeconds: t.exposeInt('queueTimeoutSeconds', { description: 'For how long a request waits.' }),
  }),
});

export const ProviderAccount = builder.objectRef<ProviderAccountRow>('ProviderAccount').implement({
  description: 'An account at a provider of models. Its credentials are a reference, never the credentials.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    providerType: t.exposeString('providerType', { description: '`openai`, `anthropic`, … or another word.' }),
    region: t.exposeString('region', { nullable: true, description: 'Where it is served.' }),
    dataResidency: t.exposeString('dataResidency', { nullable: true, description: 'Where its data is kept.' }),
    credentialsRef: t.exposeString('credentialsRef', { description: 'A reference to the credentials.' }),
    status: t.exposeString('status', {
      description:
        '`pending` until a first request succeeded, then `active`; `degraded` after failures, `error` after three refused credentials; `disabled` while it is not enabled.',
    }),
    statusReason: t.exposeString('statusReason', { nullable: true, description: 'Why it is not active.' }),
    routingMode: t.exposeString('routingMode', { description: '`direct` or `bridge`.' }),
    bridgeId: t.exposeString('bridgeId', { nullable: true, description: 'The bridge, where one is used.' }),
    bridgeEndpointName: t.exposeString('bridgeEndpointName', {
      nullable: true,
      description: 'The endpoint of the bridge.',
    }),
    quotaPolicy: t.field({
      type: QuotaPolicy,
      authorize: 'inherited',
      description: 'What it may use in a month, and what it used.',
      resolve: (account) => account,
    }),
    rateLimitPolicy: t.expose('rateLimitPolicy', {
      type: RateLimitPolicy,
      authorize: 'inherited',
      description: 'How requests to it are to be paced.',
    }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it is in use.' }),
    tags: t.expose('tags', { type: 'StringMap', description: 'Labels by key.' }),
    lastHealthCheck: t.expose(
      'lastHealthCheck',
      optionalTime('When the outcome of a request last told of its health.'),
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
      providerType: t.string({ constraints: bounds.open, description: 'Only those at this provider.' }),
      status: t.string({ constraints: bounds.open, description: 'Only those with this status, as it is shown.' }),
      enabledOnly: t.boolean({
        required: true,
        defaultValue: false,
        description: 'Only those that are enabled, whatever their health.',
      }),
    })),
  page: () => pageArgs({ min: 1, max: 100 }),
  one: { organization: 'Its organization.', argDescription: 'The account.' },
  nested: {
    nullable: true,
    description: 'Its provider accounts, newest first; null, with an error, for those who may not read them.',
  },
});

const target = () => ({ ...organizationArgs(), ...idArg('The account.') });

builder.mutationFields((t) => ({
  createProviderAccount: t.field({
    type: ProviderAccount,
    description: 'Adds an account at a provider. It is `pending` until a first request through it succeeded.',
    authorize: { organization: 'provider_account:create' },
    args: { ...organizationArgs(), ...inputArg(CreateProviderAccountInput, 'The account.') },
    resolve: ({ organization }, { input }, { actor, services }) =>
      services.providerAccounts.create(actor, organization, input),
  }),
  updateProviderAccount: t.field({
    type: ProviderAccount,
    description: 'Changes an account. Its policies are replaced whole where they are given.',
    authorize: { organization: 'provider_account:update' },
    args: { ...target(), ...inputArg(UpdateProviderAccountInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { actor, services }) =>
      services.providerAccounts.update(actor, organization, id, input),
  }),
  deleteProviderAccount: t.boolean({
    description: 'Deletes an account that no model has a target at.',
    authorize: { organization: 'provider_account:delete' },
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { actor, services }) =>
      services.providerAccounts.delete(actor, organization, id),
  }),
}));
