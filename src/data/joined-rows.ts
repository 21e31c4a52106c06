import DataLoader from 'dataloader';
import { activeSpan } from '../kernel/spans.ts';
import { type PageSource, type ParentKey, readPages, type Slice } from './paging.ts';
import type { RoutedReads } from './sql.ts';

/** Most rows of one statement: whoever asks waits for the rows of the others. */
const MAX_TOGETHER = 16;

/** One row by its key: what a page of one row is asked for with. */
const ONE = { values: [], after: null, limit: 1 } as const;

type RowLoader = DataLoader<ParentKey, Slice<object>>;

/**
 * Reads single rows for different requests that ask in one turn of the event loop: with one statement, because a
 * statement of its own costs a request more CPU than its row. Nothing is kept: whoever asks later reads again, and each
 * gets a row object of their own. A request whose trace is recorded reads by itself: its trace shows the statement.
 */
export class JoinedRows {
  readonly #sql: RoutedReads;
  readonly #loaders = new WeakMap<object, RowLoader>();

  constructor(sql: RoutedReads) {
    this.#sql = sql;
  }

  /** A page for each key, with the row that has it. Several keys are read at once. */
  async pages<Row extends object>(source: PageSource<Row>, keys: readonly ParentKey[]): Promise<Slice<Row>[]> {
    const [key, ...others] = keys;
    if (!key || others.length > 0 || activeSpan()) return readPages(this.#sql, source, keys, ONE);
    return [(await this.#loaderOf(source).load(key)) as Slice<Row>];
  }

  #loaderOf<Row extends object>(source: PageSource<Row>): RowLoader {
    const known = this.#loaders.get(source);
    if (known) return known;
    const loader: RowLoader = new DataLoader((keys) => this.#read(source, keys), {
      cache: false,
      maxBatchSize: MAX_TOGETHER,
      // after all requests that have arrived were looked at
      batchScheduleFn: (dispatch) => void setImmediate(dispatch),
    });
    this.#loaders.set(source, loader);
    return loader;
  }

  /** What one request asks for must not fail the others. */
  async #read<Row extends object>(
    source: PageSource<Row>,
    keys: readonly ParentKey[],
  ): Promise<(Slice<object> | Error)[]> {
    try {
      return await readPages(this.#sql, source, keys, ONE);
    } catch (error) {
      if (keys.length === 1 || !isOfValue(error)) throw error;
      return Promise.all(
        keys.map((key) =>
          readPages(this.#sql, source, [key], ONE).then(
            ([slice]) => slice!,
            (own: unknown) => (own instanceof Error ? own : new Error('A row could not be read.', { cause: own })),
          ),
        ),
      );
    }
  }
}

/** Whether PostgreSQL refused a value (class 22), and not the statement. */
const isOfValue = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('22');
