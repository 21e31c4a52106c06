import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';

type Callback = Parameters<pg.Pool['connect']>[0];

/** What a transaction of another's says about itself: the one whose connection it is says that. */
const BOUNDS = /^(BEGIN|COMMIT|ROLLBACK)$/;
const NOTHING = { rows: [], fields: [], rowCount: 0 };

/** By this level the adapter knows a transaction that has a connection already. PostgreSQL is never asked for it here. */
export const LENT = 'Serializable';
const LENT_IN_SQL = 'SERIALIZABLE';

interface Loan {
  client: pg.PoolClient;
  /** Lets the next loan wait. */
  taken: () => void;
}

/**
 * A pool that lends Prisma a connection of ours, so that its transaction runs within one that has begun already. One loan at a time waits for
 * the transaction that takes it. (`AsyncLocalStorage` would tell them apart as well, but until Node 24 it makes every promise of the process
 * dearer: 4 % of the CPU of a read by id.)
 */
export class LendingPool extends pg.Pool {
  #loan: Loan | null = null;
  #handed: pg.PoolClient | null = null;
  #waiting: Promise<void> = Promise.resolve();

  /**
   * The one transaction of level {@link LENT} that `borrow` begins gets this connection, to which beginning and ending mean nothing.
   * @param before awaited before each of its statements
   */
  async lend<T>(client: pg.PoolClient, before: () => Promise<void>, borrow: () => Promise<T>): Promise<T> {
    const loan: Loan = { client: lent(client, before), taken: () => undefined };
    const turn = this.#waiting;
    this.#waiting = new Promise((resolve) => {
      loan.taken = resolve;
    });
    await turn;
    this.#loan = loan;
    try {
      return await borrow();
    } finally {
      // nobody may have come for it
      if (this.#loan === loan) this.#loan = null;
      loan.taken();
    }
  }

  /** For Prisma: transactions take what was lent to them. */
  adapter(): PrismaPg {
    const factory = new PrismaPg(this);
    const connect = factory.connect.bind(factory);
    factory.connect = async () => {
      const adapter = await connect();
      const start = adapter.startTransaction.bind(adapter);
      adapter.startTransaction = async (level) => (level === LENT_IN_SQL ? this.#hand(start) : start(level));
      return adapter;
    };
    return factory;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: NonNullable<Callback>): void;
  override connect(callback?: Callback): Promise<pg.PoolClient> | undefined {
    if (callback) {
      super.connect(callback);
      return undefined;
    }
    const handed = this.#handed;
    this.#handed = null;
    return handed ? Promise.resolve(handed) : super.connect();
  }

  /** @param start asks for a connection before it waits for anything */
  #hand<T>(start: () => Promise<T>): Promise<T> {
    const loan = this.#loan;
    if (!loan) throw new Error('No connection was lent to this transaction.');
    this.#loan = null;
    this.#handed = loan.client;
    try {
      return start();
    } finally {
      this.#handed = null;
      loan.taken();
    }
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
