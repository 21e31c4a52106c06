import { builder } from '../graphql/builder.ts';
import { bounds } from '../graphql/inputs.ts';
import { refersTo } from '../graphql/references.ts';
import { emailBounds, newAccount, User } from '../users/user.graph.ts';
import type { SignIn } from './auth.service.ts';
import { passwordBounds } from './password-policy.ts';
import type { TokenPair } from './sessions.ts';

const tokenBounds = { minLength: 1, maxLength: 1024, sensitive: true } as const;

const AuthConfig = builder.objectRef<{ allowRegistration: boolean }>('AuthConfig').implement({
  description: 'What a sign-in page needs to know.',
  fields: (t) => ({
    allowRegistration: t.exposeBoolean('allowRegistration', { description: 'Whether anyone may register.' }),
  }),
});

const InviteInfo = builder.objectRef<{ email: string; valid: boolean }>('InviteInfo').implement({
  description: 'Whom an invitation link is for.',
  fields: (t) => ({
    email: t.exposeString('email', { description: 'The invited address; empty when the link is not valid.' }),
    valid: t.exposeBoolean('valid', { description: 'Whether the link can still be used.' }),
  }),
});

const SignInResult = builder.objectRef<SignIn>('SignInResult').implement({
  description: 'A pair of tokens, and whose they are (spec, Token pair).',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshToken: t.exposeString('refreshToken', {
      description: 'Exchange it for the next pair before the session ends.',
    }),
    tokenType: t.exposeString('tokenType', { description: '`bearer`.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
    user: t.field({
      type: User,
      authorize: 'inherited',
      description: 'Who signed in.',
      resolve: ({ userId, orgId }, _args, { services }) => services.users.view(userId, orgId),
    }),
  }),
});

const RefreshResult = builder.objectRef<TokenPair>('RefreshResult').implement({
  description: 'The next pair of tokens.',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshToken: t.exposeString('refreshToken', { description: 'Replaces the one that was sent.' }),
    tokenType: t.exposeString('tokenType', { description: '`bearer`.' }),
    expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
  }),
});

const SwitchOrganizationResult = builder
  .objectRef<{ accessToken: string; tokenType: string; expiresIn: number; orgId: string }>('SwitchOrganizationResult')
  .implement({
    description: 'An access token bound to the chosen organization.',
    fields: (t) => ({
      accessToken: t.exposeString('accessToken', { description: 'Send it as `Authorization: Bearer …`.' }),
      tokenType: t.exposeString('tokenType', { description: '`bearer`.' }),
      expiresIn: t.exposeInt('expiresIn', { description: 'Seconds until the access token expires.' }),
      orgId: t.exposeID('orgId', { description: 'The organization that the session now works in.' }),
    }),
  });

refersTo(SwitchOrganizationResult, { orgId: 'organization' });

builder.queryFields((t) => ({
  authConfig: t.field({
    type: AuthConfig,
    description: 'Public configuration of sign-in.',
    authorize: 'public',
    resolve: (_root, _args, { services }) => ({ allowRegistration: services.registration.isOpen }),
  }),
  inviteInfo: t.field({
    type: InviteInfo,
    description: 'Whom an invitation link is for; an unknown or dead one is not valid.',
    authorize: 'public',
    args: { token: t.arg.string({ required: true, constraints: tokenBounds, description: 'The token of the link.' }) },
    resolve: (_root, { token }, { services }) => services.registration.inviteInfo(token),
  }),
}));

const RegisterInput = builder.inputType('RegisterInput', {
  description: 'A new account.',
  fields: (t) => ({
    ...newAccount(t),
    inviteToken: t.string({ constraints: tokenBounds, description: 'The token of an invitation link.' }),
  }),
});

const LoginInput = builder.inputType('LoginInput', {
  description: 'Who signs in.',
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
  description: 'A token that was mailed.',
  fields: (t) => ({
    token: t.string({ required: true, constraints: tokenBounds, description: 'The token of the link.' }),
  }),
});

const EmailInput = builder.inputType('EmailInput', {
  description: 'An e-mail address.',
  fields: (t) => ({
    email: t.string({ required: true, constraints: emailBounds, description: 'The address of the account.' }),
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
  description: 'Where to work.',
  fields: (t) => ({
    orgId: t.id({ required: true, constraints: bounds.id, description: 'An organization of the caller.' }),
  }),
});

const ResetPasswordInput = builder.inputType('ResetPasswordInput', {
  description: 'A new password, proven by a mailed token.',
  fields: (t) => ({
    token: t.string({ required: true, constraints: tokenBounds, description: 'The token of the link.' }),
    newPassword: t.string({ required: true, constraints: passwordBounds, description: '8 to 128 characters.' }),
    revokeTokens: t.boolean({ description: 'Also revokes the API tokens of the user. Default false.' }),
  }),
});

const ChangePasswordInput = builder.inputType('ChangePasswordInput', {
  description: 'A new password, proven by the current one.',
  fields: (t) => ({
    currentPassword: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The password until now.',
    }),
    newPassword: t.string({ required: true, constraints: passwordBounds, description: '8 to 128 characters.' }),
    revokeTokens: t.boolean({ description: 'Also revokes the API tokens of the user. Default false.' }),
  }),
});

builder.mutationFields((t) => ({
  register: t.field({
    type: SignInResult,
    description:
      'Makes an account with an organization and a default workspace of its own, or joins the one of an invitation, and signs it in.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: RegisterInput, required: true, description: 'The account.' }) },
    resolve: (_root, { input }, { caller, services }) => services.registration.register(caller, input),
  }),
  login: t.field({
    type: SignInResult,
    description: 'Signs in with a user name or e-mail address and a password.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: LoginInput, required: true, description: 'Who signs in.' }) },
    resolve: (_root, { input }, { caller, services }) => services.auth.login(caller, input),
  }),
  refresh: t.field({
    type: RefreshResult,
    description:
      'Exchanges a refresh token for the next pair. Repeating it within a minute gives the same refresh token, whatever became of that meanwhile; later reuse ends the session.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: RefreshInput, required: true, description: 'The refresh token.' }) },
    resolve: (_root, { input }, { caller, services }) => services.auth.refresh(caller, input.refreshToken),
  }),
  logout: t.boolean({
    description: "Ends the caller's session: its tokens die at once.",
    authorize: { session: 'user:update' },
    activity: { action: 'logout', resourceType: 'user' },
    resolve: async (_root, _args, { actor, services }) => {
      await services.auth.logout(actor);
      return true;
    },
  }),
  switchOrganization: t.field({
    type: SwitchOrganizationResult,
    description: 'Binds the session to another organization of the caller.',
    authorize: { session: 'organization:access' },
    activity: { action: 'update', resourceType: 'organization' },
    args: { input: t.arg({ type: SwitchOrganizationInput, required: true, description: 'The organization.' }) },
    resolve: (_root, { input }, { actor, services }) => services.auth.switchOrganization(actor, input.orgId),
  }),
  verifyEmail: t.boolean({
    description:
      'Proves an e-mail address with the mailed token, which works once: the one that the account was made with, or the one that it changes to. The first proof of an account revokes the API tokens that were made before, unless the request comes from a session of that account.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: TokenInput, required: true, description: 'The token.' }) },
    resolve: async (_root, { input }, { caller, services }) => {
      await services.emailProofs.verify(caller, input.token);
      return true;
    },
  }),
  resendVerification: t.boolean({
    description: 'Mails a new verification link if the account exists and needs one; the answer never tells.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: EmailInput, required: true, description: 'The address.' }) },
    resolve: async (_root, { input }, { caller, services }) => {
      await services.requestedMails.request(caller, input.email, 'verify_email');
      return true;
    },
  }),
  forgotPassword: t.boolean({
    description: 'Mails a link to reset the password if the account exists; the answer never tells.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: EmailInput, required: true, description: 'The address.' }) },
    resolve: async (_root, { input }, { caller, services }) => {
      await services.requestedMails.request(caller, input.email, 'reset_password');
      return true;
    },
  }),
  resetPassword: t.boolean({
    description:
      'Sets a new password with the mailed token and ends all sessions. A mail names the API tokens that live on. Where the address was never proven before, they are revoked.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: ResetPasswordInput, required: true, description: 'Token and password.' }) },
    resolve: async (_root, { input }, { caller, services }) => {
      await services.passwordChanges.reset(caller, input);
      return true;
    },
  }),
  changePassword: t.boolean({
    description:
      'Sets a new password and ends the other sessions of the caller. A mail names the API tokens that live on.',
    authorize: { session: 'user:update' },
    activity: { action: 'update', resourceType: 'user' },
    isCredential: true,
    args: { input: t.arg({ type: ChangePasswordInput, required: true, description: 'Both passwords.' }) },
    resolve: async (_root, { input }, { actor, services }) => {
      await services.passwordChanges.change(actor, input);
      return true;
    },
  }),
}));
