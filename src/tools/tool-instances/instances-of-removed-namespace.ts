import type { Access } from '../../access/access.ts';
import type { RowDependents } from '../../data/row-dependents.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { conflict } from '../../kernel/errors.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';

/** What uses tool instances of a workspace. */
export type InstanceDependents = RowDependents<WorkspacePlace & { ids: readonly string[] }>;

/** The tool instances of a namespace go with it: not while steps use them, unless forced (docs/decisions/0048). */
export class InstancesOfRemovedNamespace implements ContentOwner {
  readonly #deps: { access: Access; dependents: InstanceDependents };

  constructor(deps: { access: Access; dependents: InstanceDependents }) {
    this.#deps = deps;
  }

  /** @throws FORBIDDEN `augmentation:update` for callers who force it and may not change what uses them */
  async placeRemoved(caller: Caller, place: RemovedPlace): Promise<PlaceRemoval> {
    const { access, dependents } = this.#deps;
    const { id, orgId, workspaceId, force } = place;
    if (place.kind !== 'namespace') return {};
    if (force) await access.requireWorkspace(caller, orgId, workspaceId, 'augmentation:update');
    let gone: { orgId: string; workspaceId: string; ids: string[] } | null = null;
    return {
      before: async (tx) => {
        // a new one would wait for the namespace, which is locked
        const ids = await instancesIn(tx, id);
        gone = ids.length > 0 ? { orgId, workspaceId, ids } : null;
        if (gone && force) await dependents.lock(tx, gone);
      },
      // nothing begins to use them any more: they were locked with their connections, and are deleted
      after: async (tx) => {
        if (!gone) return;
        if (force) await dependents.detach(tx, gone);
        const references = force ? [] : await dependents.find(tx, gone);
        if (references.length > 0) throw inUse(id, references);
      },
    };
  }
}

async function instancesIn(tx: Tx, namespaceId: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    statement`select id from tool_instances where namespace_id = ${namespaceId} order by id`,
  );
  return rows.map(({ id }) => id);
}

const inUse = (id: string, references: object[]) =>
  conflict(
    'namespace',
    id,
    'in_use',
    'Steps of augmentations use tool instances of the namespace: change them first, or delete it with `force`.',
    { references },
  );
