import type { Access } from '../access/access.ts';
import type { Actor } from '../access/caller.ts';
import type { EnvironmentPlace, WorkspacePlace } from '../access/checked-place.ts';
import { ApiError, conflict, notFound } from '../core/errors.ts';
import type { Place } from '../core/place.ts';
import type { PrismaTx } from '../data/changes.ts';
import { versionedEnvironment } from './environment.reads.ts';

// Whoever takes several locks takes them in this order, so that they wait for each other and never in a ring:
// workspace, app, release, environment, slot. Of several environments or slots, the one with the lower id first.

/** What of an app is deployed in an environment, and how many deployment records led there. */
export interface Slot {
  environmentId: string;
  appId: string;
  releaseId: string | null;
  lastNumber: number;
}

/** A slot with something in it. */
export type FilledSlot = Slot & { releaseId: string };

/**
 * Whether the actor may change what is deployed in a locked environment, or in any of the workspace where none is named. Ask it before the
 * transaction: it reads.
 */
export async function passesLocks(
  access: Access,
  actor: Actor,
  { orgId, workspaceId, ...place }: WorkspacePlace & Place,
): Promise<boolean> {
  try {
    await access.requireWorkspace(actor, orgId, workspaceId, 'environment:update', place);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'FORBIDDEN') return false;
    throw error;
  }
}

/**
 * Holds the environment against being changed or deleted, beside others who deploy in it, until the transaction ends.
 * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `environment_archived`, and `environment_locked` for those who do not pass locks
 */
export async function holdEnvironment(tx: PrismaTx, place: EnvironmentPlace, passes: boolean): Promise<void> {
  const { orgId, workspaceId, environmentId: id } = place;
  await tx.expectVersion(versionedEnvironment(id));
  const [row] = await tx.db.$queryRaw<{ status: string }[]>`
    select status from environments where id = ${id} and org_id = ${orgId} and workspace_id = ${workspaceId} for share`;
  if (!row) throw notFound('environment', id);
  if (row.status === 'archived')
    throw conflict('environment', id, 'environment_archived', 'The environment is archived: activate it first.');
  if (row.status === 'locked' && !passes)
    throw conflict('environment', id, 'environment_locked', 'The environment is locked: ask an administrator.');
}

/** Holds what is deployed of an app in an environment, alone, until the transaction ends; `null` when nothing ever was. */
export async function holdSlot(tx: PrismaTx, environmentId: string, appId: string): Promise<Slot | null> {
  const [slot] = await tx.db.$queryRaw<Slot[]>`
    select environment_id as "environmentId", app_id as "appId", release_id as "releaseId", last_number as "lastNumber"
    from environment_slots where environment_id = ${environmentId} and app_id = ${appId} for update`;
  return slot ?? null;
}

/** The same, where an empty slot is made if there is none. The caller holds the app and the environment. */
export async function holdOrMakeSlot(tx: PrismaTx, environmentId: string, appId: string): Promise<Slot> {
  const there = await holdSlot(tx, environmentId, appId);
  if (there) return there;
  // of several who make it at once one does; the others wait for that one here
  await tx.db.$executeRaw`
    insert into environment_slots (environment_id, app_id) values (${environmentId}, ${appId}) on conflict do nothing`;
  const made = await holdSlot(tx, environmentId, appId);
  if (!made) throw new Error(`The slot of '${appId}' in '${environmentId}' went away while its owners were held.`);
  return made;
}

/** Holds everything that is deployed in an environment, which the caller holds. */
export async function holdSlotsOfEnvironment(tx: PrismaTx, environmentId: string): Promise<FilledSlot[]> {
  return tx.db.$queryRaw<FilledSlot[]>`
    select environment_id as "environmentId", app_id as "appId", release_id as "releaseId", last_number as "lastNumber"
    from environment_slots where environment_id = ${environmentId} and release_id is not null order by app_id for update`;
}

/** Holds an app's slots in all environments, and these alone: they change with the slots that go. The caller holds the app. @throws RESOURCE_CONFLICT `environment_locked`, see {@link holdEnvironment} */
export async function holdSlotsOfApp(tx: PrismaTx, appId: string, passes: boolean): Promise<FilledSlot[]> {
  const environments = await tx.db.$queryRaw<{ id: string; status: string }[]>`
    select id, status from environments where id in (select environment_id from environment_slots where app_id = ${appId})
    order by id for no key update`;
  const slots = await tx.db.$queryRaw<FilledSlot[]>`
    select environment_id as "environmentId", app_id as "appId", release_id as "releaseId", last_number as "lastNumber"
    from environment_slots where app_id = ${appId} and release_id is not null order by environment_id for update`;
  const filled = new Set(slots.map(({ environmentId }) => environmentId));
  const locked = environments.filter(({ id, status }) => status === 'locked' && filled.has(id));
  if (locked.length > 0 && !passes)
    throw conflict('app', appId, 'environment_locked', 'The app is deployed in a locked environment.', {
      references: locked.map(({ id }) => ({ resource_type: 'environment', resource_id: id })),
    });
  return slots;
}

/** The environments in which a release is deployed now, as references of a refusal. The caller holds the release. */
export async function referencesToRelease(
  tx: PrismaTx,
  releaseId: string,
): Promise<{ resource_type: string; resource_id: string }[]> {
  const slots = await tx.db.environmentSlot.findMany({
    where: { releaseId },
    select: { environmentId: true },
    orderBy: { environmentId: 'asc' },
  });
  return slots.map(({ environmentId }) => ({ resource_type: 'environment', resource_id: environmentId }));
}
