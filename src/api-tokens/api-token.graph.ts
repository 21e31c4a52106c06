import { builder } from '../graphql/builder.ts';
import { optionalTime } from '../graphql/common-fields.ts';
import { bounds, inputArg } from '../graphql/inputs.ts';
import { Node, registerNode } from '../graphql/node.ts';
import { pageArgs, pageType } from '../graphql/page-type.ts';
import { idArg, organizationArgs } from '../graphql/place-args.ts';
import { refersTo } from '../graphql/references.ts';
import { inside } from '../graphql/row-places.ts';
import { Versioned, versionArg } from '../graphql/versions.ts';
import { Organization } from '../organizations/organization.graph.ts';
import type { ApiToken as ApiTokenRow } from './api-token.reads.ts';
import type { IssuedToken } from './api-token.service.ts';

/** The places of a kind that a token may be restricted to. */
const MAX_PLACES = 100;

export const ApiToken = builder.objectRef<ApiTokenRow>('ApiToken').implement({
  description:
    'A long-lived token of a user or of an app. It has the live rights of the user who made it, narrowed by what it grants and restricted to what it lists; empty lists restrict nothing.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `tok_…`.' }),
    orgId: t.exposeID('orgId', { description: 'The only organization that it works in.' }),
    tokenType: t.exposeString('tokenType', { description: '`pat` or `app`.' }),
    ownerType: t.exposeString('ownerType', { description: '`user` or `app`.' }),
    ownerId: t.exposeID('ownerId', { description: 'The user, or the app.' }),
    createdByUserId: t.exposeID('createdByUserId', { description: 'The user whose rights count.' }),
    appId: t.exposeID('appId', { nullable: true, description: "The app, of an app's token." }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: "The app's workspace." }),
    name: t.exposeString('name', { description: 'A label; names may repeat.' }),
    description: t.exposeString('description', { nullable: true, description: 'Free text.' }),
    prefix: t.exposeString('prefix', { description: 'How the token begins.' }),
    scopes: t.exposeStringList('scopes', {
      description: '`read`, `write`, `admin`, a resource, `secret:*`, `*:read`.',
    }),
    permissions: t.exposeStringList('permissions', { description: 'Names like `secret:read`.' }),
    workspaceIds: t.exposeStringList('workspaceIds', { description: 'The workspaces that it is restricted to.' }),
    namespaceIds: t.exposeStringList('namespaceIds', { description: 'The namespaces that it is restricted to.' }),
    environmentIds: t.exposeStringList('environmentIds', { description: 'The environments that it is restricted to.' }),
    endpointPaths: t.exposeStringList('endpointPaths', { description: 'The REST paths that it is restricted to.' }),
    rateLimitRps: t.exposeInt('rateLimitRps', { nullable: true, description: 'Requests per second.' }),
    rateLimitBurst: t.exposeInt('rateLimitBurst', { nullable: true, description: 'Requests at once.' }),
    issuedAt: t.expose('issuedAt', { type: 'DateTime', description: 'When it was issued.' }),
    expiresAt: t.expose('expiresAt', optionalTime('When it expires; null for never.')),
    refreshExpiresAt: t.expose(
      'refreshExpiresAt',
      optionalTime(
        'Until when it can be refreshed; null for ever. A token that a token made never lives past the end that one had then.',
      ),
    ),
    lastUsedAt: t.expose('lastUsedAt', optionalTime('When it was last used, to the minute.')),
    revokedAt: t.expose(
      'revokedAt',
      optionalTime(
        'From when on it is refused. For a token that was refreshed (`rotated`) that is the end of its grace, which may be yet to come: it works until then.',
      ),
    ),
    revokedReason: t.exposeString('revokedReason', {
      nullable: true,
      description:
        '`revoked_by_user`, `revoked_by_admin`, `owner_deactivated`, `owner_left`, `maker_revoked`, `rotated` or `refresh_token_reuse`.',
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
    'A token and its plaintexts, which are not shown again (but to a repetition of the same request with its Idempotency-Key).',
  fields: (t) => ({
    token: t.expose('token', { type: ApiToken, authorize: 'inherited', description: 'The token.' }),
    plaintextToken: t.exposeString('plaintextToken', { description: 'Send it as `Authorization: Bearer …`.' }),
    refreshTokenPlaintext: t.exposeString('refreshTokenPlaintext', {
      description: 'Exchange it for the next pair, also after the token has expired.',
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

// at most so many at once, as the spec's envelope has no cursor; the caps on live tokens and the bound of revoked ones
// keep lists below it
const listArgs = () => ({ ...organizationArgs(), ...pageArgs({ min: 1, max: 10_000 }) });

builder.queryFields((t) => ({
  apiTokens: t.field({
    type: ApiTokenConnection,
    description:
      "The caller's own API tokens, newest first; revoked ones for 90 days, the newest 5,000 of them. A token of an app sees those of its app that its user made.",
    authorize: { organization: 'api_token:read' },
    args: listArgs(),
    resolve: ({ organization }, args, context) => context.services.apiTokens.list(context, organization, args),
  }),
  allApiTokens: t.field({
    type: ApiTokenConnection,
    description:
      'All API tokens and app tokens of an organization, newest first; revoked ones for 90 days, the newest 5,000 of them.',
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
    'A new token. Without scopes and permissions it may do what its maker may, but what is sensitive: tokens, members, invitations, users, deleting the organization, revealing and destroying secrets must be named.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: 'A label; names may repeat.' }),
    description: t.string({ constraints: bounds.description, description: 'Free text.' }),
    scopes: t.stringList({
      constraints: names,
      description:
        '`read`, `write` (read, create, update), `admin`, a resource like `secret` for all its actions, `secret:*`, `*:read`.',
    }),
    permissions: t.stringList({ constraints: names, description: 'Names like `secret:read`, which the maker has.' }),
    workspaceIds: t.stringList({ constraints: ids, description: 'Restricts it to these workspaces.' }),
    namespaceIds: t.stringList({ constraints: ids, description: 'Restricts it to these namespaces.' }),
    environmentIds: t.stringList({ constraints: ids, description: 'Restricts it to these environments.' }),
    endpointPaths: t.stringList({
      constraints: { maxItems: 100, item: { minLength: 1, maxLength: 512 } },
      description:
        'Restricts it to these REST paths: a prefix like `/v1/orgs/org_1/secrets`, or with `*` for a segment and `**` at the end for any rest. `/graphql` must be listed to be open.',
    }),
    rateLimitRps: t.int({ constraints: { min: 1, max: 1_000 }, description: 'Requests per second.' }),
    rateLimitBurst: t.int({ constraints: { min: 1, max: 5_000 }, description: 'Requests at once.' }),
    expiresInDays: t.int({
      constraints: { min: 1, max: 365 },
      description: 'Default 90. `null` never expires; only where the operator allows it.',
    }),
    expiresAt: t.field({
      type: 'DateTime',
      description:
        'Instead of `expiresInDays`: within 365 days. `null` never expires; only where the operator allows it.',
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
      description: 'For how long the token before works on; 300 unless told.',
    }),
  }),
});

const target = () => ({ ...organizationArgs(), ...idArg('The token.') });

builder.mutationFields((t) => ({
  createApiToken: t.field({
    type: IssuedApiToken,
    description:
      'Issues an API token, with which a program acts as the caller. Nobody can issue more than they may do.',
    authorize: { organization: 'organization:access', service: 'api_token:create' },
    args: { ...organizationArgs(), ...inputArg(CreateApiTokenInput, 'The token.') },
    resolve: ({ organization }, { input }, { actor, services }) =>
      services.apiTokens.create(actor, organization, input),
  }),
  revokeApiToken: t.boolean({
    description:
      "Revokes one of the caller's own API tokens at once, with what it was refreshed from and to, and what they made.",
    authorize: { organization: 'api_token:revoke' },
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { actor, services }) => services.apiTokens.revoke(actor, organization, id),
  }),
  adminRevokeApiToken: t.boolean({
    description:
      'Revokes any API token or app token of the organization at once, with what it was refreshed from and to, and what they made.',
    authorize: { organization: 'api_token:manage' },
    activity: { action: 'revoke', resourceType: 'api_token' },
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { actor, services }) => services.apiTokens.revokeAny(actor, organization, id),
  }),
  refreshApiToken: t.field({
    type: IssuedApiToken,
    description:
      'Exchanges a refresh token for the next pair, which inherits everything. Repeating it within a minute gives the same pair; later reuse revokes the whole family.',
    authorize: 'public',
    activity: { action: 'refresh', resourceType: 'api_token' },
    isCredential: true,
    args: { ...organizationArgs(), ...inputArg(RefreshApiTokenInput, 'The refresh token.') },
    resolve: (_root, { orgId, input: { refreshToken, gracePeriodSeconds } }, { caller, services }) =>
      services.apiTokenRefresh.refresh(caller, orgId, refreshToken, gracePeriodSeconds ?? undefined),
  }),
}));
