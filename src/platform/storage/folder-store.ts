import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { Disk } from 'flydrive';
import { FSDriver } from 'flydrive/drivers/fs';
import { type ByteRange, MissingObject, type Store, type StoredObject } from './store.ts';

/** A folder of this machine, readable only by the user of the service. */
export class FolderStore implements Store {
  readonly #root: string;
  readonly #disk: Disk;

  constructor(root: string) {
    this.#root = root;
    this.#disk = new Disk(new FSDriver({ location: root, visibility: 'private' }));
  }

  // not flydrive's own: it does not flush, so a row could outlive its bytes when the machine loses power
  async put(key: string, content: AsyncIterable<Buffer>): Promise<void> {
    const file = path.join(this.#root, key);
    const handle = await create(file);
    try {
      try {
        await fill(handle, content);
      } finally {
        await handle.close();
      }
    } catch (error) {
      await rm(file, { force: true });
      throw error;
    }
  }

  async read(key: string, range?: ByteRange): Promise<Readable> {
    try {
      const handle = await open(path.join(this.#root, key));
      return handle.createReadStream(range);
    } catch (error) {
      throw isCode(error, 'ENOENT') ? new MissingObject(key, error) : error;
    }
  }

  async exists(key: string): Promise<boolean> {
    return this.#disk.exists(key);
  }

  async remove(key: string): Promise<void> {
    await this.#disk.delete(key);
  }

  async makeFolder(folder: string): Promise<void> {
    await mkdir(path.join(this.#root, folder), { recursive: true, mode: 0o700 });
  }

  async removeFolder(folder: string): Promise<void> {
    await this.#disk.deleteAll(folder);
  }

  async *list(): AsyncGenerator<StoredObject, void, void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    for (const folder of (await this.#disk.listAll('/')).objects) {
      if (folder.isFile) yield this.#described(folder.key);
      // one folder at a time: there is one per workspace
      else {
        for (const file of (await this.#disk.listAll(folder.prefix, { recursive: true })).objects)
          if (file.isFile) yield this.#described(file.key);
      }
    }
  }

  async presign(): Promise<null> {
    return null;
  }

  async sweep(): Promise<number> {
    return 0;
  }

  close(): void {
    // nothing is open between calls
  }

  async #described(key: string): Promise<StoredObject> {
    // not flydrive's own: it refuses names that it would not have given
    const { size, mtime } = await stat(path.join(this.#root, key));
    return { key, sizeBytes: size, changedAt: mtime };
  }
}

/** Opens a new file, and makes its folder if that is not there yet. */
async function create(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'wx', 0o600);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    return open(file, 'wx', 0o600);
  }
}

/** Handing bytes over to the thread that writes them costs as much for a few of them as for many. */
const BLOCK_BYTES = 256 * 1024;
const MOST_FREE = 8;
/** Blocks for the next files: memory outside of the heap is dear to collect for a process whose heap is large. */
const free: Buffer[] = [];

/** Resolves when the content is on disk. */
async function fill(handle: FileHandle, content: AsyncIterable<Buffer>): Promise<void> {
  const block = free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  let size = 0;
  try {
    for await (const chunk of content) {
      for (let at = 0; at < chunk.length; ) {
        const copied = chunk.copy(block, size, at);
        at += copied;
        size += copied;
        if (size < BLOCK_BYTES) continue;
        await writeAll(handle, block);
        size = 0;
      }
    }
    await writeAll(handle, block.subarray(0, size));
    await handle.sync();
  } finally {
    // nothing writes from it any more: each write was waited for
    if (free.length < MOST_FREE) free.push(block);
  }
}

/** One call may write less than it is given. */
async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
