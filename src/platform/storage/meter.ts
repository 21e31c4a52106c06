import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { type ClaimedDigest, DigestCheck } from '../../kernel/digests.ts';

/** The bytes at the beginning that are kept to recognize the type of a file. */
const SAMPLE_BYTES = 64 * 1024;

/** What is known of content that has passed. */
export interface ContentFacts {
  sizeBytes: number;
  /** In hexadecimal. */
  sha256: string;
  /** The first bytes, at most 64 KiB. */
  sample: Buffer;
  /** Valid UTF-8 without NUL. */
  isText: boolean;
}

/** More bytes came than a file may have. */
export class TooManyBytes extends Error {
  override readonly name = 'TooManyBytes';
  readonly limitBytes: number;

  constructor(limitBytes: number) {
    super(`The file is larger than ${limitBytes} bytes.`);
    this.limitBytes = limitBytes;
  }
}

/**
 * Counts and hashes bytes as they pass. Fails with {@link TooManyBytes} at the first byte beyond the limit, and with
 * INVALID_REQUEST `digest_mismatch` after the last one if a claimed digest is wrong.
 */
export class Meter extends Transform {
  readonly #limitBytes: number;
  readonly #hash = createHash('sha256');
  readonly #sample: Buffer[] = [];
  readonly #text = new TextCheck();
  readonly #check: DigestCheck | null;
  #sampled = 0;
  #size = 0;

  constructor(limitBytes: number, digests: readonly ClaimedDigest[] = []) {
    // chunk by chunk: a reader of bytes would get copies of several as one
    super({ readableObjectMode: true, readableHighWaterMark: 1 });
    this.#limitBytes = limitBytes;
    this.#check = DigestCheck.of(digests);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#size += chunk.length;
    if (this.#size > this.#limitBytes) {
      done(new TooManyBytes(this.#limitBytes));
      return;
    }
    this.#hash.update(chunk);
    this.#check?.update(chunk);
    this.#text.add(chunk);
    if (this.#sampled < SAMPLE_BYTES) {
      // a copy: the slice would keep the whole chunk
      const part = Buffer.from(chunk.subarray(0, SAMPLE_BYTES - this.#sampled));
      this.#sample.push(part);
      this.#sampled += part.length;
    }
    done(null, chunk);
  }

  override _flush(done: TransformCallback): void {
    try {
      this.#check?.verify();
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  /** Call it once, after the last byte. */
  facts(): ContentFacts {
    const [only, ...more] = this.#sample;
    return {
      sizeBytes: this.#size,
      sha256: this.#hash.digest('hex'),
      sample: only && more.length === 0 ? only : Buffer.concat(this.#sample),
      isText: this.#text.isText(),
    };
  }
}

/** Checks for UTF-8 in pieces: a sequence that a chunk cuts is completed by the next one. */
class TextCheck {
  #isText = true;
  #cut: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    if (!this.#isText) return;
    const bytes = this.#cut.length > 0 ? Buffer.concat([this.#cut, chunk]) : chunk;
    const end = endOfWhole(bytes);
    this.#cut = Buffer.from(bytes.subarray(end));
    const whole = bytes.subarray(0, end);
    this.#isText = isUtf8(whole) && !whole.includes(0);
  }

  isText(): boolean {
    return this.#isText && this.#cut.length === 0;
  }
}

/** Where a sequence begins that the end of the bytes cuts; their length if none is cut. */
function endOfWhole(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue; // inside of a sequence
    const length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
