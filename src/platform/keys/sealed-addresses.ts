import type { ZodType } from 'zod';
import type { Seal } from './seal.ts';

interface SealedAddressesDeps<Claims> {
  seal: Seal;
  /** The address at which clients reach the service. */
  publicUrl: () => string;
  /** In front of what is sealed. */
  path: string;
  /** What is sealed for one kind of address is nothing for another. */
  context: string;
  claims: ZodType<Claims>;
}

/** Addresses that are their own permission. What one allows, and until when, is sealed in it: nothing is stored. */
export class SealedAddresses<Claims extends { expires: number }> {
  readonly #deps: SealedAddressesDeps<Claims>;

  constructor(deps: SealedAddressesDeps<Claims>) {
    this.#deps = deps;
  }

  /** An absolute address. */
  of(allowed: Claims): string {
    const { seal, publicUrl, path, context } = this.#deps;
    const ticket = seal.seal(JSON.stringify(allowed), context).toString('base64url');
    return `${publicUrl()}${path}/${ticket}`;
  }

  /** What a ticket allows; `null` if it is altered or expired. @param now milliseconds since 1970 */
  read(ticket: string, now = Date.now()): Claims | null {
    const { seal, context, claims } = this.#deps;
    const bytes = Buffer.from(ticket, 'base64url');
    // other spellings of the same bytes would be other addresses
    if (bytes.toString('base64url') !== ticket) return null;
    let text: string;
    try {
      text = seal.open(bytes, context);
    } catch {
      return null; // not sealed by this service
    }
    const allowed = claims.parse(JSON.parse(text));
    return now < allowed.expires * 1_000 ? allowed : null;
  }
}
