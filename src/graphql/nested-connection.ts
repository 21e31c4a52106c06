import DataLoader from 'dataloader';
import { countPages, type Page, type PageSource, type ParentKey, readPage, readPages } from '../infra/pages.ts';
import type { Sql } from '../infra/sql.ts';
import { type Connection, connection } from './connections.ts';
import type { Cursors } from './cursor.ts';

/** Keeps what a request needs once, such as a loader. */
export interface RequestMemory {
  once<T>(key: string, make: () => T): T;
}

/** The arguments of a list. */
export interface PageArgs {
  first: number;
  after?: string | null;
}

/** Loads values by composite keys, many at once; made once per request. */
const loaderOf = <Value>(memory: RequestMemory, name: string, load: (keys: readonly ParentKey[]) => Promise<Value[]>) =>
  memory.once(name, () => new DataLoader<ParentKey, Value, string>(load, { cacheKeyFn: (key) => key.join(' ') }));

/** The row that a source gives for a key, read in one statement with those of all keys that are asked for in this request. */
export async function nestedRow<Row extends object>(
  memory: RequestMemory,
  sql: Sql,
  name: string,
  source: PageSource<Row>,
  key: ParentKey,
): Promise<Row | null> {
  const loader = loaderOf<Row | null>(memory, `${name} row`, async (keys) => {
    const pages = await readPages(sql, source, keys, { values: [], after: null, limit: 1 });
    return pages.map((page) => page.rows[0] ?? null);
  });
  return loader.load(key);
}

/**
 * A list of rows below a parent: as a root list, and nested under many parents at once. Both give the same rows and the same cursors.
 * The first values of the source's conditions are the parent's key, those after it the values of the filters.
 */
export class NestedList<Row extends { id: string }> {
  readonly #deps: { sql: Sql; cursors: Cursors };
  readonly #name: string;
  readonly #source: PageSource<Row>;
  readonly #countAll: (parents: readonly ParentKey[], filters: readonly unknown[]) => Promise<number[]>;

  /** `countAll` replaces the counting of rows where a table grows without bound. */
  constructor(
    deps: { sql: Sql; cursors: Cursors },
    name: string,
    source: PageSource<Row>,
    countAll?: (parents: readonly ParentKey[]) => Promise<number[]>,
  ) {
    this.#deps = deps;
    this.#name = name;
    this.#source = source;
    this.#countAll = countAll ?? ((parents, filters) => countPages(deps.sql, source, parents, filters));
  }

  /** The page of one parent. @throws InputError for a cursor of another list */
  async page(parent: ParentKey, args: PageArgs, filters: readonly unknown[] = []): Promise<Connection<Row>> {
    return this.#connect(
      parent,
      args,
      filters,
      (after) => readPage(this.#deps.sql, this.#source, { values: [...parent, ...filters], after, limit: args.first }),
      async () => (await this.#countAll([parent], filters))[0] ?? 0,
    );
  }

  /** The same page, read in one statement with those of all parents that ask for it in this request. */
  async nested(
    memory: RequestMemory,
    parent: ParentKey,
    args: PageArgs,
    filters: readonly unknown[] = [],
  ): Promise<Connection<Row>> {
    const { sql } = this.#deps;
    const name = `${this.#name} ${JSON.stringify(filters)}`;
    return this.#connect(
      parent,
      args,
      filters,
      (after) =>
        loaderOf<Page<Row>>(memory, `${name} ${args.first} ${after ?? ''}`, (parents) =>
          readPages(sql, this.#source, parents, { values: filters, after, limit: args.first }),
        ).load(parent),
      () => loaderOf<number>(memory, `${name} count`, (parents) => this.#countAll(parents, filters)).load(parent),
    );
  }

  async #connect(
    parent: ParentKey,
    args: PageArgs,
    filters: readonly unknown[],
    read: (after: string | null) => Promise<Page<Row>>,
    total: () => Promise<number>,
  ): Promise<Connection<Row>> {
    const { cursors } = this.#deps;
    const scope = { list: this.#name, filters: [...parent, ...filters] };
    const after = cursors.decode(scope, args.after);
    return connection(cursors, scope, await read(after), after, total);
  }
}
