import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';

type Callback = Parameters<pg.Pool['connect']>[0];

/** What a transaction of another's says about itself: the one whose connection it is says that. */
const BOUNDS = /^(BEGIN|COMMIT|ROLLBACK)$/;
const NOTHING = { rows: [], fields: [], rowCount: 0 };

/** A pool that hands out a connection of ours once, so that Prisma's transaction runs within one that has begun already. */
export class LendingPool extends pg.Pool {
  readonly #loans = new AsyncLocalStorage<{ client: pg.PoolClient | null }>();

  /**
   * Whoever asks first within `borrow` gets this connection, to which beginning and ending mean nothing.
   * @param before awaited before each of its statements
   */
  lend<T>(client: pg.PoolClient, before: () => Promise<void>, borrow: () => Promise<T>): Promise<T> {
    return this.#loans.run({ client: lent(client, before) }, borrow);
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: NonNullable<Callback>): void;
  override connect(callback?: Callback): Promise<pg.PoolClient> | undefined {
    if (callback) {
      super.connect(callback);
      return undefined;
    }
    const loan = this.#loans.getStore();
    if (!loan?.client) return super.connect();
    const { client } = loan;
    loan.client = null;
    return Promise.resolve(client);
  }
}

function lent(client: pg.PoolClient, before: () => Promise<void>): pg.PoolClient {
  const query = async (config: pg.QueryConfig) => {
    if (BOUNDS.test(config.text)) return NOTHING;
    await before();
    return client.query(config);
  };
  const ours = () => undefined;
  // whoever took it listens to its errors and gives it back
  return Object.create(client, {
    query: { value: query },
    release: { value: ours },
    on: { value: ours },
    removeListener: { value: ours },
  }) as pg.PoolClient;
}
