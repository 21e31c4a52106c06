import { mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../../config.ts';
import type { ClaimedDigest } from '../../kernel/digests.ts';
import { ApiError } from '../../kernel/errors.ts';
import { replaceFile } from '../whole-file.ts';
import { type ContentFacts, Meter } from './meter.ts';
import { type ByteRange, MissingObject, type PresignedGet, type Store, type StoredObject } from './store.ts';

/** Tells a store from others. It belongs to no workspace, and no list has it. */
const MARKER = 'service/marker';
const MARKER_TEXT = /^[\w-]{1,64}$/;
const RETRY_SECONDS = 30;

const KEY = /^[A-Za-z0-9_-]{1,128}\/[A-Za-z0-9_-]{1,128}$/;

/**
 * The files of the service: in `DATA_DIR/files`, or in an S3-compatible store if `S3_BUCKET` is set. A folder's library
 * loads with the first file: a start does not wait for it.
 */
export class Storage {
  readonly #config: Pick<Config, 'dataDir' | 's3'>;
  #opened: Promise<Store> | null = null;
  /** Whether it was found not to be the one of the service: no file is read, written or removed then. */
  isForeign = false;
  readonly #onAway: ((error: unknown) => void) | undefined;

  /**
   * @param onAway is told why the store refused a file or did not answer, which callers then get as a 503; without it,
   * they get the error of the store
   */
  constructor(config: Pick<Config, 'dataDir' | 's3'>, onAway?: (error: unknown) => void) {
    this.#config = config;
    this.#onAway = onAway;
  }

  /** Loads the client of an S3-compatible store, which is large: the first upload would have to wait for it. */
  async load(): Promise<void> {
    if (this.#config.s3) await this.#open();
  }

  /**
   * Stores a new file while it arrives, and counts and hashes it on the way. When this rejects, no byte of it is left.
   * @param digests what the client says of the bytes
   * @throws TooManyBytes beyond `limitBytes`; INVALID_REQUEST `digest_mismatch`; the error of `content` when that
   * breaks off; SERVICE_UNAVAILABLE `file_store_away`
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
      await this.#reached(() => pipeline(content, meter, kept));
    } finally {
      // if another part fails, the pipeline does not wait until the store has removed what it had
      await stored?.catch(() => undefined);
    }
    return meter.facts();
  }

  /** @throws MissingObject before the first byte */
  async read(key: string, range?: ByteRange): Promise<Readable> {
    const store = await this.#storeFor(key);
    return this.#reached(() => store.read(key, range));
  }

  /** What was not stored by this service is believed to be there. */
  async exists(key: string): Promise<boolean> {
    if (!KEY.test(key)) return true;
    const store = await this.#open();
    return this.#reached(() => store.exists(key));
  }

  /** Removes a file; a missing one is fine. */
  async remove(key: string): Promise<void> {
    const store = await this.#storeFor(key);
    await this.#reached(() => store.remove(key));
  }

  /** Makes sure that files can be stored in a folder, the first part of their keys. */
  async makeFolder(folder: string): Promise<void> {
    await (await this.#storeFor(`${folder}/any`)).makeFolder(folder);
  }

  /** Removes a folder with all its files; a missing one is fine. */
  async removeFolder(folder: string): Promise<void> {
    await (await this.#storeFor(`${folder}/any`)).removeFolder(folder);
  }

  /** Every file that is stored, in no order. */
  async *list(): AsyncGenerator<StoredObject, void, void> {
    for await (const object of (await this.#open()).list()) if (object.key !== MARKER) yield object;
  }

  /** The marker of the store; `null` when it has none. */
  async marker(): Promise<string | null> {
    const text = (await this.#markerText())?.trim();
    return text !== undefined && MARKER_TEXT.test(text) ? text : null;
  }

  /** Gives the store a marker. */
  async mark(marker: string): Promise<void> {
    const { s3 } = this.#config;
    if (s3) return (await this.#open()).put(MARKER, Readable.from([Buffer.from(marker)]));
    const file = this.#markerFile;
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    replaceFile(file, `${marker}\n`);
  }

  get #markerFile(): string {
    return path.join(folderOf(this.#config), MARKER);
  }

  async #markerText(): Promise<string | undefined> {
    try {
      // a start does not wait for the library of a folder
      if (!this.#config.s3) return await readFile(this.#markerFile, 'utf8');
      const parts: Buffer[] = [];
      for await (const part of await (await this.#open()).read(MARKER)) parts.push(part as Buffer);
      return Buffer.concat(parts).toString('utf8');
    } catch (error) {
      if (error instanceof MissingObject || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
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
    if (this.isForeign) throw foreignStore();
    return this.#open();
  }

  /** Does what needs the store. @throws SERVICE_UNAVAILABLE `file_store_away` */
  async #reached<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!this.#onAway || !isOfStore(error)) throw error;
      this.#onAway(error);
      throw storeAway();
    }
  }

  #open(): Promise<Store> {
    this.#opened ??= open(this.#config).catch((error: unknown) => {
      this.#opened = null; // the next one tries again
      throw error;
    });
    return this.#opened;
  }
}

const folderOf = ({ dataDir }: Pick<Config, 'dataDir'>): string => path.join(dataDir, 'files');

/** 503: another node may have the files of the service, and this one may get them. */
const foreignStore = () =>
  new ApiError(
    'SERVICE_UNAVAILABLE',
    { retry_after: RETRY_SECONDS, reason: 'files_not_shared' },
    'This node does not have the files of the service. Nothing was changed; try again.',
  );

/** 503: the store is away, or refuses what the service may do according to its operator. */
const storeAway = () =>
  new ApiError(
    'SERVICE_UNAVAILABLE',
    { retry_after: RETRY_SECONDS, reason: 'file_store_away' },
    'The store of files does not answer, or refuses the service. Nothing was changed; try again.',
  );

/** Whether an error is one of a request to the S3-compatible store; its client notes its attempts in each. */
export function isOfStore(error: unknown): boolean {
  if (error instanceof MissingObject || !(error instanceof Error)) return false;
  // the library over the client gives its own error a cause
  return '$metadata' in error || isOfStore(error.cause);
}

async function open({ dataDir, s3 }: Pick<Config, 'dataDir' | 's3'>): Promise<Store> {
  if (!s3) {
    const { FolderStore } = await import('./folder-store.ts');
    return new FolderStore(folderOf({ dataDir }));
  }
  const { S3Store } = await import('./s3-store.ts');
  return new S3Store(s3, path.join(dataDir, 'spool'));
}
