import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type Deployment, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, EnvironmentPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import type { Place } from '../../kernel/place.ts';
import type { Permission } from '../../kernel/resources.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';
import { fillSlot, recordRemovals } from './deployment.records.ts';
import { lockEnvironment, lockOrMakeSlot, lockSlot, lockSlotsOfApp, passesLocks } from './slots.ts';

/** The arguments of a list of deployment records. */
interface DeploymentListArgs extends PageArgs {
  appId?: string | null;
}

const records = {
  kind: 'deployment',
  from: 'deployments',
  columns: columnsOf(Object.values(Prisma.DeploymentScalarFieldEnum)),
} as const;

/** The newest record of each app in each environment where it is deployed. */
const current = {
  ...records,
  from: `environment_slots s join deployments t on t.environment_id = s.environment_id and t.app_id = s.app_id
    and t.number = s.last_number and s.release_id is not null`,
} as const;
const inWorkspace = { orgId: 't.org_id', workspaceId: 't.workspace_id' };

/**
 * Deployments of apps to environments (defaults §6). The records of an app in an environment are a chain: numbered
 * from 1 without gaps, each with the previous release, written under one row lock together with the pointer to the
 * deployed release. They are kept when the environment, the app or the release is deleted.
 */
export class DeploymentService implements ContentOwner {
  /** Single records of a workspace. */
  readonly reads: Reads<Deployment, WorkspacePlace>;
  /** The records of an environment, newest first. */
  readonly history: Reads<Deployment, EnvironmentPlace, DeploymentListArgs>;
  /** The newest record of each app that is deployed in an environment. */
  readonly current: Reads<Deployment, EnvironmentPlace>;
  /** The records of an app in all environments. */
  readonly historyOfApp: Reads<Deployment, AppPlace>;
  /** The newest record of each environment where an app is deployed. */
  readonly currentOfApp: Reads<Deployment, AppPlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, { ...records, name: 'deployments of workspace', below: ['orgId', 'workspaceId'] });
    this.history = new Reads(deps, {
      ...records,
      below: ['orgId', 'workspaceId', 'environmentId'],
      filters: ({ appId }) => ({ 't.app_id = ?': appId }),
    });
    this.current = new Reads(deps, {
      ...current,
      name: 'deployed',
      below: { ...inWorkspace, environmentId: 's.environment_id' },
    });
    this.historyOfApp = new Reads(deps, {
      ...records,
      name: 'deployments of app',
      below: ['orgId', 'workspaceId', 'appId'],
    });
    this.currentOfApp = new Reads(deps, {
      ...current,
      name: 'deployed of app',
      below: { ...inWorkspace, appId: 's.app_id' },
    });
  }

  /**
   * Undeploys an app everywhere when it is removed. @throws RESOURCE_CONFLICT `environment_locked` for callers who may
   * not undeploy it from a locked environment
   */
  async placeRemoved(caller: Caller, { kind, id, ...place }: RemovedPlace): Promise<PlaceRemoval> {
    if (kind !== 'app') return {};
    const passes = await passesLocks(this.#deps.access, caller, { ...place, appId: id });
    return {
      before: async (tx) => recordRemovals(tx, caller, place, await lockSlotsOfApp(tx, id, passes)),
    };
  }

  /** @throws RESOURCE_NOT_FOUND; FORBIDDEN for tokens that are restricted to other environments or apps */
  async get(context: CallerContext, place: Checked<WorkspacePlace>, id: string): Promise<Deployment> {
    return this.#readable(context.caller, await this.reads.get(context, place, id));
  }

  /** A record by its id alone. @throws FORBIDDEN for those who may not read it */
  async find(context: CallerContext, id: string): Promise<Deployment | null> {
    const record = await this.reads.findUnscoped(context, id);
    return record && this.#readable(context.caller, record);
  }

  /**
   * The records of an environment, newest first.
   * @throws RESOURCE_NOT_FOUND `app` for one that does not exist and was never deployed here
   */
  async list(
    context: CallerContext,
    place: Checked<EnvironmentPlace>,
    args: DeploymentListArgs,
  ): Promise<Page<Deployment>> {
    const page = await this.history.list(context, place, args);
    if (args.appId && page.nodes.length === 0 && !args.after)
      await this.#deps.access.parts.findPart(place, 'app', args.appId);
    return page;
  }

  /**
   * Deploys a release. It is a `rollback` when it replaces another one and was deployed here before. If nothing is
   * deployed now, there is nothing to roll back from, and it is a `deploy`.
   * @throws RESOURCE_NOT_FOUND `environment`, `app`, `release`; RESOURCE_CONFLICT `environment_archived`,
   * `environment_locked`
   */
  async deploy(
    caller: Caller,
    place: EnvironmentPlace,
    { appId, releaseId }: { appId: string; releaseId: string },
  ): Promise<Deployment> {
    await this.#demand(caller, 'deployment:create', { ...place, appId });
    await this.#demandEnvironment(place, place.environmentId);
    return this.#change(caller, place, appId, async (tx, lock) => {
      demandApp(tx, place, appId);
      tx.demand('releases', { id: releaseId, appId }, 'key share', () => notFound('release', releaseId));
      await lock();
      const slot = await lockOrMakeSlot(tx, place.environmentId, appId);
      const replaces = slot.releaseId !== null && slot.releaseId !== releaseId;
      const isRollback = replaces && (await wasDeployed(tx, place.environmentId, releaseId));
      return fillSlot(tx, caller, place, slot, { action: isRollback ? 'rollback' : 'deploy', releaseId });
    });
  }

  /**
   * Deploys the release of an app that is deployed in another environment of the workspace.
   * @throws like `deploy`; RESOURCE_NOT_FOUND `deployment` when nothing is deployed there; InputError for the
   * environment itself
   */
  async promote(
    caller: Caller,
    place: EnvironmentPlace,
    { appId, fromEnvironmentId }: { appId: string; fromEnvironmentId: string },
  ): Promise<Deployment> {
    if (fromEnvironmentId === place.environmentId)
      throw invalidInput(['input', 'fromEnvironmentId'], 'must be another environment than the one to deploy to');
    await this.#demand(caller, 'deployment:create', { ...place, appId });
    await this.#demand(caller, 'environment:read', { ...place, environmentId: fromEnvironmentId, appId });
    await this.#demandEnvironment(place, fromEnvironmentId);
    await this.#demandEnvironment(place, place.environmentId);
    return this.#change(caller, place, appId, async (tx, lock) => {
      demandApp(tx, place, appId);
      const releaseId = await lockDeployedRelease(tx, fromEnvironmentId, appId);
      await lock();
      const slot = await lockOrMakeSlot(tx, place.environmentId, appId);
      return fillSlot(tx, caller, place, slot, { action: 'promote', releaseId });
    });
  }

  /**
   * Removes the deployed release of an app.
   * @throws RESOURCE_NOT_FOUND `deployment`; RESOURCE_CONFLICT like `deploy`
   */
  async undeploy(caller: Caller, place: Checked<EnvironmentPlace>, appId: string): Promise<Deployment> {
    return this.#change(caller, place, appId, async (tx, lock) => {
      await lock();
      const slot = await lockSlot(tx, place.environmentId, appId);
      if (!slot?.releaseId) throw notFound('deployment', appId);
      return fillSlot(tx, caller, place, slot, { action: 'undeploy', releaseId: slot.releaseId });
    });
  }

  /**
   * Runs a change of what is deployed; `lock` locks the environment, after the tables that precede it in the order of
   * locks.
   */
  async #change(
    caller: Caller,
    place: EnvironmentPlace,
    appId: string,
    work: (tx: Tx, lock: () => Promise<void>) => Promise<Deployment>,
  ): Promise<Deployment> {
    const { access, changes } = this.#deps;
    const passes = await passesLocks(access, caller, { ...place, appId });
    return changes.run(caller, (tx) => work(tx, () => lockEnvironment(tx, place, passes)));
  }

  /**
   * Called after the check of the app, so that a restricted token gets the refusal for the app, whether or not the
   * environment exists.
   */
  async #demandEnvironment(place: WorkspacePlace, id: string): Promise<void> {
    await this.#deps.access.parts.findPart(place, 'environment', id);
  }

  async #readable(caller: Caller, record: Deployment): Promise<Deployment> {
    await this.#demand(caller, 'environment:read', record);
    return record;
  }

  /**
   * Repeats the permission check of the field, because the app and the environment are only known here, and tokens may
   * be restricted to some.
   */
  async #demand(caller: Caller, permission: Permission, where: WorkspacePlace & Place): Promise<void> {
    const { orgId, workspaceId, environmentId, appId } = where;
    await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, permission, { environmentId, appId });
  }
}

/** Locks an app of the workspace against being deleted. */
function demandApp(tx: Tx, { orgId, workspaceId }: WorkspacePlace, id: string): void {
  tx.demand('apps', { id, orgId, workspaceId }, 'key share', () => notFound('app', id));
}

/** Locks the release of an app that is deployed in an environment. */
async function lockDeployedRelease(tx: Tx, environmentId: string, appId: string): Promise<string> {
  const slot = await findRow(tx, 'environment_slots', { environmentId, appId });
  const release = slot?.releaseId ? await tx.lock('releases', { id: slot.releaseId }, 'key share') : null;
  if (!release) throw notFound('deployment', appId);
  return release.id;
}

async function wasDeployed(tx: Tx, environmentId: string, releaseId: string): Promise<boolean> {
  const there = statement`select 1 from deployments
    where environment_id = ${environmentId} and release_id = ${releaseId} limit 1`;
  return (await tx.query(there)).length > 0;
}
