import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Augmentation as AugmentationRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, Deleted } from '../../kernel/checked-place.ts';
import { conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { type Augmentation, augmentations } from './augmentation.reads.ts';
import { checkStages, type KeyedStage, type StageIds, type StageInput, writeStages } from './augmentation-stages.ts';

interface UpdateAugmentation extends Given<AugmentationRow, 'name' | 'description' | 'status' | 'metadata'> {
  /** Replaces the stages. Those that are given by their id are kept. */
  stages?: StageInput[] | null;
}

/** A new augmentation. */
export type CreateAugmentation = UpdateAugmentation & Pick<AugmentationRow, 'name'>;

/**
 * Augmentations: what an app does with a request. The stages and steps are a part of it: they are read and changed
 * together, under its version.
 */
export class AugmentationService {
  readonly reads: Reads<Augmentation, AppPlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, augmentations);
  }

  /** @throws RESOURCE_NOT_FOUND `app`; InputError for stages */
  async create(caller: Caller, place: Checked<AppPlace>, input: CreateAugmentation): Promise<Augmentation> {
    const id = newId('augmentation');
    await this.#deps.changes.run(caller, async (tx) => {
      tx.demand('apps', { id: place.appId }, 'key share', () => notFound('app', place.appId));
      const stages = await checkStages(tx, place, input.stages ?? [], null);
      insertAugmentation(tx, caller, { id, ...place }, { ...input, stages });
      recordChange(tx, 'create', 'augmentation', { id, ...place });
    });
    return this.reads.get(noCache, place, id);
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND; InputError for stages */
  async update(caller: Caller, place: Checked<AppPlace>, id: string, input: UpdateAugmentation): Promise<Augmentation> {
    const { orgId, workspaceId, appId } = place;
    const { stages } = input;
    await this.#deps.changes.run(caller, async (tx) => {
      const before = await tx.lock('augmentations', { id, orgId, workspaceId, appId }, 'no key update', missing(id));
      await tx.expectVersion({ table: 'augmentations', key: { id } });
      if (stages) {
        writeStages(tx, id, await checkStages(tx, place, stages, id));
      }
      tx.update(
        'augmentations',
        { id },
        {
          name: input.name ?? undefined,
          description: input.description,
          status: input.status ?? undefined,
          metadata: input.metadata ?? undefined,
          // its stages are part of it
          resourceVersion: stages ? before.resourceVersion + 1 : undefined,
        },
      );
      recordChange(tx, 'update', 'augmentation', before, { fields: Object.keys(input) });
    });
    return this.reads.get(noCache, place, id);
  }

  /** @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `in_use` while endpoints or actions run it */
  async delete(caller: Caller, place: Checked<AppPlace>, id: string): Promise<Deleted<AppPlace>> {
    const { orgId, workspaceId, appId } = place;
    const rules = async (tx: Tx) => {
      // no endpoint and no action can begin to run it
      await tx.lock('augmentations', { id, orgId, workspaceId, appId }, 'update', missing(id));
      const references = await tx.query<{ resource_type: string; resource_id: string }>(statement`
        select 'endpoint' as resource_type, id as resource_id from endpoints where augmentation_id = ${id}
        union all select 'action', id from actions where augmentation_id = ${id} order by 2 limit ${SHOWN}`);
      if (references.length > 0)
        throw conflict(
          'augmentation',
          id,
          'in_use',
          'Endpoints or actions run the augmentation: delete them, or let them run another one.',
          { references },
        );
    };
    return deleteRow(this.#deps, caller, { kind: 'augmentation', from: 'augmentations' }, { id, ...place }, { rules });
  }
}

/** Most references that a refusal lists. */
const SHOWN = 50;

const missing = (id: string) => () => notFound('augmentation', id);

/** Writes an augmentation with its stages, which the caller has checked: as a part of a change that is recorded. */
export function insertAugmentation(
  tx: Tx,
  caller: Caller,
  { id, orgId, workspaceId, appId }: AppPlace & { id: string },
  input: Omit<CreateAugmentation, 'stages'> & { stages: readonly KeyedStage[] },
): StageIds {
  tx.insert('augmentations', {
    id,
    orgId,
    workspaceId,
    appId,
    name: input.name,
    description: input.description ?? null,
    status: input.status ?? 'active',
    metadata: input.metadata ?? {},
    createdBy: caller.principal.userId,
  });
  return writeStages(tx, id, input.stages);
}
