import { inBatches } from '../../data/batches.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';
import { LONG_DELETED } from '../../tenancy/workspaces/long-deleted.ts';

/** Entities, or memories, that one statement removes. Their relations and links go with them, row by row. */
const BATCH = 5_000;

const TABLES = ['entities', 'memories'] as const;

/**
 * Removes the knowledge graph of what is deleted, in parts. By itself it would go with its app, namespace or workspace,
 * but in one statement, which PostgreSQL ends after 30 seconds when there is a lot: then nothing could be deleted.
 */
export class KnowledgeGraphRemoval implements Owner, ContentOwner {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Removes the graph of an app or a namespace. */
  placeRemoved(_caller: Caller, { kind, id }: RemovedPlace): PlaceRemoval {
    const isIn = kind === 'app' ? statement`t.app_id = ${id}` : statement`t.namespace_id = ${id}`;
    return { before: (tx) => removeAll(tx, isIn) };
  }

  /** Removes the graphs of workspaces and organizations that end for good. @returns how many entities and memories */
  async removeParts(): Promise<number> {
    let removed = 0;
    for (const table of TABLES)
      removed += await inBatches(BATCH, () =>
        this.#sql.write(
          `delete from ${table} where id = any(array(select t.id from (select w.org_id, w.id ${LONG_DELETED}) w
            join ${table} t on t.org_id = w.org_id and t.workspace_id = w.id limit ${BATCH}))`,
          [],
        ),
      );
    return removed;
  }
}

async function removeAll(tx: Tx, { text, values }: Statement): Promise<void> {
  for (const table of TABLES)
    await inBatches(BATCH, async () => {
      const first = `select t.id from ${table} t where ${text} order by t.id limit ${BATCH}`;
      const batch = await tx.query<{ id: string }>({ text: first, values });
      const ids = batch.map(({ id }) => id);
      if (ids.length === 0) return 0;
      await tx.lockUnread(table, statement`t.id = any(${ids}::text[])`, 'update');
      await tx.query({ text: `delete from ${table} where id = any($1::text[])`, values: [ids] });
      return ids.length;
    });
}
