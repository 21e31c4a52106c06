import type pg from 'pg';
import { asSpan } from './statement-span.ts';

/** A statement in the driver's format. */
export type Query = pg.QueryConfig & { rowMode?: 'array' };
type StatementResult = pg.QueryResult | pg.QueryArrayResult;
/** Receives the result of the statement at this place. @throws if it is not what the transaction needs */
type Accept = (result: StatementResult, place: number) => void;

const BEGIN: Query = { text: 'begin' };
const COMMIT: Query = { text: 'commit' };
const ROLLBACK: Query = { text: 'rollback' };

/** A transaction on one connection, which is taken from the pool when the first statement is sent. */
export class Transaction {
  readonly #pool: pg.Pool;
  #client: Promise<pg.PoolClient> | null = null;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Whether a statement was sent, so that there is something to commit. */
  get hasBegun(): boolean {
    return this.#client !== null;
  }

  /**
   * Sends statements one after another, without waiting in between. A statement that fails does not hide that an
   * earlier one found too little: the results before it are accepted first.
   * @throws the first error, of a statement or of `accept`, in the order of the statements
   */
  async send(queries: readonly Query[], accept: Accept = ignore): Promise<StatementResult[]> {
    return this.#send(queries, [], accept);
  }

  /** The same, followed by a commit. Without statements it commits what was sent before. */
  async commit(queries: readonly Query[]): Promise<StatementResult[]> {
    const results = await this.#send(queries, [COMMIT], ignore);
    await this.#give();
    return results;
  }

  /** Sends the only statement of a transaction, which has committed when this resolves. */
  async sendAlone(query: Query): Promise<StatementResult> {
    return this.#pool.query(query);
  }

  /** Rolls back what was not committed. */
  async end(): Promise<void> {
    const client = await this.#client?.catch(() => null);
    if (!client) return;
    try {
      await client.query(ROLLBACK);
      await this.#give();
    } catch (error) {
      // a connection that cannot even roll back is useless; the server ends the transaction with it
      await this.#give(error instanceof Error ? error : true);
    }
  }

  async #send(queries: readonly Query[], after: readonly Query[], accept: Accept): Promise<StatementResult[]> {
    const before = this.#client ? [] : [BEGIN];
    this.#client ??= this.#take();
    const client = await this.#client;
    const sent: Promise<StatementResult>[] = [...before, ...queries, ...after].map((query) =>
      asSpan(query, () => client.query(query)),
    );
    // all results have arrived before the first failure is thrown: nothing is pending when the connection is released
    const settled = await Promise.allSettled(sent);
    const results: StatementResult[] = [];
    for (const [index, outcome] of settled.entries()) {
      if (outcome.status === 'rejected') throw outcome.reason;
      const place = index - before.length;
      if (place < 0 || place >= queries.length) continue;
      accept(outcome.value, place);
      results.push(outcome.value);
    }
    return results;
  }

  async #take(): Promise<pg.PoolClient> {
    const client = await this.#pool.connect();
    client.on('error', ignore);
    return client;
  }

  async #give(broken?: Error | boolean): Promise<void> {
    const client = await this.#client;
    this.#client = null;
    client?.removeListener('error', ignore);
    client?.release(broken);
  }
}

/** A connection that breaks fails the waiting statement or the next one, which reports the fault. */
const ignore = (): void => undefined;
