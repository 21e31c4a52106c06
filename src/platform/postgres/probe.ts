import pg from 'pg';
import { CONNECT_TIMEOUT_MS } from './wait-for-database.ts';

/** A server that does not answer a question this long is away. */
const ANSWER_MS = 1_000;

/** Where a server is in the log of the primary, in bytes from its beginning. */
export interface ServerState {
  /** Whether it follows a primary. */
  isReplica: boolean;
  /** What is written here, or replayed. */
  position: bigint;
}

const STATE = `select r.is as "isReplica", (case when r.is then coalesce(pg_last_wal_replay_lsn(), '0/0')
    else pg_current_wal_insert_lsn() end - '0/0')::text as position
  from (select pg_is_in_recovery() as is) r`;

/** A connection that asks where a server is. It is no connection of the pool, which may be in use. */
export class Probe {
  readonly #url: string;
  #client: Promise<pg.Client> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  /** @throws Error when the server does not answer in time; the next question connects anew */
  async state(): Promise<ServerState> {
    const asked = this.#ask();
    asked.catch(() => undefined); // one that comes late has nobody who waits
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('It did not answer in time.')), ANSWER_MS);
    });
    try {
      return await Promise.race([asked, late]);
    } catch (error) {
      this.#forget();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async end(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.then((open) => open.end()).catch(() => undefined); // it never opened, or is broken
  }

  async #ask(): Promise<ServerState> {
    this.#client ??= this.#connect();
    const client = await this.#client;
    const { rows } = await client.query<{ isReplica: boolean; position: string }>(STATE);
    const { isReplica, position } = rows[0]!;
    return { isReplica, position: BigInt(position) };
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'replica watch',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    client.on('error', () => this.#forget());
    try {
      await client.connect();
    } catch (error) {
      void client.end().catch(() => undefined); // it never opened
      throw error;
    }
    return client;
  }

  /** A connection that failed is of no use, and may never end properly. */
  #forget(): void {
    const client = this.#client;
    this.#client = null;
    client?.then((open) => streamOf(open).destroy()).catch(() => undefined);
  }
}

// what the driver's types leave out
const streamOf = (client: pg.Client): { destroy(): void } =>
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream;
