import { type Algorithm, hash, verify } from '@node-rs/argon2';
import { unavailable } from '../core/errors.ts';

// OWASP's minimum for Argon2id: 19 MiB, two passes, one lane. Hashing runs on libuv's threads, never on the event loop.
const ARGON2ID = 2 satisfies Algorithm; // its enumeration is ambient: it has no value at run time
const PARAMETERS = { algorithm: ARGON2ID, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const PARAMETERS_PREFIX = '$argon2id$v=19$m=19456,t=2,p=1$';
/** A hash of no password, made with the same parameters as the others. */
const DUMMY = `${PARAMETERS_PREFIX}c2FsdCBvZiBubyBoYXNoIQ$bm8gcGFzc3dvcmQgaGFzIHRoaXMgZm9yIGEgaGFzaC4`;

/** How many hashes may run or wait at once. Beyond that, sign-ins are refused instead of starving everything else. */
const MAX_PENDING = 256;
/** How many run at once: libuv has four threads, and files and DNS need one. */
const MAX_RUNNING = 3;

/** Argon2id with a bounded queue. Each sign-in runs exactly one verification, whether or not the account exists. */
export class Passwords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** The number of waiting hashes. */
  get queueDepth(): number {
    return this.#waiting.length;
  }

  /**
   * The PHC string of a password.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait
   */
  hash(password: string): Promise<string> {
    return this.#run(() => hash(password.normalize('NFKC'), PARAMETERS));
  }

  /**
   * Whether the password is right. Without a stored hash, it does the same work against a dummy and returns `false`, so
   * that the time reveals nothing.
   */
  async verify(stored: string | null, password: string): Promise<boolean> {
    const matches = await this.#run(() => verify(stored ?? DUMMY, password.normalize('NFKC')));
    return stored !== null && matches;
  }

  /** Whether a stored hash was made with other parameters than today's. */
  isOutdated(stored: string): boolean {
    return !stored.startsWith(PARAMETERS_PREFIX);
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_PENDING) throw unavailable();
      await new Promise<void>((turn) => this.#waiting.push(turn));
    } else {
      this.#running++;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
