/** Attempts of one kind since the last record of them. */
interface Window {
  attempts: number;
  record: (attempts: number) => void;
  timer: NodeJS.Timeout;
}

const WINDOW_MS = 60_000;
/** Kinds of attempts at once. Each of others is recorded, within what an organization gets in a minute. */
const MOST_KINDS = 10_000;

/**
 * Records attempts that have no effect: the first one of a kind at once, then all of a minute in one record. Whoever
 * tries a million times makes no more records than one a minute, kind and node. Kinds are a locked account, or a
 * provider with a reason.
 */
export class CountedAttempts {
  readonly #windows = new Map<string, Window>();

  /** @param record writes the record of some attempts */
  note(kind: string, record: (attempts: number) => void): void {
    const open = this.#windows.get(kind);
    if (open) {
      open.attempts += 1;
      open.record = record;
      return;
    }
    record(1);
    if (this.#windows.size < MOST_KINDS) this.#open(kind, record);
  }

  /** Records what is counted so far. */
  flush(): void {
    for (const window of this.#windows.values()) {
      clearTimeout(window.timer);
      if (window.attempts > 0) window.record(window.attempts);
    }
    this.#windows.clear();
  }

  #open(kind: string, record: (attempts: number) => void): void {
    const timer = setTimeout(() => this.#close(kind), WINDOW_MS).unref();
    this.#windows.set(kind, { attempts: 0, record, timer });
  }

  #close(kind: string): void {
    const { attempts, record } = this.#windows.get(kind)!;
    this.#windows.delete(kind);
    if (attempts === 0) return;
    record(attempts);
    this.#open(kind, record);
  }
}
