import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import type { IssuedWebhook, Webhook as WebhookRow } from './webhook.service.ts';
import { MAX_TYPES } from './webhook.words.ts';

const DisabledReason = wordEnum('WebhookDisabledReason', 'Why the service disabled a webhook.', {
  failing: 'Nothing could be delivered for five days.',
  no_access: 'The user whom it acts for no longer has access to the events of its place.',
});

/** A webhook. */
export const Webhook = builder.objectRef<WebhookRow>('Webhook').implement({
  description:
    'An address that receives the events of an organization itself or of one workspace, signed as Standard Webhooks ' +
    'says. It receives what the user whom it acts for may read.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'The workspace whose events it receives. `null`: events of the organization itself.',
    }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    url: t.exposeString('url', { description: 'Where events are sent, by POST.' }),
    eventTypes: t.exposeStringList('eventTypes', {
      description: 'What it receives: exact types, and `<resource>.*` for all events of a resource.',
    }),
    isEnabled: t.exposeBoolean('isEnabled', {
      description: 'Whether anything is sent. A webhook that is enabled again goes on where it was.',
    }),
    disabledReason: t.expose('disabledReason', {
      type: DisabledReason,
      nullable: true,
      description: 'Why the service disabled it. `null` if it did not.',
    }),
    headersRef: t.exposeString('headersRef', {
      nullable: true,
      description: 'The secret whose entries are sent as headers: `sec_…`, or `secret://name` of the organization.',
    }),
    actsFor: t.exposeID('actsFor', {
      description: 'The user who decided last what goes where: it receives what this user may read.',
    }),
    secretRotatedAt: t.expose('secretRotatedAt', optionalTime('When it last got another secret.')),
    failingSince: t.expose('failingSince', optionalTime('The first failure since something was delivered.')),
  }),
});
inOrganization(Webhook, 'webhook');
tracked(Webhook);
refersTo(Webhook, { workspaceId: 'workspace', actsFor: { kind: 'user', name: 'actsForUser' } });
readable(Webhook, {
  kind: 'webhook',
  below: Organization,
  reads: ({ webhooks }) => webhooks.reads,
});

const IssuedWebhookObject = builder.objectRef<IssuedWebhook>('IssuedWebhook').implement({
  description:
    'A webhook and its secret. The secret is not shown again, except when the same request is repeated with its ' +
    'Idempotency-Key.',
  fields: (t) => ({
    webhook: t.expose('webhook', { type: Webhook, authorize: 'inherited', description: 'The webhook.' }),
    secret: t.exposeString('secret', { description: 'What signatures are checked with, `whsec_…`.' }),
  }),
});

const types = { minItems: 1, maxItems: MAX_TYPES, item: { minLength: 1, maxLength: 64 } } as const;
const url = { minLength: 1, maxLength: 2_048 } as const;
const TYPES = 'What it receives: exact types like `thread.created`, or `thread.*` for all events of a resource.';
const URL = 'Where events are sent, by POST: https, and http only where the operator allows it.';

/** The fields that clients may leave out, when they create a webhook and when they change one. */
const optional = (t: InputFields) => ({
  description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  headersRef: t.string({
    constraints: { minLength: 1, maxLength: 255 },
    description:
      'The secret whose entries are sent as headers: `sec_…`, or `secret://name` of the organization. Requires ' +
      '`secret:reveal` for it.',
  }),
  isEnabled: t.boolean({
    constraints: { notNull: true },
    description: 'Whether anything is sent. Default `true`.',
  }),
});

const CreateWebhookInput = builder.inputType('CreateWebhookInput', {
  description: 'A new webhook.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    url: t.string({ required: true, constraints: url, description: URL }),
    eventTypes: t.stringList({ required: true, constraints: types, description: TYPES }),
    workspaceId: t.id({
      constraints: bounds.id,
      description: 'The workspace whose events it receives. Without it, events of the organization itself.',
    }),
    ...optional(t),
  }),
});

const UpdateWebhookInput = builder.inputType('UpdateWebhookInput', {
  description:
    'The fields to change. Omitted fields stay as they are; `null` clears a field. Who sets the URL, the types or ' +
    'the headers, or enables it, is whom it acts for from then on.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    url: t.string({ constraints: { ...url, notNull: true }, description: URL }),
    eventTypes: t.stringList({ constraints: { ...types, notNull: true }, description: TYPES }),
    ...optional(t),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The webhook.') });

const DeleteWebhookPayload = deletePayload('DeleteWebhook', { noun: 'webhook', in: ['orgId'] });

builder.mutationFields((t) => ({
  createWebhook: t.field({
    type: IssuedWebhookObject,
    description:
      'Creates a webhook. It receives what is committed from now on, as far as the caller may read it: the ' +
      'permission to read what each type is about is required.',
    authorize: { organization: 'webhook:create' },
    emits: ['webhook.created'],
    args: { ...organizationArgs(), ...inputArg(CreateWebhookInput, 'The webhook.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.webhooks.create(caller, organization, input),
  }),
  updateWebhook: t.field({
    type: Webhook,
    description: 'Changes a webhook.',
    authorize: { organization: 'webhook:update' },
    emits: ['webhook.updated'],
    args: { ...target(), ...inputArg(UpdateWebhookInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.webhooks.update(caller, organization, id, input),
  }),
  rotateWebhookSecret: t.field({
    type: IssuedWebhookObject,
    description: 'Gives a webhook a new secret. For a day, messages are signed with the old one as well.',
    authorize: { organization: 'webhook:update', stepUp: 'secret_reveal' },
    emits: ['webhook.updated'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.webhooks.rotateSecret(caller, organization, id),
  }),
  deleteWebhook: t.field({
    type: DeleteWebhookPayload,
    description: 'Deletes a webhook with its log.',
    authorize: { organization: 'webhook:delete' },
    emits: ['webhook.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.webhooks.delete(caller, organization, id),
  }),
}));
