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
import type { AuditStream as AuditStreamRow } from './audit-stream.service.ts';
import { MAX_WORDS, targetTypes } from './audit-stream.words.ts';

const TargetType = wordEnum(
  'AuditStreamTargetType',
  'What receives the records.',
  {
    http: 'A collector that gets lines of JSON by POST.',
    splunk: "Splunk's HTTP Event Collector.",
    s3: 'A bucket of Amazon S3, or of a store that works like it, which gets files by the hour.',
  },
  targetTypes,
);

const DisabledReason = wordEnum('AuditStreamDisabledReason', 'Why the service disabled an audit stream.', {
  failing: 'Nothing could be delivered for five days.',
  no_access: 'The user whom it acts for may no longer read all activity.',
});

/** An audit stream. */
export const AuditStream = builder.objectRef<AuditStreamRow>('AuditStream').implement({
  description:
    'Sends the activity records of an organization to a receiver outside, in the order of their commits, each at ' +
    'least once.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    targetType: t.expose('targetType', { type: TargetType, description: 'What receives the records.' }),
    url: t.exposeString('url', { description: 'The address of the collector, or of the store.' }),
    bucket: t.exposeString('bucket', { nullable: true, description: 'The bucket of a store.' }),
    region: t.exposeString('region', { nullable: true, description: 'The region of a store.' }),
    prefix: t.exposeString('prefix', { nullable: true, description: 'How the keys of files in a store begin.' }),
    credentialsRef: t.exposeString('credentialsRef', {
      nullable: true,
      description: 'The secret that is sent: `sec_…`, or `secret://name` of the organization.',
    }),
    isCompressed: t.exposeBoolean('isCompressed', { description: 'Whether bodies are compressed by gzip.' }),
    actions: t.exposeStringList('actions', { description: 'Only records of these actions. Empty for all.' }),
    resourceTypes: t.exposeStringList('resourceTypes', {
      description: 'Only records about resources of these types. Empty for all.',
    }),
    success: t.exposeBoolean('success', {
      nullable: true,
      description: 'Only records of successful operations, or only of failed operations. `null` for all.',
    }),
    isEnabled: t.exposeBoolean('isEnabled', {
      description: 'Whether anything is sent. A stream that is enabled again goes on where it was.',
    }),
    disabledReason: t.expose('disabledReason', {
      type: DisabledReason,
      nullable: true,
      description: 'Why the service disabled it. `null` if it did not.',
    }),
    actsFor: t.exposeID('actsFor', {
      description: 'The user who decided last what goes where. It sends while this user may read all activity.',
    }),
    failingSince: t.expose('failingSince', optionalTime('The first failure since something was delivered.')),
    goneBefore: t.expose(
      'goneBefore',
      optionalTime(
        'Records before this time that had not been sent are gone: by retention, while the stream was disabled, or ' +
          'because the database was restored. `null` if none are missing.',
      ),
    ),
  }),
});
inOrganization(AuditStream, 'audit_stream');
tracked(AuditStream);
refersTo(AuditStream, { actsFor: { kind: 'user', name: 'actsForUser' } });
readable(AuditStream, {
  kind: 'audit_stream',
  below: Organization,
  reads: ({ auditStreams }) => auditStreams.reads,
});

const words = { maxItems: MAX_WORDS, item: { minLength: 1, maxLength: 64 }, notNull: true } as const;
const url = { minLength: 1, maxLength: 2_048 } as const;
const URL =
  'The address of the collector, for Splunk with the path `/services/collector/event`; or of the store, without the ' +
  'bucket. https, and http only where the operator allows it.';

/** The fields that clients may leave out, when they create a stream and when they change one. */
const optional = (t: InputFields) => ({
  description: t.string({ constraints: bounds.description, description: 'Free text.' }),
  bucket: t.string({
    constraints: { pattern: '[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]' },
    description: 'The bucket of a store. Required for s3, and for nothing else.',
  }),
  region: t.string({
    constraints: { pattern: '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?' },
    description: 'The region of a store. Default `us-east-1`.',
  }),
  prefix: t.string({
    constraints: { pattern: '[A-Za-z0-9_.*()/-]{1,255}' },
    description: 'How the keys of files in a store begin: `audit/`.',
  }),
  credentialsRef: t.string({
    constraints: { minLength: 1, maxLength: 255 },
    description:
      'The secret that is sent: `sec_…`, or `secret://name` of the organization. Its entries are headers for http, ' +
      '`token` for splunk, and `access_key_id` and `secret_access_key` for s3, perhaps with a `session_token`. ' +
      'Requires `secret:reveal` for it.',
  }),
  isCompressed: t.boolean({
    constraints: { notNull: true },
    description: 'Whether bodies are compressed by gzip. Default `false`; files in s3 always are.',
  }),
  actions: t.stringList({ constraints: words, description: 'Only records of these actions. Empty for all.' }),
  resourceTypes: t.stringList({
    constraints: words,
    description: 'Only records about resources of these types. Empty for all.',
  }),
  success: t.boolean({ description: 'Only records of successful operations, or only of failed operations.' }),
  isEnabled: t.boolean({
    constraints: { notNull: true },
    description: 'Whether anything is sent. Default `true`.',
  }),
});

const CreateAuditStreamInput = builder.inputType('CreateAuditStreamInput', {
  description: 'A new audit stream.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    targetType: t.field({ type: TargetType, required: true, description: 'What receives the records.' }),
    url: t.string({ required: true, constraints: url, description: URL }),
    ...optional(t),
  }),
});

const UpdateAuditStreamInput = builder.inputType('UpdateAuditStreamInput', {
  description:
    'The fields to change. Omitted fields stay as they are; `null` clears a field. Who changes more than the name or ' +
    'the description, or enables it, is whom it acts for from then on. What was not delivered yet is sent as the ' +
    'stream is then.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: 'A label; names may repeat.' }),
    url: t.string({ constraints: { ...url, notNull: true }, description: URL }),
    ...optional(t),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The audit stream.') });

const DeleteAuditStreamPayload = deletePayload('DeleteAuditStream', { noun: 'audit stream', in: ['orgId'] });

builder.mutationFields((t) => ({
  createAuditStream: t.field({
    type: AuditStream,
    description:
      'Creates an audit stream. It sends the records that are committed from now on. The permission to read all ' +
      'activity of the organization is required.',
    authorize: { organization: 'audit_stream:create' },
    emits: ['audit_stream.created'],
    args: { ...organizationArgs(), ...inputArg(CreateAuditStreamInput, 'The audit stream.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.auditStreams.create(caller, organization, input),
  }),
  updateAuditStream: t.field({
    type: AuditStream,
    description: 'Changes an audit stream, enables or disables it.',
    authorize: { organization: 'audit_stream:update' },
    emits: ['audit_stream.updated'],
    args: { ...target(), ...inputArg(UpdateAuditStreamInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.auditStreams.update(caller, organization, id, input),
  }),
  deleteAuditStream: t.field({
    type: DeleteAuditStreamPayload,
    description: 'Deletes an audit stream with its log.',
    authorize: { organization: 'audit_stream:delete' },
    emits: ['audit_stream.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.auditStreams.delete(caller, organization, id),
  }),
}));
