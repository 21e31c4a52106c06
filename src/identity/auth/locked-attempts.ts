/** Attempts on a locked account since the last record of them. */
interface Window {
  attempts: number;
  record: (attempts: number) => void;
  timer: NodeJS.Timeout;
}

const WINDOW_MS = 60_000;
/** Accounts that are attacked at once. Attempts on others are refused, but not recorded. */
const MOST_ACCOUNTS = 10_000;

/**
 * Records attempts to sign in to locked accounts: the first one at once, then all of a minute in one record. Whoever
 * tries a million times makes no more records than one a minute, account and node.
 */
export class LockedAttempts {
  readonly #windows = new Map<string, Window>();

  /** @param record writes the record of some attempts */
  note(userId: string, record: (attempts: number) => void): void {
    const open = this.#windows.get(userId);
    if (open) {
      open.attempts += 1;
      open.record = record;
      return;
    }
    if (this.#windows.size >= MOST_ACCOUNTS) return;
    record(1);
    this.#open(userId, record);
  }

  /** Records what is counted so far. */
  flush(): void {
    for (const window of this.#windows.values()) {
      clearTimeout(window.timer);
      if (window.attempts > 0) window.record(window.attempts);
    }
    this.#windows.clear();
  }

  #open(userId: string, record: (attempts: number) => void): void {
    const timer = setTimeout(() => this.#close(userId), WINDOW_MS).unref();
    this.#windows.set(userId, { attempts: 0, record, timer });
  }

  #close(userId: string): void {
    const { attempts, record } = this.#windows.get(userId)!;
    this.#windows.delete(userId);
    if (attempts === 0) return;
    record(attempts);
    this.#open(userId, record);
  }
}
