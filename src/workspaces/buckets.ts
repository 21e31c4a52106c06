import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { PrismaClient, Workspace } from '../generated/prisma/client.ts';
import type { Changes, Tx } from '../infra/change.ts';
import { systemCaller } from '../infra/system-caller.ts';

const BATCH = 100;

/**
 * Failed buckets that are due, back to `pending`. Each waits as long again as it has been failing, so the waits double: from ten seconds up
 * to an hour.
 */
const RETRY = `update workspaces set bucket_status = 'pending', updated_at = now() where id in (
    select id from workspaces where bucket_status = 'failed' and deleted_at is null
      and updated_at < now() - least(interval '1 hour', greatest(interval '10 seconds', updated_at - created_at))
    order by id limit ${BATCH} for update skip locked)
  returning id, org_id as "orgId"`;

/** Makes the place where a workspace keeps its files: a folder below `DATA_DIR/files`. */
export class Buckets {
  readonly #prisma: PrismaClient;
  readonly #changes: Changes;
  readonly #filesDir: string;

  constructor(deps: { prisma: PrismaClient; changes: Changes; dataDir: string }) {
    this.#prisma = deps.prisma;
    this.#changes = deps.changes;
    this.#filesDir = path.join(deps.dataDir, 'files');
  }

  /** Moves workspaces from `pending` to `ready`, or to `failed` where the folder cannot be made. @returns how many */
  async provisionPending(): Promise<number> {
    const pending = await this.#prisma.workspace.findMany({
      where: { bucketStatus: 'pending', deletedAt: null },
      take: BATCH,
      orderBy: { id: 'asc' },
    });
    for (const { id, orgId, storageBucket } of pending) {
      const bucketStatus = await this.#make(storageBucket);
      await this.#changes.run(systemCaller('bucket'), async (tx) => {
        const { count } = await tx.db.workspace.updateMany({
          where: { id, bucketStatus: 'pending' },
          data: { bucketStatus },
        });
        if (count > 0) emitStatus(tx, { id, orgId }, bucketStatus);
      });
    }
    return pending.length;
  }

  /** Moves workspaces whose folder could not be made back to `pending`, once they have waited. @returns how many */
  async retryFailed(): Promise<number> {
    return this.#changes.run(systemCaller('bucket'), async (tx) => {
      const due = await tx.db.$queryRawUnsafe<Pick<Workspace, 'id' | 'orgId'>[]>(RETRY);
      for (const workspace of due) emitStatus(tx, workspace, 'pending');
      return due.length;
    });
  }

  /** Removes the folders of workspaces that were deleted 30 days ago, before their rows go. @returns how many */
  async removeDeleted(): Promise<number> {
    const monthAgo = new Date(Date.now() - 30 * 24 * 3_600_000);
    const gone = await this.#prisma.workspace.findMany({
      where: { OR: [{ deletedAt: { lt: monthAgo } }, { organization: { deletedAt: { lt: monthAgo } } }] },
      select: { storageBucket: true },
    });
    for (const { storageBucket } of gone)
      await rm(path.join(this.#filesDir, storageBucket), { recursive: true, force: true });
    return gone.length;
  }

  async #make(bucket: string): Promise<'ready' | 'failed'> {
    try {
      await mkdir(path.join(this.#filesDir, bucket), { recursive: true, mode: 0o700 });
      return 'ready';
    } catch (error) {
      if (error instanceof Error && 'code' in error) return 'failed'; // the disk's answer, not a fault of ours
      throw error;
    }
  }
}

function emitStatus(tx: Tx, { id, orgId }: Pick<Workspace, 'id' | 'orgId'>, bucketStatus: string): void {
  tx.emit({
    type: 'workspace.updated',
    orgId,
    workspaceId: id,
    resourceType: 'workspace',
    resourceId: id,
    data: { bucket_status: bucketStatus },
  });
}
