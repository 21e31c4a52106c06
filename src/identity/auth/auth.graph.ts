import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { refersTo } from '../../graphql/references.ts';
import { emailBounds, User } from '../../tenancy/users/user.graph.ts';
import { newAccount } from '../users/account.graph.ts';
import type { SignIn } from './auth.service.ts';
import { passwordBounds } from './password-policy.ts';
import type { TokenPair } from './sessions.ts';

const tokenBounds = { minLength: 1, maxLength: 1024, sensitive: true } as const;

const AuthConfig = builder.objectRef<{ allowRegistration: boolean }>('AuthConfig').implement({
  description: 'Public settings for a sign-in page.',
  fields: (t) => ({
    allowRegistration: t.exposeBoolean('allowRegistration', { description: 'Whether anyone may register.' }),
  }),
});

const InviteInfo = builder.objectRef<{ email: string; valid: boolean }>('InviteInfo').implement({
  description: 'The address that an invitation link is for.',
  fields: (t) => ({
    email: t.exposeString('email', { description: 'The invited address. Empty when the link is not valid.' }),
    valid: t.exposeBoolean('valid', { description: 'Whether the link can still be used.' }),
  }),
});

export const SignInResult = builder.objectRef<SignIn>('SignInResult').implement({
  description: 'A token pair and its user (spec, Token pair).',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshToken: t.exposeString('refreshToken', {
      description: 'Exchange it for the next token pair before the session ends.',
    }),
    tokenType: t.exposeString('tokenType', { description: 'Always `bearer`.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    user: t.field({
      type: User,
      authorize: 'inherited',
      description: 'The user who signed in.',
      resolve: ({ userId, orgId }, _args, { services }) => services.users.view(userId, orgId),
    }),
  }),
});

const RefreshResult = builder.objectRef<TokenPair>('RefreshResult').implement({
  description: 'The next token pair.',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshToken: t.exposeString('refreshToken', { description: 'Replaces the refresh token that was sent.' }),
    tokenType: t.exposeString('tokenType', { description: 'Always `bearer`.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
  }),
});

const SwitchOrganizationResult = builder
  .objectRef<{ accessToken: string; tokenType: string; expiresIn: number; orgId: string }>('SwitchOrganizationResult')
  .implement({
    description: 'An access token bound to the chosen organization.',
    fields: (t) => ({
      accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
      tokenType: t.exposeString('tokenType', { description: 'Always `bearer`.' }),
      expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
      orgId: t.exposeID('orgId', { description: 'The organization that the session works in from now on.' }),
    }),
  });

refersTo(SwitchOrganizationResult, { orgId: 'organization' });

builder.queryFields((t) => ({
  authConfig: t.field({
    type: AuthConfig,
    description: 'Public settings for a sign-in page.',
    authorize: 'public',
    resolve: (_root, _args, { services }) => ({ allowRegistration: services.registration.isOpen }),
  }),
  inviteInfo: t.field({
    type: InviteInfo,
    description: 'The address that an invitation link is for. A link that is unknown or no longer works is not valid.',
    authorize: 'public',
    args: {
      token: t.arg.string({ required: true, constraints: tokenBounds, description: 'The token from the link.' }),
    },
    resolve: (_root, { token }, { services }) => services.registration.inviteInfo(token),
  }),
}));

const RegisterInput = builder.inputType('RegisterInput', {
  description: 'A new account.',
  fields: (t) => ({
    ...newAccount(t),
    inviteToken: t.string({ constraints: tokenBounds, description: 'The token from an invitation link.' }),
  }),
});

const LoginInput = builder.inputType('LoginInput', {
  description: 'A user name or e-mail address, and a password.',
  fields: (t) => ({
    username: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 320 },
      description: 'User name or e-mail address.',
    }),
    password: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The password.',
    }),
  }),
});

const TokenInput = builder.inputType('TokenInput', {
  description: 'A token from a mailed link.',
  fields: (t) => ({
    token: t.string({ required: true, constraints: tokenBounds, description: 'The token from the link.' }),
  }),
});

const EmailInput = builder.inputType('EmailInput', {
  description: 'An e-mail address.',
  fields: (t) => ({
    email: t.string({ required: true, constraints: emailBounds, description: "The account's e-mail address." }),
  }),
});

const RefreshInput = builder.inputType('RefreshInput', {
  description: 'A refresh token.',
  fields: (t) => ({
    refreshToken: t.string({
      required: true,
      constraints: tokenBounds,
      description: 'The newest refresh token of the session.',
    }),
  }),
});

const SwitchOrganizationInput = builder.inputType('SwitchOrganizationInput', {
  description: 'The organization to switch to.',
  fields: (t) => ({
    orgId: t.id({
      required: true,
      constraints: bounds.id,
      description: 'An organization that the caller is a member of.',
    }),
  }),
});

const ResetPasswordInput = builder.inputType('ResetPasswordInput', {
  description: 'A new password and the token from the mailed link.',
  fields: (t) => ({
    token: t.string({ required: true, constraints: tokenBounds, description: 'The token from the link.' }),
    newPassword: t.string({
      required: true,
      constraints: passwordBounds,
      description: 'The new password: 8 to 128 characters.',
    }),
    revokeTokens: t.boolean({ description: "Whether to revoke the user's API tokens too. Default `false`." }),
  }),
});

const ChangePasswordInput = builder.inputType('ChangePasswordInput', {
  description: 'A new password and the current one.',
  fields: (t) => ({
    currentPassword: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The current password.',
    }),
    newPassword: t.string({
      required: true,
      constraints: passwordBounds,
      description: 'The new password: 8 to 128 characters.',
    }),
    revokeTokens: t.boolean({ description: "Whether to revoke the user's API tokens too. Default `false`." }),
  }),
});

const LogoutPayload = builder.objectRef<{ sessionId: string }>('LogoutPayload').implement({
  description: 'The session that has ended.',
  fields: (t) => ({ sessionId: t.exposeID('sessionId', { description: 'Identifier of the session.' }) }),
});

const VerifyEmailPayload = builder.objectRef<{ userId: string; email: string }>('VerifyEmailPayload').implement({
  description: 'The address that was verified.',
  fields: (t) => ({
    userId: t.exposeID('userId', { description: 'The user who has the address.' }),
    email: t.exposeString('email', { description: 'The verified address.' }),
  }),
});

const asked = 'The address of the request. It does not tell whether there is such an account.';

const ResendVerificationPayload = builder.objectRef<{ email: string }>('ResendVerificationPayload').implement({
  description: 'A verification link was asked for.',
  fields: (t) => ({ email: t.exposeString('email', { description: asked }) }),
});

const ForgotPasswordPayload = builder.objectRef<{ email: string }>('ForgotPasswordPayload').implement({
  description: 'A link to reset a password was asked for.',
  fields: (t) => ({ email: t.exposeString('email', { description: asked }) }),
});

const ResetPasswordPayload = builder.objectRef<{ userId: string }>('ResetPasswordPayload').implement({
  description: 'The user whose password was set.',
  fields: (t) => ({ userId: t.exposeID('userId', { description: 'The user.' }) }),
});

const ChangePasswordPayload = builder.objectRef<object>('ChangePasswordPayload').implement({
  description: 'The user whose password was changed.',
  fields: (t) => ({
    user: t.field({
      type: User,
      authorize: 'inherited',
      description: 'The caller.',
      resolve: (_row, _args, { caller: { principal }, services }) =>
        services.users.view(principal.userId, principal.orgId),
    }),
  }),
});

builder.mutationFields((t) => ({
  register: t.field({
    type: SignInResult,
    description:
      'Creates an account and signs it in. The account gets its own organization with a default workspace, or joins ' +
      'the organization of the invitation.',
    authorize: 'public',
    activity: { action: 'create', resourceType: 'user', byService: true },
    emits: ['organization_member.created'],
    mayEmit: ['organization.created', 'workspace.created', 'invitation.accepted', 'workspace_member.created'],
    isCredential: true,
    args: { input: t.arg({ type: RegisterInput, required: true, description: 'The account.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.registration.register(anyCaller, input),
  }),
  login: t.field({
    type: SignInResult,
    description: 'Signs in with a user name or e-mail address and a password.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    isCredential: true,
    args: { input: t.arg({ type: LoginInput, required: true, description: 'The name and the password.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.auth.login(anyCaller, input),
  }),
  refresh: t.field({
    type: RefreshResult,
    description:
      'Exchanges a refresh token for the next token pair. Repeating this within a minute returns the same ' +
      'refresh token, even if it was used in the meantime. Later reuse ends the session.',
    authorize: 'public',
    activity: { action: 'refresh', resourceType: 'user', byService: true },
    isCredential: true,
    args: { input: t.arg({ type: RefreshInput, required: true, description: 'The refresh token.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.auth.refresh(anyCaller, input.refreshToken),
  }),
  logout: t.field({
    type: LogoutPayload,
    description: "Ends the caller's session. Its tokens stop working at once.",
    authorize: { session: 'user:update' },
    activity: { action: 'logout', resourceType: 'user' },
    resolve: async (_root, _args, { caller, services }) => ({ sessionId: await services.auth.logout(caller) }),
  }),
  switchOrganization: t.field({
    type: SwitchOrganizationResult,
    description: 'Switches the session to another organization of the caller.',
    authorize: { session: 'organization:access' },
    activity: { action: 'update', resourceType: 'organization' },
    args: { input: t.arg({ type: SwitchOrganizationInput, required: true, description: 'The organization.' }) },
    resolve: (_root, { input }, { caller, services }) => services.auth.switchOrganization(caller, input.orgId),
  }),
  verifyEmail: t.field({
    type: VerifyEmailPayload,
    description:
      'Verifies an e-mail address with the mailed token: the address that the account was created with, or the one ' +
      'that it changes to. The token works once. The first verification of an account revokes the API tokens that ' +
      'were created before it, unless the request comes from a session of that account.',
    authorize: 'public',
    activity: { action: 'update', resourceType: 'user', byService: true },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    isCredential: true,
    args: { input: t.arg({ type: TokenInput, required: true, description: 'The token.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.emailProofs.verify(anyCaller, input.token),
  }),
  resendVerification: t.field({
    type: ResendVerificationPayload,
    description:
      'Mails a new verification link if the account exists and needs one. The response never reveals whether it does.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: EmailInput, required: true, description: 'The address.' }) },
    resolve: async (_root, { input }, { anyCaller, services }) => {
      await services.requestedMails.request(anyCaller, input.email, 'verify_email');
      return { email: input.email };
    },
  }),
  forgotPassword: t.field({
    type: ForgotPasswordPayload,
    description:
      'Mails a link to reset the password if the account exists. The response never reveals whether it does.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: EmailInput, required: true, description: 'The address.' }) },
    resolve: async (_root, { input }, { anyCaller, services }) => {
      await services.requestedMails.request(anyCaller, input.email, 'reset_password');
      return { email: input.email };
    },
  }),
  resetPassword: t.field({
    type: ResetPasswordPayload,
    description:
      'Sets a new password with the mailed token, and ends all sessions and what was granted to applications. A mail ' +
      'lists the API tokens that keep working. If the address was never verified before, they are revoked instead.',
    authorize: 'public',
    activity: { action: 'update', resourceType: 'user', byService: true },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    isCredential: true,
    args: {
      input: t.arg({ type: ResetPasswordInput, required: true, description: 'The token and the new password.' }),
    },
    resolve: async (_root, { input }, { anyCaller, services }) => ({
      userId: await services.passwordChanges.reset(anyCaller, input),
    }),
  }),
  changePassword: t.field({
    type: ChangePasswordPayload,
    description:
      "Sets a new password and ends the caller's other sessions. A mail lists the API tokens and the applications " +
      'that still act for the caller.',
    authorize: { session: 'user:update' },
    activity: { action: 'update', resourceType: 'user' },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    isCredential: true,
    args: {
      input: t.arg({ type: ChangePasswordInput, required: true, description: 'The current and the new password.' }),
    },
    resolve: async (_root, { input }, { caller, services }) => {
      await services.passwordChanges.change(caller, input);
      return {};
    },
  }),
}));
