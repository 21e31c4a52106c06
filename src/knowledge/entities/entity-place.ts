import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppNamespacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';

/**
 * Locks the app and the namespace of something new against being deleted.
 * @throws RESOURCE_NOT_FOUND when one of them is gone already
 */
export function demandPlace(tx: Tx, { namespaceId, appId }: AppNamespacePlace): void {
  tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
  tx.demand('apps', { id: appId }, 'key share', () => notFound('app', appId));
}

/**
 * Lets one import at a time into an app and a namespace. What is the same by an alias or an external id no constraint
 * keeps single, so whoever looks for it and then creates it must be alone.
 */
export async function lockImports(tx: Tx, { appId, namespaceId }: AppNamespacePlace): Promise<void> {
  const place = `entities of ${appId} in ${namespaceId}`;
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${place}, 0))`);
}
