import type { Logger } from '../logger.ts';
import { isOfStore } from '../storage/storage.ts';
import { isDatabaseAway } from './faults.ts';

const LOOK_MS = 5_000;
const SUMMARY_MS = 60_000;

/**
 * Logs faults of background work. While the database is unreachable, every task fails several times a second: this is
 * logged once at the beginning, once a minute, and once at the end.
 */
export class OutageLog {
  readonly #logger: Logger;
  #watch: NodeJS.Timeout | null = null;
  #beganAt = 0;
  #toldAt = 0;
  #faults = 0;
  #faultsBefore = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  fault(error: unknown, what: string): void {
    // a connection that the store of files refuses looks like one that the database refuses
    if (isOfStore(error) || !isDatabaseAway(error)) {
      this.#logger.error({ err: error }, what);
      return;
    }
    this.#faults += 1;
    if (this.#watch) return;
    this.#beganAt = this.#toldAt = Date.now();
    this.#faultsBefore = 0;
    this.#logger.error(
      { err: error, first: what },
      'the database is unavailable; the next log line about it follows in a minute',
    );
    this.#watch = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  #look(): void {
    const seconds = Math.round((Date.now() - this.#beganAt) / 1000);
    if (this.#faults === this.#faultsBefore) {
      this.#logger.warn({ faults: this.#faults, seconds }, 'the database answers again');
      this.#faults = 0;
      clearInterval(this.#watch ?? undefined);
      this.#watch = null;
      return;
    }
    this.#faultsBefore = this.#faults;
    if (Date.now() - this.#toldAt < SUMMARY_MS) return;
    this.#toldAt = Date.now();
    this.#logger.error({ faults: this.#faults, seconds }, 'the database is still unavailable');
  }
}
