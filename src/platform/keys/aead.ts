import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * AES-256-GCM with a random nonce: nonce, ciphertext and tag in one piece.
 * @param key 32 bytes; a key must seal at most 2^32 times, because random nonces may collide beyond that
 * @param context what the sealed bytes belong to: they cannot be opened with another context
 */
export function seal(key: Uint8Array, plaintext: Uint8Array, context: string): Buffer<ArrayBuffer> {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** The plaintext. @throws Error when the bytes were altered, or sealed with another key or for another context */
export function open(key: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error('the encrypted bytes are truncated');
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}
