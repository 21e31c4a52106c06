import type { Tx } from '../../data/tx.ts';
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
