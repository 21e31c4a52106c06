import type { AnyCaller } from '../kernel/caller.ts';
import type { Task } from '../kernel/tasks.ts';
import type { Transaction } from '../platform/postgres/transaction.ts';
import { type ActivityEntry, activityRow, writeActivity } from './activity.ts';
import { Batch } from './batch.ts';
import { type Composed, compose } from './composed.ts';
import type { JobQueue, NewJob, NewJobOptions } from './job-queue.ts';
import {
  demandOf,
  type LockableTable,
  type LockOrder,
  type LockStrength,
  lockAllOf,
  lockOf,
  lockUnreadOf,
} from './locks.ts';
import type { Notify, Occasion } from './occasions.ts';
import { type EventEntry, eventRow, writeEvents } from './outbox.ts';
import type { Sql } from './sql.ts';
import type { Columns, NewRow, Row, TableName } from './tables.ts';
import type { Tx } from './tx.ts';
import { lockVersion, type VersionedRow, type VersionedTable } from './versioned-rows.ts';
import { insert, remove, type Statement, update, type Write, Written, write } from './writes.ts';

/** One attempt at a change: see {@link Tx}. */
export class OpenChange implements Tx {
  readonly #caller: AnyCaller;
  readonly #sql: Sql;
  readonly #transaction: Transaction;
  readonly #queue: JobQueue;
  readonly #notify: Notify;
  readonly #locks: LockOrder | null;
  readonly #waiting = new Batch();
  readonly #activities: ActivityEntry[] = [];
  readonly #events: EventEntry[] = [];
  /** The events, and what else may concern somebody. */
  readonly #occasions: Occasion[] = [];
  readonly #jobs: NewJob[] = [];
  readonly #after: (() => void)[] = [];
  #version: number | null = null;

  /** @param deps.locks asserts the order of locks; `null` for no assertion */
  constructor(
    caller: AnyCaller,
    deps: { sql: Sql; transaction: Transaction; jobs: JobQueue; notify: Notify; locks: LockOrder | null },
  ) {
    this.#caller = caller;
    this.#sql = deps.sql;
    this.#transaction = deps.transaction;
    this.#queue = deps.jobs;
    this.#notify = deps.notify;
    this.#locks = deps.locks;
  }

  async query<R extends object>({ text, values }: Statement): Promise<R[]> {
    const waiting = this.#composed();
    const asked = this.#sql.queryOf(text, values);
    const results = await this.#transaction.send([...waiting.map(({ query }) => query), asked], accepting(waiting));
    return results.at(-1)!.rows as R[];
  }

  async lock<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
    orElse?: () => Error,
  ): Promise<Row<Name>> {
    this.#locks?.take(table, where);
    const [row] = await this.query<Row<Name>>(lockOf(table, where, strength));
    if (!row && orElse) throw orElse();
    // the overload without an error allows `null`
    return (row ?? null) as Row<Name>;
  }

  async lockAll<Name extends LockableTable>(
    table: Name,
    condition: Statement,
    strength: LockStrength,
  ): Promise<Row<Name>[]> {
    this.#locks?.take(table);
    return this.query(lockAllOf(table, condition, strength));
  }

  async lockUnread(table: LockableTable, condition: Statement, strength: LockStrength): Promise<void> {
    this.#locks?.take(table);
    await this.query(lockUnreadOf(table, condition, strength));
  }

  demand<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
    orElse: () => Error,
  ): void {
    this.#locks?.take(table, where);
    this.#waiting.add(demandOf(table, where, strength, orElse));
  }

  demandThat(condition: Pick<Write, 'shape' | 'text' | 'values'>): void {
    // parts of a statement that nothing asks for would not run
    const orElse = () => new Error(`'${condition.shape}' must fail by itself.`);
    this.#waiting.add({ ...condition, does: 'lock', table: null, orElse });
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

  write(statement: Statement): void {
    this.#waiting.add(write(statement));
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
    this.#occasions.push(event);
  }

  announce(occasion: Occasion): void {
    this.#occasions.push(occasion);
  }

  enqueue<Payload extends object>(task: Task<Payload>, payload: Payload, options?: NewJobOptions): void {
    const turnOf = this.#caller.principal?.orgId ?? this.#caller.principal?.userId;
    this.#jobs.push({ task, payload, ...(turnOf ? { turnOf } : {}), ...options });
  }

  afterCommit(action: () => void): void {
    this.#after.push(action);
  }

  async expectVersion<Name extends VersionedTable>(row: VersionedRow<Name>): Promise<void> {
    if (this.#caller.request.expectation) this.#version = await lockVersion(this, row);
  }

  /** Sends the pending writes with the record and the events, and commits. @returns whether it added events or jobs */
  async commit(): Promise<{ hasEvents: boolean; hasJobs: boolean }> {
    const { request } = this.#caller;
    if (request.expectation) {
      await this.#flush();
      request.expectation.demand(this.#version);
    }
    const notices = this.#occasions.length > 0 ? this.#notify(this, this.#caller, this.#occasions) : null;
    if (notices) await notices;
    await this.#queue.add(this.#jobs, (statement) => this.query(statement));
    const record = recordOf(this.#activities);
    if (record) this.#waiting.add(writeActivity(activityRow(this.#caller, record)));
    if (request.idempotencyId) this.#waiting.add(markOf(request.idempotencyId));
    if (this.#events.length > 0)
      this.#waiting.add(writeEvents(this.#events.map((event) => eventRow(this.#caller, event))));
    await this.#sendLast();
    if (record) request.recorded = true;
    for (const action of this.#after) action();
    return { hasEvents: this.#events.length > 0 || notices !== null, hasJobs: this.#jobs.length > 0 };
  }

  async #flush(): Promise<void> {
    const waiting = this.#composed();
    if (waiting.length === 0) return;
    await this.#transaction.send(
      waiting.map(({ query }) => query),
      accepting(waiting),
    );
  }

  /** A change of one statement is its own transaction: if a row is missing, it has done nothing. */
  async #sendLast(): Promise<void> {
    const last = this.#composed();
    const queries = last.map(({ query }) => query);
    const [only] = queries;
    if (!this.#transaction.hasBegun) {
      if (!only) return;
      if (queries.length === 1) return accept(last, [await this.#transaction.sendAlone(only)]);
    }
    if (last.every(({ wants }) => !wants)) return accept(last, await this.#transaction.commit(queries));
    await this.#transaction.send(queries, accepting(last));
    await this.#transaction.commit([]);
  }

  #composed(): Composed[] {
    return this.#waiting.take().map((writes) => compose(this.#sql, writes));
  }
}

/** Passes results on to their statements. Other statements may follow these. */
const accepting =
  (statements: readonly Composed[]) =>
  ({ rows }: { rows: unknown[] }, place: number): void =>
    statements[place]?.accept(rows[0] as unknown[]);

function accept(statements: readonly Composed[], results: readonly { rows: unknown[] }[]): void {
  for (const [place, result] of results.entries()) accepting(statements)(result, place);
}

/** After the commit, the request with this key is never executed again. */
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
