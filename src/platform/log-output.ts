import { write } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { DestinationStream } from 'pino';

/** Lines that wait to be written. Later ones are lost. */
const MAX_WAITING_BYTES = 1024 * 1024;
/** Until a write that failed is tried again. */
const RETRY_MS = 1_000;
/** The same for a pipe that has no room just now. */
const BUSY_MS = 50;
/** What Linux writes to a pipe in one piece. */
const MIXED_BEYOND_BYTES = 4096;
const BUSY = new Set(['EAGAIN', 'EBUSY']);

type WriteBytes = (
  fd: number,
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void;

/**
 * Where the lines of the log go: an open file, pipe or terminal. Nothing that happens there stops or holds up the
 * service: no full disk, no pipe that nobody reads. Lines wait meanwhile, as many as fit in 1 MiB, and those beyond are
 * lost and counted.
 *
 * It takes the place of `pino`'s own destination, which holds up the whole process until the disk has room when a fatal
 * line is logged, or the process ends.
 */
export class LogOutput implements DestinationStream {
  readonly #fd: number;
  readonly #write: WriteBytes;
  readonly #atOnce: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #writing: Promise<void> | null = null;

  /** @param atOnce so many bytes of lines are written together: a system does not mix few with those of others */
  constructor(fd: number, writeTo: WriteBytes = write, atOnce = Number.POSITIVE_INFINITY) {
    this.#fd = fd;
    this.#write = writeTo;
    this.#atOnce = atOnce;
  }

  /** One that other processes write to as well. */
  static shared(fd: number): LogOutput {
    return new LogOutput(fd, write, MIXED_BEYOND_BYTES);
  }

  /** Number of lines that were not written and never will be. */
  get lost(): number {
    return this.#lost;
  }

  /** Takes a line, which ends with a line feed. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#lost++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when everything is written, or after some time. */
  async flush(withinMs: number): Promise<void> {
    await Promise.race([this.#writing, delay(withinMs, undefined, { ref: false })]);
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      let rest = Buffer.concat(this.#take());
      while (rest.length > 0) rest = rest.subarray(await this.#writeSome(rest));
    }
    this.#writing = null;
  }

  #take(): Buffer[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((line, at) => {
      bytes += line.length;
      return at > 0 && bytes > this.#atOnce;
    });
    const taken = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
    for (const line of taken) this.#waitingBytes -= line.length;
    return taken;
  }

  /** Resolves to the number of bytes that were written: 0 after a failure, when it may be tried again. */
  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#write(this.#fd, bytes, (error, written) => {
        if (!error) resolve(written);
        // a process that has nothing else to do may end
        else setTimeout(resolve, BUSY.has(error.code ?? '') ? BUSY_MS : RETRY_MS, 0).unref();
      });
    });
  }
}
