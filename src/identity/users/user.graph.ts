import { builder } from '../../graphql/builder.ts';
import type { Context } from '../../graphql/context.ts';
import { aRole, bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { passwordBounds } from '../auth/password-policy.ts';
import type { UserView } from './user.reads.ts';

export const emailBounds = { minLength: 3, maxLength: 320, format: 'email' } as const;
const usernameBounds = { minLength: 3, maxLength: 64, pattern: '[A-Za-z0-9_.@+-]+' } as const;

/** Whether a user is the caller: private fields are visible only to the user. */
export const isSelf = ({ id }: { id: string }, { caller }: Context): boolean =>
  caller.principal?.userId === id || caller.signedInAs?.userId === id;

type Addressed = Pick<UserView, 'id' | 'email' | 'isAddressShown'>;

/**
 * The address of a user, or `null` for a caller who does not see it (docs/decisions/0028).
 * @param orgId the organization in which the user was read; `null` for the caller outside of any
 */
export function shownAddress(
  context: Context,
  user: Addressed,
  orgId: string | null,
): string | null | Promise<string | null> {
  const { email, isAddressShown } = user;
  if (isSelf(user, context)) return email;
  if (!isAddressShown || orgId === null) return null;
  const sees = context.services.access.seesAddresses(context.actor, orgId);
  return sees instanceof Promise ? sees.then((answer) => (answer ? email : null)) : sees ? email : null;
}

/** Hidden outside the home organization: where a guest starts concerns another tenant. */
const defaultWorkspaceOf = (user: UserView, context: Context) =>
  (isSelf(user, context) && !context.caller.principal?.token) || user.homeOrgId === user.contextOrgId
    ? user.defaultWorkspaceId
    : null;

export const User = builder.objectRef<UserView>('User').implement({
  description:
    'A person who can sign in. Private fields (preferences, settings, organizations, hasPassword) are visible only ' +
    'to the user.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `usr_…`.' }),
    email: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        'E-mail address. `null` for guests of the organization in which the user is read, and while the user has not ' +
        'used that organization yet, unless the organization created the account or has proven the domain of the ' +
        'address. Users always see their own.',
      resolve: (user, _args, context) => shownAddress(context, user, user.contextOrgId),
    }),
    username: t.exposeString('username', { description: 'Name to sign in with.' }),
    fullName: t.exposeString('fullName', { nullable: true, description: 'Display name.' }),
    authProvider: t.exposeString('authProvider', {
      description: 'How the account signs in: `local`, `saml`, `oidc` or `scim`.',
    }),
    avatarUrl: t.exposeString('avatarUrl', { nullable: true, description: 'URL of the picture.' }),
    bio: t.exposeString('bio', { nullable: true, description: 'About the user.' }),
    timezone: t.exposeString('timezone', { nullable: true, description: 'IANA time zone.' }),
    locale: t.exposeString('locale', { nullable: true, description: 'BCP 47 language tag.' }),
    defaultWorkspaceId: t.id({
      nullable: true,
      authorize: 'inherited',
      description:
        'The workspace that the user starts in. `null` for callers outside the organization that manages the account.',
      resolve: (user, _args, context) => defaultWorkspaceOf(user, context),
    }),
    isActive: t.exposeBoolean('isActive', { description: 'Whether the account can sign in.' }),
    isVerified: t.exposeBoolean('isVerified', { description: 'Whether the e-mail address is verified.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When the account was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When the account last changed.' }),
    lastLogin: t.expose('lastLogin', {
      type: 'DateTime',
      nullable: true,
      description: 'When the user last signed in.',
    }),
    roles: t.stringList({
      authorize: 'inherited',
      description: 'Roles in the current organization, and `platform_admin` for a platform administrator.',
      resolve: async (user, _args, { roles }) => {
        const role = user.contextOrgId ? await roles.load({ userId: user.id, orgId: user.contextOrgId }) : null;
        return [...(role ? [role] : []), ...(user.isPlatformAdmin ? ['platform_admin'] : [])];
      },
    }),
    preferences: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: "The user's preferences, with free-form keys. Empty unless the user is the caller.",
      resolve: (user, _args, context) => (isSelf(user, context) ? user.preferences : {}),
    }),
    settings: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description:
        '`current_org_id` and `organizations` (`org_id`, `name`, `role`) of the user. Empty unless the user is the ' +
        'caller.',
      resolve: async (user, _args, context) => {
        if (!isSelf(user, context)) return {};
        const all = await context.ownOrganizations.load(user.id);
        const only = context.caller.principal?.token?.orgId;
        const organizations = only ? all.filter(({ org_id }) => org_id === only) : all;
        return { current_org_id: user.contextOrgId, organizations };
      },
    }),
    hasPassword: t.boolean({
      nullable: true,
      authorize: 'inherited',
      description: 'Whether the user can sign in with a password. `null` unless the user is the caller.',
      resolve: (user, _args, context) => (isSelf(user, context) ? user.hasPassword : null),
    }),
  }),
});

export const UserConnection = pageType('User', User);

/** With `orgId` (a row of that organization refers to the user), finds only its current members. */
registerNode('user', User, async (context, id, orgId) => {
  const { actor, services } = context;
  if (!orgId) return services.users.get(actor, id);
  await services.access.requireOrganization(actor, orgId, 'user:read');
  return services.users.colleagues.find(context, inside.organization({ id: orgId }), id);
});
refersTo(User, { defaultWorkspaceId: { kind: 'workspace', idOf: defaultWorkspaceOf, anywhere: true } });

builder.queryFields((t) => ({
  me: t.field({
    type: User,
    description: "The caller's own account.",
    authorize: { service: 'user:read' },
    resolve: (_root, _args, { actor, services }) => services.users.me(actor),
  }),
  user: t.field({
    type: User,
    description: 'A user by its identifier: the caller, or a user who shares an organization with the caller.',
    authorize: { service: 'user:read' },
    args: {
      id: t.arg.id({ required: true, description: 'The user.' }),
      workspaceId: t.arg.id({ description: 'The workspace in whose context the permission is checked.' }),
    },
    resolve: (_root, { id, workspaceId }, { actor, services }) => services.users.get(actor, id, workspaceId),
  }),
  users: t.field({
    type: UserConnection,
    description: 'The members of a workspace, newest accounts first.',
    authorize: { service: 'user:read' },
    args: {
      workspaceId: t.arg.id({ required: true, description: 'The workspace.' }),
      search: t.arg.string({
        constraints: { maxLength: 255 },
        description: 'Part of a name, or of an e-mail address that the caller sees.',
      }),
      ...pageArgs(),
    },
    resolve: async (_root, { workspaceId: id, ...args }, context) => {
      const { users, access } = context.services;
      const orgId = await users.contextOf(context.actor, id);
      const findsAddresses = await access.seesAddresses(context.actor, orgId);
      return users.inWorkspace.list(context, inside.workspace({ orgId, id }), { ...args, findsAddresses });
    },
  }),
}));

type InputFields = PothosSchemaTypes.InputFieldBuilder<typeof builder.$inferSchemaTypes, 'InputObject'>;

/** The input fields that every new account has. */
export const newAccount = (t: InputFields) => ({
  email: t.string({
    required: true,
    constraints: emailBounds,
    description: 'E-mail address. A verification link is sent to it.',
  }),
  username: t.string({
    required: true,
    constraints: usernameBounds,
    description: 'Name to sign in with. Unique, ignoring case.',
  }),
  password: t.string({
    required: true,
    constraints: passwordBounds,
    description: 'The password: 8 to 128 characters.',
  }),
  fullName: t.string({ constraints: { maxLength: 255 }, description: 'Display name.' }),
});

const CreateUserInput = builder.inputType('CreateUserInput', {
  description: 'A new account in the organization that the session works in.',
  fields: (t) => ({
    ...newAccount(t),
    role: t.field({
      ...aRole,
      description: "The role in the organization. Default `member`. Never above the caller's own role.",
    }),
  }),
});

const UpdateUserInput = builder.inputType('UpdateUserInput', {
  description: 'The fields to change. Omitted fields stay as they are; `null` clears a field.',
  fields: (t) => ({
    email: t.string({
      constraints: { ...emailBounds, notNull: true },
      description:
        'The new e-mail address. The old one stays until the link mailed to the new one is used. Requires ' +
        '`currentPassword` or a sign-in within the last 10 minutes.',
    }),
    currentPassword: t.string({
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: "The caller's own password. Needed only for a new e-mail address.",
    }),
    username: t.string({ constraints: { ...usernameBounds, notNull: true }, description: 'Name to sign in with.' }),
    fullName: t.string({ constraints: { maxLength: 255 }, description: 'Display name.' }),
    avatarUrl: t.string({ constraints: { maxLength: 2048, format: 'uri' }, description: 'URL of the picture.' }),
    bio: t.string({ constraints: bounds.description, description: 'About the user.' }),
    timezone: t.string({ constraints: { maxLength: 64, pattern: '[A-Za-z0-9_+/-]+' }, description: 'IANA time zone.' }),
    locale: t.string({
      constraints: { maxLength: 35, pattern: '[A-Za-z0-9_-]+' },
      description: 'BCP 47 language tag.',
    }),
    defaultWorkspaceId: t.id({ constraints: bounds.id, description: 'The workspace that the user starts in.' }),
    isActive: t.boolean({
      constraints: { notNull: true },
      description: 'Whether the account can sign in. Only administrators may change it.',
    }),
  }),
});

const UpdatePreferencesInput = builder.inputType('UpdatePreferencesInput', {
  description: 'Preferences to merge.',
  fields: (t) => ({
    preferences: t.field({
      type: 'JSONObject',
      required: true,
      constraints: { maxBytes: bounds.json.maxBytes },
      description: 'Top-level keys are merged. A key set to `null` is removed.',
    }),
  }),
});

builder.mutationFields((t) => ({
  createUser: t.field({
    type: User,
    description: 'Creates an account that the current organization of the session manages.',
    authorize: { service: 'user:create' },
    emits: ['organization_member.created'],
    args: inputArg(CreateUserInput, 'The account.'),
    resolve: (_root, { input }, { actor, services }) => services.users.create(actor, input),
  }),
  updateUser: t.field({
    type: User,
    description: "Changes the caller's own profile, or an account that the caller administers.",
    authorize: { service: 'user:update' },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    args: { ...idArg('The user.'), ...inputArg(UpdateUserInput), ...versionArg() },
    resolve: (_root, { id, input }, { actor, services }) => services.users.update(actor, id, input),
  }),
  updatePreferences: t.field({
    type: User,
    description: "Merges the given keys into the caller's preferences.",
    authorize: { service: 'user:update' },
    args: { ...inputArg(UpdatePreferencesInput, 'The preferences.'), ...versionArg() },
    resolve: (_root, { input }, { actor, services }) => services.users.updatePreferences(actor, input.preferences),
  }),
  deleteUser: t.boolean({
    description: 'Deactivates an account at once. Its personal data is purged after 30 days.',
    authorize: { service: 'user:delete' },
    mayEmit: ['organization_member.deleted', 'workspace_member.deleted', 'api_token.revoked', 'app_token.revoked'],
    args: { ...idArg('The user.'), ...versionArg() },
    resolve: async (_root, { id }, { actor, services }) => {
      await services.users.delete(actor, id);
      return true;
    },
  }),
}));
