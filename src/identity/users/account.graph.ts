import { builder } from '../../graphql/builder.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { registerNode } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg } from '../../graphql/place-args.ts';
import { inside } from '../../graphql/row-places.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { versionArg } from '../../graphql/versions.ts';
import { emailBounds, User, UserConnection } from '../../tenancy/users/user.graph.ts';
import { passwordBounds } from '../auth/password-policy.ts';

const usernameBounds = { minLength: 3, maxLength: 64, pattern: '[A-Za-z0-9_.@+-]+' } as const;

/** With `orgId` (a row of that organization refers to the user), finds only its current members. */
registerNode('user', User, async (context, id, orgId) => {
  const { caller, services } = context;
  if (!orgId) return services.users.get(caller, id);
  await services.access.requireOrganization(caller, orgId, 'user:read');
  return services.users.colleagues.find(context, inside.organization({ id: orgId }), id);
});
builder.queryFields((t) => ({
  me: t.field({
    type: User,
    description: "The caller's own account.",
    authorize: { service: 'user:read' },
    resolve: (_root, _args, { caller, services }) => services.users.me(caller),
  }),
  user: t.field({
    type: User,
    description: 'A user by its identifier: the caller, or a user who shares an organization with the caller.',
    authorize: { service: 'user:read' },
    args: {
      id: t.arg.id({ required: true, description: 'The user.' }),
      workspaceId: t.arg.id({ description: 'The workspace in whose context the permission is checked.' }),
    },
    resolve: (_root, { id, workspaceId }, { caller, services }) => services.users.get(caller, id, workspaceId),
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
      const orgId = await users.contextOf(context.caller, id);
      const findsAddresses = await access.seesAddresses(context.caller, orgId);
      return users.inWorkspace.list(context, inside.workspace({ orgId, id }), { ...args, findsAddresses });
    },
  }),
}));

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
      type: RoleEnum,
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
      description: 'Top-level keys are merged. A key set to `null` is removed.',
    }),
  }),
});

const DeleteUserPayload = deletePayload('DeleteUser', { noun: 'account' });

builder.mutationFields((t) => ({
  createUser: t.field({
    type: User,
    description: 'Creates an account that the current organization of the session manages.',
    authorize: { service: 'user:create' },
    emits: ['organization_member.created'],
    args: inputArg(CreateUserInput, 'The account.'),
    resolve: (_root, { input }, { caller, services }) => services.users.create(caller, input),
  }),
  updateUser: t.field({
    type: User,
    description: "Changes the caller's own profile, or an account that the caller administers.",
    authorize: { service: 'user:update' },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    args: { ...idArg('The user.'), ...inputArg(UpdateUserInput), ...versionArg() },
    resolve: (_root, { id, input }, { caller, services }) => services.users.update(caller, id, input),
  }),
  updatePreferences: t.field({
    type: User,
    description: "Merges the given keys into the caller's preferences.",
    authorize: { service: 'user:update' },
    args: { ...inputArg(UpdatePreferencesInput, 'The preferences.'), ...versionArg() },
    resolve: (_root, { input }, { caller, services }) => services.users.updatePreferences(caller, input.preferences),
  }),
  deleteUser: t.field({
    type: DeleteUserPayload,
    description: 'Deactivates an account at once. Its personal data is purged after 30 days.',
    authorize: { service: 'user:delete' },
    mayEmit: ['organization_member.deleted', 'workspace_member.deleted', 'api_token.revoked', 'app_token.revoked'],
    args: { ...idArg('The user.'), ...versionArg() },
    resolve: (_root, { id }, { caller, services }) => services.users.delete(caller, id),
  }),
}));
