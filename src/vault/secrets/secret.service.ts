import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Given } from '../../data/given.ts';
import type { LockStrength } from '../../data/locks.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Secret as SecretRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { ApiError, alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';
import { newDataKey, type SecretValue, sealValue, unwrapKey, wrapKey } from './envelope.ts';
import { lockRootKey } from './root-key-lock.ts';
import { type Secret, type SecretReads, withoutKeys } from './secret.reads.ts';
import { demandPlace, findPlace, type PlaceInput } from './secret-place.ts';
import { checkValue } from './secret-value.ts';
import { type OnVaultFault, openFor } from './unreadable.ts';
import type { SecretUse, Vault } from './vault.ts';

type Settings = Given<SecretRow, 'description' | 'expiresAt' | 'rotationReminderDays'>;
type CreateSecret = Settings & PlaceInput & Pick<SecretRow, 'name' | 'secretType'> & { value: SecretValue };
type UpdateSecret = Settings & Given<SecretRow, 'name' | 'status'>;

interface RotateSecret {
  value: SecretValue;
  /** The version that must be the current one. */
  expectedVersion?: number | null;
  expiresAt?: Date | null;
}

export interface SecretDeps extends ServiceDeps {
  reads: SecretReads;
  rootKeys: RootKeys;
  vault: Vault;
  onFault: OnVaultFault;
}

/** A secret that was deleted, without what the row has of its value. */
type DeletedSecret = Deleted<Pick<SecretRow, 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId'>>;

const deletedOf = ({ id, orgId, workspaceId, namespaceId, environmentId }: SecretRow): DeletedSecret => ({
  id,
  orgId,
  workspaceId,
  namespaceId,
  environmentId,
});

/** Number of versions whose values are kept. Older versions stay listed without a value (defaults §2). */
const KEPT_VERSIONS = 20;

/** Changes of secrets. Audit records and events never contain a value. */
export class SecretService implements ContentOwner {
  readonly retention = [`delete from secrets where status = 'deleted' and deleted_at < now() - interval '30 days'`];
  readonly reads: SecretReads;
  readonly #deps: SecretDeps;

  constructor(deps: SecretDeps) {
    this.#deps = deps;
    this.reads = deps.reads;
  }

  /** Deletes the secrets of a namespace with it. */
  placeRemoved(_caller: Caller, { kind, id }: RemovedPlace): PlaceRemoval {
    return kind === 'namespace' ? { after: (tx) => this.placeDeleted(tx, { namespaceId: id }) } : {};
  }

  /**
   * @throws RESOURCE_ALREADY_EXISTS if the name is taken in the same place, RESOURCE_NOT_FOUND if the place does not
   * exist
   */
  async create(caller: Caller, { orgId }: OrganizationPlace, { value, ...input }: CreateSecret): Promise<Secret> {
    checkValue(value, ['input', 'value']);
    const place = await findPlace(this.#deps, caller, orgId, 'secret:create', input, ['input']);
    const identity = { orgId, id: newId('secret') };
    const createdBy = caller.principal.userId;
    const made = await this.#unique({ orgId, ...place, name: input.name }, () =>
      this.#deps.changes.run(caller, async (tx) => {
        demandPlace(tx, place);
        const root = await lockRootKey(tx, this.#deps.rootKeys);
        const dataKey = newDataKey();
        const secret = tx.create('secrets', {
          ...identity,
          ...place,
          name: input.name,
          secretType: input.secretType,
          description: input.description ?? null,
          expiresAt: input.expiresAt ?? null,
          rotationReminderDays: input.rotationReminderDays ?? null,
          rootKeyId: root.id,
          wrappedKey: wrapKey(root, identity, dataKey),
          createdBy,
        });
        const ciphertext = sealValue(dataKey, identity, 1, value);
        tx.insert('secret_versions', { secretId: identity.id, version: 1, ciphertext, createdBy });
        const metadata = { scope: place.scope, secret_type: input.secretType };
        recordChange(tx, 'create', 'secret', { ...identity, ...place }, metadata);
        return secret;
      }),
    );
    return withoutKeys(made);
  }

  /**
   * Changes the given fields. Only {@link rotate} changes the value.
   * @throws RESOURCE_ALREADY_EXISTS if the name is taken in the same place; RESOURCE_CONFLICT `in_use` with
   * `references` for a new name while something refers to the secret by the old one
   */
  async update(caller: Caller, place: Checked<OrganizationPlace>, id: string, input: UpdateSecret): Promise<Secret> {
    const before = await this.reads.get(caller, place, id, 'secret:update');
    const changed = await this.#unique({ ...before, name: input.name ?? before.name }, () =>
      this.#deps.changes.run(caller, async (tx) => {
        const secret = await lockSecret(tx, id);
        await tx.expectVersion({ table: 'secrets', key: { id } });
        if (secret.status === 'deleted') throw notFound('secret', id);
        if (input.name && input.name !== secret.name) {
          const references = await this.#deps.vault.usesOfName(tx, secret);
          if (references.length > 0) throw inUse(id, 'first change everything that refers to it by name', references);
        }
        recordChange(tx, 'update', 'secret', secret, { fields: Object.keys(input) });
        const { name, status, description } = input;
        const set = { name: name ?? undefined, status: status ?? undefined, description, ...noticed(secret, input) };
        return tx.change('secrets', { id }, set, () => notFound('secret', id));
      }),
    );
    return withoutKeys(changed);
  }

  /**
   * Stores a new version of the value. Locks the secret meanwhile, so that versions have no gaps under concurrent
   * rotations.
   * @throws RESOURCE_CONFLICT `secret_deleted`, or `secret_unreadable` if the data key cannot be opened;
   * PRECONDITION_FAILED if the current version is not the expected one
   */
  async rotate(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    { value, ...input }: RotateSecret,
  ): Promise<Secret> {
    checkValue(value, ['input', 'value']);
    await this.reads.getDeletedToo(caller, place, id, 'secret:rotate');
    const identity = { orgId: place.orgId, id };
    const rotated = await this.#deps.changes.run(caller, async (tx) => {
      const held = await lockSecret(tx, id);
      await tx.expectVersion({ table: 'secrets', key: { id } });
      if (held.status === 'deleted')
        throw conflict('secret', id, 'secret_deleted', `The secret '${id}' is deleted: restore it first.`);
      if (input.expectedVersion && input.expectedVersion !== held.vaultVersion)
        throw new ApiError(
          'PRECONDITION_FAILED',
          { current_version: held.vaultVersion },
          `The secret is at version ${held.vaultVersion}, not at version ${input.expectedVersion}.`,
        );
      const version = held.vaultVersion + 1;
      const { rootKeys, onFault } = this.#deps;
      const dataKey = openFor(id, onFault, () => unwrapKey(rootKeys, { ...identity, ...held }));
      const ciphertext = sealValue(dataKey, identity, version, value);
      if (version > KEPT_VERSIONS)
        tx.write(statement`update secret_versions set ciphertext = null
          where secret_id = ${id} and version <= ${version - KEPT_VERSIONS} and ciphertext is not null`);
      tx.insert('secret_versions', { secretId: id, version, ciphertext, createdBy: caller.principal.userId });
      recordChange(tx, 'rotate', 'secret', held, { version });
      const set = {
        vaultVersion: version,
        lastRotatedAt: new Date(),
        ...noticed(held, input),
        rotationNoticedAt: null,
      };
      return tx.change('secrets', { id }, set, () => notFound('secret', id));
    });
    return withoutKeys(rotated);
  }

  /**
   * Soft-deletes a secret: it can be restored for 30 days if its place still exists, and its name is free at once.
   * References are therefore not checked: they find nothing until the secret is restored.
   * @throws RESOURCE_NOT_FOUND
   */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<DeletedSecret> {
    await this.reads.get(caller, place, id, 'secret:delete');
    return this.#deps.changes.run(caller, async (tx) => {
      const secret = await lockSecret(tx, id, 'no key update');
      await tx.expectVersion({ table: 'secrets', key: { id } });
      if (secret.status === 'deleted') throw notFound('secret', id);
      tx.update('secrets', { id }, { status: 'deleted', deletedAt: new Date() });
      recordChange(tx, 'delete', 'secret', secret);
      return deletedOf(secret);
    });
  }

  /**
   * Deletes the row permanently, with the data key and all values. A soft-deleted secret needs only the permission:
   * references to it already find nothing.
   * @throws RESOURCE_CONFLICT `in_use` with `references` while something refers to it
   */
  async destroy(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<DeletedSecret> {
    await this.reads.getDeletedToo(caller, place, id, 'secret:destroy');
    return this.#deps.changes.run(caller, async (tx) => {
      const secret = await lockSecret(tx, id);
      await tx.expectVersion({ table: 'secrets', key: { id } });
      const references = secret.status === 'deleted' ? [] : await this.#deps.vault.usesOf(tx, secret);
      if (references.length > 0) throw inUse(id, 'first change everything that refers to it', references);
      tx.remove('secrets', { id });
      recordChange(tx, 'destroy', 'secret', secret);
      return deletedOf(secret);
    });
  }

  /**
   * Restores a soft-deleted secret. A secret that is not deleted stays unchanged.
   * @throws RESOURCE_ALREADY_EXISTS if its name was taken; RESOURCE_NOT_FOUND `namespace` or `environment` if that is
   * gone: its secrets cannot be restored
   */
  async restore(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Secret> {
    const before = await this.reads.getDeletedToo(caller, place, id, 'secret:delete');
    const restored = await this.#unique(before, () =>
      this.#deps.changes.run(caller, async (tx) => {
        // also for a secret that was not deleted when it was read: its place may have been deleted with it since
        demandPlace(tx, before);
        const secret = await lockSecret(tx, id);
        await tx.expectVersion({ table: 'secrets', key: { id } });
        if (secret.status !== 'deleted') return secret;
        recordChange(tx, 'restore', 'secret', secret);
        return tx.change('secrets', { id }, { status: 'active', deletedAt: null }, () => notFound('secret', id));
      }),
    );
    return withoutKeys(restored);
  }

  /**
   * Soft-deletes the secrets of a deleted namespace or environment. They cannot be restored and are removed after 30
   * days. Call it in the transaction of the deletion, after the row of the place is deleted and before the change is
   * recorded: a secret created concurrently is committed by then and is found, and a later one finds no place.
   */
  async placeDeleted(tx: Tx, place: { namespaceId: string } | { environmentId: string }): Promise<void> {
    const [column, id] =
      'namespaceId' in place ? ['namespace_id', place.namespaceId] : ['environment_id', place.environmentId];
    const secrets = await tx.query<Pick<Secret, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId'>>({
      text: `update secrets set status = 'deleted', deleted_at = $2, updated_at = $2
        where ${column} = $1 and status <> 'deleted'
        returning id, org_id as "orgId", workspace_id as "workspaceId", namespace_id as "namespaceId",
          environment_id as "environmentId"`,
      values: [id, new Date()],
    });
    const [first] = secrets;
    if (!first) return;
    for (const secret of secrets) emitChange(tx, 'deleted', 'secret', secret);
    const { orgId, workspaceId } = first;
    const metadata = { secret_ids: secrets.map(({ id }) => id) };
    // One audit record for all secrets, so it has no resource id.
    tx.audit({ action: 'delete', resourceType: 'secret', resourceId: null, orgId, workspaceId, metadata });
  }

  async #unique<T>(
    place: Pick<Secret, 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId' | 'name'>,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      const { orgId, workspaceId, namespaceId, environmentId, name } = place;
      const [other] = await this.#deps.sql.read<{ id: string }>(
        `select id from secrets
         where org_id = $1 and coalesce(environment_id, namespace_id, workspace_id, '') = $2 and name = $3
           and status <> 'deleted'`,
        [orgId, environmentId ?? namespaceId ?? workspaceId ?? '', name],
      );
      throw alreadyExists('secret', 'name', name, other?.id);
    }
  }
}

const inUse = (id: string, advice: string, references: SecretUse[]) =>
  conflict('secret', id, 'in_use', `The secret '${id}' is in use: ${advice}.`, { references });

type Dates = Pick<UpdateSecret, 'expiresAt' | 'rotationReminderDays'>;

/** The new dates. Notices are sent again only if a date changes. */
function noticed(held: SecretRow, { expiresAt, rotationReminderDays }: Dates): Columns<'secrets'> {
  const isNewExpiry = expiresAt !== undefined && expiresAt?.getTime() !== held.expiresAt?.getTime();
  const isNewReminder = rotationReminderDays !== undefined && rotationReminderDays !== held.rotationReminderDays;
  return {
    ...(isNewExpiry && { expiresAt, expiryNoticedAt: null }),
    ...(isNewReminder && { rotationReminderDays, rotationNoticedAt: null }),
  };
}

/**
 * Locks and returns the secret. With `update`, nobody changes, destroys or refers to it until the transaction ends.
 * @throws RESOURCE_NOT_FOUND if it is gone
 */
async function lockSecret(tx: Tx, id: string, strength: LockStrength = 'update'): Promise<SecretRow> {
  return tx.lock('secrets', { id }, strength, () => notFound('secret', id));
}
