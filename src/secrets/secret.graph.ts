import { builder } from '../graphql/builder.ts';
import { optionalTime, tracked } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { idArg, organizationArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { inside } from '../graphql/row-places.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Organization } from '../organizations/organization.graph.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import type { SecretHistory as History, SecretHistoryEntry } from './reveal.service.ts';
import type { Secret as SecretRow } from './secret.reads.ts';

const DAY_MS = 86_400_000;
const isPast = (at: Date | null) => at !== null && at.getTime() <= Date.now();

const Secret = builder.objectRef<SecretRow>('Secret').implement({
  description: 'A vaulted secret. Lists and changes never show its value.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `sec_…`; as such it may be referred to.' }),
    orgId: t.exposeID('orgId', { description: 'The organization.' }),
    scope: t.exposeString('scope', {
      description: 'Where it lives: `organization`, `workspace`, `namespace` or `environment`.',
    }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'Its workspace.' }),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'Its namespace.' }),
    environmentId: t.exposeID('environmentId', { nullable: true, description: 'Its environment.' }),
    name: t.exposeString('name', {
      description: 'Unique where it lives; a secret of the organization itself may be referred to as `secret://name`.',
    }),
    secretType: t.exposeString('secretType', { description: 'What kind of thing it holds: `token`, `api_key`, ….' }),
    status: t.exposeString('status', {
      description: '`active`, `disabled` (it can be read, but the service does not use it) or `deleted`.',
    }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    vaultVersion: t.exposeInt('vaultVersion', { description: 'The current version of the value; counts from 1.' }),
    expiresAt: t.expose('expiresAt', optionalTime('From when on the service does not use it any more.')),
    isExpired: t.boolean({
      authorize: 'inherited',
      description: 'Whether that time has come.',
      resolve: ({ expiresAt }) => isPast(expiresAt),
    }),
    rotationReminderDays: t.exposeInt('rotationReminderDays', {
      nullable: true,
      description: 'It should be rotated every so many days.',
    }),
    needsRotation: t.boolean({
      authorize: 'inherited',
      description: 'Whether so many days have passed since it was rotated, or made.',
      resolve: ({ rotationReminderDays: days, lastRotatedAt, createdAt }) =>
        days !== null && isPast(new Date((lastRotatedAt ?? createdAt).getTime() + days * DAY_MS)),
    }),
    lastRotatedAt: t.expose('lastRotatedAt', optionalTime('When the value was last replaced.')),
    lastAccessedAt: t.expose('lastAccessedAt', optionalTime('When the value was last read.')),
    accessCount: t.exposeInt('accessCount', { description: 'How often the value was read.' }),
    value: t.expose('value', {
      type: 'JSONObject',
      nullable: true,
      description: 'The value; null unless it was asked for with `includeValue`.',
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
  description: "What is left of a version's value.",
  values: {
    READABLE: { description: 'It can be read, by those who may.' },
    DESTROYED: { description: 'It was destroyed: the newest 20 are kept.' },
    UNREADABLE: { description: 'What is stored does not open: altered, or sealed with a key that is not there.' },
  } as const,
});

const SecretVersion = builder.objectRef<SecretHistoryEntry>('SecretVersion').implement({
  description: 'A value that a secret has or had.',
  fields: (t) => ({
    version: t.exposeInt('version', { description: 'Counts from 1.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'Who stored it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was stored.' }),
    value: t.expose('value', {
      type: 'JSONObject',
      nullable: true,
      description:
        'The value; with `********` behind each key for those without `secret:reveal`. Null where it is destroyed or unreadable, see `state`.',
    }),
    state: t.expose('state', { type: SecretVersionState, description: 'What is left of the value.' }),
  }),
});

const SecretHistory = builder.objectRef<History>('SecretHistory').implement({
  description: 'The values that a secret has and had.',
  fields: (t) => ({
    secretId: t.exposeID('secretId', { description: 'The secret.' }),
    currentVersion: t.exposeInt('currentVersion', { description: 'The version that is in use.' }),
    versions: t.expose('versions', {
      type: [SecretVersion],
      authorize: 'inherited',
      description: 'Newest first, at most 1,000.',
    }),
  }),
});

refersTo(SecretVersion, { createdBy: 'user' });
refersTo(SecretHistory, { secretId: 'secret' });

/** Usable in a path segment and behind `secret://`. */
const nameBounds = {
  minLength: 1,
  maxLength: 255,
  pattern: String.raw`(?!\.{1,2}$)(?! )(?!.*[/\\?#%])[\p{L}\p{M}\p{N}\p{P}\p{S} ]+(?<! )`,
} as const;
const NAME =
  'Letters, digits, marks and single blanks, but no slash, backslash, `?`, `#` or `%`, and neither `.` nor `..`.';
const reminderBounds = { min: 1, max: 3_650 } as const;
const newValue = {
  type: 'JSONObject',
  required: true,
  constraints: { maxBytes: 64 * 1024, sensitive: true },
  description:
    'At least one key, each with a JSON scalar or an object; at most 64 KiB. Integers beyond 2^53 are to be sent as strings.',
} as const;

const listArgs = () => ({
  ...builder.args((t) => ({
    secretType: t.string({ constraints: bounds.open, description: 'Only those of this kind.' }),
    status: t.string({
      constraints: bounds.open,
      description: 'Only those with this status: `active`, `disabled` or `deleted`. Default: all but deleted ones.',
    }),
    includeExpired: t.boolean({ required: true, defaultValue: true, description: 'Whether expired ones are listed.' }),
  })),
  ...pageArgs(),
});

builder.objectField(Organization, 'secrets', (t) =>
  t.field({
    type: SecretConnection,
    nullable: true,
    description:
      'The secrets that the caller may read, newest first; null, with an error, for those who may read none.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: listArgs(),
    resolve: (row, args, context) => context.services.secretReads.list(context, inside.organization(row), args),
  }),
);

builder.objectField(Workspace, 'secrets', (t) =>
  t.field({
    type: SecretConnection,
    nullable: true,
    description:
      'The secrets of the workspace, its namespaces and environments, newest first; null, with an error, for those who may not read them.',
    authorize: { workspace: 'secret:read' },
    args: listArgs(),
    resolve: (row, args, context) =>
      context.services.secretReads.inWorkspace.list(context, inside.workspace(row), args),
  }),
);

const target = () => ({ ...organizationArgs(), ...idArg('The secret.') });
const valueArgs = () =>
  builder.args((t) => ({
    includeValue: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Shows the value too: needs `secret:reveal`, is counted and recorded.',
    }),
  }));

builder.queryFields((t) => ({
  secret: t.field({
    type: Secret,
    description: 'A secret by its identifier.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: { ...target(), ...valueArgs() },
    resolve: ({ organization }, { id, includeValue }, { actor, services }) =>
      services.reveals.get(actor, organization, id, includeValue),
  }),
  secretByName: t.field({
    type: Secret,
    description:
      'A secret by its name. With a place: the one that lives exactly there, in the most specific of what is given, else the one of the organization itself. Without: the one of the organization itself, else the only one that the caller may read; several are a conflict, `ambiguous_name`.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: {
      ...organizationArgs(),
      name: t.arg.string({ required: true, description: 'The name.' }),
      workspaceId: t.arg.id({
        constraints: bounds.id,
        description: 'A workspace to look in, not in its namespaces and environments.',
      }),
      namespaceId: t.arg.id({
        constraints: bounds.id,
        description: 'A namespace to look in; `default` too where the workspace is given.',
      }),
      environmentId: t.arg.id({ constraints: bounds.id, description: 'An environment to look in.' }),
      ...valueArgs(),
    },
    resolve: ({ organization }, { name, includeValue, ...livingIn }, context) =>
      context.services.reveals.getByName(context, organization, name, livingIn, includeValue),
  }),
  secrets: t.field({
    type: SecretConnection,
    description: 'The secrets of an organization that the caller may read, newest first.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: {
      ...organizationArgs(),
      workspaceId: t.arg.id({ description: 'Only those of this workspace.' }),
      ...listArgs(),
    },
    resolve: ({ organization }, args, context) => context.services.secretReads.list(context, organization, args),
  }),
  secretVersions: t.field({
    type: SecretHistory,
    description:
      'The values that a secret has and had: shown, which is one reveal, to holders of `secret:reveal`; masked for others.',
    authorize: { organization: 'organization:access', service: 'secret:read' },
    args: target(),
    resolve: ({ organization }, { id }, { actor, services }) => services.reveals.history(actor, organization, id),
  }),
}));

const CreateSecretInput = builder.inputType('CreateSecretInput', {
  description:
    'A new secret. It lives in the most specific of the places that are given (environment, namespace, workspace), else in the organization. It is deleted with any of them.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: nameBounds, description: `Unique where it lives. ${NAME}` }),
    secretType: t.string({
      required: true,
      constraints: bounds.open,
      description:
        'An open set: `token`, `api_key`, `password`, `basic_auth`, `oauth2`, `certificate`, `ssh_key`, `connection_string`, `webhook_secret`, `json`, `custom`.',
    }),
    value: t.field(newValue),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    expiresAt: t.field({ type: 'DateTime', description: 'From when on the service does not use it any more.' }),
    rotationReminderDays: t.int({ constraints: reminderBounds, description: 'Remind after so many days.' }),
    workspaceId: t.id({ constraints: bounds.id, description: 'A workspace to live in.' }),
    namespaceId: t.id({
      constraints: bounds.id,
      description: 'A namespace to live in; `default` too where the workspace is given.',
    }),
    environmentId: t.id({
      constraints: bounds.id,
      description: 'An environment to live in. With a namespace of the same workspace, the secret belongs to both.',
    }),
  }),
});

const UpdateSecretInput = builder.inputType('UpdateSecretInput', {
  description: 'What to change; what is left out stays, null clears. The value is changed by rotating.',
  fields: (t) => ({
    name: t.string({ constraints: { ...nameBounds, notNull: true }, description: `Unique where it lives. ${NAME}` }),
    status: t.string({
      constraints: { oneOf: ['active', 'disabled'], notNull: true },
      description: '`disabled`: it can be read, but the service does not use it.',
    }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    expiresAt: t.field({ type: 'DateTime', description: 'From when on the service does not use it any more.' }),
    rotationReminderDays: t.int({ constraints: reminderBounds, description: 'Remind after so many days.' }),
  }),
});

const RotateSecretInput = builder.inputType('RotateSecretInput', {
  description: 'The next version of a secret.',
  fields: (t) => ({
    value: t.field(newValue),
    expectedVersion: t.int({
      constraints: { min: 1 },
      description: 'The version that must be the current one; else nothing is changed.',
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description: 'From when on the service does not use it any more; as before unless told.',
    }),
  }),
});

builder.mutationFields((t) => ({
  createSecret: t.field({
    type: Secret,
    description: 'Stores a secret.',
    authorize: { organization: 'organization:access', service: 'secret:create' },
    args: { ...organizationArgs(), ...inputArg(CreateSecretInput, 'The secret.') },
    resolve: ({ organization }, { input }, { actor, services }) => services.secrets.create(actor, organization, input),
  }),
  updateSecret: t.field({
    type: Secret,
    description:
      'Changes what is known of a secret, not its value. The name stays while something refers to it: `in_use`.',
    authorize: { organization: 'organization:access', service: 'secret:update' },
    args: { ...target(), ...inputArg(UpdateSecretInput, 'What to change.'), ...versionArg() },
    resolve: ({ organization }, { id, input }, { actor, services }) =>
      services.secrets.update(actor, organization, id, input),
  }),
  rotateSecret: t.field({
    type: Secret,
    description: 'Stores a new version of the value. Older versions stay listed, newest first.',
    authorize: { organization: 'organization:access', service: 'secret:rotate' },
    args: { ...target(), ...inputArg(RotateSecretInput, 'The next version.'), ...versionArg() },
    resolve: ({ organization }, { id, input }, { actor, services }) =>
      services.secrets.rotate(actor, organization, id, input),
  }),
  deleteSecret: t.boolean({
    description:
      'Deletes a secret: it can be restored for 30 days, as long as the namespace or environment that it lives in is there, and its name is free at once. What refers to it finds nothing meanwhile.',
    authorize: { organization: 'organization:access', service: 'secret:delete' },
    args: {
      ...target(),
      permanent: t.arg.boolean({
        required: true,
        defaultValue: false,
        description: 'At once and for good, with all its values; needs `secret:destroy`, and nothing may refer to it.',
      }),
      ...versionArg(),
    },
    resolve: async ({ organization }, { id, permanent }, { actor, services: { secrets } }) => {
      await (permanent ? secrets.destroy(actor, organization, id) : secrets.delete(actor, organization, id));
      return true;
    },
  }),
  restoreSecret: t.field({
    type: Secret,
    description: 'Takes a deletion back, if the name is still free and the place that it lived in is still there.',
    authorize: { organization: 'organization:access', service: 'secret:delete' },
    activity: { action: 'restore', resourceType: 'secret' },
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { actor, services }) => services.secrets.restore(actor, organization, id),
  }),
}));
