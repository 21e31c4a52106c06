import { createHash, createHmac } from 'node:crypto';
import { open, seal } from './aead.ts';

/**
 * Seals texts that the service keeps for itself with AES-256-GCM, under a key derived from its secret for one purpose.
 */
export class Seal {
  readonly #key: Buffer;

  constructor(secret: Buffer, purpose: string) {
    this.#key = createHash('sha256').update(`seal ${purpose} `).update(secret).digest();
  }

  /**
   * Equal texts have equal fingerprints; without the secret, a fingerprint reveals nothing else. With a plain hash, the
   * password in a body could be found by trial.
   */
  fingerprint(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }

  /** `context` must be the same for `open`: a sealed text cannot be moved to another row. */
  seal(text: string, context: string): Buffer<ArrayBuffer> {
    return seal(this.#key, Buffer.from(text), context);
  }

  /** @throws Error when it was sealed with another secret or for another context */
  open(sealed: Uint8Array, context: string): string {
    return open(this.#key, sealed, context).toString('utf8');
  }
}
