import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { SendAttempt } from '../sending/send-attempt.graph.ts';
import { AuditStream } from './audit-stream.graph.ts';
import { auditDeliveryStatuses } from './audit-stream.words.ts';
import type {
  AuditStreamLag as AuditStreamLagRow,
  AuditStreamDelivery as DeliveryRow,
} from './audit-stream-deliveries.ts';

const DeliveryStatus = wordEnum(
  'AuditStreamDeliveryStatus',
  'How far a delivery is.',
  {
    pending: 'It waits for its first or next attempt, or for the one before it.',
    delivered: 'The receiver accepted it.',
    failed: 'The attempt of a test has failed.',
    replaced: 'The stream was changed before it was delivered: its records are in a later delivery.',
  },
  auditDeliveryStatuses,
);

const AuditStreamDelivery = builder.objectRef<DeliveryRow>('AuditStreamDelivery').implement({
  description: 'Records that are sent together, with the attempts. It is kept for seven days.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `asd_…`. The header `audit-batch-id`, the same each time.' }),
    auditStreamId: t.exposeID('auditStreamId', { description: 'The audit stream.' }),
    isTest: t.exposeBoolean('isTest', { description: 'Whether it is a test.' }),
    status: t.expose('status', { type: DeliveryStatus, description: 'How far it is.' }),
    sequence: t.exposeInt('sequence', { description: 'Its number in the stream; 0 for a test.' }),
    recordCount: t.exposeInt('records', { description: 'How many records it has.' }),
    sizeBytes: t.exposeInt('sizeBytes', { description: 'The size of their lines of JSON.' }),
    firstAt: t.expose('firstAt', { type: 'DateTime', description: 'The time of the first record.' }),
    lastAt: t.expose('lastAt', { type: 'DateTime', description: 'The time of the last record.' }),
    request: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        'The beginning of the first record, at most 1,024 characters. `null` for callers who may not read all ' +
        'activity.',
      resolve: (delivery, _args, { caller, services }) => services.auditStreamDeliveries.excerpt(caller, delivery),
    }),
    tries: t.exposeInt('tries', { description: 'Attempts so far.' }),
    nextAttemptAt: t.expose(
      'dueAt',
      optionalTime('When it is tried next. `null` if it is over, or waits for another one.'),
    ),
    attempts: t.field({
      type: [SendAttempt],
      authorize: 'inherited',
      description:
        'The last ten attempts, the oldest first. Without an `answer` for callers who may not read all activity.',
      resolve: (delivery, _args, { caller, services }) => services.auditStreamDeliveries.attempts(caller, delivery),
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made of the records.' }),
    finishedAt: t.expose('finishedAt', optionalTime('When it was delivered, replaced, or given up.')),
  }),
});
refersTo(AuditStreamDelivery, { auditStreamId: { kind: 'audit_stream', required: true } });
const DeliveryConnection = pageType('AuditStreamDelivery', AuditStreamDelivery);

const AuditStreamLag = builder.objectRef<AuditStreamLagRow>('AuditStreamLag').implement({
  description: 'How far an audit stream is behind.',
  fields: (t) => ({
    recordCount: t.exposeInt('records', {
      description: 'Records that are not delivered. At most 10,000 are looked at.',
    }),
    lagSeconds: t.exposeFloat('seconds', { description: 'The age of the oldest of them, in seconds. 0 for none.' }),
  }),
});

const statusArg = () =>
  builder.args((t) => ({ status: t.field({ type: DeliveryStatus, description: 'Only those that are so far.' }) }));

builder.objectField(AuditStream, 'deliveries', (t) =>
  t.field({
    type: DeliveryConnection,
    description: 'The deliveries of the stream, newest first.',
    authorize: { organization: 'audit_stream:read' },
    args: { ...statusArg(), ...pageArgs() },
    resolve: (row, args, context) =>
      context.services.auditStreamDeliveries.reads.list(context, inside.auditStream(row), args),
  }),
);

const target = () => ({ ...organizationArgs(), ...idArg('The audit stream.') });

builder.queryFields((t) => ({
  auditStreamDeliveries: t.field({
    type: DeliveryConnection,
    description: 'The deliveries of an audit stream, newest first.',
    authorize: { organization: 'audit_stream:read' },
    activity: { action: 'list', resourceType: 'audit_stream_delivery' },
    args: { ...target(), ...statusArg(), ...pageArgs() },
    resolve: async ({ organization }, { id, ...args }, context) => {
      const { auditStreams, auditStreamDeliveries } = context.services;
      const stream = await auditStreams.reads.get(context, organization, id);
      return auditStreamDeliveries.reads.list(context, inside.auditStream(stream), args);
    },
  }),
  auditStreamLag: t.field({
    type: AuditStreamLag,
    description: 'How far an audit stream is behind.',
    authorize: { organization: 'audit_stream:read' },
    activity: { action: 'read', resourceType: 'audit_stream' },
    args: target(),
    resolve: async ({ organization }, { id }, context) => {
      const { auditStreams, auditStreamDeliveries } = context.services;
      await auditStreams.reads.get(context, organization, id);
      return auditStreamDeliveries.lag(organization, id);
    },
  }),
}));

builder.mutationField('testAuditStream', (t) =>
  t.field({
    type: AuditStreamDelivery,
    description: 'Sends a record that is made up to an audit stream, once. Its delivery shows how it ends.',
    authorize: { organization: 'audit_stream:update' },
    args: target(),
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.auditStreamDeliveries.test(caller, organization, id),
  }),
);
