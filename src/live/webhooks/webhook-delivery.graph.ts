import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { SendAttempt } from '../sending/send-attempt.graph.ts';
import { Webhook } from './webhook.graph.ts';
import { deliveryStatuses } from './webhook.words.ts';
import type { WebhookDelivery as DeliveryRow } from './webhook-deliveries.ts';

const DeliveryStatus = wordEnum(
  'WebhookDeliveryStatus',
  'How far a delivery is.',
  {
    pending: 'It waits for its first or next attempt, or for an earlier one about the same resource.',
    delivered: 'The receiver accepted it, with a status of 2xx.',
    failed: 'All attempts have failed.',
  },
  deliveryStatuses,
);

const WebhookDelivery = builder.objectRef<DeliveryRow>('WebhookDelivery').implement({
  description: 'What is sent to a webhook, with its attempts. It is kept for seven days.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `whd_…`.' }),
    webhookId: t.exposeID('webhookId', { description: 'The webhook.' }),
    eventId: t.exposeID('eventId', { description: 'The event, and the header `webhook-id`. The same each time.' }),
    eventType: t.exposeString('eventType', { description: 'The type of the event; `webhook.test` for a test.' }),
    status: t.expose('status', { type: DeliveryStatus, description: 'How far it is.' }),
    tries: t.exposeInt('tries', { description: 'Attempts since it was put into the queue.' }),
    nextAttemptAt: t.expose(
      'dueAt',
      optionalTime('When it is tried next. `null` if it is over, or waits for another one.'),
    ),
    body: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'What is sent. `null` for callers who may not read what the event is about.',
      resolve: (delivery, _args, { caller, services }) => services.webhookDeliveries.body(caller, delivery),
    }),
    attempts: t.field({
      type: [SendAttempt],
      authorize: 'inherited',
      description:
        'The last ten attempts, the oldest first. Without an `answer` for callers who may not read what the event is ' +
        'about.',
      resolve: (delivery, _args, { caller, services }) => services.webhookDeliveries.attempts(caller, delivery),
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made of the event.' }),
    finishedAt: t.expose('finishedAt', optionalTime('When it was delivered, or given up.')),
  }),
});
refersTo(WebhookDelivery, { webhookId: { kind: 'webhook', required: true } });
const DeliveryConnection = pageType('WebhookDelivery', WebhookDelivery);

const statusArg = () =>
  builder.args((t) => ({ status: t.field({ type: DeliveryStatus, description: 'Only those that are so far.' }) }));

builder.objectField(Webhook, 'deliveries', (t) =>
  t.field({
    type: DeliveryConnection,
    description: 'The deliveries of the webhook, newest first.',
    authorize: { organization: 'webhook:read' },
    args: { ...statusArg(), ...pageArgs() },
    resolve: (row, args, context) => context.services.webhookDeliveries.reads.list(context, inside.webhook(row), args),
  }),
);

const target = () => ({ ...organizationArgs(), ...idArg('The webhook.') });

builder.queryField('webhookDeliveries', (t) =>
  t.field({
    type: DeliveryConnection,
    description: 'The deliveries of a webhook, newest first.',
    authorize: { organization: 'webhook:read' },
    activity: { action: 'list', resourceType: 'webhook_delivery' },
    args: { ...target(), ...statusArg(), ...pageArgs() },
    resolve: async ({ organization }, { id, ...args }, context) => {
      const { webhooks, webhookDeliveries } = context.services;
      const webhook = await webhooks.reads.get(context, organization, id);
      return webhookDeliveries.reads.list(context, inside.webhook(webhook), args);
    },
  }),
);

const RedeliverInput = builder.inputType('RedeliverWebhookDeliveriesInput', {
  description: 'Which deliveries are sent again.',
  fields: (t) => ({
    since: t.field({ type: 'DateTime', required: true, description: 'Only those made from this time on.' }),
    until: t.field({ type: 'DateTime', description: 'Only those made before this time.' }),
    onlyFailed: t.boolean({ description: 'Only those that have failed.' }),
  }),
});

const Redelivered = builder.objectRef<{ count: number }>('RedeliverWebhookDeliveriesPayload').implement({
  description: 'What was put into the queue again.',
  fields: (t) => ({ count: t.exposeInt('count', { description: 'How many deliveries.' }) }),
});

builder.mutationFields((t) => ({
  testWebhook: t.field({
    type: WebhookDelivery,
    description: 'Sends a `webhook.test` to a webhook, once. Its delivery shows how it ends.',
    authorize: { organization: 'webhook:update' },
    args: target(),
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.webhookDeliveries.test(caller, organization, id),
  }),
  redeliverWebhookDelivery: t.field({
    type: WebhookDelivery,
    description: 'Sends a delivery that is over again, with all its tries.',
    authorize: { organization: 'webhook:update' },
    activity: { action: 'update', resourceType: 'webhook_delivery' },
    args: {
      ...organizationArgs(),
      webhookId: t.arg.id({ required: true, constraints: bounds.id, description: 'The webhook.' }),
      ...idArg('The delivery.'),
    },
    resolve: ({ organization }, { webhookId, id }, { caller, services }) =>
      services.webhookDeliveries.redeliver(caller, organization, webhookId, id),
  }),
  redeliverWebhookDeliveries: t.field({
    type: Redelivered,
    description:
      'Sends deliveries that are over again, with all their tries: of a time span, only the failed, or ' +
      'both. At most 10,000 at once, the oldest first.',
    authorize: { organization: 'webhook:update' },
    args: { ...target(), ...inputArg(RedeliverInput, 'The deliveries.') },
    resolve: async ({ organization }, { id, input }, { caller, services }) => ({
      count: await services.webhookDeliveries.redeliverMany(caller, organization, id, input),
    }),
  }),
}));
