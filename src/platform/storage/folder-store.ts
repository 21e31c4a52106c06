import { createWriteStream } from 'node:fs';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
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
  async put(key: string, content: Readable): Promise<void> {
    const file = path.join(this.#root, key);
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    try {
      await pipeline(content, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }));
    } catch (error) {
      if (!isCode(error, 'EEXIST')) await rm(file, { force: true });
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

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
