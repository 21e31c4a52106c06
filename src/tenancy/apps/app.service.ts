import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import type { NewRow } from '../../data/tables.ts';
import { type App, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Removals } from '../removals.ts';

export interface CreateApp {
  name: string;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface UpdateApp {
  name?: string | null;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
}

const apps = {
  kind: 'app',
  from: 'apps',
  columns: columnsOf(Object.values(Prisma.AppScalarFieldEnum)),
} as const;

interface AppServiceDeps extends ServiceDeps {
  removals: Removals;
}

/** Apps of a workspace. */
export class AppService {
  readonly reads: Reads<App, WorkspacePlace>;
  /** For rows that name an app without its workspace. The caller's access to the workspace must then be checked. */
  readonly ofOrganization: Reads<App, OrganizationPlace>;
  readonly #deps: AppServiceDeps;

  constructor(deps: AppServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, { ...apps, below: ['orgId', 'workspaceId'] });
    this.ofOrganization = new Reads(deps, { ...apps, name: 'apps_of_organization', below: ['orgId'] });
  }

  async create(caller: Caller, { orgId, workspaceId }: Checked<WorkspacePlace>, input: CreateApp): Promise<App> {
    return createRow(this.#deps, caller, apps, newApp(caller, { id: newId('app'), orgId, workspaceId }, input));
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND */
  async update(
    caller: Caller,
    { orgId, workspaceId }: Checked<WorkspacePlace>,
    id: string,
    input: UpdateApp,
  ): Promise<App> {
    return updateRow(this.#deps, caller, apps, { id, orgId, workspaceId }, input, input);
  }

  /**
   * Undeploys an app everywhere and deletes it with its releases, its tokens and its knowledge graph.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `environment_locked` for callers who may not undeploy it from a
   * locked environment
   */
  async delete(caller: Caller, place: Checked<WorkspacePlace>, id: string): Promise<Deleted<WorkspacePlace>> {
    const { orgId, workspaceId } = place;
    const contents = await this.#deps.removals.ofPlace(caller, { kind: 'app', id, orgId, workspaceId });
    await this.#deps.changes.run(caller, async (tx) => {
      await tx.lock('apps', { id, orgId, workspaceId }, 'update', () => notFound('app', id));
      await tx.expectVersion({ table: 'apps', key: { id } });
      await contents.before(tx);
      tx.remove('apps', { id });
      await contents.after(tx);
      recordChange(tx, 'delete', 'app', { id, orgId, workspaceId, appId: id });
    });
    return { id, orgId, workspaceId };
  }
}

/** The row of a new app: written as a part of a change that is recorded. */
export const newApp = (
  caller: Caller,
  place: WorkspacePlace & { id: string },
  { name, description, metadata }: CreateApp,
): NewRow<'apps'> => ({
  id: place.id,
  orgId: place.orgId,
  workspaceId: place.workspaceId,
  name,
  description: description ?? null,
  metadata: (metadata ?? {}) as Prisma.InputJsonObject,
  createdBy: caller.principal.userId,
});
