import { type CacheProvider, SAML, type SamlConfig, ValidateInResponseTo } from '@node-saml/node-saml';
import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SKEW_MS } from './assertion.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKeyPair } from './service-key.ts';

/** A sign-in ends ten minutes after it has begun (defaults §1). */
const REQUEST_MS = 600_000;

/** What the service is called towards one provider, and where that one finds it. */
export interface ServiceAddresses {
  acsUrl: string;
  entityId: string;
  sloUrl: string;
}

/** Settings of the library for one message. */
interface LibraryOptions {
  addresses: ServiceAddresses;
  /** The request that is made, or that the message answers; `null`: one that nobody asked for. */
  requestId: string | null;
  now: number;
  /** Decrypts assertions. */
  privateKey: string;
  /** Signs requests. */
  signsAs?: ServiceKeyPair | null;
  isResponseSigned?: boolean;
}

/** The library for one provider, with everything strict. */
export function samlLibrary(
  provider: SamlProvider,
  { addresses, requestId, now, privateKey, signsAs = null, isResponseSigned = false }: LibraryOptions,
): SAML {
  return new SAML({
    callbackUrl: addresses.acsUrl,
    ...(provider.sloUrl === null ? {} : { logoutCallbackUrl: addresses.sloUrl }),
    entryPoint: provider.ssoUrl,
    issuer: addresses.entityId,
    audience: addresses.entityId,
    idpIssuer: provider.entityId,
    idpCert: certificateBlocks(provider.certificate),
    identifierFormat: provider.nameIdFormat,
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: isResponseSigned,
    acceptedClockSkewMs: SKEW_MS,
    validateInResponseTo: requestId === null ? ValidateInResponseTo.never : ValidateInResponseTo.always,
    requestIdExpirationPeriodMs: REQUEST_MS,
    cacheProvider: onlyRequest(requestId ?? '', now),
    generateUniqueId: () => requestId ?? '',
    disableRequestedAuthnContext: true,
    decryptionPvk: privateKey,
    signatureAlgorithm: 'sha256',
    digestAlgorithm: 'sha256',
    ...(signsAs ? { privateKey: signsAs.privateKey, publicCert: signsAs.certificate } : {}),
  } satisfies SamlConfig);
}

/**
 * The requests that the library may find: the one of the sign-in that is finished. The database has the sign-ins of all
 * nodes, and lets each be finished once.
 */
const onlyRequest = (requestId: string, now: number): CacheProvider => ({
  saveAsync: async (_key, value) => ({ value, createdAt: now }),
  getAsync: async (key) => (key === requestId ? new Date(now).toISOString() : null),
  removeAsync: async (key) => key,
});
