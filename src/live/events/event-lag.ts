import type { Sql } from '../../data/sql.ts';
import type { Logger } from '../../platform/logger.ts';

/** Counting stops here: the age shows how bad it is. */
const MAX_COUNTED = 10_000;
/** One measurement serves all requests within this time. */
const FRESH_MS = 500;
/** From this age on, the log names the cause once a minute. */
const WARN_SECONDS = 5;
const WARN_EVERY_MS = 60_000;

/** Events that were committed but are held back, because a transaction that began to write earlier is still running. */
export interface Lag {
  /** Age of the oldest such event. */
  seconds: number;
  /** Their number, 10,000 at most. */
  waiting: number;
}

/** What holds events back: the oldest transaction on the server that has a transaction id. */
export interface EventHolder {
  /** `session`, or `prepared transaction`, which needs no session. */
  kind: string;
  pid: number | null;
  /** Its global identifier, for a prepared transaction. */
  gid: string | null;
  database: string | null;
  application_name: string | null;
  /** `null` if this database role may not see it. */
  state: string | null;
  transaction_seconds: number | null;
}

// rows of a restored dump carry transaction ids of another server: ids that this server has not assigned yet belong to
// no transaction
const LAG = `select count(*)::int as waiting,
    coalesce(greatest(extract(epoch from clock_timestamp() - min(w.timestamp)), 0), 0)::float8 as seconds
  from (select e.timestamp from events e
    where e.xid >= pg_snapshot_xmin(pg_current_snapshot()) and e.xid < pg_snapshot_xmax(pg_current_snapshot())
    order by e.xid, e.seq limit ${MAX_COUNTED}) w`;

// no query text, which may contain secrets. Replication slots and readers hold back vacuum, but not the oldest
// transaction of a snapshot
const HOLDER = `select * from (
    select 'session' as kind, a.pid, null as gid, a.datname::text as database, a.application_name, a.state,
      a.xact_start as since, a.backend_xid as xid
      from pg_stat_activity a where a.backend_xid is not null
    union all
    select 'prepared transaction', null, p.gid, p.database::text, null, null, p.prepared, p.transaction
      from pg_prepared_xacts p
  ) h where h.xid = pg_snapshot_xmin(pg_current_snapshot())::xid`;
const CAUSE = `select kind, pid, gid, database, application_name, state,
    extract(epoch from clock_timestamp() - since)::float8 as transaction_seconds from (${HOLDER}) c limit 1`;

/** How far live events are behind, and why. */
export class EventLag {
  readonly #sql: Sql;
  readonly #logger: Logger;
  #last: { at: number; lag: Promise<Lag> } | null = null;
  #warnedAt = Number.NEGATIVE_INFINITY;
  #isWarned = false;

  constructor(sql: Sql, logger: Logger) {
    this.#sql = sql;
    this.#logger = logger;
  }

  /** @throws the database's own errors */
  async read(): Promise<Lag> {
    const now = performance.now();
    if (!this.#last || now - this.#last.at > FRESH_MS) {
      const lag = this.#sql.read<Lag>(LAG, []).then(([row]) => row!);
      const last = { at: now, lag };
      this.#last = last;
      // a failure says nothing of the next moment
      lag.catch(() => {
        if (this.#last === last) this.#last = null;
      });
    }
    return this.#last.lag;
  }

  /** What holds events back now, if anything does. */
  async holder(): Promise<EventHolder | undefined> {
    const [holder] = await this.#sql.read<EventHolder>(CAUSE, []);
    return holder;
  }

  /** Warns with the cause while events are late; called every few seconds. */
  async watch(): Promise<void> {
    const lag = await this.read();
    const facts = { lag_seconds: lag.seconds, waiting: lag.waiting };
    if (lag.seconds < WARN_SECONDS) {
      if (this.#isWarned) this.#logger.info(facts, 'events are delivered in time again');
      this.#isWarned = false;
      return;
    }
    if (this.#isWarned && performance.now() - this.#warnedAt < WARN_EVERY_MS) return;
    const holder = await this.holder();
    // it has just ended, so the events are about to be sent
    if (!holder) return;
    this.#isWarned = true;
    this.#warnedAt = performance.now();
    this.#logger.warn(
      { ...facts, held_by: holder },
      'a transaction holds events back: none is delivered before it ends',
    );
  }
}
