import type { Sql } from '../data/sql.ts';
import { lruOf } from '../kernel/lru.ts';
import { apart } from '../kernel/spans.ts';

/** The precision of `last_used_at` (defaults §3). */
const EVERY_MS = 60_000;
const FLUSH_MS = 1_000;

// each token once a minute, whichever node saw it; a locked row is left for the next time
const WRITE = `with due as (
    select t.id from api_tokens t
    where t.id = any($1::text[]) and (t.last_used_at is null or t.last_used_at < now() - interval '60 s')
    order by t.id for no key update skip locked)
  update api_tokens t set last_used_at = now() from due where t.id = due.id`;

// the same for what was granted to applications
const WRITE_GRANTS = `with due as (
    select g.id from oauth_grants g
    where g.id = any($1::text[]) and (g.last_used_at is null or g.last_used_at < now() - interval '60 s')
    order by g.id for no key update skip locked)
  update oauth_grants g set last_used_at = now() from due where g.id = due.id`;

// and for sessions
const WRITE_SESSIONS = `with due as (
    select s.id from sessions s
    where s.id = any($1::text[]) and (s.last_used_at is null or s.last_used_at < now() - interval '60 s')
    order by s.id for no key update skip locked)
  update sessions s set last_used_at = now() from due where s.id = due.id`;

/** What writes which ids. */
const WRITES: readonly [string, (id: string) => boolean][] = [
  [WRITE_GRANTS, (id) => id.startsWith('gnt_')],
  [WRITE_SESSIONS, (id) => id.startsWith('ses_')],
  [WRITE, (id) => !/^(?:gnt|ses)_/.test(id)],
];

/** Records which tokens and sessions are used, without slowing the requests: in batches, each at most once a minute. */
export class TokenUses {
  readonly #sql: Sql;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #written = lruOf<true>(50_000, { ttl: EVERY_MS, ttlResolution: 1_000 });
  #pending = new Set<string>();
  #flushing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;

  constructor(sql: Sql, onFault: (error: unknown, what: string) => void) {
    this.#sql = sql;
    this.#onFault = onFault;
  }

  note(id: string): void {
    if (this.#written.has(id)) return;
    this.#written.set(id, true);
    this.#pending.add(id);
    // not as part of this request: tokens of others are written with its own
    this.#timer ??= apart(() => setTimeout(() => void this.flush(), FLUSH_MS).unref());
  }

  /** Writes what was recorded before the call. A clean shutdown awaits it. */
  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const ids = [...this.#pending];
    this.#pending = new Set();
    try {
      for (const [text, isOfKind] of WRITES) {
        const of = ids.filter(isOfKind);
        if (of.length > 0) await this.#sql.write(text, [of]);
      }
    } catch (error) {
      // recorded again at the next use
      for (const id of ids) this.#written.delete(id);
      this.#onFault(error, 'the times of last use of tokens could not be written');
    }
  }
}
