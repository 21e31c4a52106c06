import { builder } from '../../graphql/builder.ts';
import { bounds } from '../../graphql/inputs.ts';
import { RoleEnum } from '../../graphql/shared-enums.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { SsoProtocol } from './identity-provider.enums.ts';

const address = { maxLength: 2_048, format: 'uri' } as const satisfies Constraints;
const word = { minLength: 1, maxLength: 255 } as const satisfies Constraints;
const entity = { minLength: 1, maxLength: 1_024 } as const satisfies Constraints;
const reference = { minLength: 1, maxLength: 512 } as const satisfies Constraints;
const certificate = { minLength: 1, maxBytes: 64 * 1024 } as const satisfies Constraints;
const scopes = {
  maxItems: 50,
  item: { pattern: '[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,128}' },
} as const satisfies Constraints;
const domains = { maxItems: 100, item: { minLength: 1, maxLength: 253 } } as const satisfies Constraints;
const mappings = { maxItems: 200 } as const satisfies Constraints;
const kept = <Bounds extends Constraints>(constraints: Bounds) => ({ ...constraints, notNull: true }) as const;

const SamlConfigInput = builder.inputType('SamlConfigInput', {
  description: 'How users sign in at a SAML 2.0 provider. It replaces the whole previous configuration.',
  fields: (t) => ({
    entityId: t.string({ required: true, constraints: entity, description: 'The entity identifier of the provider.' }),
    ssoUrl: t.string({
      required: true,
      constraints: address,
      description: 'Where users sign in. `https`, or `http` on this machine.',
    }),
    sloUrl: t.string({
      constraints: address,
      description:
        'Where users sign out. `https`, or `http` on this machine. `null`: signing out here does not end the ' +
        'session at the provider.',
    }),
    certificate: t.string({
      required: true,
      constraints: certificate,
      description:
        'The X.509 certificate that the provider signs with, as PEM. Several blocks, one after the other, let the ' +
        'provider change to its next key.',
    }),
    signAuthnRequests: t.boolean({ description: 'Whether the service signs its requests. Default false.' }),
    nameIdFormat: t.string({
      constraints: word,
      description: 'The form in which the provider names users. Default: the e-mail address.',
    }),
    allowUnsolicited: t.boolean({
      description:
        'Whether sign-ins may start at the provider. Default false, because a stranger could then sign a user in ' +
        'to a foreign account.',
    }),
  }),
});

const SamlMetadataInput = builder.inputType('SamlMetadataInput', {
  description:
    'Where the configuration of a SAML provider is read: at once, and again and again. It takes the place of ' +
    '`samlConfig`.',
  fields: (t) => ({
    url: t.string({
      required: true,
      constraints: address,
      description:
        'The address of the metadata of this one provider. `https`, or `http` on this machine; it must be a target ' +
        'that the operator allows.',
    }),
    certificate: t.string({
      constraints: certificate,
      description:
        'X.509 certificates as PEM, by one of which the metadata must be signed, each time. `null`: it need not be ' +
        'signed, and is trusted as its address is.',
    }),
  }),
});

const OidcConfigInput = builder.inputType('OidcConfigInput', {
  description: 'How users sign in at an OpenID Connect provider. It replaces the whole previous configuration.',
  fields: (t) => ({
    clientId: t.string({ required: true, constraints: reference, description: 'The client at the provider.' }),
    clientSecretRef: t.string({
      constraints: reference,
      description:
        "A reference to the client's secret, never the secret: `secret://name` for a secret of the organization " +
        'itself, or `sec_…`. Its key is `client_secret`, or it has only one. `null` for a client without a secret.',
    }),
    discoveryUrl: t.string({
      required: true,
      constraints: address,
      description:
        'The issuer, or its `/.well-known/openid-configuration`. `https`, or `http` on this machine; it must be a ' +
        'target that the operator allows.',
    }),
    scopes: t.stringList({ constraints: scopes, description: 'Default `openid`, `email`, `profile`.' }),
  }),
});

const IdentityGroupMappingInput = builder.inputType('IdentityGroupMappingInput', {
  description: 'The role of the users in a group at the provider.',
  fields: (t) => ({
    group: t.string({ required: true, constraints: word, description: 'The name of the group, exactly.' }),
    roleId: t.field({
      type: RoleEnum,
      required: true,
      description: "The role. Never above the caller's own role in the organization.",
    }),
    workspaceId: t.id({
      constraints: bounds.id,
      description: 'A workspace of the organization: the role is for it alone. `null`: for the organization.',
    }),
  }),
});

const text = {
  name: 'Display name. It need not be unique.',
  verifiedDomains:
    'Mail domains whose users sign in here. A domain belongs to one provider of the whole service. Existing ' +
    'accounts are linked only if their domain is proven (`startDomainProof`).',
  groupMappings: 'The highest of several roles for one place applies. Roles are applied at each sign-in.',
  groupAttribute: 'The claim or attribute that has the groups.',
  defaultRoleId: "The role of new users in the organization. Never above the caller's own.",
  defaultWorkspaceId: 'A workspace of the organization that new users join, and start in. `null` for none.',
  defaultWorkspaceRole: "The role of new users in that workspace. Never above the caller's own.",
  autoCreateUsers: 'Whether users without an account get one.',
  autoUpdateProfile: 'Whether each sign-in updates name, picture and locale of accounts of the organization.',
  isActive: 'Whether users may sign in with it. Switching it off ends the sessions that it made.',
  suspendsTokens:
    'Whether switching it off, deleting it or removing a link suspends the API tokens of its users in the ' +
    'organization, until they sign in at a provider of the organization again.',
} as const;

export const CreateIdentityProviderInput = builder.inputType('CreateIdentityProviderInput', {
  description: 'A new provider. Without the configuration of its protocol nobody signs in with it yet.',
  fields: (t) => ({
    name: t.string({ required: true, constraints: bounds.name, description: text.name }),
    protocol: t.field({ type: SsoProtocol, required: true, description: 'How it signs users in.' }),
    samlConfig: t.field({ type: SamlConfigInput, description: 'Only for the protocol `saml`.' }),
    samlMetadata: t.field({
      type: SamlMetadataInput,
      description: 'Only for the protocol `saml`, in place of `samlConfig`: reads the configuration.',
    }),
    oidcConfig: t.field({ type: OidcConfigInput, description: 'Only for the protocol `oidc`.' }),
    verifiedDomains: t.stringList({ constraints: domains, description: text.verifiedDomains }),
    groupMappings: t.field({
      type: [IdentityGroupMappingInput],
      constraints: mappings,
      description: text.groupMappings,
    }),
    groupAttribute: t.string({ constraints: word, description: `${text.groupAttribute} Default \`groups\`.` }),
    defaultRoleId: t.field({ type: RoleEnum, description: `${text.defaultRoleId} Default \`member\`.` }),
    defaultWorkspaceId: t.id({ constraints: bounds.id, description: text.defaultWorkspaceId }),
    defaultWorkspaceRole: t.field({
      type: RoleEnum,
      description: `${text.defaultWorkspaceRole} Default \`member\`.`,
    }),
    autoCreateUsers: t.boolean({ description: `${text.autoCreateUsers} Default true.` }),
    autoUpdateProfile: t.boolean({ description: `${text.autoUpdateProfile} Default true.` }),
    isActive: t.boolean({ description: `${text.isActive} Default true.` }),
    suspendsTokens: t.boolean({ description: `${text.suspendsTokens} Default true.` }),
  }),
});

export const UpdateIdentityProviderInput = builder.inputType('UpdateIdentityProviderInput', {
  description: 'The fields to change. Omitted fields stay as they are.',
  fields: (t) => ({
    name: t.string({ constraints: bounds.keptName, description: text.name }),
    protocol: t.field({
      type: SsoProtocol,
      constraints: { notNull: true },
      description: 'It cannot change: create another provider instead.',
    }),
    samlConfig: t.field({
      type: SamlConfigInput,
      description: 'Replaces the configuration; `null` removes it. What is read from `samlMetadata` cannot be written.',
    }),
    samlMetadata: t.field({
      type: SamlMetadataInput,
      description:
        'Reads the configuration now, and from then on, also if it is of another entity id. `null`: the ' +
        'configuration stays as it is, and is read no more.',
    }),
    oidcConfig: t.field({ type: OidcConfigInput, description: 'Replaces the configuration; `null` removes it.' }),
    verifiedDomains: t.stringList({
      constraints: kept(domains),
      description: `${text.verifiedDomains} Replaces all; the proof of a domain that is left out ends.`,
    }),
    groupMappings: t.field({
      type: [IdentityGroupMappingInput],
      constraints: kept(mappings),
      description: `${text.groupMappings} Replaces all.`,
    }),
    groupAttribute: t.string({ constraints: kept(word), description: text.groupAttribute }),
    defaultRoleId: t.field({
      type: RoleEnum,
      constraints: { notNull: true },
      description: text.defaultRoleId,
    }),
    defaultWorkspaceId: t.id({ constraints: bounds.id, description: text.defaultWorkspaceId }),
    defaultWorkspaceRole: t.field({
      type: RoleEnum,
      constraints: { notNull: true },
      description: text.defaultWorkspaceRole,
    }),
    autoCreateUsers: t.boolean({ constraints: { notNull: true }, description: text.autoCreateUsers }),
    autoUpdateProfile: t.boolean({ constraints: { notNull: true }, description: text.autoUpdateProfile }),
    isActive: t.boolean({ constraints: { notNull: true }, description: text.isActive }),
    suspendsTokens: t.boolean({ constraints: { notNull: true }, description: text.suspendsTokens }),
  }),
});
