import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import { columnsOf } from '../../data/paging.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma, type Release } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, Deleted } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { referencesToRelease } from '../environments/slots.ts';

export interface CreateRelease {
  version?: string | null;
  notes?: string | null;
  metadata?: Record<string, unknown> | null;
}

const releases = {
  kind: 'release',
  from: 'releases',
  columns: columnsOf(Object.values(Prisma.ReleaseScalarFieldEnum)),
  below: ['orgId', 'workspaceId', 'appId'],
} as const;

/** Releases of an app. They are immutable and numbered from 1 without gaps. */
export class ReleaseService {
  readonly reads: Reads<Release, AppPlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, releases);
  }

  /**
   * The default version is the number. @throws RESOURCE_NOT_FOUND `app`, RESOURCE_ALREADY_EXISTS for a version that the
   * app already has
   */
  async create(caller: Caller, place: AppPlace, input: CreateRelease): Promise<Release> {
    return this.#deps.changes.run(caller, async (tx) => {
      const { appId } = place;
      const number = await nextNumber(tx, place);
      const version = input.version ?? String(number);
      const same = await findRow(tx, 'releases', { appId, version });
      if (same) throw alreadyExists('release', 'version', version, same.id);
      const row = { id: newId('release'), ...place };
      recordChange(tx, 'create', 'release', row, { number, version });
      const { notes = null, metadata } = input;
      const createdBy = caller.principal.userId;
      return tx.create('releases', { ...row, number, version, notes, metadata: metadata ?? {}, createdBy });
    });
  }

  /** @throws RESOURCE_NOT_FOUND `release`; RESOURCE_CONFLICT `in_use` while it is deployed anywhere */
  async delete(caller: Caller, place: Checked<AppPlace>, id: string): Promise<Deleted<AppPlace>> {
    const release = await this.reads.get(noCache, place, id);
    const { number, version } = release;
    const rules = async (tx: Tx) => {
      // running deployments of it have finished, and none can begin
      await tx.lock('releases', { id }, 'update');
      const references = await referencesToRelease(tx, id);
      if (references.length > 0)
        throw conflict('release', id, 'in_use', 'The release is deployed: undeploy it first.', { references });
    };
    return deleteRow(this.#deps, caller, releases, release, { rules, metadata: { number, version } });
  }
}

/**
 * The next number of the app's releases. Locks the app until the transaction ends, so that numbers have no gaps.
 * @throws RESOURCE_NOT_FOUND
 */
async function nextNumber(tx: Tx, { orgId, workspaceId, appId }: AppPlace): Promise<number> {
  const [row] = await tx.query<{ number: number }>(statement`
    update apps set last_release = last_release + 1
    where id = ${appId} and org_id = ${orgId} and workspace_id = ${workspaceId} returning last_release as number`);
  if (!row) throw notFound('app', appId);
  return row.number;
}
