import { randomBytes } from 'node:crypto';
import { open, seal } from '../platform/keys/aead.ts';
import type { RootKeys } from '../platform/keys/root-keys.ts';
import type { NamedKey } from '../setting.ts';

/** What a secret holds: names with JSON scalars or objects. */
export type SecretValue = Record<string, unknown>;

/** Whose a data key is. */
export interface SecretIdentity {
  orgId: string;
  id: string;
}

/** A data key as it is kept: wrapped by a root key. */
export interface WrappedKey extends SecretIdentity {
  rootKeyId: string;
  wrappedKey: Uint8Array;
}

/** A value as it is kept. `ciphertext` is null once the version was destroyed. */
export interface SealedVersion {
  version: number;
  ciphertext: Uint8Array | null;
}

/**
 * Something of the vault does not open: altered, moved from another row, or sealed with a key that is not there. A
 * fault, never the caller's: it is logged, and who asked is told that the value is unreadable. The message says what
 * and why, and holds nothing of a value.
 */
export class VaultFault extends Error {
  override readonly name = 'VaultFault';
  readonly reason: string;
  constructor({ orgId, id }: SecretIdentity, what: string, reason: string) {
    super(`${what} of the secret '${id}' of '${orgId}' ${reason}`);
    this.reason = reason;
  }
}

/** What `work` opens; `null` where it does not open, which is told. */
export function attempt<T>(work: () => T, onFault: (fault: VaultFault) => void): T | null {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error;
    onFault(error);
    return null;
  }
}

// associated data: a key opens for its own secret only, a value for its own version only
const keyContext = ({ orgId, id }: SecretIdentity) => `key|${orgId}|${id}`;
const valueContext = ({ orgId, id }: SecretIdentity, version: number) => `value|${orgId}|${id}|${version}`;

/** A new data key: each secret has one of its own. */
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
    // the cause says no more than that it does not fit
    throw new VaultFault(secret, 'the data key', `does not open with the root key '${secret.rootKeyId}'`);
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
    throw new VaultFault(secret, what, 'does not open with the data key');
  }
  return JSON.parse(text) as SecretValue; // what opens was written by sealValue
}
