import { randomBytes } from 'node:crypto';
import { open, seal } from '../../platform/keys/aead.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import type { NamedKey } from '../../setting.ts';

/** The value of a secret: names with JSON scalars or objects. */
export type SecretValue = Record<string, unknown>;

/** The secret that a data key belongs to. */
export interface SecretIdentity {
  orgId: string;
  id: string;
}

/** A stored data key, wrapped by a root key. */
export interface WrappedKey extends SecretIdentity {
  rootKeyId: string;
  wrappedKey: Uint8Array;
}

/** A stored value. `ciphertext` is null once the version was destroyed. */
export interface SealedVersion {
  version: number;
  ciphertext: Uint8Array | null;
}

/**
 * A part of the vault cannot be opened: it was altered, moved from another row, or sealed with a missing key. This is
 * never the caller's fault: the service logs it and answers that the value is unreadable. The message says what failed
 * and why, and contains nothing of a value.
 */
export class VaultFault extends Error {
  override readonly name = 'VaultFault';
  readonly reason: string;
  constructor({ orgId, id }: SecretIdentity, what: string, reason: string) {
    super(`${what} of the secret '${id}' of '${orgId}' ${reason}`);
    this.reason = reason;
  }
}

/** The result of `work`; `null` after a fault, which goes to `onFault`. */
export function attempt<T>(work: () => T, onFault: (fault: VaultFault) => void): T | null {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error;
    onFault(error);
    return null;
  }
}

// Associated data: a key opens only for its own secret, a value only for its own version.
const keyContext = ({ orgId, id }: SecretIdentity) => `key|${orgId}|${id}`;
const valueContext = ({ orgId, id }: SecretIdentity, version: number) => `value|${orgId}|${id}|${version}`;

/** A new data key. Each secret has its own. */
export const newDataKey = (): Buffer => randomBytes(32);

/** Wraps a data key for its secret. */
export function wrapKey(root: NamedKey, secret: SecretIdentity, dataKey: Buffer): Uint8Array<ArrayBuffer> {
  return seal(root.key, dataKey, keyContext(secret));
}

/** @throws VaultFault */
export function unwrapKey(rootKeys: RootKeys, secret: WrappedKey): Buffer {
  const root = rootKeys.find(secret.rootKeyId);
  if (!root)
    throw new VaultFault(secret, 'the data key', `is wrapped by the root key '${secret.rootKeyId}', which is missing`);
  try {
    return open(root.key, secret.wrappedKey, keyContext(secret));
  } catch {
    // The cause only says that the key does not fit.
    throw new VaultFault(secret, 'the data key', `cannot be decrypted with the root key '${secret.rootKeyId}'`);
  }
}

/** Seals a value as one version of its secret. */
export function sealValue(
  dataKey: Buffer,
  secret: SecretIdentity,
  version: number,
  value: SecretValue,
): Uint8Array<ArrayBuffer> {
  return seal(dataKey, Buffer.from(JSON.stringify(value)), valueContext(secret, version));
}

/** @throws VaultFault */
export function openValue(
  dataKey: Buffer,
  secret: SecretIdentity,
  { version, ciphertext }: SealedVersion,
): SecretValue {
  const what = `version ${version}`;
  if (!ciphertext) throw new VaultFault(secret, what, 'has no ciphertext');
  let text: string;
  try {
    text = open(dataKey, ciphertext, valueContext(secret, version)).toString('utf8');
  } catch {
    throw new VaultFault(secret, what, 'cannot be decrypted with the data key');
  }
  return JSON.parse(text) as SecretValue; // what opens was written by sealValue
}
