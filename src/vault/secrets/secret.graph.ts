import { builder } from '../../graphql/builder.ts';
import { optionalTime, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { reasonBounds } from '../../tenancy/reveal-reasons.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import type { SecretHistory as History, SecretHistoryEntry } from './reveal.service.ts';
import type { Secret as SecretRow } from './secret.reads.ts';
import type { SecretPlace } from './secret-place.ts';

const DAY_MS = 86_400_000;
const isPast = (at: Date | null) => at !== null && at.getTime() <= Date.now();

const SecretScope = wordEnum<SecretPlace['scope']>('SecretScope', 'Where a secret lives.', {
  organization: 'In the organization itself.',
  workspace: 'In a workspace.',
  namespace: 'In a namespace.',
  environment: 'In an environment.',
});

const SecretStatus = wordEnum('SecretStatus', 'Status of a secret.', {
  active: 'The service uses it.',
  disabled: 'It is readable, but the service does not use it.',
  deleted: 'It was deleted. It can be restored until it is removed.',
});

const Secret = builder.objectRef<SecretRow>('Secret').implement({
  description: 'A vaulted secret. Lists and changes never show its value.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `sec_…`. Also works as a reference to the secret.' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    scope: t.expose('scope', { type: SecretScope, description: 'Where the secret lives.' }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace of the secret.' }),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'The namespace of the secret.' }),
    environmentId: t.exposeID('environmentId', { nullable: true, description: 'The environment of the secret.' }),
    name: t.exposeString('name', {
      description: 'Unique where the secret lives. `secret://name` refers to a secret of the organization itself.',
    }),
    secretType: t.exposeString('secretType', { description: 'Kind of value: `token`, `api_key`, ….' }),
    status: t.expose('status', { type: SecretStatus, description: 'Its status.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    vaultVersion: t.exposeInt('vaultVersion', { description: 'Current version of the value, counted from 1.' }),
    expiresAt: t.expose('expiresAt', optionalTime('Expiry time. The service stops using the secret from then on.')),
    isExpired: t.boolean({
      authorize: 'inherited',
      description: 'Whether the expiry time has passed.',
      resolve: ({ expiresAt }) => isPast(expiresAt),
    }),
    rotationReminderDays: t.exposeInt('rotationReminderDays', {
      nullable: true,
      description: 'Days after which the secret should be rotated.',
    }),
    needsRotation: t.boolean({
      authorize: 'inherited',
      description:
        'Whether rotation is due: `rotationReminderDays` have passed since the last rotation, or since creation.',
      resolve: ({ rotationReminderDays: days, lastRotatedAt, createdAt }) =>
        days !== null && isPast(new Date((lastRotatedAt ?? createdAt).getTime() + days * DAY_MS)),
    }),
    lastRotatedAt: t.expose('lastRotatedAt', optionalTime('When the value was last replaced.')),
    lastAccessedAt: t.expose('lastAccessedAt', optionalTime('When the value was last read.')),
    accessCount: t.exposeInt('accessCount', { description: 'How often the value was read.' }),
    value: t.expose('value', {
      type: 'JSONObject',
      nullable: true,
      description: 'The value. `null` unless requested with `includeValue`.',
    }),
  }),
});

tracked(Secret);
refersTo(Secret, {
  orgId: 'organization',
  workspaceId: 'workspace',
  namespaceId: 'namespace',
  environmentId: 'environment',
});

const SecretConnection = pageType('Secret', Secret);

registerNode('secret', Secret, (context, id) => context.services.secretReads.node(context, id));

const SecretVersionState = builder.enumType('SecretVersionState', {
  description: "State of a version's value.",
  values: {
    READABLE: { description: 'Callers with permission can read the value.' },
    DESTROYED: { description: 'The value was destroyed. Only the newest 20 are kept.' },
    UNREADABLE: { description: 'The stored value cannot be decrypted: it was altered, or its key is missing.' },
  } as const,
});

const SecretVersion = builder.objectRef<SecretHistoryEntry>('SecretVersion').implement({
  description: 'A current or former value of a secret.',
  fields: (t) => ({
    version: t.exposeInt('version', { description: 'Version number, counted from 1.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'The user who stored the value.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the value was stored.' }),
    value: t.expose('value', {
      type: 'JSONObject',
      nullable: true,
      description:
        'The value. Callers without `secret:reveal` see `********` for each key. `null` if it is destroyed or ' +
        'unreadable, see `state`.',
    }),
    state: t.expose('state', { type: SecretVersionState, description: 'State of the value.' }),
  }),
});

const SecretHistory = builder.objectRef<History>('SecretHistory').implement({
  description: 'The current and former values of a secret.',
  fields: (t) => ({
    secretId: t.exposeID('secretId', { description: 'The secret.' }),
    currentVersion: t.exposeInt('currentVersion', { description: 'The version in use.' }),
    versions: t.expose('versions', {
      type: [SecretVersion],
      authorize: 'inherited',
      description: 'Newest first, at most 1,000.',
    }),
  }),
});

refersTo(SecretVersion, { createdBy: 'user' });
refersTo(SecretHistory, { secretId: 'secret' });

/** Usable in a path segment and after `secret://`. */
const nameBounds = {
  minLength: 1,
  maxLength: 255,
  pattern: String.raw`(?!\.{1,2}$)(?! )(?!.*[/\\?#%])[\p{L}\p{M}\p{N}\p{P}\p{S} ]+(?<! )`,
} as const;
const NAME = 'Letters, digits, marks and spaces; no slash, backslash, `?`, `#` or `%`. Not `.` or `..`.';
const reminderBounds = { min: 1, max: 3_650 } as const;
const newValue = {
  type: 'JSONObject',
  required: true,
  constraints: { maxBytes: 64 * 1024, sensitive: true },
  description:
    'At least one key, each with a JSON scalar or an object. At most 64 KiB. Send integers beyond 2^53 as ' +
    'strings.',
} as const;

const listArgs = () => ({
  ...builder.args((t) => ({
    secretType: t.string({ constraints: bounds.open, description: 'Only secrets of this type.' }),
    status: t.string({
      constraints: bounds.open,
      description: 'Only secrets with this status; another word finds nothing. Default: all except deleted secrets.',
    }),
    includeExpired: t.boolean({ required: true, defaultValue: true, description: 'Whether to list expired secrets.' }),
    search: t.string({ constraints: bounds.name, description: 'Part of the name, ignoring case.' }),
  })),
  ...pageArgs(),
});

builder.objectField(Organization, 'secrets', (t) =>
  t.field({
    type: SecretConnection,
    nullable: true,
    description:
      'The secrets that the caller may read, newest first. `null` with an error if the caller may read none.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: listArgs(),
    resolve: async (row, args, context) => {
      const { access, secretReads } = context.services;
      const role = await access.organizationRole(context.caller, row.id);
      return secretReads.list(context, inside.organization(row), role, args);
    },
  }),
);

builder.objectField(Workspace, 'secrets', (t) =>
  t.field({
    type: SecretConnection,
    nullable: true,
    description:
      'The secrets of the workspace, its namespaces and environments, newest first. `null` with an error if ' +
      'the caller may not read them.',
    authorize: { workspace: 'secret:read' },
    args: listArgs(),
    resolve: (row, args, context) =>
      context.services.secretReads.inWorkspace.list(context, inside.workspace(row), args),
  }),
);

const target = () => ({ ...organizationArgs(), ...idArg('The secret.') });
const reasonArg = () =>
  builder.args((t) => ({
    reason: t.string({
      constraints: reasonBounds,
      description:
        'Why the value is read. The activity record of the reveal keeps it, as `metadata.reason`. An organization ' +
        'may demand it (`requireRevealReason`).',
    }),
  }));
const valueArgs = () => ({
  ...builder.args((t) => ({
    includeValue: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Also returns the value. Needs `secret:reveal`. The access is counted and recorded.',
    }),
  })),
  ...reasonArg(),
});

builder.queryFields((t) => ({
  secret: t.field({
    type: Secret,
    description: 'A secret by its identifier.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: { ...target(), ...valueArgs() },
    resolve: ({ organization }, { id, includeValue, reason }, { caller, services }) =>
      services.reveals.get(caller, organization, id, includeValue, reason),
  }),
  secretByName: t.field({
    type: Secret,
    description:
      'A secret by its name. If a place is given: the secret that lives exactly in the most specific given ' +
      'place, else the secret of the organization itself. If no place is given: the secret of the organization ' +
      'itself, else the only one that the caller may read. Several matches are a conflict, `ambiguous_name`.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: {
      ...organizationArgs(),
      name: t.arg.string({ required: true, constraints: bounds.key, description: 'The name.' }),
      workspaceId: t.arg.id({
        constraints: bounds.id,
        description: 'A workspace to look in, without its namespaces and environments.',
      }),
      namespaceId: t.arg.id({
        constraints: bounds.id,
        description: 'A namespace to look in. `default` also works if the workspace is given.',
      }),
      environmentId: t.arg.id({ constraints: bounds.id, description: 'An environment to look in.' }),
      ...valueArgs(),
    },
    resolve: ({ organization }, { name, includeValue, reason, ...livingIn }, context) =>
      context.services.reveals.getByName(context, organization, name, livingIn, includeValue, reason),
  }),
  secrets: t.field({
    type: SecretConnection,
    description: 'The secrets of an organization that the caller may read, newest first.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: {
      ...organizationArgs(),
      workspaceId: t.arg.id({ description: 'Only secrets of this workspace.' }),
      ...listArgs(),
    },
    resolve: ({ organization }, args, context) =>
      context.services.secretReads.list(context, organization, organization.asked.role, args),
  }),
  secretVersions: t.field({
    type: SecretHistory,
    description:
      'The current and former values of a secret. Callers with `secret:reveal` see the values, which counts as ' +
      'one reveal. Others see masked values.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: { ...target(), ...reasonArg() },
    resolve: ({ organization }, { id, reason }, { caller, services }) =>
      services.reveals.history(caller, organization, id, reason),
  }),
}));

const CreateSecretInput = builder.inputType('CreateSecretInput', {
  description:
    'A new secret. It lives in the most specific given place (environment, namespace, workspace), else in ' +
    'the organization. When any of these places is deleted, the secret is deleted too.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: nameBounds, description: `Unique where the secret lives. ${NAME}` }),
    secretType: t.string({
      required: true,
      constraints: bounds.open,
      description:
        'Kind of value, an open set: `token`, `api_key`, `password`, `basic_auth`, `oauth2`, `certificate`, ' +
        '`ssh_key`, `connection_string`, `webhook_secret`, `json`, `custom`.',
    }),
    value: t.field(newValue),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'Expiry time. The service stops using the secret from then on.',
    }),
    rotationReminderDays: t.int({
      constraints: reminderBounds,
      description: 'Days until the rotation reminder.',
    }),
    workspaceId: t.id({ constraints: bounds.id, description: 'The workspace that the secret lives in.' }),
    namespaceId: t.id({
      constraints: bounds.id,
      description: 'The namespace that the secret lives in. `default` also works if the workspace is given.',
    }),
    environmentId: t.id({
      constraints: bounds.id,
      description:
        'The environment that the secret lives in. If a namespace of the same workspace is also given, the ' +
        'secret belongs to both.',
    }),
  }),
});

const UpdateSecretInput = builder.inputType('UpdateSecretInput', {
  description:
    'The fields to change. Omitted fields stay as they are; `null` clears a field. ' +
    'To change the value, rotate the secret.',
  fields: (t) => ({
    name: t.string({
      constraints: { ...nameBounds, notNull: true },
      description: `Unique where the secret lives. ${NAME}`,
    }),
    status: t.field({
      type: SecretStatus,
      constraints: { oneOf: ['active', 'disabled'], notNull: true },
      description: '`active` or `disabled`.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'Expiry time. The service stops using the secret from then on.',
    }),
    rotationReminderDays: t.int({
      constraints: reminderBounds,
      description: 'Days until the rotation reminder.',
    }),
  }),
});

const RotateSecretInput = builder.inputType('RotateSecretInput', {
  description: 'The next version of a secret.',
  fields: (t) => ({
    value: t.field(newValue),
    expectedVersion: t.int({
      constraints: { min: 1 },
      description: 'The expected current version. If it differs, nothing changes.',
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'Expiry time. The service stops using the secret from then on. Default: unchanged.',
    }),
  }),
});

const DeleteSecretPayload = deletePayload('DeleteSecret', {
  noun: 'secret',
  in: ['orgId'],
  maybeIn: ['workspaceId', 'namespaceId', 'environmentId'],
});

builder.mutationFields((t) => ({
  createSecret: t.field({
    type: Secret,
    description: 'Stores a secret.',
    authorize: { organization: 'organization:access', service: 'secret:create' },
    emits: ['secret.created'],
    args: { ...organizationArgs(), ...inputArg(CreateSecretInput, 'The secret.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.secrets.create(caller, organization, input),
  }),
  updateSecret: t.field({
    type: Secret,
    description:
      'Changes the properties of a secret, not its value. The name cannot change while something refers to it: ' +
      '`in_use`.',
    authorize: { organization: 'organization:access', service: 'secret:update' },
    emits: ['secret.updated'],
    args: { ...target(), ...inputArg(UpdateSecretInput, 'The fields to change.'), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.secrets.update(caller, organization, id, input),
  }),
  rotateSecret: t.field({
    type: Secret,
    description: 'Stores a new version of the value. Older versions stay listed, newest first.',
    authorize: { organization: 'organization:access', service: 'secret:rotate' },
    emits: ['secret.rotated'],
    args: { ...target(), ...inputArg(RotateSecretInput, 'The next version.'), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.secrets.rotate(caller, organization, id, input),
  }),
  deleteSecret: t.field({
    type: DeleteSecretPayload,
    description:
      'Deletes a secret. It can be restored for 30 days, as long as the namespace or environment that it lives ' +
      'in exists. Its name is free at once. References to it find nothing until it is restored.',
    authorize: { organization: 'organization:access', service: 'secret:delete' },
    mayEmit: ['secret.deleted', 'secret.destroyed'],
    args: {
      ...target(),
      permanent: t.arg.boolean({
        required: true,
        defaultValue: false,
        description:
          'Deletes the secret and all its values permanently. Needs `secret:destroy`. Nothing may refer to the secret.',
      }),
      ...versionArg(),
    },
    resolve: ({ organization }, { id, permanent }, { caller, services: { secrets } }) =>
      permanent ? secrets.destroy(caller, organization, id) : secrets.delete(caller, organization, id),
  }),
  restoreSecret: t.field({
    type: Secret,
    description: 'Restores a deleted secret, if its name is still free and the place that it lived in still exists.',
    authorize: { organization: 'organization:access', service: 'secret:delete' },
    activity: { action: 'restore', resourceType: 'secret' },
    emits: ['secret.restored'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.secrets.restore(caller, organization, id),
  }),
}));
