import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { isUnstorable } from '../../kernel/constraints.ts';
import { CHALLENGE_SECONDS } from './challenges.ts';

/** A passkey as an authenticator's answer is checked with it. */
export interface KnownPasskey {
  credentialId: string;
  publicKey: Uint8Array;
  signCount: number;
  transports: readonly string[];
}

/** A new passkey, as its authenticator has shown it. */
export interface ShownPasskey extends KnownPasskey {
  isSynced: boolean;
  isUserVerified: boolean;
}

const SITE_NAME = 'Platform';
/** Longer ones are no authenticator's. */
const MAX_TEXT = 16_384;
const MAX_CREDENTIAL_ID = 1_400;
const MAX_TRANSPORTS = 8;
/** EdDSA, ES256 and RS256: what authenticators know. */
const ALGORITHMS = [-8, -7, -257];

/** Made when it is first needed: most processes see no passkey. */
const library = () => import('@simplewebauthn/server');
const helpers = () => import('@simplewebauthn/server/helpers');

/** What a browser has made of the answer of an authenticator, as it was sent. */
export type CredentialJson = Readonly<Record<string, unknown>>;

/**
 * What browsers and the service say to each other about passkeys (WebAuthn). Bound to the origin of the service and to
 * its host: another address makes others.
 */
export class PasskeyCeremonies {
  readonly #publicUrl: () => string;

  constructor(publicUrl: () => string) {
    this.#publicUrl = publicUrl;
  }

  get #site(): { origin: string; host: string } {
    const { origin, hostname } = new URL(this.#publicUrl());
    return { origin, host: hostname };
  }

  /** What a browser makes a new passkey of. @param known those of the user: no authenticator gets a second one */
  async creation(
    nonce: string,
    user: { id: string; name: string; displayName: string },
    known: readonly Pick<KnownPasskey, 'credentialId' | 'transports'>[],
  ): Promise<PublicKeyCredentialCreationOptionsJSON> {
    const { generateRegistrationOptions } = await library();
    return generateRegistrationOptions({
      rpName: SITE_NAME,
      rpID: this.#site.host,
      userName: user.name,
      userDisplayName: user.displayName,
      userID: new TextEncoder().encode(user.id),
      challenge: new Uint8Array(Buffer.from(nonce, 'base64url')),
      timeout: CHALLENGE_SECONDS * 1_000,
      attestationType: 'none',
      excludeCredentials: known.map(({ credentialId: id, transports }) => ({ id, transports: [...transports] })),
      authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
      supportedAlgorithmIDs: ALGORITHMS,
    });
  }

  /** What a browser asks a passkey with. @param known one of these; none: any that the user chooses */
  async request(
    nonce: string,
    known: readonly Pick<KnownPasskey, 'credentialId' | 'transports'>[],
  ): Promise<PublicKeyCredentialRequestOptionsJSON> {
    const { generateAuthenticationOptions } = await library();
    return generateAuthenticationOptions({
      rpID: this.#site.host,
      challenge: new Uint8Array(Buffer.from(nonce, 'base64url')),
      timeout: CHALLENGE_SECONDS * 1_000,
      userVerification: known.length === 0 ? 'required' : 'preferred',
      allowCredentials: known.map(({ credentialId: id, transports }) => ({ id, transports: [...transports] })),
    });
  }

  /** The passkey of an authenticator's answer; `null` for an answer that is wrong in any way. */
  async created(credential: CredentialJson, nonce: string): Promise<ShownPasskey | null> {
    if (!isAnswer(credential) || !(await isWithoutCertificates(credential))) return null;
    const { verifyRegistrationResponse } = await library();
    const { origin, host } = this.#site;
    const { registrationInfo: info } = await verifyRegistrationResponse({
      response: credential as unknown as RegistrationResponseJSON,
      expectedChallenge: nonce,
      expectedOrigin: origin,
      expectedRPID: host,
      requireUserVerification: false,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch(() => ({ registrationInfo: undefined }));
    if (!info || info.credential.id.length > MAX_CREDENTIAL_ID) return null;
    return {
      credentialId: info.credential.id,
      publicKey: info.credential.publicKey,
      signCount: info.credential.counter,
      transports: transportsOf(credential),
      isSynced: info.credentialBackedUp,
      isUserVerified: info.userVerified,
    };
  }

  /**
   * Whether an authenticator's answer is right: of that passkey, for this challenge and this origin, with a count that
   * has risen.
   * @returns the new count, and whether the authenticator knows that it was its user; `null` when it is wrong
   */
  async proven(
    credential: CredentialJson,
    nonce: string,
    { credentialId, publicKey, signCount }: KnownPasskey,
  ): Promise<{ signCount: number; isUserVerified: boolean } | null> {
    if (!isAnswer(credential)) return null;
    const { verifyAuthenticationResponse } = await library();
    const { origin, host } = this.#site;
    const { verified, authenticationInfo: info } = await verifyAuthenticationResponse({
      response: credential as unknown as AuthenticationResponseJSON,
      expectedChallenge: nonce,
      expectedOrigin: origin,
      expectedRPID: host,
      credential: { id: credentialId, publicKey: new Uint8Array(publicKey), counter: signCount },
      requireUserVerification: false,
    }).catch(() => ({ verified: false, authenticationInfo: undefined }));
    return verified && info ? { signCount: info.newCounter, isUserVerified: info.userVerified } : null;
  }
}

/** The id of the passkey that an answer is of; `null` where it has none. */
export const credentialIdOf = ({ id }: CredentialJson): string | null =>
  typeof id === 'string' && id.length <= MAX_CREDENTIAL_ID && !isUnstorable(id) ? id : null;

/** The user that a discoverable passkey says it is of. */
export function userHandleOf({ response }: CredentialJson): string | null {
  const handle = isRecord(response) ? response.userHandle : undefined;
  return typeof handle === 'string' ? Buffer.from(handle, 'base64url').toString() : null;
}

const isRecord = (value: unknown): value is CredentialJson => typeof value === 'object' && value !== null;

/** Whether it has the form of an answer, with no text that is endless. */
function isAnswer({ response, ...rest }: CredentialJson): boolean {
  if (!isRecord(response) || typeof rest.id !== 'string') return false;
  return [...Object.values(rest), ...Object.values(response)].every(
    (value) => typeof value !== 'string' || value.length <= MAX_TEXT,
  );
}

/**
 * Whether an authenticator does not say by certificates what it is. Nobody asked for that, and the library would ask
 * the addresses in them whether they still hold.
 */
async function isWithoutCertificates({ response }: CredentialJson): Promise<boolean> {
  if (!isRecord(response) || typeof response.attestationObject !== 'string') return false;
  const { decodeAttestationObject, isoBase64URL } = await helpers();
  try {
    const object = decodeAttestationObject(isoBase64URL.toBuffer(response.attestationObject));
    const format = object.get('fmt');
    return format === 'none' || (format === 'packed' && !object.get('attStmt').get('x5c'));
  } catch {
    return false;
  }
}

function transportsOf({ response }: CredentialJson): string[] {
  const given: unknown = isRecord(response) ? response.transports : undefined;
  if (!Array.isArray(given)) return [];
  return given
    .filter((word): word is string => typeof word === 'string' && /^[a-z-]{1,20}$/.test(word))
    .slice(0, MAX_TRANSPORTS);
}
