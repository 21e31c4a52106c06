import type { Caller } from '../access/caller.ts';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import { errorCatalogue } from '../graphql/errors.ts';
import { type ActivityEntry, activityRow, insertActivity, recordOfChanged } from './activity.ts';
import { type EventEntry, eventRow, insertEvents } from './events.ts';
import { holdVersion, type VersionedRow } from './expectation.ts';
import type { Sql } from './sql.ts';

/** A transaction that is being written: the rows, the audit record and the events commit together or not at all. */
export interface Tx {
  db: Prisma.TransactionClient;
  /**
   * Says what was done. A request has one record: the last call names it, because what is done on the way is said before; that
   * is listed in its metadata as `also`.
   */
  audit(entry: ActivityEntry): void;
  /** Adds an event of the workspace's or organization's stream. Events carry ids, not rows. */
  emit(event: EventEntry): void;
  /** Runs after the commit: caches to drop, mails to send. Never runs if the transaction did not commit. */
  afterCommit(action: () => void): void;
  /**
   * Holds the row that is changed and looks at its version, if the caller expects one; call it before the row is written. A version that is
   * not the expected one fails the change when everything else in it went well: what is missing, forbidden or in conflict is told first.
   */
  expectVersion(row: VersionedRow): Promise<void>;
}

/** A change that is one statement, for where a transaction of many would cost too much. */
export interface StatementChange {
  /** `update … returning …` of one row or none. */
  text: string;
  values: unknown[];
  audit: ActivityEntry;
  /** SQL over the changed row `c` that gives more metadata of the record, as jsonb. */
  metadata: string;
}

/** Thrown in `work` that found its locks to be too few: another try takes them all. */
export class TryAgain extends Error {
  /** As PostgreSQL calls a transaction that must be repeated. */
  readonly code = '40001';
}

// deadlock, serialization failure, and Prisma's name for both
const TRY_AGAIN = /40001|40P01|P2034/;
const ATTEMPTS = 4;

/** The write path. */
export class Changes {
  readonly #prisma: PrismaClient;
  readonly #sql: Sql;
  readonly #onCommit: () => void;

  constructor(prisma: PrismaClient, sql: Sql, onCommit: () => void) {
    this.#prisma = prisma;
    this.#sql = sql;
    this.#onCommit = onCommit;
  }

  /**
   * Runs `work` in one transaction with its activity records and events. Done again, up to three times, when PostgreSQL broke
   * a deadlock at its cost; so `work` must not touch anything but `tx`.
   */
  async run<T>(caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T> {
    return again(() => this.#once(caller, work));
  }

  /** The row that one statement changes, recorded by that very statement: committed when it is here. `null` when there was none. */
  async runStatement<Row extends object>(caller: Caller, change: StatementChange): Promise<Row | null> {
    const { text, values, audit, metadata } = change;
    const record = recordOfChanged(values.length + 1, metadata);
    const whole = `with changed as (${text}), recorded as (${record.text}) select * from changed`;
    const rows = await again(() =>
      this.#sql.change<Row>(whole, [...values, ...record.parameters(activityRow(caller, audit))]),
    );
    if (rows.length > 0) caller.request.recorded = true;
    return rows[0] ?? null;
  }

  async #once<T>(caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T> {
    const activities: ActivityEntry[] = [];
    const events: EventEntry[] = [];
    const after: (() => void)[] = [];
    const { expectation } = caller.request;
    const result = await this.#prisma.$transaction(
      async (db) => {
        let found: number | null = null;
        const value = await work({
          db,
          audit: (entry) => activities.push(entry),
          emit: (event) => events.push(event),
          afterCommit: (action) => after.push(action),
          expectVersion: async (row) => {
            if (expectation) found = await holdVersion(db, row);
          },
        });
        expectation?.demand(found);
        const record = recordOf(activities);
        if (record) await insertActivity(db, [activityRow(caller, record)]);
        if (caller.request.idempotencyId)
          await db.idempotencyKey.updateMany({
            where: { id: caller.request.idempotencyId },
            data: { committedAt: new Date() },
          });
        if (events.length > 0)
          await insertEvents(
            db,
            events.map((event) => eventRow(caller, event)),
          );
        return value;
      },
      { maxWait: 5_000, timeout: 20_000 },
    );
    if (activities.length > 0) caller.request.recorded = true;
    for (const action of after) action();
    if (events.length > 0) this.#onCommit();
    return result;
  }
}

/** Does it once more, up to three times, when PostgreSQL broke a deadlock at its cost. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !isTransient(error)) throw error;
      const jitterMs = Math.random() * 20 * attempt;
      await new Promise((done) => setTimeout(done, jitterMs));
    }
  }
}

function recordOf(entries: readonly ActivityEntry[]): ActivityEntry | null {
  const main = entries.at(-1);
  if (!main || entries.length === 1) return main ?? null;
  const also = entries.slice(0, -1).map(({ action, resourceType, resourceId, metadata }) => ({
    action,
    resource_type: resourceType,
    resource_id: resourceId,
    ...metadata,
  }));
  return { ...main, metadata: { ...main.metadata, also } };
}

function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const extensionCode = (error as { extensions?: { code?: string } }).extensions?.code;
  if (extensionCode !== undefined && extensionCode in errorCatalogue) return false;
  const code = 'code' in error ? String(error.code) : '';
  return TRY_AGAIN.test(code) || TRY_AGAIN.test(error.message);
}

/** Whether an error is a broken unique constraint; the service that owns the table turns it into its domain error. */
export function brokenUnique(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'P2002';
}
