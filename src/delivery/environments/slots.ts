import type { Access } from '../../access/access.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { EnvironmentPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { ApiError, conflict, notFound } from '../../kernel/errors.ts';
import type { Place } from '../../kernel/place.ts';
import { versionedEnvironment } from './environment.reads.ts';

/** What is deployed of an app in an environment, and the number of its deployment records. */
export interface Slot {
  environmentId: string;
  appId: string;
  releaseId: string | null;
  lastNumber: number;
}

/** A slot with something in it. */
export type FilledSlot = Slot & { releaseId: string };

/**
 * Whether the caller may deploy in a locked environment, or in any environment of the workspace if none is named. Call
 * it before the transaction, because it reads.
 */
export async function passesLocks(
  access: Access,
  caller: Caller,
  { orgId, workspaceId, ...place }: WorkspacePlace & Place,
): Promise<boolean> {
  try {
    await access.requireWorkspace(caller, orgId, workspaceId, 'environment:update', place);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'FORBIDDEN') return false;
    throw error;
  }
}

/**
 * Locks the environment against changes and deletion until the transaction ends. Concurrent deployments can take the
 * same lock.
 * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `environment_archived`, and `environment_locked` for callers who may
 * not deploy in a locked one
 */
export async function lockEnvironment(tx: Tx, place: EnvironmentPlace, passes: boolean): Promise<void> {
  const { orgId, workspaceId, environmentId: id } = place;
  await tx.expectVersion(versionedEnvironment(id));
  const missing = () => notFound('environment', id);
  const { status } = await tx.lock('environments', { id, orgId, workspaceId }, 'share', missing);
  if (status === 'archived')
    throw conflict('environment', id, 'environment_archived', 'The environment is archived: activate it first.');
  if (status === 'locked' && !passes)
    throw conflict('environment', id, 'environment_locked', 'The environment is locked: ask an administrator.');
}

/** Locks the slot of an app in an environment exclusively; `null` when nothing was ever deployed there. */
export async function lockSlot(tx: Tx, environmentId: string, appId: string): Promise<Slot | null> {
  return tx.lock('environment_slots', { environmentId, appId }, 'update');
}

/** The same, but creates an empty slot if there is none. The caller has locked the app and the environment. */
export async function lockOrMakeSlot(tx: Tx, environmentId: string, appId: string): Promise<Slot> {
  // of several concurrent transactions, one creates it and the others wait for it here
  tx.write(statement`
    insert into environment_slots (environment_id, app_id) values (${environmentId}, ${appId}) on conflict do nothing`);
  return tx.lock('environment_slots', { environmentId, appId }, 'update', () => {
    const what = `The slot of '${appId}' in '${environmentId}'`;
    return new Error(`${what} went away while its owners were locked.`);
  });
}

/** Locks all filled slots of an environment, which the caller has locked. */
export async function lockSlotsOfEnvironment(tx: Tx, environmentId: string): Promise<FilledSlot[]> {
  return lockFilledSlots(tx, statement`t.environment_id = ${environmentId} and t.release_id is not null`);
}

async function lockFilledSlots(tx: Tx, condition: Statement): Promise<FilledSlot[]> {
  const slots = await tx.lockAll('environment_slots', condition, 'update');
  return slots.filter((slot): slot is typeof slot & FilledSlot => slot.releaseId !== null);
}

/**
 * Locks an app's slots in all environments, and these environments against other changes, because they change with the
 * removed slots. The caller has locked the app.
 * @throws RESOURCE_CONFLICT `environment_locked`, see {@link lockEnvironment}
 */
export async function lockSlotsOfApp(tx: Tx, appId: string, passes: boolean): Promise<FilledSlot[]> {
  const ofApp = statement`t.id in (select environment_id from environment_slots where app_id = ${appId})`;
  const environments = await tx.lockAll('environments', ofApp, 'no key update');
  const slots = await lockFilledSlots(tx, statement`t.app_id = ${appId} and t.release_id is not null`);
  const filled = new Set(slots.map(({ environmentId }) => environmentId));
  const locked = environments.filter(({ id, status }) => status === 'locked' && filled.has(id));
  if (locked.length > 0 && !passes)
    throw conflict('app', appId, 'environment_locked', 'The app is deployed in a locked environment.', {
      references: locked.map(({ id }) => ({ resource_type: 'environment', resource_id: id })),
    });
  return slots;
}

/**
 * The environments in which a release is deployed now, as the references of an error. The caller has locked the
 * release.
 */
export async function referencesToRelease(
  tx: Tx,
  releaseId: string,
): Promise<{ resource_type: string; resource_id: string }[]> {
  const slots = await tx.query<{ environmentId: string }>(statement`
    select environment_id as "environmentId" from environment_slots where release_id = ${releaseId} order by 1`);
  return slots.map(({ environmentId }) => ({ resource_type: 'environment', resource_id: environmentId }));
}
