import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { ClientDocumentError } from './client-document-error.ts';

/** The public part of a key that a client signs with. */
export type ClientKey = Readonly<Record<string, string>>;

/** What a client may sign its assertions with. */
export const assertionAlgorithms = ['ES256', 'RS256', 'PS256', 'EdDSA', 'Ed25519'] as const;

const MAX_KEYS = 10;
const MAX_ID = 256;
const MIN_RSA_BITS = 2_048;
const MAX_RSA_BITS = 4_096;

/** What a public key of a kind consists of. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  EC: ['kty', 'crv', 'x', 'y'],
  OKP: ['kty', 'crv', 'x'],
  RSA: ['kty', 'n', 'e'],
};
const PRIVATE_PARTS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/**
 * The keys of a set that assertions can be signed with; others are left out, because the set is for other servers, too.
 * @throws ClientDocumentError when there are none, too many, or one that everybody can sign with
 */
export function readClientKeys(set: unknown): ClientKey[] {
  const keys = (set as { keys?: unknown } | null | undefined)?.keys;
  if (!Array.isArray(keys)) throw new ClientDocumentError('its keys are no key set');
  if (keys.length > MAX_KEYS) throw new ClientDocumentError(`it has more than ${MAX_KEYS} keys`);
  const usable = (keys as unknown[]).map(keyOf).filter((key) => key !== null);
  if (usable.length === 0) throw new ClientDocumentError('it has no keys that can be used');
  return usable;
}

function keyOf(value: unknown): ClientKey | null {
  if (typeof value !== 'object' || !value) return null;
  const key = value as Record<string, unknown>;
  if (key.kty === 'oct' || PRIVATE_PARTS.some((part) => part in key))
    throw new ClientDocumentError('its keys show a secret, which everybody can read');
  const parts = Object.hasOwn(PARTS, String(key.kty)) ? PARTS[String(key.kty)]! : null;
  if (!parts || (key.use ?? 'sig') !== 'sig') return null;
  const kept = Object.fromEntries([...parts, 'kid', 'alg'].flatMap((name) => (name in key ? [[name, key[name]]] : [])));
  const isText = Object.values(kept).every((part) => typeof part === 'string' && part !== '');
  return isText && isStrong(kept as ClientKey) ? { ...(kept as ClientKey), use: 'sig' } : null;
}

/** Whether a key is one of those that are offered, and no longer than a check of a signature may take. */
function isStrong(key: ClientKey): boolean {
  if ((key.kid ?? '').length > MAX_ID) return false;
  if (key.alg !== undefined && !assertionAlgorithms.some((algorithm) => algorithm === key.alg)) return false;
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey({
      key: key as JsonWebKey,
      format: 'jwk',
    });
    if (type === 'ed25519') return true;
    if (type === 'ec') return details?.namedCurve === 'prime256v1';
    const bits = details?.modulusLength ?? 0;
    // with a huge exponent, one check takes seconds
    return type === 'rsa' && bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS && details?.publicExponent === 65_537n;
  } catch {
    // what is no key is none that can be used
    return false;
  }
}
