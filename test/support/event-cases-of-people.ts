import { openIdCompany } from '../identity/sso/companies.ts';
import { setPolicy } from '../identity/sso/enforced.ts';
import { startOpenIdServer } from '../identity/sso/openid-server.ts';
import {
  ARCHIVED,
  actAs,
  called,
  type EventCase,
  give,
  inWorkspace,
  linkable,
  newcomer,
  READ,
  signingIn,
  TOKENS,
  takeDomain,
  takeNotification,
  tokenHolder,
  unique,
  usual,
} from './event-scenes.ts';
import { createUser, register } from './person.ts';
import { keepOpen, mailed } from './prepared.ts';
import { issueToken } from './tokens.ts';
import { givePasskey, makeNotification } from './world.ts';

const coming = [true, false].map(
  (isFirst): EventCase => ({
    when: isFirst ? 'by somebody who comes' : 'by somebody who is there',
    emits: isFirst ? ['presence.joined'] : [],
    prepare: async (scene) => {
      const somebody = await newcomer(scene);
      actAs(scene.parts, somebody);
      if (!isFirst) await called(somebody, 'POST', `${somebody.home}/sync/presence/join`);
    },
  }),
);

/** Requests of mutations of people: accounts, members, tokens, sign-in, notifications, presence. */
export const casesOfPeople: Record<string, readonly EventCase[]> = {
  updateUser: [
    usual('with a new profile'),
    {
      when: 'of somebody with tokens, who is suspended',
      emits: TOKENS,
      prepare: async (scene) => {
        scene.parts.params.user_id = (await tokenHolder(scene)).userId;
        scene.parts.body = { is_active: false };
      },
    },
  ],
  deleteUser: [
    usual('of no workspace', ['organization_member.deleted']),
    {
      when: 'of a workspace, with tokens',
      emits: ['organization_member.deleted', 'workspace_member.deleted', ...TOKENS],
      prepare: async (scene) => {
        scene.parts.params.user_id = (await inWorkspace(scene, tokenHolder(scene))).userId;
      },
    },
  ],
  register: [
    usual('without an invitation', ['organization.created', 'workspace.created']),
    {
      when: 'with an invitation to a workspace',
      emits: ['invitation.accepted', 'workspace_member.created'],
      prepare: async ({ app, owner, parts }) => {
        const { email } = parts.body as { email: string };
        const { workspaceId: workspace_id } = owner;
        await called(owner, 'POST', `/v1/orgs/${owner.orgId}/invitations`, { email, workspace_id });
        give(parts, { invite_token: await mailed(app, email, /invit/i) });
      },
    },
  ],
  verifyEmail: [
    usual('by whoever is signed in'),
    {
      when: 'for the first time, of an account with tokens',
      emits: TOKENS,
      prepare: async (scene) => {
        const { email } = await tokenHolder(scene);
        delete scene.parts.headers.authorization;
        give(scene.parts, { token: await mailed(scene.app, email, /Confirm/) });
      },
    },
  ],
  resetPassword: [
    usual('without tokens'),
    {
      when: 'with tokens to revoke',
      emits: TOKENS,
      prepare: async (scene) => {
        const holder = await tokenHolder(scene);
        await holder.call('POST', '/v1/auth/forgot-password', { email: holder.email });
        give(scene.parts, { token: await mailed(scene.app, holder.email, /Reset/), revoke_tokens: true });
      },
    },
  ],
  changePassword: [false, true].map((revokeTokens) => ({
    when: revokeTokens ? 'with tokens to revoke' : 'with tokens to keep',
    emits: revokeTokens ? TOKENS : [],
    prepare: async (scene) => {
      const holder = await tokenHolder(scene);
      actAs(scene.parts, holder);
      scene.parts.body = {
        input: { currentPassword: holder.password, newPassword: `a new password ${unique()}`, revokeTokens },
      };
    },
  })),
  joinPresence: coming,
  viewResource: coming,
  markNotificationRead: [
    usual('that is unread', ['notification.read']),
    {
      when: 'that is archived',
      emits: ['notification.updated'],
      prepare: (scene) => takeNotification(scene, ARCHIVED),
    },
  ],
  markNotificationUnread: [{ prepare: (scene) => takeNotification(scene, READ) }],
  markAllNotificationsRead: [{ prepare: ({ app, world }) => makeNotification(app, world, 'owner') }],
  unarchiveNotification: [
    {
      when: 'that was read',
      emits: ['notification.read'],
      prepare: (scene) => takeNotification(scene, READ, ARCHIVED),
    },
    {
      when: 'that was not read',
      emits: ['notification.updated'],
      prepare: (scene) => takeNotification(scene, ARCHIVED),
    },
  ],
  acceptInvitation: [
    usual('to an organization', ['organization_member.created']),
    {
      when: 'to a workspace',
      emits: ['organization_member.created', 'workspace_member.created'],
      prepare: async ({ app, owner, parts }) => {
        const { email, headers } = await register(app, { name: 'invited' });
        const { workspaceId: workspace_id } = owner;
        await called(owner, 'POST', `/v1/orgs/${owner.orgId}/invitations`, { email, workspace_id });
        actAs(parts, { headers });
        parts.body = { token: await mailed(app, email, /invit/i) };
      },
    },
  ],
  removeOrganizationMember: [
    usual('of no workspace'),
    {
      when: 'of a workspace, with tokens',
      emits: ['workspace_member.deleted', ...TOKENS],
      prepare: async (scene) => {
        scene.parts.params.member_user_id = (await inWorkspace(scene, tokenHolder(scene))).userId;
      },
    },
  ],
  addWorkspaceMember: [
    {
      when: 'who is in the organization',
      prepare: async ({ app, owner, parts }) => give(parts, { user_id: (await createUser(app, owner)).userId }),
    },
    {
      when: 'who joins the organization too',
      emits: ['organization_member.created'],
      prepare: async ({ app, parts }) => give(parts, { user_id: (await register(app)).userId }),
    },
  ],
  finishOidcSignIn: [
    usual('of somebody new', ['organization_member.created']),
    {
      when: 'of somebody whom a group lets into a workspace, and lifts in the organization',
      emits: ['organization_member.updated', 'workspace_member.created'],
      prepare: signingIn([], ['leads']),
    },
    {
      when: 'of somebody whose group is another',
      emits: ['workspace_member.updated', 'organization_member.updated'],
      prepare: signingIn(['staff'], ['leads']),
    },
    { when: 'of somebody without the group', emits: ['workspace_member.deleted'], prepare: signingIn(['staff'], []) },
  ],
  finishSamlSignIn: [usual('of somebody new', ['organization_member.created'])],
  revokeApiToken: [
    usual('that made no other'),
    {
      when: 'that made one of an app',
      emits: ['app_token.revoked'],
      prepare: async ({ app, world, owner, parts }) => {
        const parent = await issueToken(app, owner, { scopes: ['admin'], permissions: ['app_token:create'] });
        const child = { app_id: world.ids.app_id, permissions: ['app:read'] };
        await issueToken(app, { ...owner, headers: parent.headers }, child);
        parts.params.token_id = parent.id;
      },
    },
  ],
  adminRevokeApiToken: [
    usual('of a user', ['api_token.revoked']),
    {
      when: 'of an app',
      emits: ['app_token.revoked'],
      record: 'revoke app_token',
      prepare: async ({ app, world, owner, parts }) => {
        parts.params.token_id = (await issueToken(app, owner, { app_id: world.ids.app_id })).id;
      },
    },
  ],
  refreshApiToken: [
    usual('of a user', ['api_token.refreshed']),
    {
      when: 'of an app',
      emits: ['app_token.refreshed'],
      record: 'refresh app_token',
      prepare: async ({ app, world, owner, parts }) => {
        const { refresh_token_plaintext } = await issueToken(app, owner, { app_id: world.ids.app_id });
        give(parts, { refresh_token: refresh_token_plaintext });
      },
    },
  ],
  breakGlass: [
    {
      prepare: async ({ app, parts }) => {
        const owner = await register(app);
        await setPolicy(owner, owner.orgId, { ssoRequired: true });
        actAs(parts, owner);
        parts.body = { orgId: owner.orgId, input: { password: owner.password, reason: 'the provider is down' } };
      },
    },
  ],
  endMemberSessions: [
    {
      prepare: async ({ app, owner, parts }) => {
        const { userId } = await createUser(app, owner);
        parts.body = { orgId: owner.orgId, userId };
      },
    },
  ],
  resetMemberFactors: [
    {
      prepare: async ({ app, owner, parts }) => {
        const { userId } = await createUser(app, owner);
        await givePasskey(app, userId, 'to be lost');
        parts.params.member_user_id = userId;
      },
    },
  ],
  startDomainProof: [{ prepare: (scene) => takeDomain(scene, false) }],
  checkDomainProof: [{ prepare: (scene) => takeDomain(scene, true) }],
  linkIdentity: [
    {
      prepare: async (scene) => {
        const { userId, subject, ...target } = await linkable(scene);
        scene.parts.body = { ...target, input: { userId, subject } };
      },
    },
  ],
  unlinkIdentity: [
    {
      prepare: async (scene) => {
        const { userId, subject, ...target } = await linkable(scene);
        await scene.owner.ask(
          `mutation ($orgId: ID!, $id: ID!, $input: LinkIdentityInput!) {
            linkIdentity(orgId: $orgId, id: $id, input: $input) { userId } }`,
          { ...target, input: { userId, subject } },
        );
        scene.parts.body = { ...target, userId };
      },
    },
  ],
  testIdentityProvider: [
    {
      prepare: async ({ app, parts }) => {
        const { owner, idpId } = await openIdCompany(app, keepOpen(await startOpenIdServer()));
        actAs(parts, owner);
        parts.body = { orgId: owner.orgId, id: idpId };
      },
    },
  ],
};
