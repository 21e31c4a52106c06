import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Seals texts that the service keeps for itself with AES-256-GCM, under a key derived from its secret for one purpose. */
export class Seal {
  readonly #key: Buffer;

  constructor(secret: Buffer, purpose: string) {
    this.#key = createHash('sha256').update(`seal ${purpose} `).update(secret).digest();
  }

  /** Tells equal texts, and nothing else to whoever lacks the secret: a plain hash of a body would tell its password by trying. */
  fingerprint(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }

  /** `context` must be the same when it is opened: a sealed text cannot be moved to another row. */
  seal(text: string, context: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(context));
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws Error when it was sealed with another secret or for another context */
  open(sealed: Uint8Array, context: string): string {
    const bytes = Buffer.from(sealed);
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES)).setAAD(
      Buffer.from(context),
    );
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8');
  }
}
