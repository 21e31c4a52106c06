import type { Tx } from '../../data/tx.ts';
import { notFound } from '../../kernel/errors.ts';

/**
 * Keeps tool instances until the end of a change that writes something with them.
 * @param orElse the error for one that was deleted just now
 */
export function demandInstances(
  tx: Tx,
  ids: readonly (string | null)[],
  orElse: (id: string) => Error = (id) => notFound('tool_instance', id),
): void {
  const given = ids.filter((id) => id !== null);
  for (const id of [...new Set(given)].sort()) tx.demand('tool_instances', { id }, 'key share', () => orElse(id));
}
