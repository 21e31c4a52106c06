import type { Changes } from '../../data/changes.ts';
import { findRow, findRows, type QueryRunner } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma, type Secret } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import type { SecretReference } from '../../kernel/owner.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import { attempt, openValue, type SecretIdentity, type SecretValue, unwrapKey, type WrappedKey } from './envelope.ts';

/** A resource that refers to a secret. */
export interface SecretUse {
  resource_type: string;
  resource_id: string;
}

/** Meaning of a reference: a secret, something external that the vault does not know, or nothing. */
export type Resolution = { kind: 'secret'; id: string } | { kind: 'external' } | { kind: 'missing'; why: string };

/** Maximum number of listed uses per column that refers to secrets. */
const MAX_USES = 100;
const BY_NAME = 'secret://';
const BY_ID = 'sec_';

/** A reference, and the organization that has it. */
export interface OwnedReference {
  orgId: string;
  reference: string;
}

/** What {@link Vault.openForEnd} names the value of a reference. */
export const referenceKey = ({ orgId, reference }: OwnedReference): string => `${orgId} ${reference}`;

interface VaultDeps {
  sql: Sql;
  changes: Changes;
  rootKeys: RootKeys;
}

/** A secret as references see it. */
interface Referable extends SecretIdentity {
  name: string;
  scope: string;
}

/**
 * References to secrets, for the rest of the service. `sec_…` is a secret by its id, wherever it lives;
 * `secret://name` is the organization's own secret of that name. Any other text refers to something external
 * (defaults §1).
 *
 * A name never reaches into a workspace: references belong to the organization. If a name could mean the only secret
 * with it, a later secret of the same name could take its place unnoticed. A name that is referred to cannot change.
 * Only a deletion, which can be undone, frees it; then anyone who may create secrets of the organization can give it to
 * another secret.
 */
export class Vault {
  readonly #deps: VaultDeps;
  #uses = '';

  constructor(deps: VaultDeps) {
    this.#deps = deps;
  }

  /** Registers the columns to check before a secret is destroyed or renamed. */
  declare(references: readonly SecretReference[]): void {
    this.#uses = references
      .map(
        ({ resource, table, column }) => `(select '${resource}' as resource_type, id as resource_id from ${table}
          where org_id = $1 and ${column} = any($2) order by id limit ${MAX_USES})`,
      )
      .join(' union all ');
  }

  /** What a reference means in an organization. Deleted secrets, and those of deleted workspaces, count as missing. */
  async resolve(db: QueryRunner, orgId: string, reference: string): Promise<Resolution> {
    const wanted = wantedBy(reference);
    if (!wanted) return { kind: 'external' };
    const [found] = await db.query<{ id: string }>(Prisma.sql`
      select s.id from secrets s left join workspaces w on w.id = s.workspace_id
      where s.org_id = ${orgId} and ${wanted} and s.status <> 'deleted' and w.deleted_at is null`);
    return found ? { kind: 'secret', id: found.id } : { kind: 'missing', why: missing(reference) };
  }

  /**
   * Checks a reference before it is stored, and locks the secret until the transaction ends, so that nobody destroys or
   * renames it meanwhile.
   * @param path of the field in the argument's names, for the error: `['input', 'credentialsRef']`
   * @throws InputError at that path if the reference names a secret that this organization does not have
   */
  async demandReference(tx: Tx, orgId: string, reference: string, path: (string | number)[]): Promise<Resolution> {
    const found = await this.resolve(tx, orgId, reference);
    if (found.kind === 'missing') throw invalidInput(path, found.why);
    if (found.kind === 'external') return found;
    // The secret may have changed while waiting for the lock: the reference must still mean it.
    const secret = await tx.lock('secrets', { id: found.id }, 'key share');
    if (!secret || secret.status === 'deleted' || !isMeant(secret, reference))
      throw invalidInput(path, missing(reference));
    return found;
  }

  /** Everything that refers to a secret. The caller must have locked it. */
  async usesOf(db: QueryRunner, secret: Referable): Promise<SecretUse[]> {
    return this.#find(db, secret.orgId, [secret.id, ...namesOf(secret)]);
  }

  /** Everything that refers to a secret by its name. The caller must have locked it. */
  async usesOfName(db: QueryRunner, secret: Referable): Promise<SecretUse[]> {
    return this.#find(db, secret.orgId, namesOf(secret));
  }

  /**
   * The value of a referenced secret, for the service's own use on behalf of `caller`. The access is counted before the
   * value is opened.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT `secret_disabled` or `secret_expired`, VaultFault
   */
  async open(caller: AnyCaller, orgId: string, reference: string): Promise<SecretValue> {
    const { sql, changes, rootKeys } = this.#deps;
    const found = await this.resolve(sql, orgId, reference);
    if (found.kind !== 'secret') throw notFound('secret', reference);
    const opened = await changes.run(caller, async (tx) => {
      const [secret] = await tx.query<WrappedKey & { version: number }>(statement`
        update secrets set access_count = access_count + 1, last_accessed_at = now()
        where id = ${found.id} and status = 'active' and coalesce(expires_at > now(), true)
        returning id, org_id as "orgId", root_key_id as "rootKeyId", wrapped_key as "wrappedKey",
          vault_version as version`);
      if (secret) return { ...secret, ciphertext: await ciphertextOf(tx, secret.id, secret.version) };
      const row = await findRow(tx, 'secrets', { id: found.id });
      if (!row || row.status === 'deleted') throw notFound('secret', reference);
      throw unusable(row.id, row.status === 'active' ? 'expired' : 'disabled');
    });
    return openValue(unwrapKey(rootKeys, opened), opened, opened);
  }

  /**
   * The values of the secrets that references mean, for the end of what refers to them: also of a place that is deleted
   * in the same change or was deleted before. Each access is counted. @returns the values by {@link referenceKey},
   * without those that are missing, disabled or expired or do not open
   */
  async openForEnd(tx: Tx, wanted: readonly OwnedReference[]): Promise<Map<string, SecretValue>> {
    if (wanted.length === 0) return new Map();
    const orgIds = wanted.map(({ orgId }) => orgId);
    const references = wanted.map(({ reference }) => reference);
    const names = references.map((text) => (text.startsWith(BY_NAME) ? text.slice(BY_NAME.length) : null));
    const found = await tx.query<{ id: string }>(statement`
      select s.id from unnest(${orgIds}::text[], ${references}::text[], ${names}::text[]) as w (org_id, id, name)
      join secrets s on s.org_id = w.org_id and (s.id = w.id or s.scope = 'organization' and s.name = w.name)`);
    const locked = await tx.lockAll(
      'secrets',
      statement`t.id = any(${found.map(({ id }) => id)}::text[])`,
      'no key update',
    );
    const secrets = locked.filter(
      ({ status, expiresAt }) => status === 'active' && (expiresAt === null || expiresAt.getTime() > Date.now()),
    );
    const ids = secrets.map(({ id }) => id);
    tx.write(statement`update secrets set access_count = access_count + 1, last_accessed_at = now()
      where id = any(${ids}::text[])`);
    // a separate statement: it sees the version of a rotation that the lock has waited for
    const versions = await findRows(
      tx,
      'secret_versions',
      statement`(t.secret_id, t.version) in (
        select * from unnest(${ids}::text[], ${secrets.map(({ vaultVersion }) => vaultVersion)}::int[]))`,
    );
    const ciphertexts = new Map(versions.map(({ secretId, ciphertext }) => [secretId, ciphertext]));
    return new Map(
      secrets.flatMap((secret) => {
        const value = attempt(
          () =>
            openValue(unwrapKey(this.#deps.rootKeys, secret), secret, {
              version: secret.vaultVersion,
              ciphertext: ciphertexts.get(secret.id) ?? null,
            }),
          () => undefined,
        );
        const meant = value ? [secret.id, ...namesOf(secret)] : [];
        return meant.map((reference): [string, SecretValue] => [
          referenceKey({ orgId: secret.orgId, reference }),
          value!,
        ]);
      }),
    );
  }

  async #find(db: QueryRunner, orgId: string, references: readonly string[]): Promise<SecretUse[]> {
    if (references.length === 0) return [];
    return db.query({ text: this.#uses, values: [orgId, references] });
  }
}

/** The condition on the secret `s` that a reference means; null for an external reference. */
function wantedBy(reference: string): Prisma.Sql | null {
  if (reference.startsWith(BY_NAME))
    return Prisma.sql`(s.scope = 'organization' and s.name = ${reference.slice(BY_NAME.length)})`;
  return reference.startsWith(BY_ID) ? Prisma.sql`s.id = ${reference}` : null;
}

/** Whether a reference means a secret that was already read. */
const isMeant = ({ id, scope, name }: Secret, reference: string): boolean =>
  reference.startsWith(BY_NAME) ? scope === 'organization' && BY_NAME + name === reference : id === reference;

const missing = (reference: string) =>
  reference.startsWith(BY_NAME)
    ? `this organization has no secret '${reference}': refer to a secret of a workspace by its identifier`
    : `there is no secret '${reference}' in this organization`;

const namesOf = ({ scope, name }: Referable): string[] => (scope === 'organization' ? [BY_NAME + name] : []);

const unusable = (id: string, state: string) =>
  conflict('secret', id, `secret_${state}`, `The secret '${id}' is ${state}: its value is not used.`);

/** The sealed value of a version; null if it was destroyed or does not exist. */
export async function ciphertextOf(db: QueryRunner, secretId: string, version: number): Promise<Uint8Array | null> {
  const row = await findRow(db, 'secret_versions', { secretId, version });
  return row?.ciphertext ?? null;
}
