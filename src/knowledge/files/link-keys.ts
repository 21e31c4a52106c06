import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

interface LinkKey {
  id: string;
  key: Buffer;
}

/**
 * Signs addresses with a key derived from the secret of the service. Former secrets still verify: their links stay
 * valid until they expire.
 */
export class LinkKeys {
  readonly #keys: readonly [LinkKey, ...LinkKey[]];

  /** @param purpose a signature for one purpose is none for another */
  constructor(secret: Buffer, former: readonly string[], purpose: string) {
    this.#keys = [keyOf(secret, purpose), ...former.map((text) => keyOf(Buffer.from(text), purpose))];
  }

  sign(text: string): { keyId: string; signature: string } {
    const [{ id, key }] = this.#keys;
    return { keyId: id, signature: hmac(key, text).toString('base64url') };
  }

  /** Takes the same time for every wrong signature. */
  verify(keyId: string, text: string, signature: string): boolean {
    const known = this.#keys.find(({ id }) => id === keyId);
    if (!known) return false;
    const given = Buffer.from(signature, 'base64url');
    const right = hmac(known.key, text);
    // the text is compared as well: base64 has several spellings of the same bytes
    return given.length === right.length && timingSafeEqual(given, right) && given.toString('base64url') === signature;
  }
}

function keyOf(secret: Buffer, purpose: string): LinkKey {
  const key = createHash('sha256').update(`${purpose} `).update(secret).digest();
  return { id: createHash('sha256').update('id ').update(key).digest('hex').slice(0, 8), key };
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
