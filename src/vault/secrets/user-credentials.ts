import { findRow, type QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { newId } from '../../kernel/ids.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import { newDataKey, openValue, type SecretValue, sealValue, unwrapKey, wrapKey } from './envelope.ts';
import { lockRootKey } from './root-key-lock.ts';

/**
 * What the service keeps secret for a user, such as what their one-time codes are made of: one sealed object each. Like
 * {@link Credentials}, but of no organization: it is bound to its user instead.
 */
export class UserCredentials {
  readonly #rootKeys: RootKeys;

  constructor({ rootKeys }: { rootKeys: RootKeys }) {
    this.#rootKeys = rootKeys;
  }

  /** Stores the object of a user in place of the earlier one. The caller has locked the user's row. */
  async put(tx: Tx, userId: string, value: SecretValue): Promise<void> {
    const root = await lockRootKey(tx, this.#rootKeys);
    const stored = await tx.lock('user_credentials', { userId }, 'no key update');
    const identity = { orgId: userId, id: stored?.id ?? newId('user_credential') };
    const version = (stored?.version ?? 0) + 1;
    const dataKey = newDataKey();
    const sealed = {
      rootKeyId: root.id,
      wrappedKey: wrapKey(root, identity, dataKey),
      version,
      ciphertext: sealValue(dataKey, identity, version, value),
    };
    if (stored) tx.update('user_credentials', { id: stored.id }, sealed);
    else tx.insert('user_credentials', { id: identity.id, userId, ...sealed });
  }

  /** The object of a user; `null` if there is none. @throws VaultFault if it does not open */
  async open(db: QueryRunner, userId: string): Promise<SecretValue | null> {
    const stored = await findRow(db, 'user_credentials', { userId });
    if (!stored) return null;
    const row = { ...stored, orgId: userId };
    return openValue(unwrapKey(this.#rootKeys, row), row, row);
  }

  /** Removes the object of a user, if there is one. */
  remove(tx: Tx, userId: string): void {
    tx.remove('user_credentials', { userId });
  }
}
