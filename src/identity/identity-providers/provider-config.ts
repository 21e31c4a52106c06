import type { Columns } from '../../data/tables.ts';
import { InputError, type InputIssue, invalidInput, valueIssue } from '../../kernel/errors.ts';
import { endOfCertificates, NoCertificates, readCertificates } from './certificates.ts';
import { domainKey } from './domain-name.ts';
import type { Protocol } from './identity-provider.reads.ts';
import { addressFault } from './secure-address.ts';

type ProviderColumns = Columns<'identity_providers'>;

export interface SamlConfig {
  entityId: string;
  ssoUrl: string;
  sloUrl?: string | null | undefined;
  certificate: string;
  signAuthnRequests?: boolean | null | undefined;
  nameIdFormat?: string | null | undefined;
  allowUnsolicited?: boolean | null | undefined;
}

export interface OidcConfig {
  clientId: string;
  clientSecretRef?: string | null | undefined;
  discoveryUrl: string;
  scopes?: readonly string[] | null | undefined;
}

/** Where the configuration of a SAML provider is read. */
export interface MetadataInput {
  url: string;
  certificate?: string | null | undefined;
}

export interface ProviderConfig {
  samlConfig?: SamlConfig | null | undefined;
  samlMetadata?: MetadataInput | null | undefined;
  oidcConfig?: OidcConfig | null | undefined;
}

/** The form of name identifiers that the spec shows. */
export const EMAIL_NAME_ID = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';
const SCOPES = ['openid', 'email', 'profile'];

/**
 * The columns of a configuration; none for a configuration that is not given.
 * @throws InputError for the configuration of the other protocol, an address that is not secure, and a text without
 * certificates
 */
export function columnsOfConfig(protocol: Protocol, input: ProviderConfig): ProviderColumns {
  const { samlConfig, oidcConfig } = input;
  const others = protocol === 'saml' ? (['oidcConfig'] as const) : (['samlConfig', 'samlMetadata'] as const);
  for (const name of others)
    if (input[name]) throw invalidInput(['input', name], `the protocol of the provider is '${protocol}'`);
  return protocol === 'saml' ? samlColumns(samlConfig) : oidcColumns(oidcConfig);
}

function samlColumns(config: SamlConfig | null | undefined): ProviderColumns {
  if (config === undefined) return {};
  const path = (name: string) => ['input', 'samlConfig', name];
  if (config === null)
    return {
      samlEntityId: null,
      samlSsoUrl: null,
      samlSloUrl: null,
      samlCertificate: null,
      samlSignAuthnRequests: false,
      samlNameIdFormat: null,
      samlAllowsUnsolicited: false,
      certificateEndsAt: null,
    };
  refuse([...insecure(config.ssoUrl, path('ssoUrl')), ...insecure(config.sloUrl, path('sloUrl'))]);
  return {
    samlEntityId: config.entityId,
    samlSsoUrl: config.ssoUrl,
    samlSloUrl: config.sloUrl ?? null,
    samlCertificate: config.certificate,
    samlSignAuthnRequests: config.signAuthnRequests ?? false,
    samlNameIdFormat: config.nameIdFormat ?? EMAIL_NAME_ID,
    samlAllowsUnsolicited: config.allowUnsolicited ?? false,
    certificateEndsAt: endOf(config.certificate, path('certificate')),
  };
}

function oidcColumns(config: OidcConfig | null | undefined): ProviderColumns {
  if (config === undefined) return {};
  if (config === null) return { oidcClientId: null, oidcClientSecretRef: null, oidcDiscoveryUrl: null, oidcScopes: [] };
  refuse(insecure(config.discoveryUrl, ['input', 'oidcConfig', 'discoveryUrl']));
  return {
    oidcClientId: config.clientId,
    oidcClientSecretRef: config.clientSecretRef ?? null,
    oidcDiscoveryUrl: config.discoveryUrl,
    oidcScopes: config.scopes ?? SCOPES,
  };
}

const refuse = (issues: InputIssue[]): void => {
  if (issues.length > 0) throw new InputError(issues);
};

/** What is wrong with an address that browsers or the service are sent to. */
function insecure(text: string | null | undefined, path: string[]): InputIssue[] {
  const fault = text ? addressFault(text) : null;
  return fault === null ? [] : [valueIssue(path, fault)];
}

/** When the last certificate of a text ends. @throws InputError for a text that is no list of certificates */
export function endOf(certificate: string, path: string[]): Date {
  try {
    return endOfCertificates(readCertificates(certificate));
  } catch (error) {
    if (error instanceof NoCertificates) throw invalidInput(path, error.message);
    throw error;
  }
}

/** The domains of a list, as they are compared. @throws InputError at each that is no domain or is there twice */
export function domainKeysOf(domains: readonly string[]): string[] {
  const keys = domains.map(domainKey);
  refuse(
    keys.flatMap((key, index) => {
      const path = ['input', 'verifiedDomains', index];
      if (key === null) return [valueIssue(path, 'it is not a domain: write it like example.com')];
      return keys.indexOf(key) === index ? [] : [valueIssue(path, 'the domain is already in the list')];
    }),
  );
  return keys as string[];
}
