import type { Actor } from '../access/caller.ts';
import { invalidInput, notFound } from '../core/errors.ts';
import type { Place } from '../core/place.ts';
import type { Permission } from '../core/resources.ts';
import type { PrismaTx } from '../data/changes.ts';
import { ChildReads } from '../data/child-reads.ts';
import { NestedList } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, type Filter, filtersOf, type PageSource, type ParentKey } from '../data/pages.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type Deployment, Prisma } from '../generated/prisma/client.ts';
import { fillSlot } from './deployment.records.ts';
import type { EnvironmentReads, WorkspacePlace } from './environment.reads.ts';
import { type EnvironmentPlace, holdEnvironment, holdOrMakeSlot, holdSlot, passesLocks } from './slots.ts';

interface DeploymentDeps extends ServiceDeps {
  environments: EnvironmentReads;
}

/** The arguments of a list of deployment records. */
export interface DeploymentListArgs extends PageArgs {
  appId?: string | null;
}

/**
 * Lists of records, newest first: what was done in an environment, and the newest record of each app that has something deployed there; the
 * same of an app in its environments.
 */
export type DeploymentList = 'history' | 'current' | 'historyOfApp' | 'currentOfApp';

const columns = columnsOf(Object.values(Prisma.DeploymentScalarFieldEnum));

const history: PageSource<Deployment> = {
  from: 'deployments t',
  columns,
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', 't.workspace_id = $2', 't.environment_id = $3'],
};

const current: PageSource<Deployment> = {
  ...history,
  from: `environment_slots s join deployments t
    on t.environment_id = s.environment_id and t.app_id = s.app_id and t.number = s.last_number and s.release_id is not null`,
  where: ['t.org_id = $1', 't.workspace_id = $2', 's.environment_id = $3'],
};

const historyOfApp: PageSource<Deployment> = {
  ...history,
  where: ['t.org_id = $1', 't.workspace_id = $2', 't.app_id = $3'],
};
const currentOfApp: PageSource<Deployment> = {
  ...current,
  where: ['t.org_id = $1', 't.workspace_id = $2', 's.app_id = $3'],
};

/**
 * Deployments of apps to environments (defaults §6). The records of an app in an environment are a chain: numbered from 1 without gaps, each
 * naming the release before it, written under one row lock together with the pointer to what is deployed now.
 */
export class DeploymentService {
  /** Single records; they outlive the environment, the app and the release. */
  readonly reads: ChildReads<Deployment>;
  readonly #deps: DeploymentDeps;
  readonly #lists: Record<DeploymentList, NestedList<Deployment>>;

  constructor(deps: DeploymentDeps) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'deployment',
      table: 'deployments',
      columns: Object.values(Prisma.DeploymentScalarFieldEnum),
      below: ['orgId', 'workspaceId'],
    });
    this.#lists = {
      history: new NestedList(deps, 'deployments', history),
      current: new NestedList(deps, 'deployed', current),
      historyOfApp: new NestedList(deps, 'deployments of app', historyOfApp),
      currentOfApp: new NestedList(deps, 'deployed of app', currentOfApp),
    };
  }

  /** @throws RESOURCE_NOT_FOUND; FORBIDDEN for tokens that are restricted to other environments or apps */
  async get(actor: Actor, { orgId, workspaceId }: WorkspacePlace, id: string): Promise<Deployment> {
    const record = await this.reads.get([orgId, workspaceId], id);
    const { environmentId, appId } = record;
    await this.#demand(actor, 'environment:read', { orgId, workspaceId, environmentId, appId });
    return record;
  }

  /** The records of an environment, newest first. @throws RESOURCE_NOT_FOUND `environment`; `app` for one that is not there and never was here */
  async list(actor: Actor, place: EnvironmentPlace, args: DeploymentListArgs): Promise<Page<Deployment>> {
    const { orgId, workspaceId, environmentId } = place;
    await this.#deps.environments.get(place, environmentId);
    const key = [orgId, workspaceId, environmentId];
    const page = await this.#lists.history.page(key, args, this.#filters(actor, args));
    if (args.appId && page.nodes.length === 0 && !args.after)
      await this.#deps.access.findPart({ orgId, workspaceId }, 'app', args.appId);
    return page;
  }

  /** One of the lists below environments or apps of a list. @param parent `[orgId, workspaceId, id]` */
  async nested(
    context: RequestCache & { actor: Actor },
    list: DeploymentList,
    parent: ParentKey,
    args: DeploymentListArgs,
  ): Promise<Page<Deployment>> {
    return this.#lists[list].nested(context, parent, args, this.#filters(context.actor, args));
  }

  /**
   * Makes a release the one that is deployed. It is a `rollback` when it takes the place of another one and was deployed here before; where
   * nothing is deployed now there is nothing to roll back from, and it is a `deploy`.
   * @throws RESOURCE_NOT_FOUND `environment`, `app`, `release`; RESOURCE_CONFLICT `environment_archived`, `environment_locked`
   */
  async deploy(
    actor: Actor,
    place: EnvironmentPlace,
    { appId, releaseId }: { appId: string; releaseId: string },
  ): Promise<Deployment> {
    await this.#demand(actor, 'deployment:create', { ...place, appId });
    return this.#change(actor, place, appId, async (tx, hold) => {
      await holdApp(tx, place, appId);
      await holdRelease(tx, appId, releaseId);
      await hold();
      const slot = await holdOrMakeSlot(tx, place.environmentId, appId);
      const replaces = slot.releaseId !== null && slot.releaseId !== releaseId;
      const isRollback = replaces && (await wasDeployed(tx, place.environmentId, releaseId));
      return fillSlot(tx, actor, place, slot, { action: isRollback ? 'rollback' : 'deploy', releaseId });
    });
  }

  /**
   * Deploys what another environment of the workspace has of an app.
   * @throws like `deploy`; RESOURCE_NOT_FOUND `deployment` when nothing is deployed there; InputError for the environment itself
   */
  async promote(
    actor: Actor,
    place: EnvironmentPlace,
    { appId, fromEnvironmentId }: { appId: string; fromEnvironmentId: string },
  ): Promise<Deployment> {
    if (fromEnvironmentId === place.environmentId)
      throw invalidInput(['input', 'fromEnvironmentId'], 'must be another environment than the one to deploy to');
    await this.#demand(actor, 'deployment:create', { ...place, appId });
    await this.#demand(actor, 'environment:read', { ...place, environmentId: fromEnvironmentId, appId });
    await this.#deps.environments.get(place, fromEnvironmentId);
    return this.#change(actor, place, appId, async (tx, hold) => {
      await holdApp(tx, place, appId);
      const releaseId = await holdDeployedRelease(tx, fromEnvironmentId, appId);
      await hold();
      const slot = await holdOrMakeSlot(tx, place.environmentId, appId);
      return fillSlot(tx, actor, place, slot, { action: 'promote', releaseId });
    });
  }

  /** Takes out what is deployed of an app. @throws RESOURCE_NOT_FOUND `environment`, `deployment`; RESOURCE_CONFLICT like `deploy` */
  async undeploy(actor: Actor, place: EnvironmentPlace, appId: string): Promise<Deployment> {
    return this.#change(actor, place, appId, async (tx, hold) => {
      await hold();
      const slot = await holdSlot(tx, place.environmentId, appId);
      if (!slot?.releaseId) throw notFound('deployment', appId);
      return fillSlot(tx, actor, place, slot, { action: 'undeploy', releaseId: slot.releaseId });
    });
  }

  /** Runs a change of what is deployed; `hold` holds the environment, after what comes before it in the order of locks. */
  async #change(
    actor: Actor,
    place: EnvironmentPlace,
    appId: string,
    work: (tx: PrismaTx, hold: () => Promise<void>) => Promise<Deployment>,
  ): Promise<Deployment> {
    const { access, changes, environments } = this.#deps;
    await environments.get(place, place.environmentId);
    const passes = await passesLocks(access, actor, { ...place, appId });
    return changes.runWithPrisma(actor, (tx) => work(tx, () => holdEnvironment(tx, place, passes)));
  }

  /** Asks again for what the field asked for, because only here it is known which app and environment it is about: tokens may be restricted. */
  async #demand(actor: Actor, permission: Permission, where: WorkspacePlace & Place): Promise<void> {
    const { orgId, workspaceId, ...place } = where;
    await this.#deps.access.requireWorkspace(actor, orgId, workspaceId, permission, place);
  }

  /** What was asked for, and what a restricted token may see of it. */
  #filters(actor: Actor, { appId }: DeploymentListArgs): Filter[] {
    const { access } = this.#deps;
    return filtersOf({
      't.app_id = ?': appId,
      't.app_id = any(?)': access.visibleApps(actor),
      't.environment_id = any(?)': access.visibleEnvironments(actor),
    });
  }
}

/** Holds an app of the workspace against being deleted. */
async function holdApp(tx: PrismaTx, { orgId, workspaceId }: WorkspacePlace, id: string): Promise<void> {
  const rows = await tx.db.$queryRaw<unknown[]>`
    select 1 from apps where id = ${id} and org_id = ${orgId} and workspace_id = ${workspaceId} for key share`;
  if (rows.length === 0) throw notFound('app', id);
}

/** Holds a release of the app against being deleted. */
async function holdRelease(tx: PrismaTx, appId: string, id: string): Promise<void> {
  const rows = await tx.db.$queryRaw<
    unknown[]
  >`select 1 from releases where id = ${id} and app_id = ${appId} for key share`;
  if (rows.length === 0) throw notFound('release', id);
}

/** Holds the release of an app that is deployed in an environment. */
async function holdDeployedRelease(tx: PrismaTx, environmentId: string, appId: string): Promise<string> {
  const [release] = await tx.db.$queryRaw<{ id: string }[]>`
    select r.id from environment_slots s join releases r on r.id = s.release_id
    where s.environment_id = ${environmentId} and s.app_id = ${appId} for key share of r`;
  if (!release) throw notFound('deployment', appId);
  return release.id;
}

async function wasDeployed(tx: PrismaTx, environmentId: string, releaseId: string): Promise<boolean> {
  const record = await tx.db.deployment.findFirst({ where: { environmentId, releaseId }, select: { id: true } });
  return record !== null;
}
