import type { Caller } from '../access/caller.ts';
import { Prisma, type PrismaClient } from '../generated/prisma/client.ts';
import { conflict, invalidInput, notFound } from '../graphql/errors.ts';
import type { Changes, Tx } from '../infra/change.ts';
import type { RootKeys } from '../infra/root-keys.ts';
import { openValue, type SecretIdentity, type SecretValue, unwrapKey, type WrappedKey } from './envelope.ts';

/** Something that names a secret. */
export interface SecretUse {
  resource_type: string;
  resource_id: string;
}

/** Says what of an organization names a secret. `references` are the texts that mean it: `sec_…`, and `secret://name` unless that means another one. */
export type ReferenceFinder = (
  db: Prisma.TransactionClient,
  secret: SecretIdentity & { references: readonly string[] },
) => Promise<SecretUse[]>;

/** What a reference means: a secret; something outside, which the vault does not know; or nothing. */
export type Resolution = { kind: 'secret'; id: string } | { kind: 'external' } | { kind: 'missing'; why: string };

const BY_NAME = 'secret://';
const BY_ID = 'sec_';

interface VaultDeps {
  prisma: PrismaClient;
  changes: Changes;
  rootKeys: RootKeys;
}

interface Openable extends WrappedKey {
  version: number;
  status: string;
  isExpired: boolean;
}

/**
 * What the rest of the service knows of secrets: references to them. `sec_…` is a secret by its id and `secret://name` by its name: the
 * organization's own, else the only one of that name. Every other text refers to something outside (defaults §1).
 */
export class Vault {
  readonly #deps: VaultDeps;
  readonly #finders: ReferenceFinder[] = [];

  constructor(deps: VaultDeps) {
    this.#deps = deps;
  }

  /** Has this asked before a secret is destroyed. */
  registerReferences(finder: ReferenceFinder): void {
    this.#finders.push(finder);
  }

  /** What a reference means in an organization. Deleted secrets, and those of deleted workspaces, are not there. */
  async resolve(db: Prisma.TransactionClient, orgId: string, reference: string): Promise<Resolution> {
    const byName = reference.startsWith(BY_NAME);
    if (!byName && !reference.startsWith(BY_ID)) return { kind: 'external' };
    const wanted = byName ? Prisma.sql`s.name = ${reference.slice(BY_NAME.length)}` : Prisma.sql`s.id = ${reference}`;
    const [first, second] = await db.$queryRaw<{ id: string; scope: string }[]>`
      select s.id, s.scope from secrets s left join workspaces w on w.id = s.workspace_id
      where s.org_id = ${orgId} and ${wanted} and s.status <> 'deleted' and w.deleted_at is null
      order by (s.scope = 'organization') desc limit 2`;
    if (!first) return { kind: 'missing', why: `there is no secret '${reference}' in this organization` };
    if (second && first.scope !== 'organization')
      return { kind: 'missing', why: `'${reference}' is the name of several secrets: refer to one by its identifier` };
    return { kind: 'secret', id: first.id };
  }

  /**
   * Checks a reference where it is stored, and holds the secret until the transaction ends, so that it is not destroyed meanwhile.
   * @param path of the field in the argument's names, for the error: `['input', 'credentialsRef']`
   * @throws InputError there, when it names a secret that this organization does not have
   */
  async ensureReference(tx: Tx, orgId: string, reference: string, path: (string | number)[]): Promise<Resolution> {
    const found = await this.resolve(tx.db, orgId, reference);
    if (found.kind === 'missing') throw invalidInput(path, found.why);
    if (found.kind === 'external') return found;
    const held = await tx.db.$queryRaw<
      unknown[]
    >`select 1 from secrets where id = ${found.id} and status <> 'deleted' for key share`;
    if (held.length === 0) throw invalidInput(path, `there is no secret '${reference}' in this organization`);
    return found;
  }

  /** Everything that names a secret. */
  async usesOf(db: Prisma.TransactionClient, secret: SecretIdentity & { name: string }): Promise<SecretUse[]> {
    const named = BY_NAME + secret.name;
    const meant = await this.resolve(db, secret.orgId, named);
    const isMeant = meant.kind === 'secret' && meant.id === secret.id;
    const references = isMeant ? [secret.id, named] : [secret.id];
    const uses: SecretUse[] = [];
    for (const find of this.#finders)
      uses.push(...(await find(db, { orgId: secret.orgId, id: secret.id, references })));
    return uses;
  }

  /**
   * The value that a reference stands for, for the service's own use on behalf of `caller`; the access is counted before it is opened.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT `secret_disabled` or `secret_expired`, VaultFault
   */
  async open(caller: Caller, orgId: string, reference: string): Promise<SecretValue> {
    const { prisma, changes, rootKeys } = this.#deps;
    const found = await this.resolve(prisma, orgId, reference);
    if (found.kind !== 'secret') throw notFound('secret', reference);
    const { secret, ciphertext } = await changes.run(caller, async ({ db }) => {
      const [row] = await db.$queryRaw<Openable[]>`
        select id, org_id as "orgId", root_key_id as "rootKeyId", wrapped_key as "wrappedKey", vault_version as version, status,
          coalesce(expires_at <= now(), false) as "isExpired" from secrets where id = ${found.id} for no key update`;
      if (!row || row.status === 'deleted') throw notFound('secret', reference);
      if (row.status !== 'active') throw unusable(row.id, 'disabled');
      if (row.isExpired) throw unusable(row.id, 'expired');
      await countAccess(db, row.id);
      return { secret: row, ciphertext: await ciphertextOf(db, row.id, row.version) };
    });
    return openValue(unwrapKey(rootKeys, secret), secret, { version: secret.version, ciphertext });
  }
}

const unusable = (id: string, state: string) =>
  conflict('secret', id, `secret_${state}`, `The secret '${id}' is ${state}: its value is not used.`);

/** Notes that a value was read. The row's `updated_at` stays. */
async function countAccess(db: Prisma.TransactionClient, id: string): Promise<void> {
  await db.$executeRaw`update secrets set access_count = access_count + 1, last_accessed_at = now() where id = ${id}`;
}

/** The sealed value of a version; null when it was destroyed or is not there. */
export async function ciphertextOf(
  db: Prisma.TransactionClient,
  id: string,
  version: number,
): Promise<Uint8Array | null> {
  const row = await db.secretVersion.findUnique({
    where: { secretId_version: { secretId: id, version } },
    select: { ciphertext: true },
  });
  return row?.ciphertext ?? null;
}
