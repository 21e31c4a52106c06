import { findRow, findRows, type QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Credential } from '../../generated/prisma/client.ts';
import { newId } from '../../kernel/ids.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import { attempt, newDataKey, openValue, type SecretValue, sealValue, unwrapKey, wrapKey } from './envelope.ts';
import { lockRootKey } from './root-key-lock.ts';

/** What a credential belongs to, and goes with. */
export type CredentialOwner = { toolInstanceId: string } | { connectionId: string } | { webhookId: string };

/**
 * Who gives a value: a user, or `null` for nobody in particular. `undefined` if it is a renewed value, which a provider
 * gave for the one that there was: it stays whose it was.
 */
type GivenBy = string | null | undefined;

/** A row of `credentials`, as far as it is opened. */
export type SealedCredential = Pick<Credential, 'id' | 'orgId' | 'rootKeyId' | 'wrappedKey' | 'version' | 'ciphertext'>;

/**
 * What tool instances, connections and webhooks keep secret, such as the tokens of a provider: one sealed object each.
 * They are no secrets of the users: nobody lists, reveals or refers to them (docs/decisions/0012).
 */
export class Credentials {
  readonly #rootKeys: RootKeys;

  constructor({ rootKeys }: { rootKeys: RootKeys }) {
    this.#rootKeys = rootKeys;
  }

  /** Locks the root key for a later {@link put}, before other secrets are locked. */
  async prepare(tx: Tx): Promise<void> {
    await lockRootKey(tx, this.#rootKeys);
  }

  /**
   * Stores the object of an owner in place of the earlier one. The caller has locked the owner's row, or inserts it in
   * the same transaction.
   * @param setBy must be said: who may send a value elsewhere depends on it
   * @returns the id of the credential, which stays the same
   */
  async put(
    tx: Tx,
    orgId: string,
    owner: CredentialOwner,
    value: SecretValue,
    { setBy }: { setBy: GivenBy },
  ): Promise<string> {
    const root = await lockRootKey(tx, this.#rootKeys);
    const stored = await tx.lock('credentials', { orgId, ...owner }, 'no key update');
    const identity = { orgId, id: stored?.id ?? newId('credential') };
    const version = (stored?.version ?? 0) + 1;
    const dataKey = newDataKey();
    const sealed = {
      rootKeyId: root.id,
      wrappedKey: wrapKey(root, identity, dataKey),
      version,
      ciphertext: sealValue(dataKey, identity, version, value),
      setBy,
    };
    if (stored) tx.update('credentials', { id: stored.id }, sealed);
    else tx.insert('credentials', { ...identity, ...owner, ...sealed });
    return identity.id;
  }

  /** The object of an owner; `null` if it has none. @throws VaultFault if it does not open */
  async open(db: QueryRunner, orgId: string, owner: CredentialOwner): Promise<SecretValue | null> {
    const stored = await findRow(db, 'credentials', { orgId, ...owner });
    return stored && this.opened(stored);
  }

  /** The object of a row that was read with others. @throws VaultFault if it does not open */
  opened(stored: SealedCredential): SecretValue {
    return openValue(unwrapKey(this.#rootKeys, stored), stored, stored);
  }

  /** The objects of connections by their identifier, without those that do not open any more. */
  async openOfConnections(db: QueryRunner, connectionIds: readonly string[]): Promise<Map<string, SecretValue>> {
    const stored = await findRows(db, 'credentials', statement`t.connection_id = any(${connectionIds}::text[])`);
    return new Map(
      stored.flatMap((row): [string, SecretValue][] => {
        const value = attempt(
          () => openValue(unwrapKey(this.#rootKeys, row), row, row),
          () => undefined,
        );
        return value && row.connectionId ? [[row.connectionId, value]] : [];
      }),
    );
  }

  /** The user whose value the object of an owner is; `null` if nobody knows, or if there is none. */
  async setterOf(db: QueryRunner, orgId: string, owner: CredentialOwner): Promise<string | null> {
    return (await findRow(db, 'credentials', { orgId, ...owner }))?.setBy ?? null;
  }

  /** Removes the object of an owner that stays, if it has one. */
  async remove(tx: Tx, orgId: string, owner: CredentialOwner): Promise<void> {
    const stored = await tx.lock('credentials', { orgId, ...owner }, 'update');
    if (stored) tx.remove('credentials', { id: stored.id });
  }
}
