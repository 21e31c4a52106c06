import type { Caller } from '../access/caller.ts';
import type { Task } from '../core/tasks.ts';
import type { Prisma } from '../generated/prisma/client.ts';
import type { Transaction } from '../platform/postgres/transaction.ts';
import { type ActivityEntry, activityRow, writeActivity } from './activity.ts';
import { Batch } from './batch.ts';
import type { PrismaTx } from './changes.ts';
import { type Composed, compose } from './composed.ts';
import { holdVersion, type VersionedRow } from './expectation.ts';
import type { JobQueue, NewJob } from './job-queue.ts';
import { type EventEntry, eventRow, writeEvents } from './outbox.ts';
import type { Sql } from './sql.ts';
import type { Columns, NewRow, Row, TableName } from './tables.ts';
import { hold, insert, remove, type Statement, update, type Write, Written } from './writes.ts';

/** One try of a change: see {@link Tx}. */
export class OpenChange implements PrismaTx {
  readonly #caller: Caller;
  readonly #sql: Sql;
  readonly #transaction: Transaction;
  readonly #queue: JobQueue;
  readonly #waiting = new Batch();
  readonly #activities: ActivityEntry[] = [];
  readonly #events: EventEntry[] = [];
  readonly #jobs: NewJob[] = [];
  readonly #after: (() => void)[] = [];
  #version: number | null = null;
  #db: Prisma.TransactionClient | null = null;

  constructor(caller: Caller, deps: { sql: Sql; transaction: Transaction; jobs: JobQueue }) {
    this.#caller = caller;
    this.#sql = deps.sql;
    this.#transaction = deps.transaction;
    this.#queue = deps.jobs;
  }

  /** @throws Error in a change that did not say that it asks by Prisma */
  get db(): Prisma.TransactionClient {
    if (!this.#db) throw new Error('A change that asks by Prisma is run with it.');
    return this.#db;
  }

  async query<R extends object>({ text, values }: Statement): Promise<R[]> {
    const waiting = this.#composed();
    const asked = this.#sql.queryOf(text, values);
    const results = await this.#transaction.send([...waiting.map(({ query }) => query), asked]);
    accept(waiting, results);
    return results.at(-1)!.rows as R[];
  }

  demand(statement: Statement, orElse: () => Error): void {
    this.#waiting.add(hold(statement, orElse));
  }

  insert<Name extends TableName>(table: Name, row: NewRow<Name>): void {
    this.#waiting.add(insert(table, row));
  }

  create<Name extends TableName>(table: Name, row: NewRow<Name>): Written<Row<Name>> {
    const into = new Written<Row<Name>>();
    this.#waiting.add(insert(table, row, { into }));
    return into;
  }

  update<Name extends TableName>(table: Name, where: Columns<Name>, set: Columns<Name>): void {
    this.#waiting.add(update(table, set, { where }));
  }

  change<Name extends TableName>(
    table: Name,
    where: Columns<Name>,
    set: Columns<Name>,
    orElse: () => Error,
  ): Written<Row<Name>> {
    const into = new Written<Row<Name>>();
    this.#waiting.add(update(table, set, { where, orElse, into }));
    return into;
  }

  remove<Name extends TableName>(table: Name, where: Columns<Name>, orElse?: () => Error): void {
    this.#waiting.add(remove(table, { where, orElse }));
  }

  async written<T>(row: Written<T>): Promise<T> {
    await this.#flush();
    return row.row;
  }

  audit(entry: ActivityEntry): void {
    this.#activities.push(entry);
  }

  emit(event: EventEntry): void {
    this.#events.push(event);
  }

  enqueue<Payload extends object>(
    task: Task<Payload>,
    payload: Payload,
    options?: Pick<NewJob, 'key' | 'runAt'>,
  ): void {
    this.#jobs.push({ task, payload, ...options });
  }

  afterCommit(action: () => void): void {
    this.#after.push(action);
  }

  async expectVersion(row: VersionedRow): Promise<void> {
    if (this.#caller.request.expectation) this.#version = await holdVersion(this, row);
  }

  /** Work that asks by Prisma too; what waits is written before each of its statements. */
  async withPrisma<T>(work: (tx: PrismaTx) => Promise<T>): Promise<T> {
    return this.#transaction.withPrisma(
      () => this.#flush(),
      async (db) => {
        this.#db = db;
        return work(this);
      },
    );
  }

  /** Writes what waits with its record and its events, and commits. @returns what has begun to wait for others with it */
  async commit(): Promise<{ hasEvents: boolean; hasJobs: boolean }> {
    const { request } = this.#caller;
    if (request.expectation) {
      await this.#flush();
      request.expectation.demand(this.#version);
    }
    if (this.#jobs.length > 0) await this.query(this.#queue.insertion(this.#jobs));
    const record = recordOf(this.#activities);
    if (record) this.#waiting.add(writeActivity(activityRow(this.#caller, record)));
    if (request.idempotencyId) this.#waiting.add(markOf(request.idempotencyId));
    if (this.#events.length > 0)
      this.#waiting.add(writeEvents(this.#events.map((event) => eventRow(this.#caller, event))));
    await this.#sendLast();
    if (record) request.recorded = true;
    for (const action of this.#after) action();
    return { hasEvents: this.#events.length > 0, hasJobs: this.#jobs.length > 0 };
  }

  async #flush(): Promise<void> {
    const waiting = this.#composed();
    if (waiting.length > 0) accept(waiting, await this.#transaction.send(waiting.map(({ query }) => query)));
  }

  /** A statement that is all of the change is its own transaction: where a row is missing it has done nothing. */
  async #sendLast(): Promise<void> {
    const last = this.#composed();
    const queries = last.map(({ query }) => query);
    const [only] = queries;
    if (!this.#transaction.hasBegun) {
      if (!only) return;
      if (queries.length === 1) return accept(last, [await this.#transaction.sendAlone(only)]);
    }
    if (last.every(({ wants }) => !wants)) return accept(last, await this.#transaction.commit(queries));
    accept(last, await this.#transaction.send(queries));
    await this.#transaction.commit([]);
  }

  #composed(): Composed[] {
    return this.#waiting.take().map((writes) => compose(this.#sql, writes));
  }
}

function accept(statements: readonly Composed[], results: readonly { rows: unknown[] }[]): void {
  for (const [index, statement] of statements.entries()) statement.accept(results[index]!.rows[0] as unknown[]);
}

/** From the commit on the request of this key is never done again. */
const markOf = (id: string): Write => ({
  shape: 'mark of an idempotency key',
  text: (first, when) =>
    `update idempotency_keys set committed_at = clock_timestamp() where id = $${first}${when ? ` and ${when}` : ''}`,
  values: [id],
  does: 'record',
  table: null,
});

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
