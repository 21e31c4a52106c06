import { builder } from '../../graphql/builder.ts';
import type { Context } from '../../graphql/context.ts';
import { Node } from '../../graphql/node.ts';
import { pageType } from '../../graphql/page-type.ts';
import { refersTo } from '../../graphql/references.ts';
import { UserRoleEnum } from '../../graphql/shared-enums.ts';
import { Versioned } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import type { UserReads, UserView } from './user.reads.ts';

export const emailBounds = { minLength: 3, maxLength: 320, format: 'email' } as const;

/** Whether a user is the caller: private fields are visible only to the user. */
export const isSelf = ({ id }: { id: string }, { anyCaller }: Context): boolean =>
  anyCaller.principal?.userId === id || anyCaller.signedInAs?.userId === id;

/** Roles of users within organizations, loaded in batches. */
export const rolesOf = (context: Context): ReturnType<UserReads['roleLoader']> =>
  context.once('roles', () => context.services.userReads.roleLoader());

/** What the `settings` of users show of their organizations, loaded in batches. */
const organizationsOf = (context: Context): ReturnType<UserReads['organizationsLoader']> =>
  context.once('ownOrganizations', () => context.services.userReads.organizationsLoader());

type Addressed = Pick<UserView, 'id' | 'email' | 'isAddressShown'>;

/**
 * The address of a user, or `null` for a caller who does not see it (docs/decisions/0028).
 * @param orgId the organization in which the user was read; `null` for the caller outside of any
 */
export function visibleEmail(
  context: Context,
  user: Addressed,
  orgId: string | null,
): string | null | Promise<string | null> {
  const { email, isAddressShown } = user;
  if (isSelf(user, context)) return email;
  if (!isAddressShown || orgId === null) return null;
  const sees = context.services.access.seesAddresses(context.caller, orgId);
  return sees instanceof Promise ? sees.then((answer) => (answer ? email : null)) : sees ? email : null;
}

/** Hidden outside the home organization: where a guest starts concerns another tenant. */
const defaultWorkspaceOf = (user: UserView, context: Context) =>
  (isSelf(user, context) && !context.anyCaller.principal?.token) || user.homeOrgId === user.contextOrgId
    ? user.defaultWorkspaceId
    : null;

const AuthProvider = wordEnum('AuthProvider', 'How an account signs in.', {
  local: 'With a password.',
  saml: 'At a SAML provider.',
  oidc: 'At an OpenID Connect provider.',
  scim: 'Kept for accounts that a directory makes: there are none yet.',
});

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
      resolve: (user, _args, context) => visibleEmail(context, user, user.contextOrgId),
    }),
    username: t.exposeString('username', { description: 'Name to sign in with.' }),
    fullName: t.exposeString('fullName', { nullable: true, description: 'Display name.' }),
    authProvider: t.expose('authProvider', { type: AuthProvider, description: 'How the account signs in.' }),
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
    roles: t.field({
      type: [UserRoleEnum],
      authorize: 'inherited',
      description: 'Roles in the current organization, and `platform_admin` for a platform administrator.',
      resolve: async (user, _args, context) => {
        const { id: userId, contextOrgId: orgId } = user;
        const role = orgId ? await rolesOf(context).load({ userId, orgId }) : null;
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
        const all = await organizationsOf(context).load(user.id);
        const only = context.anyCaller.principal?.token?.orgId;
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

refersTo(User, { defaultWorkspaceId: { kind: 'workspace', idOf: defaultWorkspaceOf, anywhere: true } });
