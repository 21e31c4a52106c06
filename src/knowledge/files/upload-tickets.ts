import { z } from 'zod';
import type { Seal } from '../../platform/keys/seal.ts';

const claims = z.strictObject({
  fileId: z.string(),
  orgId: z.string(),
  workspaceId: z.string(),
  namespaceId: z.string(),
  userId: z.string(),
  tokenId: z.nullable(z.string()),
  fileName: z.string(),
  /** What the client says that it is. */
  contentType: z.nullable(z.string()),
  /** How many bytes the client says that it has. */
  sizeBytes: z.optional(z.nullable(z.number())),
  /** What the client says that its SHA-256 is, in hexadecimal. */
  sha256: z.optional(z.nullable(z.string())),
  /** Seconds since 1970. */
  expires: z.number(),
});

/** What an address for an upload allows: one file, in one namespace, in the name of who asked for the address. */
export type UploadClaims = z.infer<typeof claims>;

const PATH = '/files/uploads';
const CONTEXT = 'upload ticket';

/** Makes and reads addresses for uploads. What an address allows is sealed in it: nothing is stored before the file. */
export class UploadTickets {
  /** For the router. */
  static readonly route = `${PATH}/:ticket`;
  readonly #seal: Seal;
  readonly #publicUrl: () => string;

  /** @param publicUrl the address at which clients reach the service */
  constructor(deps: { seal: Seal; publicUrl: () => string }) {
    this.#seal = deps.seal;
    this.#publicUrl = deps.publicUrl;
  }

  /** An absolute address. */
  of(allowed: UploadClaims): string {
    const ticket = this.#seal.seal(JSON.stringify(allowed), CONTEXT).toString('base64url');
    return `${this.#publicUrl()}${PATH}/${ticket}`;
  }

  /** What a ticket allows; `null` if it is altered or expired. @param now milliseconds since 1970 */
  read(ticket: string, now = Date.now()): UploadClaims | null {
    const bytes = Buffer.from(ticket, 'base64url');
    if (bytes.toString('base64url') !== ticket) return null;
    let text: string;
    try {
      text = this.#seal.open(bytes, CONTEXT);
    } catch {
      return null; // not sealed by this service
    }
    const allowed = claims.parse(JSON.parse(text));
    return now < allowed.expires * 1_000 ? allowed : null;
  }
}
