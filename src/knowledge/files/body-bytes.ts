import { Readable } from 'node:stream';
import type { DigestCheck } from '../../kernel/digests.ts';

/** The bytes of a request, in pieces. They end where the client breaks off. */
export class BodyBytes {
  readonly #source: AsyncIterator<Buffer>;
  readonly #check: DigestCheck | null;
  #rest: Buffer | null = null;
  #isBroken = false;

  /** @param check gets all bytes */
  constructor(body: Readable, check: DigestCheck | null) {
    // the request is answered after its body was left
    this.#source = (body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    this.#check = check;
  }

  /** Whether the client closed the connection: what came before is all there is. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Whether there is another byte. */
  async hasMore(): Promise<boolean> {
    this.#rest ??= await this.#next();
    return this.#rest !== null;
  }

  /** The next bytes, at most this many. Read them to their end before the next ones. */
  take(atMost: number): Readable {
    return Readable.from(this.#piece(atMost), { objectMode: false });
  }

  async *#piece(atMost: number): AsyncGenerator<Buffer, void, void> {
    for (let left = atMost; left > 0 && (await this.hasMore()); ) {
      const chunk = this.#rest!;
      const piece = chunk.subarray(0, left);
      this.#rest = piece.length < chunk.length ? chunk.subarray(piece.length) : null;
      left -= piece.length;
      yield piece;
    }
  }

  async #next(): Promise<Buffer | null> {
    try {
      const next = await this.#source.next();
      if (next.done) return null;
      this.#check?.update(next.value);
      return next.value;
    } catch {
      // a body fails with its connection only, and then nobody waits for an answer
      this.#isBroken = true;
      return null;
    }
  }
}
