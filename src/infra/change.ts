import type { Caller } from '../access/caller.ts';
import type { Prisma, PrismaClient } from '../generated/prisma/client.ts';
import { errorCatalogue } from '../graphql/errors.ts';
import { type ActivityEntry, activityRow, insertActivity } from './activity.ts';
import { type EventEntry, eventRow, insertEvents } from './events.ts';

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
}

// deadlock, serialization failure, and Prisma's name for both
const TRY_AGAIN = /40001|40P01|P2034/;
const ATTEMPTS = 4;

/** The write path. */
export class Changes {
  readonly #prisma: PrismaClient;
  readonly #onCommit: () => void;

  constructor(prisma: PrismaClient, onCommit: () => void) {
    this.#prisma = prisma;
    this.#onCommit = onCommit;
  }

  /**
   * Runs `work` in one transaction with its activity records and events. Done again, up to three times, when PostgreSQL broke
   * a deadlock at its cost; so `work` must not touch anything but `tx`.
   */
  async run<T>(caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(caller, work);
      } catch (error) {
        if (attempt === ATTEMPTS || !isTransient(error)) throw error;
        const jitterMs = Math.random() * 20 * attempt;
        await new Promise((done) => setTimeout(done, jitterMs));
      }
    }
  }

  async #once<T>(caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T> {
    const activities: ActivityEntry[] = [];
    const events: EventEntry[] = [];
    const after: (() => void)[] = [];
    const result = await this.#prisma.$transaction(
      async (db) => {
        const value = await work({
          db,
          audit: (entry) => activities.push(entry),
          emit: (event) => events.push(event),
          afterCommit: (action) => after.push(action),
        });
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
