import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { inside } from '../../graphql/row-places.ts';
import { ApiTokenTypeEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import type { ApiToken as ApiTokenRow } from './api-token.reads.ts';
import type { RevocationReason } from './api-token.revocation.ts';
import type { IssuedToken } from './api-token.service.ts';

/** Maximum number of places of one kind that a token can be restricted to. */
const MAX_PLACES = 100;

const ApiTokenOwner = wordEnum('ApiTokenOwner', 'What owns a token.', {
  user: 'A user.',
  app: 'An app.',
});

const RevokedReason = wordEnum<RevocationReason | 'rotated'>('RevokedReason', 'Why a token is refused.', {
  revoked_by_user: 'The user who created it revoked it.',
  revoked_by_admin: 'An administrator revoked it.',
  owner_deactivated: 'The account of its user was deactivated.',
  owner_left: 'Its user left the organization.',
  maker_revoked: 'The token that created it was revoked.',
  password_reset: 'Its user reset the password.',
  password_changed: 'Its user changed the password.',
  address_confirmed: 'Its user confirmed the e-mail address of the account.',
  identity_linked: 'The account of its user was linked to an identity provider.',
  rotated: 'It was refreshed: another token took its place.',
  refresh_token_reuse: 'A refresh token of its family was used twice.',
});

export const ApiToken = builder.objectRef<ApiTokenRow>('ApiToken').implement({
  description:
    'A long-lived token of a user or an app. It has the current permissions of the user who created it, ' +
    'narrowed by its scopes and permissions and restricted to the places and paths it lists. An empty list ' +
    'does not restrict the token.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `tok_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The only organization the token works in.' }),
    tokenType: t.expose('tokenType', { type: ApiTokenTypeEnum, description: 'What kind of token it is.' }),
    ownerType: t.expose('ownerType', { type: ApiTokenOwner, description: 'What owns it.' }),
    ownerId: t.exposeID('ownerId', { description: 'The user or app that owns the token.' }),
    createdByUserId: t.exposeID('createdByUserId', {
      description: 'The user who created the token and whose permissions apply.',
    }),
    appId: t.exposeID('appId', { nullable: true, description: 'The app of an app token.' }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: "The app's workspace." }),
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    prefix: t.exposeString('prefix', { description: 'The first characters of the token.' }),
    scopes: t.exposeStringList('scopes', {
      description: '`read`, `write`, `admin`, a resource, `secret:*` or `*:read`.',
    }),
    permissions: t.exposeStringList('permissions', { description: 'Names like `secret:read`.' }),
    workspaceIds: t.exposeStringList('workspaceIds', { description: 'The workspaces the token is restricted to.' }),
    namespaceIds: t.exposeStringList('namespaceIds', { description: 'The namespaces the token is restricted to.' }),
    environmentIds: t.exposeStringList('environmentIds', {
      description: 'The environments the token is restricted to.',
    }),
    endpointPaths: t.exposeStringList('endpointPaths', { description: 'The REST paths the token is restricted to.' }),
    rateLimitRps: t.exposeInt('rateLimitRps', { nullable: true, description: 'Requests per second.' }),
    rateLimitBurst: t.exposeInt('rateLimitBurst', { nullable: true, description: 'Requests allowed at once.' }),
    issuedAt: t.expose('issuedAt', { type: 'DateTime', description: 'When the token was issued.' }),
    expiresAt: t.expose('expiresAt', optionalTime('Expiry time; `null` means that the token never expires.')),
    refreshExpiresAt: t.expose(
      'refreshExpiresAt',
      optionalTime(
        'The token can be refreshed until this time; `null` means without end. A token that was created with ' +
          'another token never outlives the expiry that the other token had at that moment.',
      ),
    ),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When the token was last used, to the minute.')),
    revokedAt: t.expose(
      'revokedAt',
      optionalTime(
        'The service refuses the token from this time on. For a refreshed token (`rotated`), this is the end of ' +
          'its grace period, which may be in the future.',
      ),
    ),
    suspendedAt: t.expose(
      'suspendedAt',
      optionalTime(
        'Since when the service refuses the token because the identity provider of its user was switched off or ' +
          'deleted, or knows the user no more. `null` again once the user has signed in at a provider of the ' +
          'organization.',
      ),
    ),
    revokedReason: t.expose('revokedReason', {
      type: RevokedReason,
      nullable: true,
      description: 'Why it is refused from then on. `null` for a token that was not revoked.',
    }),
  }),
});

refersTo(ApiToken, {
  orgId: 'organization',
  ownerId: 'node',
  createdByUserId: 'user',
  appId: 'app',
  workspaceId: 'workspace',
  workspaceIds: { kind: 'workspace', atMost: MAX_PLACES },
  namespaceIds: { kind: 'namespace', atMost: MAX_PLACES },
  environmentIds: { kind: 'environment', atMost: MAX_PLACES },
});

export const ApiTokenConnection = pageType('ApiToken', ApiToken);

export const IssuedApiToken = builder.objectRef<IssuedToken>('IssuedApiToken').implement({
  description:
    'A token and its plaintexts. They are not shown again, except when the same request is repeated with its ' +
    'Idempotency-Key.',
  fields: (t) => ({
    token: t.expose('token', { type: ApiToken, authorize: 'inherited', description: 'The token.' }),
    plaintextToken: t.exposeString('plaintextToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshTokenPlaintext: t.exposeString('refreshTokenPlaintext', {
      description: 'Exchange it for the next pair, even after the token has expired.',
    }),
  }),
});

registerNode('api_token', ApiToken, (context, id) => context.services.apiTokens.find(context, id));

builder.objectField(Organization, 'apiTokens', (t) =>
  t.field({
    type: ApiTokenConnection,
    description: "The caller's own API tokens, newest first.",
    authorize: { organization: 'api_token:read' },
    args: pageArgs(),
    resolve: (row, args, context) => context.services.apiTokens.list(context, inside.organization(row), args),
  }),
);

// The spec's envelope has no cursor, hence a high maximum. The caps on live tokens and the bound on revoked ones keep
// lists below it.
const listArgs = () => ({ ...organizationArgs(), ...pageArgs({ min: 1, max: 10_000 }) });

builder.queryFields((t) => ({
  apiTokens: t.field({
    type: ApiTokenConnection,
    description:
      "The caller's own API tokens, newest first. Revoked tokens stay listed for 90 days, at most the newest " +
      '5,000. An app token sees only the tokens of its app that its user created.',
    authorize: { organization: 'api_token:read' },
    args: listArgs(),
    resolve: ({ organization }, args, context) => context.services.apiTokens.list(context, organization, args),
  }),
  allApiTokens: t.field({
    type: ApiTokenConnection,
    description:
      'All API tokens and app tokens of an organization, newest first. Revoked tokens stay listed for 90 days, ' +
      'at most the newest 5,000.',
    authorize: { organization: 'api_token:manage' },
    activity: { action: 'list', resourceType: 'api_token' },
    args: listArgs(),
    resolve: ({ organization }, args, context) => context.services.apiTokens.all.list(context, organization, args),
  }),
}));

const names = { maxItems: 100, item: { minLength: 1, maxLength: 128 } } as const;
const ids = { maxItems: MAX_PLACES, item: bounds.id } as const;

export const CreateApiTokenInput = builder.inputType('CreateApiTokenInput', {
  description:
    'A new token. Without scopes and permissions it has the permissions of its creator, except sensitive ' +
    'permissions. Sensitive permissions must be named: permissions for tokens, members, invitations and users, ' +
    'and permissions to delete the organization and to reveal or destroy secrets.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'Display name. It need not be unique.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    scopes: t.stringList({
      constraints: names,
      description:
        '`read`, `write` (read, create, update), `admin`, a resource like `secret` for all its actions, ' +
        '`secret:*` or `*:read`.',
    }),
    permissions: t.stringList({
      constraints: names,
      description: 'Names like `secret:read`. The creator must have these permissions.',
    }),
    workspaceIds: t.stringList({ constraints: ids, description: 'Restricts the token to these workspaces.' }),
    namespaceIds: t.stringList({ constraints: ids, description: 'Restricts the token to these namespaces.' }),
    environmentIds: t.stringList({ constraints: ids, description: 'Restricts the token to these environments.' }),
    endpointPaths: t.stringList({
      constraints: { maxItems: 100, item: { minLength: 1, maxLength: 512 } },
      description:
        'Restricts the token to these REST paths. A path is a prefix like `/v1/orgs/org_1/secrets`, or a ' +
        'pattern: `*` matches one segment, `**` at the end matches any rest. The token may use `/graphql` only ' +
        'if it is listed.',
    }),
    rateLimitRps: t.int({ constraints: { min: 1, max: 1_000 }, description: 'Requests per second.' }),
    rateLimitBurst: t.int({ constraints: { min: 1, max: 5_000 }, description: 'Requests allowed at once.' }),
    expiresInDays: t.int({
      constraints: { min: 1, max: 365 },
      description: 'Default 90. With `null` the token never expires, which the operator must allow.',
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description:
        'Use it instead of `expiresInDays`. At most 365 days ahead. With `null` the token never expires, which ' +
        'the operator must allow.',
    }),
  }),
});

const RefreshApiTokenInput = builder.inputType('RefreshApiTokenInput', {
  description: 'A refresh token.',
  fields: (t) => ({
    refreshToken: t.string({
      required: true,
      constraints: { minLength: 1, maxLength: 1024, sensitive: true },
      description: 'The plaintext of the refresh token.',
    }),
    gracePeriodSeconds: t.int({
      constraints: { min: 0, max: 86_400 },
      description: 'How long the previous token still works, in seconds. Default 300.',
    }),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The token.') });

builder.mutationFields((t) => ({
  createApiToken: t.field({
    type: IssuedApiToken,
    description:
      'Issues an API token. A program that uses it acts as the caller, and never with more permissions than ' +
      'the caller has.',
    authorize: { organization: 'organization:access', service: 'api_token:create' },
    emits: ['api_token.created'],
    args: { ...organizationArgs(), ...inputArg(CreateApiTokenInput, 'The token.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.apiTokens.create(caller, organization, input),
  }),
  revokeApiToken: t.field({
    type: ApiToken,
    description:
      "Revokes one of the caller's own API tokens immediately, together with the tokens it was refreshed from " +
      'and to and all tokens that these created.',
    authorize: { organization: 'api_token:revoke' },
    emits: ['api_token.revoked'],
    mayEmit: ['app_token.revoked'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.apiTokens.revoke(caller, organization, id),
  }),
  adminRevokeApiToken: t.field({
    type: ApiToken,
    description:
      'Revokes any API token or app token of the organization immediately, together with the tokens it was ' +
      'refreshed from and to and all tokens that these created.',
    authorize: { organization: 'api_token:manage' },
    activity: { action: 'revoke', resourceType: 'api_token' },
    mayEmit: ['api_token.revoked', 'app_token.revoked'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) => services.apiTokens.revokeAny(caller, organization, id),
  }),
  refreshApiToken: t.field({
    type: IssuedApiToken,
    description:
      'Exchanges a refresh token for the next pair, which inherits everything from the previous one. Repeating ' +
      'the request within a minute returns the same pair. Later reuse revokes the whole token family.',
    authorize: 'public',
    activity: { action: 'refresh', resourceType: 'api_token' },
    mayEmit: ['api_token.refreshed', 'app_token.refreshed'],
    isCredential: true,
    args: { ...organizationArgs(), ...inputArg(RefreshApiTokenInput, 'The refresh token.') },
    resolve: (_root, { orgId, input: { refreshToken, gracePeriodSeconds } }, { anyCaller, services }) =>
      services.apiTokenRefresh.refresh(anyCaller, orgId, refreshToken, gracePeriodSeconds ?? undefined),
  }),
}));
