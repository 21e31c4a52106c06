import { createHash, randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable, type Writable } from 'node:stream';

/** What {@link Spool.fill} has put on disk. */
export interface SpooledPart {
  sizeBytes: number;
  /** Base64, for `Content-MD5`. */
  md5: string;
  /** No byte comes after this part. */
  isLast: boolean;
}

/** The bytes of a part that are in memory while it is sent. */
const SENT_BYTES = 64 * 1024;

/**
 * Sends a part through one buffer, which is filled again when its bytes have left. A stream of a file has a new buffer
 * for each chunk, and those of many uploads are many megabytes before they are collected.
 */
class PartReader extends Readable {
  readonly #handle: FileHandle;
  readonly #sizeBytes: number;

  constructor(handle: FileHandle, sizeBytes: number) {
    super();
    this.#handle = handle;
    this.#sizeBytes = sizeBytes;
  }

  override pipe<Target extends NodeJS.WritableStream>(target: Target): Target {
    const request = target as NodeJS.WritableStream as Writable;
    this.#sendTo(request).catch((error: Error) => request.destroy(error));
    return target;
  }

  override _read(): void {
    this.destroy(new Error('A part of an upload can only be piped.'));
  }

  async #sendTo(target: Writable): Promise<void> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(SENT_BYTES, this.#sizeBytes));
    for (let sent = 0; sent < this.#sizeBytes; ) {
      const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(buffer.length, this.#sizeBytes - sent), sent);
      if (bytesRead === 0) throw new Error('A part of an upload is shorter than it was.');
      await new Promise<void>((resolve, reject) =>
        target.write(buffer.subarray(0, bytesRead), (error) => (error ? reject(error) : resolve())),
      );
      sent += bytesRead;
    }
    target.end();
  }
}

/**
 * Holds one part of a stream at a time on disk, because an S3 store has to be told the length of a part before its
 * first byte. The file has no name any more while it is used, so it is gone with the process.
 */
export class Spool {
  readonly #handle: FileHandle;
  readonly #source: AsyncIterator<Buffer>;
  readonly #partBytes: number;
  #rest: Buffer | null = null;

  private constructor(handle: FileHandle, content: AsyncIterable<Buffer>, partBytes: number) {
    this.#handle = handle;
    this.#source = content[Symbol.asyncIterator]();
    this.#partBytes = partBytes;
  }

  static async open(dir: string, content: AsyncIterable<Buffer>, partBytes: number): Promise<Spool> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const file = path.join(dir, randomBytes(12).toString('hex'));
    const handle = await open(file, 'wx+', 0o600);
    await rm(file);
    return new Spool(handle, content, partBytes);
  }

  /** Replaces the part by the next one. @throws the error of the source */
  async fill(): Promise<SpooledPart> {
    const md5 = createHash('md5');
    let size = 0;
    for (;;) {
      const chunk = this.#rest ?? (await this.#next());
      if (!chunk) return { sizeBytes: size, md5: md5.digest('base64'), isLast: true };
      // the first byte beyond the part shows that it is not the last one
      if (size === this.#partBytes) {
        this.#rest = chunk;
        return { sizeBytes: size, md5: md5.digest('base64'), isLast: false };
      }
      const piece = chunk.subarray(0, this.#partBytes - size);
      this.#rest = piece.length < chunk.length ? chunk.subarray(piece.length) : null;
      md5.update(piece);
      await this.#handle.write(piece, 0, piece.length, size);
      size += piece.length;
    }
  }

  /** The bytes of the part, from its beginning at each call. To be piped. */
  read({ sizeBytes }: SpooledPart): Readable {
    return new PartReader(this.#handle, sizeBytes);
  }

  async close(): Promise<void> {
    await this.#source.return?.();
    await this.#handle.close();
  }

  async #next(): Promise<Buffer | null> {
    const next = await this.#source.next();
    return next.done ? null : next.value;
  }
}
