import { TryAgain } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';

/** Locks the newest root key. A key that was verified before is locked together with the other writes of the change. */
export async function lockRootKey(tx: Tx, rootKeys: RootKeys): Promise<RootKeys['newest']> {
  const root = rootKeys.newest;
  const canary = rootKeys.canaryOf(root);
  if (!canary) return rootKeys.lock((text, values) => tx.query({ text, values }));
  tx.demand('root_keys', { id: root.id, canary }, 'key share', () => {
    rootKeys.forget(root);
    return new TryAgain('The root key is looked at again.');
  });
  return root;
}
