import * as argon2 from '@node-rs/argon2';
import { unavailable } from '../kernel/errors.ts';

const ARGON2ID = 2 satisfies argon2.Algorithm; // its enumeration is ambient: it has no value at run time
const DUMMY_DIGEST = 'c2FsdCBvZiBubyBoYXNoIQ$bm8gcGFzc3dvcmQgaGFzIHRoaXMgZm9yIGEgaGFzaC4';

/** What a hash costs whoever makes or guesses one. */
export interface HashCost {
  /** In KiB. */
  memoryCost: number;
  /** Passes over the memory. */
  timeCost: number;
}

/** What makes and compares hashes. */
export type Hashing = Pick<typeof argon2, 'hash' | 'verify'>;

/** OWASP's minimum for Argon2id: 19 MiB, two passes, one lane. */
const MINIMUM: HashCost = { memoryCost: 19_456, timeCost: 2 };

/** How many hashes may run or wait at once. Beyond that, sign-ins are refused instead of starving everything else. */
const MAX_PENDING = 256;
/** How many run at once: libuv has four threads, and files and DNS need one. */
const MAX_RUNNING = 3;

/**
 * Argon2id with a bounded queue. Each sign-in runs exactly one verification, whether or not the account exists. Hashing
 * runs on libuv's threads, never on the event loop.
 */
export class Passwords {
  readonly #parameters: HashCost & { algorithm: argon2.Algorithm; parallelism: number };
  readonly #prefix: string;
  readonly #hashing: Hashing;
  /** A hash of no password, made with the same parameters as the others. */
  readonly #dummy: string;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /**
   * @param cost less than the default is for tests, most of whose passwords nobody guesses
   * @param hashing another one counts, for tests, what is hashed and compared
   */
  constructor(cost: HashCost = MINIMUM, hashing: Hashing = argon2) {
    this.#hashing = hashing;
    this.#parameters = { algorithm: ARGON2ID, parallelism: 1, ...cost };
    this.#prefix = `$argon2id$v=19$m=${cost.memoryCost},t=${cost.timeCost},p=1$`;
    this.#dummy = this.#prefix + DUMMY_DIGEST;
  }

  /** The number of waiting hashes. */
  get queueDepth(): number {
    return this.#waiting.length;
  }

  /**
   * The PHC string of a password.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait
   */
  hash(password: string): Promise<string> {
    return this.#run(() => this.#hashing.hash(password.normalize('NFKC'), this.#parameters));
  }

  /**
   * Whether the password is right. Without a stored hash, it does the same work against a dummy and returns `false`, so
   * that the time reveals nothing.
   */
  async verify(stored: string | null, password: string): Promise<boolean> {
    const matches = await this.#run(() => this.#hashing.verify(stored ?? this.#dummy, password.normalize('NFKC')));
    return stored !== null && matches;
  }

  /** Whether a stored hash was made with other parameters than today's. */
  isOutdated(stored: string): boolean {
    return !stored.startsWith(this.#prefix);
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
