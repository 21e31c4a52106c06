import type { Readable } from 'node:stream';

/** Bytes of a file, both ends included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** An object as the store lists it. */
export interface StoredObject {
  key: string;
  sizeBytes: number;
  /** When it was written. */
  changedAt: Date;
}

/** How a client sees a file that it fetches from the store itself. */
export interface PresignedGet {
  /** Whole seconds. */
  expiresIn: number;
  contentDisposition: string;
  contentType: string;
}

/** Keeps bytes by key. A key is `folder/name` of letters, digits, `_` and `-`; the service makes it up. */
export interface Store {
  /** Stores a new object. It is durable when this resolves, and when it rejects there is none. */
  put(key: string, content: AsyncIterable<Buffer>): Promise<void>;
  /** Rejects before the first byte when it cannot be read. @throws MissingObject */
  read(key: string, range?: ByteRange): Promise<Readable>;
  exists(key: string): Promise<boolean>;
  /** Removes an object; a missing one is fine. */
  remove(key: string): Promise<void>;
  /** Makes sure that objects can be stored in a folder. */
  makeFolder(folder: string): Promise<void>;
  /** Removes a folder with all its objects; a missing one is fine. */
  removeFolder(folder: string): Promise<void>;
  list(): AsyncIterable<StoredObject>;
  /** An address at which a client gets the object from the store itself; `null` if clients cannot reach the store. */
  presign(key: string, options: PresignedGet): Promise<string | null>;
  /** Removes what uploads of killed processes left in the store that is no object. @returns how many */
  sweep(): Promise<number>;
  close(): void;
}

/** The store has no object with the key. */
export class MissingObject extends Error {
  override readonly name = 'MissingObject';

  constructor(key: string, cause?: unknown) {
    super(`The store has no object '${key}'.`, { cause });
  }
}
