import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, type FieldsOf, type NewFieldsOf, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import type { NewRow } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { type Endpoint, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, Deleted } from '../../kernel/checked-place.ts';
import { alreadyExists, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

type UpdateEndpoint = FieldsOf<'endpoints'>;

/** A new endpoint. */
export type CreateEndpoint = NewFieldsOf<'endpoints'>;

const endpoints = {
  kind: 'endpoint',
  from: 'endpoints',
  columns: columnsOf(Object.values(Prisma.EndpointScalarFieldEnum)),
  below: ['orgId', 'workspaceId', 'appId'],
} as const;

/** Endpoints: the addresses of an app, each of which runs an augmentation of the app. */
export class EndpointService {
  readonly reads: Reads<Endpoint, AppPlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, endpoints);
  }

  /** @throws RESOURCE_NOT_FOUND `augmentation`; RESOURCE_ALREADY_EXISTS for a path that the app already has */
  async create(caller: Caller, place: Checked<AppPlace>, input: CreateEndpoint): Promise<Endpoint> {
    return createRow(this.#deps, caller, endpoints, { id: newId('endpoint'), ...place, ...input }, async (tx) => {
      await lockPaths(tx, place);
      demandAugmentation(tx, place, input.augmentationId);
      await demandFreePath(tx, place, input.path);
    });
  }

  /**
   * Changes the given fields; omitted ones stay.
   * @throws RESOURCE_NOT_FOUND `endpoint` or `augmentation`; RESOURCE_ALREADY_EXISTS like {@link create}
   */
  async update(caller: Caller, place: Checked<AppPlace>, id: string, input: UpdateEndpoint): Promise<Endpoint> {
    const { path, augmentationId } = input;
    return updateRow(this.#deps, caller, endpoints, { id, ...place }, input, async (tx) => {
      if (path) await lockPaths(tx, place);
      if (augmentationId) demandAugmentation(tx, place, augmentationId);
      if (path) await demandFreePath(tx, place, path, id);
      return input;
    });
  }

  /** @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<AppPlace>, id: string): Promise<Deleted<AppPlace>> {
    return deleteRow(this.#deps, caller, endpoints, { id, ...place });
  }
}

/** Paths of one app change one after the other. @throws RESOURCE_NOT_FOUND `app` */
async function lockPaths(tx: Tx, { appId }: AppPlace): Promise<void> {
  await tx.lock('apps', { id: appId }, 'no key update', () => notFound('app', appId));
}

/** @throws RESOURCE_ALREADY_EXISTS */
async function demandFreePath(tx: Tx, { appId }: AppPlace, path: string, own?: string): Promise<void> {
  const same = await findRow(tx, 'endpoints', { appId, path });
  if (same && same.id !== own) throw alreadyExists('endpoint', 'path', path, same.id);
}

/** Locks an augmentation of the app against being deleted. @throws RESOURCE_NOT_FOUND `augmentation` */
export function demandAugmentation(tx: Tx, { appId }: AppPlace, id: string): void {
  tx.demand('augmentations', { id, appId }, 'key share', () => notFound('augmentation', id));
}

/** The row of a new endpoint, which the caller has checked: written as a part of a change that is recorded. */
export const newEndpoint = (
  caller: Caller,
  { id, orgId, workspaceId, appId }: AppPlace & { id: string },
  input: CreateEndpoint,
): NewRow<'endpoints'> => ({
  id,
  orgId,
  workspaceId,
  appId,
  name: input.name,
  description: input.description ?? null,
  path: input.path,
  method: input.method ?? 'POST',
  augmentationId: input.augmentationId,
  enabled: input.enabled ?? true,
  metadata: input.metadata ?? {},
  createdBy: caller.principal.userId,
});
