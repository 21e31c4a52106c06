import { createHash } from 'node:crypto';

/**
 * The key of an entity among those of its type in its app and namespace (defaults §7): its name in lower case, and
 * `metadata.external_id` where there is one. It is a hash, because neither of them fits an index in any length.
 */
export function identityKeyOf(name: string, metadata: unknown): string {
  const { external_id: externalId = null } = (metadata ?? {}) as { external_id?: unknown };
  return createHash('sha256')
    .update(JSON.stringify([name.normalize('NFC').toLowerCase(), externalId]))
    .digest('base64url');
}
