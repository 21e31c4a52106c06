import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import type { NewRow } from '../../data/tables.ts';
import { type Action, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, Deleted } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Task } from '../../kernel/tasks.ts';
import { demandAugmentation } from '../endpoints/endpoint.service.ts';
import { firingTask } from './action-firing.ts';
import { type ActionStart, changedStart, type StartInput } from './action-start.ts';
import { nextTime } from './next-time.ts';

interface UpdateAction
  extends Given<Action, 'name' | 'description' | 'augmentationId' | 'enabled' | 'input'>,
    StartInput {}

/** A new action. */
export type CreateAction = UpdateAction & Pick<Action, 'name' | 'augmentationId'>;

const actions = {
  kind: 'action',
  from: 'actions',
  columns: columnsOf(Object.values(Prisma.ActionScalarFieldEnum)),
  below: ['orgId', 'workspaceId', 'appId'],
} as const;

/** Actions: what starts an augmentation of an app besides requests, which is somebody, an event, or the clock. */
export class ActionService implements Owner {
  readonly reads: Reads<Action, AppPlace>;
  readonly tasks: readonly Task[];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.tasks = [firingTask(deps.changes)];
    this.reads = new Reads(deps, actions);
  }

  /** @throws RESOURCE_NOT_FOUND `augmentation`; InputError for what its kind needs or does not have */
  async create(caller: Caller, place: Checked<AppPlace>, input: CreateAction): Promise<Action> {
    const action = newAction(caller, { id: newId('action'), ...place }, input);
    return createRow(this.#deps, caller, actions, action, (tx) => {
      tx.demand('apps', { id: place.appId }, 'key share', () => notFound('app', place.appId));
      demandAugmentation(tx, place, input.augmentationId);
    });
  }

  /**
   * Changes the given fields; omitted ones stay. Another kind ends what belonged to the kind before.
   * @throws RESOURCE_NOT_FOUND `action` or `augmentation`; InputError like {@link create}
   */
  async update(caller: Caller, place: Checked<AppPlace>, id: string, input: UpdateAction): Promise<Action> {
    const { orgId, workspaceId, appId } = place;
    return updateRow(this.#deps, caller, actions, { id, ...place }, input, async (tx) => {
      if (input.augmentationId) demandAugmentation(tx, place, input.augmentationId);
      const key = { id, orgId, workspaceId, appId };
      const before = await tx.lock('actions', key, 'no key update', () => notFound('action', id));
      const start = changedStart(before, input);
      const enabled = input.enabled ?? before.enabled;
      const isSame = enabled === before.enabled && start.cron === before.cron && start.timezone === before.timezone;
      // a time that is due, and not fired yet, stays
      return { ...input, ...start, enabled, nextFireAt: isSame ? undefined : nextFire(start, enabled) };
    });
  }

  /** @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<AppPlace>, id: string): Promise<Deleted<AppPlace>> {
    return deleteRow(this.#deps, caller, actions, { id, ...place });
  }
}

const nextFire = ({ cron, timezone }: ActionStart, enabled: boolean): Date | null =>
  enabled && cron !== null && timezone !== null ? nextTime(cron, timezone, new Date()) : null;

/**
 * The row of a new action: written as a part of a change that is recorded.
 * @throws InputError for what its kind needs or does not have
 */
export function newAction(
  caller: Caller,
  { id, orgId, workspaceId, appId }: AppPlace & { id: string },
  input: CreateAction,
): NewRow<'actions'> {
  const start = changedStart(null, input);
  const enabled = input.enabled ?? true;
  return {
    id,
    orgId,
    workspaceId,
    appId,
    ...start,
    name: input.name,
    description: input.description ?? null,
    augmentationId: input.augmentationId,
    enabled,
    input: input.input ?? {},
    nextFireAt: nextFire(start, enabled),
    createdBy: caller.principal.userId,
  };
}
