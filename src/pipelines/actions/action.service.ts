import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import { columnsOf } from '../../data/pages.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import type { NewRow } from '../../data/tables.ts';
import { type Action, Prisma } from '../../generated/prisma/client.ts';
import type { Actor } from '../../kernel/caller.ts';
import type { AppPlace, Checked } from '../../kernel/checked-place.ts';
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

/** Actions: what starts an augmentation of an app besides requests, which is somebody, an event, or the clock. */
export class ActionService implements Owner {
  readonly reads: Reads<Action, AppPlace>;
  readonly tasks: readonly Task[];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.tasks = [firingTask(deps.changes)];
    this.reads = new Reads(deps, {
      kind: 'action',
      from: 'actions',
      columns: columnsOf(Object.values(Prisma.ActionScalarFieldEnum)),
      below: ['orgId', 'workspaceId', 'appId'],
    });
  }

  /** @throws RESOURCE_NOT_FOUND `augmentation`; InputError for what its kind needs or does not have */
  async create(actor: Actor, place: Checked<AppPlace>, input: CreateAction): Promise<Action> {
    const row = { id: newId('action'), ...place };
    const action = newAction(actor, row, input);
    return this.#deps.changes.run(actor, async (tx) => {
      tx.demand('apps', { id: place.appId }, 'key share', () => notFound('app', place.appId));
      demandAugmentation(tx, place, input.augmentationId);
      recordChange(tx, 'create', 'action', row);
      return tx.create('actions', action);
    });
  }

  /**
   * Changes the given fields; omitted ones stay. Another kind ends what belonged to the kind before.
   * @throws RESOURCE_NOT_FOUND `action` or `augmentation`; InputError like {@link create}
   */
  async update(actor: Actor, place: Checked<AppPlace>, id: string, input: UpdateAction): Promise<Action> {
    const { orgId, workspaceId, appId } = place;
    const { augmentationId } = input;
    return this.#deps.changes.run(actor, async (tx) => {
      if (augmentationId) demandAugmentation(tx, place, augmentationId);
      const key = { id, orgId, workspaceId, appId };
      const before = await tx.lock('actions', key, 'no key update', () => notFound('action', id));
      await tx.expectVersion({ table: 'actions', key: { id } });
      const start = changedStart(before, input);
      const enabled = input.enabled ?? before.enabled;
      const isSame = enabled === before.enabled && start.cron === before.cron && start.timezone === before.timezone;
      recordChange(tx, 'update', 'action', before, { fields: Object.keys(input) });
      const set = {
        ...start,
        name: input.name ?? undefined,
        description: input.description,
        augmentationId: augmentationId ?? undefined,
        enabled,
        input: input.input ?? undefined,
        // a time that is due, and not fired yet, stays
        nextFireAt: isSame ? undefined : nextFire(start, enabled),
      };
      return tx.change('actions', { id }, set, () => notFound('action', id));
    });
  }

  /** @throws RESOURCE_NOT_FOUND */
  async delete(actor: Actor, place: Checked<AppPlace>, id: string): Promise<boolean> {
    const { orgId, workspaceId, appId } = place;
    return this.#deps.changes.run(actor, async (tx) => {
      await tx.expectVersion({ table: 'actions', key: { id, orgId, workspaceId, appId } });
      tx.remove('actions', { id, orgId, workspaceId, appId }, () => notFound('action', id));
      recordChange(tx, 'delete', 'action', { id, ...place });
      return true;
    });
  }
}

const nextFire = ({ cron, timezone }: ActionStart, enabled: boolean): Date | null =>
  enabled && cron !== null && timezone !== null ? nextTime(cron, timezone, new Date()) : null;

/**
 * The row of a new action: written as a part of a change that is recorded.
 * @throws InputError for what its kind needs or does not have
 */
export function newAction(
  actor: Actor,
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
    createdBy: actor.principal.userId,
  };
}
