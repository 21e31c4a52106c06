import { builder } from '../../graphql/builder.ts';
import { inOrganization, optionalTime, tracked } from '../../graphql/common-fields.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { SsoProtocol } from './identity-provider.enums.ts';
import { CreateIdentityProviderInput, UpdateIdentityProviderInput } from './identity-provider.inputs.ts';
import type { GroupMapping, IdentityProvider as ProviderRow } from './identity-provider.reads.ts';

const SamlConfig = builder.objectRef<ProviderRow>('SamlConfig').implement({
  description: 'How users sign in at a SAML 2.0 provider.',
  fields: (t) => ({
    entityId: t.exposeString('samlEntityId', { nullable: true, description: 'The entity identifier of the provider.' }),
    ssoUrl: t.exposeString('samlSsoUrl', { nullable: true, description: 'Where users sign in.' }),
    sloUrl: t.exposeString('samlSloUrl', {
      nullable: true,
      description: 'Where users sign out. `null`: signing out here does not end the session at the provider.',
    }),
    certificate: t.exposeString('samlCertificate', {
      nullable: true,
      description: "The certificates of the provider's signing keys: one or several PEM blocks.",
    }),
    signAuthnRequests: t.exposeBoolean('samlSignAuthnRequests', {
      description: 'Whether the service signs its requests.',
    }),
    nameIdFormat: t.exposeString('samlNameIdFormat', {
      nullable: true,
      description: 'The form in which the provider names users.',
    }),
    allowUnsolicited: t.exposeBoolean('samlAllowsUnsolicited', {
      description: 'Whether sign-ins may start at the provider.',
    }),
    certificateEndsAt: t.expose('certificateEndsAt', optionalTime('When the last of the certificates expires.')),
  }),
});

const SamlMetadata = builder.objectRef<ProviderRow & { url: string }>('SamlMetadata').implement({
  description: 'Where the configuration of a SAML provider is read, and what came of it.',
  fields: (t) => ({
    url: t.exposeString('url', { description: 'The address.' }),
    certificate: t.exposeString('samlMetadataCertificate', {
      nullable: true,
      description: 'The certificates, by one of which it must be signed. `null`: it need not be.',
    }),
    fetchedAt: t.expose('samlMetadataFetchedAt', optionalTime('When it was last read and taken.')),
    error: t.exposeString('samlMetadataError', {
      nullable: true,
      description: 'Why it was not taken the last time: what was read before stays. `null` if it was.',
    }),
    refreshAt: t.expose('samlMetadataRefreshAt', optionalTime('When it is read next.')),
  }),
});

const OidcConfig = builder.objectRef<ProviderRow>('OidcConfig').implement({
  description: 'How users sign in at an OpenID Connect provider.',
  fields: (t) => ({
    clientId: t.exposeString('oidcClientId', { nullable: true, description: 'The client at the provider.' }),
    clientSecretRef: t.exposeString('oidcClientSecretRef', {
      nullable: true,
      description: "A reference to the client's secret. `null` for a client without one.",
    }),
    discoveryUrl: t.exposeString('oidcDiscoveryUrl', {
      nullable: true,
      description: 'The issuer, or its `/.well-known/openid-configuration`.',
    }),
    scopes: t.exposeStringList('oidcScopes', { description: 'The scopes that the service asks the provider for.' }),
  }),
});

const IdentityGroupMapping = builder.objectRef<GroupMapping & { orgId: string }>('IdentityGroupMapping').implement({
  description: 'The role of the users in a group at the provider.',
  fields: (t) => ({
    group: t.exposeString('group', { description: 'The name of the group.' }),
    roleId: t.expose('roleId', { type: RoleEnum, description: 'The role.' }),
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'The workspace that the role is for; `null` for the organization.',
    }),
  }),
});
refersTo(IdentityGroupMapping, { workspaceId: 'workspace' });

export const IdentityProvider = builder.objectRef<ProviderRow>('IdentityProvider').implement({
  description: 'Where users of an organization sign in: a SAML or an OpenID Connect provider.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Display name. It need not be unique.' }),
    protocol: t.expose('protocol', { type: SsoProtocol, description: 'How it signs users in.' }),
    samlConfig: t.field({
      type: SamlConfig,
      nullable: true,
      authorize: 'inherited',
      description: 'Its configuration, if it has one and its protocol is `saml`.',
      resolve: (provider) => (provider.samlEntityId === null ? null : provider),
    }),
    samlMetadata: t.field({
      type: SamlMetadata,
      nullable: true,
      authorize: 'inherited',
      description: 'Where its configuration is read. `null` for one that is written by hand.',
      resolve: (provider) =>
        provider.samlMetadataUrl === null ? null : { ...provider, url: provider.samlMetadataUrl },
    }),
    oidcConfig: t.field({
      type: OidcConfig,
      nullable: true,
      authorize: 'inherited',
      description: 'Its configuration, if it has one and its protocol is `oidc`.',
      resolve: (provider) => (provider.oidcClientId === null ? null : provider),
    }),
    verifiedDomains: t.exposeStringList('verifiedDomains', {
      description: 'Mail domains whose users sign in here, as given.',
    }),
    groupMappings: t.field({
      type: [IdentityGroupMapping],
      authorize: 'inherited',
      description: 'The roles that groups at the provider grant.',
      resolve: ({ groupMappings, orgId }) => groupMappings.map((mapping) => ({ ...mapping, orgId })),
    }),
    groupAttribute: t.exposeString('groupAttribute', { description: 'The claim or attribute that has the groups.' }),
    defaultRoleId: t.expose('defaultRoleId', {
      type: RoleEnum,
      description: 'The role of new users in the organization.',
    }),
    defaultWorkspaceId: t.exposeID('defaultWorkspaceId', {
      nullable: true,
      description: 'The workspace that new users join, and start in. `null` for none.',
    }),
    defaultWorkspaceRole: t.expose('defaultWorkspaceRole', {
      type: RoleEnum,
      description: 'The role of new users in that workspace.',
    }),
    autoCreateUsers: t.exposeBoolean('autoCreateUsers', { description: 'Whether users without an account get one.' }),
    autoUpdateProfile: t.exposeBoolean('autoUpdateProfile', {
      description: 'Whether each sign-in updates name, picture and locale of accounts of the organization.',
    }),
    isActive: t.exposeBoolean('isActive', { description: 'Whether users may sign in with it.' }),
    suspendsTokens: t.exposeBoolean('suspendsTokens', {
      description:
        'Whether switching it off, deleting it or removing a link suspends the API tokens of its users in the ' +
        'organization.',
    }),
  }),
});

inOrganization(IdentityProvider, 'identity_provider');
refersTo(IdentityProvider, { defaultWorkspaceId: 'workspace' });
tracked(IdentityProvider);
readable(IdentityProvider, {
  kind: 'identity_provider',
  below: Organization,
  reads: ({ identityProviders }) => identityProviders.reads,
  one: { organization: 'The organization of the provider.', argDescription: 'The provider.' },
  nested: {
    nullable: true,
    description:
      'Where users of the organization sign in, newest first. `null` with an error if the caller may not read it.',
  },
});

const target = () => ({ ...organizationArgs(), ...idArg('The provider.') });

const DeleteIdentityProviderPayload = deletePayload('DeleteIdentityProvider', { noun: 'provider', in: ['orgId'] });

builder.mutationFields((t) => ({
  createIdentityProvider: t.field({
    type: IdentityProvider,
    description: 'Adds a provider.',
    authorize: { organization: 'identity_provider:create' },
    emits: ['identity_provider.created'],
    mayFail: ['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'],
    args: { ...organizationArgs(), ...inputArg(CreateIdentityProviderInput, 'The provider.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.identityProviders.create(caller, organization, input),
  }),
  updateIdentityProvider: t.field({
    type: IdentityProvider,
    description: 'Changes a provider. Nobody may change one that grants a role above their own.',
    authorize: { organization: 'identity_provider:update' },
    emits: ['identity_provider.updated'],
    mayFail: ['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT'],
    args: { ...target(), ...inputArg(UpdateIdentityProviderInput), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.identityProviders.update(caller, organization, id, input),
  }),
  deleteIdentityProvider: t.field({
    type: DeleteIdentityProviderPayload,
    description:
      'Deletes a provider with its links to accounts, and ends the sessions that it made. The accounts stay with ' +
      'all their roles, including roles that groups have granted.',
    authorize: { organization: 'identity_provider:delete' },
    emits: ['identity_provider.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.identityProviders.delete(caller, organization, id),
  }),
}));
