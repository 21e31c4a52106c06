import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';
import { LONG_DELETED } from '../../tenancy/workspaces/long-deleted.ts';
import type { Revocations } from './revocations.ts';

/** Connections that are removed together: the number of statements depends on the batches only. */
const BATCH = 500;
/** How many of them a record names: an instance may have those of thousands of end users. */
const NAMED = 500;

interface RemovalDeps {
  changes: Changes;
  revocations: Revocations;
  /** Ends what this node has open with the credentials of connections. */
  endUses: (connectionIds: ReadonlySet<string>) => void;
}

/** Ends connections, alone or with the place that they belong to (docs/decisions/0018). */
export class ConnectionRemoval implements Owner, ContentOwner {
  readonly #deps: RemovalDeps;

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /** Removes locked connections: `connection.deleted` for each, and after the commit their tokens are revoked. */
  async remove(tx: Tx, connections: readonly Connection[]): Promise<void> {
    await this.#take(tx, connections);
    for (const connection of connections) emitChange(tx, 'deleted', 'connection', connection);
  }

  /** Has the tokens of a locked connection revoked. Call it before something else is stored in their place. */
  async replaced(tx: Tx, connection: Connection): Promise<void> {
    this.#endUses(tx, [connection]);
    await this.#deps.revocations.enqueue(tx, [connection]);
  }

  /** Removes the connections of an instance. Call it before the instance is removed, which the caller has locked. */
  async removeOfInstance(tx: Tx, { id, orgId, workspaceId }: Ended): Promise<void> {
    const ids = await this.#removeAll(tx, statement`c.tool_instance_id = ${id}`);
    recordRemoved(tx, ids, { orgId, workspaceId, metadata: { tool_instance_id: id } });
  }

  /** Removes the connections of a namespace and of its instances. */
  placeRemoved(_caller: Caller, place: RemovedPlace): PlaceRemoval {
    return place.kind === 'namespace' ? { before: (tx) => this.#ofNamespace(tx, place) } : {};
  }

  async #ofNamespace(tx: Tx, { id, orgId, workspaceId }: Ended): Promise<void> {
    // whoever changes a connection locks its instance first
    const instances = statement`t.namespace_id = ${id}
      or t.id in (select c.tool_instance_id from connections c where c.namespace_id = ${id})`;
    await tx.lockUnread('tool_instances', instances, 'update');
    const ids = await this.#removeAll(
      tx,
      statement`c.namespace_id = ${id}
        or c.tool_instance_id in (select i.id from tool_instances i where i.namespace_id = ${id})`,
    );
    recordRemoved(tx, ids, { orgId, workspaceId, metadata: { namespace_id: id } });
  }

  /**
   * Removes the connections of workspaces and organizations that end for good. Nobody can receive events of these any
   * more. @returns how many
   */
  async endElsewhere(): Promise<number> {
    return inBatches(BATCH, () =>
      this.#deps.changes.run(systemCaller('retention'), async (tx) => {
        const connections = await lockBatch(tx, {
          text: `c.workspace_id in (select w.id ${LONG_DELETED})`,
          values: [],
        });
        await this.#take(tx, connections);
        return connections.length;
      }),
    );
  }

  /** @returns the identifiers of the connections */
  async #removeAll(tx: Tx, condition: Statement): Promise<string[]> {
    const ids: string[] = [];
    await inBatches(BATCH, async () => {
      const connections = await lockBatch(tx, condition);
      await this.remove(tx, connections);
      ids.push(...connections.map(({ id }) => id));
      return connections.length;
    });
    return ids;
  }

  #endUses(tx: Tx, connections: readonly Connection[]): void {
    const ids = new Set(connections.map(({ id }) => id));
    tx.afterCommit(() => this.#deps.endUses(ids));
  }

  async #take(tx: Tx, connections: readonly Connection[]): Promise<void> {
    if (connections.length === 0) return;
    this.#endUses(tx, connections);
    await this.#deps.revocations.enqueue(tx, connections);
    tx.write(statement`delete from connections where id = any(${connections.map(({ id }) => id)}::text[])`);
  }
}

/** What is deleted, with its connections. */
interface Ended {
  id: string;
  orgId: string;
  workspaceId: string;
}

/** The first connections `c` that match a condition. */
const lockBatch = (tx: Tx, { text, values }: Statement): Promise<Connection[]> =>
  tx.lockAll(
    'connections',
    { text: `t.id in (select c.id from connections c where ${text} order by c.id limit ${BATCH})`, values },
    'update',
  );

/** One record for all of them, so it has no resource id. It precedes that of what is deleted. */
function recordRemoved(
  tx: Tx,
  ids: readonly string[],
  { metadata, ...place }: Pick<Ended, 'orgId' | 'workspaceId'> & { metadata: Record<string, string> },
): void {
  if (ids.length === 0) return;
  tx.audit({
    ...place,
    action: 'disconnect',
    resourceType: 'connection',
    resourceId: null,
    metadata: { ...metadata, connections: ids.length, connection_ids: ids.slice(0, NAMED) },
  });
}
