import { inBatches } from '../../data/batches.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { ContentOwner, PlaceRemoval, RemovedPlace } from '../../tenancy/removals.ts';
import { LONG_DELETED } from '../../tenancy/workspaces/long-deleted.ts';

/** Heads that are removed together, and the most of each of their parts that one statement removes. */
const HEADS = 200;
const VERSIONS = 1_000;
const CHUNKS = 5_000;
const WORDS = 20_000;

interface Head {
  id: string;
  isDeleted: boolean;
  sourceId: string | null;
}

const OLD_VERSIONS = `delete from artifacts where id in (select id from artifacts
  where root_artifact_id = any($1::text[]) and not is_latest limit ${VERSIONS}) returning 1`;
const CHUNKS_OF = `delete from artifact_chunks where (artifact_id, position) in (
  select artifact_id, position from artifact_chunks where artifact_id = any($1::text[]) limit ${CHUNKS}) returning 1`;
const HEADS_OF = 'delete from artifacts where id = any($1::text[])';
const wordsOf = (namespaces: string): string => `delete from artifact_words where (namespace_id, word) in (
  select namespace_id, word from artifact_words where namespace_id in (${namespaces}) limit ${WORDS}) returning 1`;

/**
 * Removes the artifacts of what is deleted, in parts: in one statement, their versions, chunks and words could take
 * longer than PostgreSQL lets it run, and then nothing could be deleted. The rows of their files are marked with them,
 * and the bytes are removed by a job.
 */
export class ArtifactRemoval implements Owner, ContentOwner {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Removes the artifacts of a namespace, with the sources that they were promoted to: `artifact.deleted` and
   * `source.deleted` for each that could be seen.
   */
  placeRemoved(_caller: Caller, place: RemovedPlace): PlaceRemoval {
    return place.kind === 'namespace' ? { before: (tx) => this.#ofNamespace(tx, place) } : {};
  }

  async #ofNamespace(tx: Tx, { id: namespaceId, orgId, workspaceId }: RemovedPlace): Promise<void> {
    const place = { orgId, workspaceId };
    await inBatches(HEADS, async () => {
      const next = await tx.query<{ id: string }>(statement`select t.id from artifacts t
        where t.namespace_id = ${namespaceId} and t.is_latest order by t.id limit ${HEADS}`);
      const ids = next.map(({ id }) => id);
      if (ids.length === 0) return 0;
      await tx.lockUnread('artifacts', statement`t.id = any(${ids}::text[])`, 'update');
      const heads = await tx.query<Head>(statement`select t.id, t.deleted_at is not null as "isDeleted",
          (select s.id from sources s where s.artifact_id = t.id) as "sourceId"
        from artifacts t where t.id = any(${ids}::text[]) order by t.id`);
      for (const [size, text] of [
        [VERSIONS, OLD_VERSIONS],
        [CHUNKS, CHUNKS_OF],
      ] as const)
        await inBatches(size, async () => (await tx.query({ text, values: [ids] })).length);
      for (const { id, isDeleted, sourceId } of heads) {
        if (sourceId) emitChange(tx, 'deleted', 'source', { ...place, id: sourceId, namespaceId: null });
        if (!isDeleted) emitChange(tx, 'deleted', 'artifact', { ...place, id, namespaceId });
      }
      // its source goes with it
      await tx.query({ text: HEADS_OF, values: [ids] });
      return ids.length;
    });
    await inBatches(WORDS, async () => (await tx.query({ text: wordsOf('$1'), values: [namespaceId] })).length);
  }

  /** Removes the artifacts of workspaces and organizations that end for good. @returns how many */
  async removeParts(): Promise<number> {
    const removed = await inBatches(HEADS, async () => {
      const heads = await this.#sql.read<{ id: string }>(
        `select t.id from (select w.id ${LONG_DELETED}) w join namespaces n on n.workspace_id = w.id
          join artifacts t on t.namespace_id = n.id and t.is_latest limit ${HEADS}`,
        [],
      );
      const ids = heads.map(({ id }) => id);
      await inBatches(VERSIONS, () => this.#sql.write(OLD_VERSIONS, [ids]));
      await inBatches(CHUNKS, () => this.#sql.write(CHUNKS_OF, [ids]));
      return ids.length === 0 ? 0 : this.#sql.write(HEADS_OF, [ids]);
    });
    const namespaces = `select n.id from (select w.id ${LONG_DELETED}) w join namespaces n on n.workspace_id = w.id`;
    await inBatches(WORDS, () => this.#sql.write(wordsOf(namespaces), []));
    return removed;
  }
}
