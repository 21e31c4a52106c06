import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../../config.ts';
import type { ClaimedDigest } from '../../kernel/digests.ts';
import { type ContentFacts, Meter } from './meter.ts';
import type { ByteRange, PresignedGet, Store, StoredObject } from './store.ts';

const KEY = /^[A-Za-z0-9_-]{1,128}\/[A-Za-z0-9_-]{1,128}$/;

/**
 * The files of the service: in `DATA_DIR/files`, or in an S3-compatible store if `S3_BUCKET` is set. A folder's library
 * loads with the first file: a start does not wait for it.
 */
export class Storage {
  readonly #config: Pick<Config, 'dataDir' | 's3'>;
  #opened: Promise<Store> | null = null;

  constructor(config: Pick<Config, 'dataDir' | 's3'>) {
    this.#config = config;
  }

  /** Loads the client of an S3-compatible store, which is large: the first upload would have to wait for it. */
  async load(): Promise<void> {
    if (this.#config.s3) await this.#open();
  }

  /**
   * Stores a new file while it arrives, and counts and hashes it on the way. When this rejects, no byte of it is left.
   * @param digests what the client says of the bytes
   * @throws TooManyBytes beyond `limitBytes`; INVALID_REQUEST `digest_mismatch`; the error of `content` when that
   * breaks off
   */
  async put(
    key: string,
    content: Readable,
    { limitBytes, digests }: { limitBytes: number; digests?: readonly ClaimedDigest[] },
  ): Promise<ContentFacts> {
    const store = await this.#storeFor(key);
    const meter = new Meter(limitBytes, digests);
    // whichever of the two fails first ends the other one, and its error is the reason
    let stored: Promise<void> | undefined;
    const kept = (bytes: AsyncIterable<Buffer>): Promise<void> => {
      stored = store.put(key, bytes);
      return stored;
    };
    try {
      await pipeline(content, meter, kept);
    } finally {
      // if another part fails, the pipeline does not wait until the store has removed what it had
      await stored?.catch(() => undefined);
    }
    return meter.facts();
  }

  /** @throws MissingObject before the first byte */
  async read(key: string, range?: ByteRange): Promise<Readable> {
    return (await this.#storeFor(key)).read(key, range);
  }

  /** What was not stored by this service is believed to be there. */
  async exists(key: string): Promise<boolean> {
    return !KEY.test(key) || (await this.#open()).exists(key);
  }

  /** Removes a file; a missing one is fine. */
  async remove(key: string): Promise<void> {
    await (await this.#storeFor(key)).remove(key);
  }

  /** Makes sure that files can be stored in a folder, the first part of their keys. */
  async makeFolder(folder: string): Promise<void> {
    await (await this.#storeFor(`${folder}/any`)).makeFolder(folder);
  }

  /** Removes a folder with all its files; a missing one is fine. */
  async removeFolder(folder: string): Promise<void> {
    await (await this.#storeFor(`${folder}/any`)).removeFolder(folder);
  }

  /** Everything that is stored, in no order. */
  async *list(): AsyncGenerator<StoredObject, void, void> {
    yield* (await this.#open()).list();
  }

  /** An address at which clients get the file from the store itself; `null` if they cannot reach the store. */
  async presign(key: string, options: PresignedGet): Promise<string | null> {
    return (await this.#storeFor(key)).presign(key, options);
  }

  /** Removes what uploads of killed processes left in the store besides files. @returns how many */
  async sweep(): Promise<number> {
    return (await this.#open()).sweep();
  }

  async close(): Promise<void> {
    (await this.#opened)?.close();
  }

  async #storeFor(key: string): Promise<Store> {
    if (!KEY.test(key)) throw new Error(`'${key}' is no key of a file.`);
    return this.#open();
  }

  #open(): Promise<Store> {
    this.#opened ??= open(this.#config).catch((error: unknown) => {
      this.#opened = null; // the next one tries again
      throw error;
    });
    return this.#opened;
  }
}

async function open({ dataDir, s3 }: Pick<Config, 'dataDir' | 's3'>): Promise<Store> {
  if (!s3) {
    const { FolderStore } = await import('./folder-store.ts');
    return new FolderStore(path.join(dataDir, 'files'));
  }
  const { S3Store } = await import('./s3-store.ts');
  return new S3Store(s3, path.join(dataDir, 'spool'));
}
