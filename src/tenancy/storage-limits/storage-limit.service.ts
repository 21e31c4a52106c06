import DataLoader from 'dataloader';
import type { Access } from '../../access/access.ts';
import { administers, demandAll, demandWhole, isPart } from '../../access/whole-place.ts';
import type { Changes } from '../../data/changes.ts';
import { recordChange } from '../../data/record-change.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { forbidden, invalidInput, notFound } from '../../kernel/errors.ts';
import { lockOrganization } from '../organizations/membership.ts';
import type { StorageSettings } from './storage-limits.ts';

/** What the artifacts of a place hold. */
export interface StorageUse {
  usedBytes: number;
  /** What they may hold; `null` for no limit. */
  limitBytes: number | null;
  /** What was set for this place; `null` where the operator's setting applies. */
  ownLimitBytes: number | null;
}

/** The new limit; `null` for the operator's setting, `undefined` for no change. */
export interface UpdateStorage {
  limitBytes?: number | null | undefined;
}

type LimitedPlace = 'workspace' | 'organization';

const LIMITS: Readonly<Record<LimitedPlace, string>> = {
  workspace: `select w.org_id, w.storage_limit_bytes as own,
      storage_limit_of_workspace(w.storage_limit_bytes, o.storage_limit_bytes, $2) as of_all
    from workspaces w join organizations o on o.id = w.org_id where w.id = k.id`,
  organization: `select o.id as org_id, o.storage_limit_bytes as own,
      coalesce(o.storage_limit_bytes, nullif($2::bigint, 0)) as of_all
    from organizations o where o.id = k.id`,
};
const readOf = (
  kind: LimitedPlace,
): string => `select l.own::float8 as "ownLimitBytes", l.of_all::float8 as "limitBytes",
    coalesce((select sum(c.n) from place_counts c where c.org_id = l.org_id and c.place_id = k.id
      and c.counter = 'storage.bytes'), 0)::float8 as "usedBytes"
  from unnest($1::text[]) with ordinality k(id, at) left join lateral (${LIMITS[kind]}) l on true order by k.at`;
const READ: Readonly<Record<LimitedPlace, string>> = {
  workspace: readOf('workspace'),
  organization: readOf('organization'),
};

interface StorageLimitDeps {
  sql: Sql;
  access: Access;
  changes: Changes;
  config: StorageSettings;
}

/** How much the artifacts of workspaces and organizations hold and may hold, and who sets that. */
export class StorageLimitService {
  readonly #deps: StorageLimitDeps;

  constructor(deps: StorageLimitDeps) {
    this.#deps = deps;
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async ofWorkspace(caller: Caller, { workspaceId }: Checked<WorkspacePlace>): Promise<StorageUse> {
    demandWhole(caller, ['workspace']);
    return this.#read('workspace', workspaceId);
  }

  /** @throws FORBIDDEN for callers who do not administer the organization */
  async ofOrganization(caller: Caller, { orgId, asked }: Checked<OrganizationPlace>): Promise<StorageUse> {
    demandAll(caller, asked.role);
    return this.#read('organization', orgId);
  }

  /** Of a row that was read, together with the other rows of its list; `null` for callers who may not see it. */
  async workspaceBelow(context: CallerContext, { id }: { id: string }): Promise<StorageUse | null> {
    return isPart(context.caller, ['workspace']) ? null : this.#load(context, 'workspace', id);
  }

  /** The same for an organization. */
  async organizationBelow(context: CallerContext, { id }: { id: string }): Promise<StorageUse | null> {
    const { caller } = context;
    if (isPart(caller, []) || !(await administers(this.#deps.access, caller, id))) return null;
    return this.#load(context, 'organization', id);
  }

  /**
   * Sets what a workspace may hold: at most the operator's setting, or what its organization was granted beyond that.
   * @throws RESOURCE_NOT_FOUND; invalid input above that
   */
  async updateWorkspace(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    workspaceId: string,
    { limitBytes }: UpdateStorage,
  ): Promise<StorageUse> {
    await this.#deps.changes.run(caller, async (tx) => {
      const { storageLimitBytes: granted } = await lockOrganization(tx, orgId, 'share');
      const most = this.#deps.config.maxStorageBytesPerWorkspace;
      const cap = most === 0 ? Number.POSITIVE_INFINITY : Math.max(most, Number(granted ?? 0));
      if (limitBytes && limitBytes > cap)
        throw invalidInput(['input', 'limitBytes'], `a workspace of this organization may hold at most ${cap} bytes`);
      recordChange(tx, 'update', 'workspace', { id: workspaceId, orgId, workspaceId }, recordOf(limitBytes));
      const where = { orgId, id: workspaceId, deletedAt: null };
      return tx.change('workspaces', where, columnOf(limitBytes), () => notFound('workspace', workspaceId));
    });
    return this.#read('workspace', workspaceId);
  }

  /**
   * Sets what an organization may hold.
   * @throws FORBIDDEN for callers who do not administer the platform; RESOURCE_NOT_FOUND
   */
  async updateOrganization(caller: Caller, id: string, { limitBytes }: UpdateStorage): Promise<StorageUse> {
    if (!caller.principal.isPlatformAdmin)
      throw forbidden('organization:update', 'Only administrators of the platform set what an organization may hold.');
    await this.#deps.changes.run(caller, async (tx) => {
      await lockOrganization(tx, id, 'no key update');
      recordChange(tx, 'update', 'organization', { id, orgId: id }, recordOf(limitBytes));
      return tx.change('organizations', { id }, columnOf(limitBytes), () => notFound('organization', id));
    });
    return this.#read('organization', id);
  }

  async #read(kind: LimitedPlace, id: string): Promise<StorageUse> {
    const [use] = await this.#readAll(kind, [id]);
    return use!;
  }

  #readAll(kind: LimitedPlace, ids: readonly string[]): Promise<StorageUse[]> {
    const { maxStorageBytesPerWorkspace, maxStorageBytesPerOrganization } = this.#deps.config;
    const setting = kind === 'workspace' ? maxStorageBytesPerWorkspace : maxStorageBytesPerOrganization;
    return this.#deps.sql.read<StorageUse>(READ[kind], [ids, setting]);
  }

  #load(context: CallerContext, kind: LimitedPlace, id: string): Promise<StorageUse> {
    const make = () => new DataLoader<string, StorageUse>((ids) => this.#readAll(kind, ids));
    return context.once(`storage of ${kind}`, make).load(id);
  }
}

const columnOf = (limitBytes: UpdateStorage['limitBytes']) => ({
  storageLimitBytes: typeof limitBytes === 'number' ? BigInt(limitBytes) : limitBytes,
});
const recordOf = (limitBytes: UpdateStorage['limitBytes']) => ({
  fields: limitBytes === undefined ? [] : ['storageLimitBytes'],
  ...(limitBytes !== undefined && { storage_limit_bytes: limitBytes }),
});
