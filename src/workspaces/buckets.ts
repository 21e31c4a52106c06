import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { PrismaClient } from '../generated/prisma/client.ts';
import type { Changes } from '../infra/change.ts';
import { systemCaller } from '../infra/system-caller.ts';

const BATCH = 100;

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
        if (count > 0)
          tx.emit({
            type: 'workspace.updated',
            orgId,
            workspaceId: id,
            resourceType: 'workspace',
            resourceId: id,
            data: { bucket_status: bucketStatus },
          });
      });
    }
    return pending.length;
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
