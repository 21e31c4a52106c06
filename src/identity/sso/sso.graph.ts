import { builder } from '../../graphql/builder.ts';
import { emailBounds, User } from '../../tenancy/users/user.graph.ts';
import { SignInResult } from '../auth/auth.graph.ts';
import { SsoProtocol } from '../identity-providers/identity-provider.enums.ts';
import type { DiscoveredDomain, Finished, Initiated } from './sso.service.ts';

const SsoDiscovery = builder.objectRef<DiscoveredDomain>('SsoDiscovery').implement({
  description: 'How the users of a mail domain sign in (spec, SSO discovery).',
  fields: (t) => ({
    ssoAvailable: t.exposeBoolean('ssoAvailable', { description: 'Whether they sign in at an identity provider.' }),
    providerName: t.exposeString('providerName', { nullable: true, description: 'Its name. `null` without one.' }),
    protocol: t.expose('protocol', {
      type: SsoProtocol,
      nullable: true,
      description: 'Its protocol. `null` without one.',
    }),
  }),
});

const SsoInitiation = builder.objectRef<Initiated>('SsoInitiation').implement({
  description: 'A sign-in that was begun at an identity provider (spec, SSO initiation).',
  fields: (t) => ({
    redirectUrl: t.exposeString('redirectUrl', {
      description: 'The page of the identity provider, to open in a browser within ten minutes.',
    }),
    protocol: t.expose('protocol', { type: SsoProtocol, description: 'The protocol of the provider.' }),
  }),
});

const SsoSignIn = builder.objectRef<Finished>('SsoSignIn').implement({
  description:
    'The end of a sign-in at an identity provider: a token pair and its user, or where the browser goes with a code.',
  fields: (t) => ({
    accessToken: t.exposeString('accessToken', {
      nullable: true,
      description: 'Send it as `Authorization: Bearer …`. `null` with `redirectTo`.',
    }),
    refreshToken: t.exposeString('refreshToken', {
      nullable: true,
      description: 'Exchange it for the next token pair before the session ends. `null` with `redirectTo`.',
    }),
    tokenType: t.exposeString('tokenType', { nullable: true, description: '`bearer`. `null` with `redirectTo`.' }),
    expiresIn: t.exposeInt('expiresIn', {
      nullable: true,
      description: 'Seconds until the access token expires. `null` with `redirectTo`.',
    }),
    user: t.field({
      type: User,
      nullable: true,
      authorize: 'inherited',
      description: 'The user who signed in. `null` with `redirectTo`.',
      resolve: ({ userId, orgId }, _args, { services }) =>
        userId === null ? null : services.users.view(userId, orgId),
    }),
    redirectTo: t.exposeString('redirectTo', {
      nullable: true,
      description:
        'Where the browser goes, if `initiateSso` was given a `redirectUri`: to that address, with a `code` that ' +
        '`exchangeSsoCode` takes. REST answers with 303 instead. Over REST, a browser (`Accept: text/html`) whose ' +
        'sign-in is refused goes there too, or to the page `/account/sign-in`, with `error=access_denied`.',
    }),
  }),
});

const SsoEmailInput = builder.inputType('SsoEmailInput', {
  description: 'An e-mail address. Only its domain is looked at.',
  fields: (t) => ({
    email: t.string({ required: true, constraints: emailBounds, description: 'The e-mail address of the user.' }),
  }),
});

const InitiateSsoInput = builder.inputType('InitiateSsoInput', {
  description: 'Who signs in, and where they go afterwards.',
  fields: (t) => ({
    email: t.string({
      required: true,
      constraints: emailBounds,
      description: 'The e-mail address of the user. Its domain determines the identity provider.',
    }),
    redirectUri: t.string({
      constraints: { minLength: 1, maxLength: 2_048 },
      description:
        'Where the browser goes after the sign-in, with a `code` to exchange for the token pair. It must be in ' +
        "the operator's setting `SSO_REDIRECT_URIS`. Without it, the callback itself answers with the token pair.",
    }),
  }),
});

const secret = (maxLength: number) => ({ minLength: 1, maxLength, sensitive: true }) as const;

const SamlCallbackInput = builder.inputType('SamlCallbackInput', {
  description: 'The response of a SAML identity provider, as a browser posts it.',
  fields: (t) => ({
    samlResponse: t.string({
      required: true,
      constraints: { minLength: 1, maxBytes: 1_500_000, sensitive: true },
      description: 'The response, base64. At most 1 MiB of XML.',
    }),
    relayState: t.string({
      constraints: { maxLength: 1_024, sensitive: true },
      description: 'What the request had as `RelayState`.',
    }),
  }),
});

const OidcCallbackInput = builder.inputType('OidcCallbackInput', {
  description: 'What a browser brings back from an OpenID provider.',
  fields: (t) => ({
    code: t.string({ required: true, constraints: secret(4_096), description: 'The authorization code.' }),
    state: t.string({ required: true, constraints: secret(1_024), description: 'The state of the request.' }),
    iss: t.string({ constraints: { maxLength: 2_048 }, description: 'The issuer, if the provider names it.' }),
  }),
});

const SsoCodeInput = builder.inputType('SsoCodeInput', {
  description: 'A code from the end of a sign-in.',
  fields: (t) => ({
    code: t.string({
      required: true,
      constraints: secret(1_024),
      description: 'The `code` that came with the browser. It works once, for 60 seconds.',
    }),
  }),
});

const FAILS = ['AUTHENTICATION_FAILED', 'FORBIDDEN', 'UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'] as const;

/** Somebody new joins, and groups at the provider give roles. */
const MEMBERSHIPS = [
  'organization_member.created',
  'organization_member.updated',
  'workspace_member.created',
  'workspace_member.updated',
  'workspace_member.deleted',
] as const;

builder.mutationFields((t) => ({
  discoverSso: t.field({
    type: SsoDiscovery,
    description:
      'How users with this address sign in: at an identity provider, or with a password. The answer is the same ' +
      'whether or not there is an account. At most 20 times a minute from one address.',
    authorize: 'public',
    isCredential: true,
    args: { input: t.arg({ type: SsoEmailInput, required: true, description: 'The address.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.sso.discover(anyCaller, input.email),
  }),
  initiateSso: t.field({
    type: SsoInitiation,
    description:
      "Begins a sign-in at the identity provider of the address's domain. A browser that begins it has to finish it: " +
      'it gets a cookie. At most 20 times a minute from one address.',
    authorize: 'public',
    isCredential: true,
    mayFail: ['RESOURCE_NOT_FOUND', 'UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'],
    args: { input: t.arg({ type: InitiateSsoInput, required: true, description: 'Who signs in.' }) },
    resolve: (_root, { input }, { anyCaller, services }) =>
      services.sso.initiate(anyCaller, { email: input.email, redirectUri: input.redirectUri ?? null }),
  }),
  finishSamlSignIn: t.field({
    type: SsoSignIn,
    description:
      'Finishes a sign-in with the response of a SAML identity provider. Everything that is not accepted gets the ' +
      'same answer; the log of the service has the reason.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    mayEmit: MEMBERSHIPS,
    isCredential: true,
    mayFail: FAILS,
    args: { input: t.arg({ type: SamlCallbackInput, required: true, description: 'The response.' }) },
    resolve: (_root, { input }, { anyCaller, services }) =>
      services.sso.finishSaml(anyCaller, {
        samlResponse: input.samlResponse,
        relayState: input.relayState ?? null,
      }),
  }),
  finishOidcSignIn: t.field({
    type: SsoSignIn,
    description:
      'Finishes a sign-in with the code of an OpenID provider. Everything that is not accepted gets the same answer; ' +
      'the log of the service has the reason.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    mayEmit: MEMBERSHIPS,
    isCredential: true,
    mayFail: FAILS,
    args: { input: t.arg({ type: OidcCallbackInput, required: true, description: 'What came back.' }) },
    resolve: (_root, { input: { code, state, iss } }, { anyCaller, services }) =>
      services.sso.finishOidc(anyCaller, { code, state, iss: iss ?? null }),
  }),
  exchangeSsoCode: t.field({
    type: SignInResult,
    description: 'Exchanges the code from the end of a sign-in for a token pair, once, within 60 seconds.',
    authorize: 'public',
    activity: { action: 'login', resourceType: 'user', byService: true },
    isCredential: true,
    mayFail: ['AUTHENTICATION_FAILED'],
    args: { input: t.arg({ type: SsoCodeInput, required: true, description: 'The code.' }) },
    resolve: (_root, { input }, { anyCaller, services }) => services.sso.exchange(anyCaller, input.code),
  }),
}));
