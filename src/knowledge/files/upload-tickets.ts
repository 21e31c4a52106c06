import { z } from 'zod';
import type { Seal } from '../../platform/keys/seal.ts';
import { SealedAddresses } from '../../platform/keys/sealed-addresses.ts';

const claims = z.strictObject({
  fileId: z.string(),
  orgId: z.string(),
  workspaceId: z.string(),
  namespaceId: z.string(),
  userId: z.string(),
  tokenId: z.nullable(z.string()),
  /** The session that asked for it, without a token. Addresses of earlier versions have none. */
  sessionId: z.optional(z.nullable(z.string())),
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

/** Makes and reads addresses for uploads: nothing is stored before the file. */
export class UploadTickets extends SealedAddresses<UploadClaims> {
  /** For the router. */
  static readonly route = `${PATH}/:ticket`;

  /** @param publicUrl the address at which clients reach the service */
  constructor(deps: { seal: Seal; publicUrl: () => string }) {
    super({ ...deps, path: PATH, context: 'upload ticket', claims });
  }
}
