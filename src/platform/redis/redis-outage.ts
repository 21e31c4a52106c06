import type { Logger } from '../logger.ts';

/** A word in capitals begins an error of Redis: `WRONGPASS`, `OOM`, `LOADING`. */
const ERROR_WORD = /^[A-Z]+(?= )/;

/** Logs each time that Redis is away once, when it begins and when it ends. */
export class RedisOutage {
  since: Date | null = null;
  reason = '';
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  begin(error: unknown): void {
    if (this.since) return;
    this.since = new Date();
    this.reason = reasonOf(error);
    this.#logger.warn(
      { reason: this.reason },
      'Redis is away: until it answers, each node counts budgets by itself, and polls for events of other nodes',
    );
  }

  end(): void {
    if (!this.since) return;
    const seconds = Math.round((Date.now() - this.since.getTime()) / 1_000);
    this.since = null;
    this.#logger.info({ seconds }, 'Redis answers: budgets are shared by all nodes');
  }
}

/** What kind of error it is. Its text, and the command that the library adds, may have the password. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // a command waited for its answer when the connection ended
  if (error.name === 'MaxRetriesPerRequestError') return 'ECONNRESET';
  return ERROR_WORD.exec(error.message)?.[0] ?? error.name;
}
