import type { ServiceDeps } from '../../access/service-deps.ts';
import { selectList } from '../../data/paging.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import { givenReason, isReason, REASON_DEMANDED, reasonMissing } from '../../tenancy/reveal-reasons.ts';
import { demandsRevealReason } from '../../tenancy/views.ts';
import {
  attempt,
  openValue,
  type SealedVersion,
  type SecretValue,
  unwrapKey,
  type VaultFault,
  type WrappedKey,
} from './envelope.ts';
import { type ListedSecret, type Secret, type SecretReads, secretColumns } from './secret.reads.ts';
import type { PlaceInput } from './secret-place.ts';
import { masked } from './secret-value.ts';
import { type OnVaultFault, openFor } from './unreadable.ts';
import { ciphertextOf } from './vault.ts';

/** The current and former values of a secret, newest first. */
export interface SecretHistory {
  orgId: string;
  secretId: string;
  currentVersion: number;
  versions: SecretHistoryEntry[];
}

/** State of a version's value. `UNREADABLE`: the stored value cannot be decrypted. */
export type SecretVersionState = 'READABLE' | 'DESTROYED' | 'UNREADABLE';

/** `value` is masked for callers who may not see it, and null if it is not readable. */
export interface SecretHistoryEntry {
  orgId: string;
  version: number;
  state: SecretVersionState;
  createdBy: string | null;
  createdAt: Date;
  value: SecretValue | null;
}

export interface RevealDeps extends ServiceDeps {
  prisma: PrismaClient;
  rootKeys: RootKeys;
  reads: SecretReads;
  onFault: OnVaultFault;
}

/** Maximum number of versions in a history, newest first. */
const LISTED_VERSIONS = 1_000;

/** What a reveal reads: the visible secret, and what is needed to open its newest version. */
interface Revealed extends ListedSecret {
  rootKeyId: string;
  wrappedKey: Uint8Array;
  ciphertext: Uint8Array | null;
}

// The columns of the last update stay unchanged: a reveal changes nothing that callers set. $3: whether a reason was
// given; the statement that reveals asks for it, so that a demand holds from its commit on.
const REVEAL = `update secrets t set access_count = t.access_count + 1, last_accessed_at = now()
  where t.org_id = $1 and t.id = $2 and t.status <> 'deleted'
    and ($3::boolean or not ${demandsRevealReason('$1')})
  returning ${selectList(secretColumns)}, t.root_key_id as "rootKeyId", t.wrapped_key as "wrappedKey",
    (select v.ciphertext from secret_versions v
      where v.secret_id = t.id and v.version = t.vault_version) as ciphertext`;

/**
 * Reads of secrets that may show values. One statement counts and records a reveal; the value is opened only after its
 * commit. An unrecorded value is never shown.
 */
export class RevealService {
  readonly #deps: RevealDeps;

  constructor(deps: RevealDeps) {
    this.#deps = deps;
  }

  /**
   * @throws RESOURCE_NOT_FOUND, FORBIDDEN `secret:read`; if the value is requested, FORBIDDEN `secret:reveal` and
   * RESOURCE_CONFLICT `secret_unreadable`, InputError at `reason` if the organization demands one
   */
  async get(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    withValue: boolean,
    reason?: string | null,
  ): Promise<Secret> {
    const secret = await this.#deps.reads.get(caller, place, id, 'secret:read');
    return withValue ? this.#withValue(caller, secret, reason) : secret;
  }

  /** @throws like `get`, and RESOURCE_CONFLICT `ambiguous_name` */
  async getByName(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    name: string,
    livingIn: PlaceInput,
    withValue: boolean,
    reason?: string | null,
  ): Promise<Secret> {
    const secret = await this.#deps.reads.getByName(context, place, name, livingIn);
    return withValue ? this.#withValue(context.caller, secret, reason) : secret;
  }

  /**
   * Shows the values to callers who may see them, which counts as one reveal; others get masked values. A version that
   * cannot be opened is marked as such.
   * @throws RESOURCE_NOT_FOUND, FORBIDDEN `secret:read`; InputError at `reason` if the values are shown and the
   * organization demands one
   */
  async history(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    reason?: string | null,
  ): Promise<SecretHistory> {
    const { reads, prisma } = this.#deps;
    const secret = await reads.get(caller, place, id, 'secret:read');
    if (await reads.may(caller, secret, 'secret:reveal')) {
      const revealed = await this.#reveal(caller, secret, reason, { history: true });
      return this.#historyOf(revealed, await versionsOf(prisma, revealed), (value) => value);
    }
    const current = await prisma.secret.findUnique({ where: { id } });
    if (!current) throw notFound('secret', id);
    return this.#historyOf(current, await versionsOf(prisma, current), masked);
  }

  async #withValue(caller: Caller, listed: ListedSecret, reason?: string | null): Promise<Secret> {
    const { ciphertext, rootKeyId, wrappedKey, ...secret } = await this.#reveal(caller, listed, reason);
    const { id, vaultVersion: version } = secret;
    const { rootKeys, sql, onFault } = this.#deps;
    // A statement that waited for a rotation sees the number of the new version, but not its value.
    const sealed = { version, ciphertext: ciphertext ?? (await ciphertextOf(sql, id, version)) };
    const value = openFor(id, onFault, () =>
      openValue(unwrapKey(rootKeys, { ...secret, rootKeyId, wrappedKey }), secret, sealed),
    );
    return { ...secret, value };
  }

  /**
   * Counts and records a reveal in one statement.
   * @param facts what the record says beside the reason
   * @throws FORBIDDEN `secret:reveal`; InputError at `reason` if the organization demands one; RESOURCE_NOT_FOUND if
   * the secret was deleted meanwhile
   */
  async #reveal(
    caller: Caller,
    listed: ListedSecret,
    reason: string | null | undefined,
    facts: Record<string, unknown> = {},
  ): Promise<Revealed> {
    const { id, orgId, workspaceId } = listed;
    const metadata = { ...facts, ...givenReason(reason) };
    await this.#deps.reads.demand(caller, listed, 'secret:reveal');
    const revealed = await this.#deps.changes.runStatement<Revealed>(caller, {
      text: REVEAL,
      values: [orgId, id, isReason(reason)],
      audit: { action: 'reveal', resourceType: 'secret', resourceId: id, orgId, workspaceId, metadata },
      metadata: `jsonb_build_object('version', c."vaultVersion")`,
    });
    if (revealed) return revealed;
    if (!isReason(reason) && (await this.#deps.sql.read(REASON_DEMANDED, [orgId])).length > 0) throw reasonMissing();
    throw notFound('secret', id);
  }

  #historyOf(
    secret: WrappedKey & { vaultVersion: number },
    sealed: readonly (SealedVersion & { createdBy: string | null; createdAt: Date })[],
    shown: (value: SecretValue) => SecretValue,
  ): SecretHistory {
    const faults: VaultFault[] = [];
    const opened = <T>(open: () => T) => attempt(open, (fault) => faults.push(fault));
    const dataKey = opened(() => unwrapKey(this.#deps.rootKeys, secret));
    const versions = sealed.map(({ ciphertext, version, createdBy, createdAt }): SecretHistoryEntry => {
      const entry = { orgId: secret.orgId, version, createdBy, createdAt };
      if (!ciphertext) return { ...entry, state: 'DESTROYED', value: null };
      const value = dataKey && opened(() => openValue(dataKey, secret, { version, ciphertext }));
      return value
        ? { ...entry, state: 'READABLE', value: shown(value) }
        : { ...entry, state: 'UNREADABLE', value: null };
    });
    if (faults.length > 0)
      this.#deps.onFault(new AggregateError(faults, faults.map(String).join('; ')), 'a secret cannot be decrypted');
    return { orgId: secret.orgId, secretId: secret.id, currentVersion: secret.vaultVersion, versions };
  }
}

/** The versions up to the newest known one, newest first. */
const versionsOf = (prisma: PrismaClient, { id, vaultVersion }: { id: string; vaultVersion: number }) =>
  prisma.secretVersion.findMany({
    where: { secretId: id, version: { lte: vaultVersion } },
    orderBy: { version: 'desc' },
    take: LISTED_VERSIONS,
  });
