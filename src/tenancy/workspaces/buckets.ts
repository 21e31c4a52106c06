import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import type { Workspace } from '../../generated/prisma/client.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled } from '../../kernel/tasks.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import { LONG_DELETED } from './long-deleted.ts';

const BATCH = 500;
const AT_ONCE = 16;

const PENDING = `from workspaces where bucket_status = 'pending' and deleted_at is null`;
// each waits as long again as it has been failing, so the waits double, from ten seconds up to an hour
const FAILED_AND_DUE = `from workspaces where bucket_status = 'failed' and deleted_at is null
  and updated_at < now() - least(interval '1 hour', greatest(interval '10 seconds', updated_at - created_at))`;

/** Moves the workspaces `from …` to another status. Rows locked by another change are left for the next time. */
const move = (from: string) => `update workspaces set bucket_status = $1, updated_at = now() where id in (
    select id ${from} order by id limit ${BATCH} for update skip locked)
  returning id, org_id as "orgId"`;

/** Creates the folder of a workspace in the storage of files. */
export class Buckets {
  readonly tasks = [
    scheduled('buckets', { everySeconds: 1, ifAny: `select 1 ${PENDING}` }, () => this.provisionPending()),
    scheduled('bucket_retries', { everySeconds: 10, ifAny: `select 1 ${FAILED_AND_DUE}` }, () => this.retryFailed()),
  ];
  readonly #sql: Sql;
  readonly #changes: Changes;
  readonly #storage: Storage;

  constructor(deps: { sql: Sql; changes: Changes; storage: Storage }) {
    this.#sql = deps.sql;
    this.#changes = deps.changes;
    this.#storage = deps.storage;
  }

  /**
   * Moves workspaces from `pending` to `ready`, or to `failed` if the folder cannot be created.
   * @returns how many were pending
   */
  async provisionPending(): Promise<number> {
    let last = '';
    return inBatches(BATCH, async () => {
      // behind the last one: those that a change holds meanwhile are left for the next time, not asked for again
      const pending = await this.#sql.read<{ id: string; bucket: string }>(
        `select id, storage_bucket as bucket ${PENDING} and id > $1 order by id limit ${BATCH}`,
        [last],
      );
      last = pending.at(-1)?.id ?? last;
      const ids = { ready: [] as string[], failed: [] as string[] };
      for (let at = 0; at < pending.length; at += AT_ONCE)
        await Promise.all(
          pending.slice(at, at + AT_ONCE).map(async ({ id, bucket }) => ids[await this.#make(bucket)].push(id)),
        );
      for (const status of ['ready', 'failed'] as const)
        if (ids[status].length > 0) await this.#move(status, `${PENDING} and id = any($2)`, ids[status]);
      return pending.length;
    });
  }

  /**
   * Moves workspaces whose folder could not be created back to `pending` once they have waited.
   * @returns how many
   */
  async retryFailed(): Promise<number> {
    return inBatches(BATCH, () => this.#move('pending', FAILED_AND_DUE));
  }

  async #move(status: string, from: string, ids?: string[]): Promise<number> {
    return this.#changes.run(systemCaller('bucket'), async (tx) => {
      const values = [status, ...(ids ? [ids] : [])];
      const moved = await tx.query<Pick<Workspace, 'id' | 'orgId'>>({ text: move(from), values });
      for (const workspace of moved) emitStatus(tx, workspace, status);
      return moved.length;
    });
  }

  /**
   * Removes the folders of workspaces that were deleted 30 days ago, before their rows are deleted.
   * @returns how many
   */
  async removeFiles(): Promise<number> {
    const gone = await this.#sql.read<{ bucket: string }>(`select w.storage_bucket as bucket ${LONG_DELETED}`, []);
    for (const { bucket } of gone) await this.#storage.removeFolder(bucket);
    return gone.length;
  }

  async #make(bucket: string): Promise<'ready' | 'failed'> {
    try {
      await this.#storage.makeFolder(bucket);
      return 'ready';
    } catch (error) {
      if (error instanceof Error && 'code' in error) return 'failed'; // an error of the disk, not a bug
      throw error;
    }
  }
}

function emitStatus(tx: Tx, { id, orgId }: Pick<Workspace, 'id' | 'orgId'>, bucketStatus: string): void {
  emitChange(tx, 'updated', 'workspace', { id, orgId, workspaceId: id }, { bucket_status: bucketStatus });
}
