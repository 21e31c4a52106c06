import DataLoader from 'dataloader';
import type { Cursors } from './cursors.ts';
import { type Page, type PageArgs, pageOf } from './page.ts';
import {
  countPages,
  type Filter,
  narrowed,
  type PageSource,
  type ParentKey,
  readPage,
  readPages,
  type Slice,
} from './pages.ts';
import type { RequestCache } from './request-cache.ts';
import type { Sql } from './sql.ts';

/** Loads values by composite keys, many at once; made once per request. */
const loaderOf = <Value>(memory: RequestCache, name: string, load: (keys: readonly ParentKey[]) => Promise<Value[]>) =>
  memory.once(name, () => new DataLoader<ParentKey, Value, string>(load, { cacheKeyFn: (key) => key.join(' ') }));

/** The row that a source gives for a key, read in one statement with those of all keys that are asked for in this request. */
export async function nestedRow<Row extends object>(
  memory: RequestCache,
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
 * The values of the source's own conditions are the parent's key.
 */
export class NestedList<Row extends { id: string }> {
  readonly #deps: { sql: Sql; cursors: Cursors };
  readonly #name: string;
  readonly #source: PageSource<Row>;
  readonly #keptCounts: ((parents: readonly ParentKey[]) => Promise<number[]>) | undefined;

  /** `keptCounts` replaces the counting of rows, where no filter is given, for a table that grows without bound. */
  constructor(
    deps: { sql: Sql; cursors: Cursors },
    name: string,
    source: PageSource<Row>,
    keptCounts?: (parents: readonly ParentKey[]) => Promise<number[]>,
  ) {
    this.#deps = deps;
    this.#name = name;
    this.#source = source;
    this.#keptCounts = keptCounts;
  }

  /** The page of one parent. @throws InputError for a cursor of another list */
  async page(parent: ParentKey, args: PageArgs, filters: readonly Filter[] = []): Promise<Page<Row>> {
    const source = narrowed(this.#source, filters, parent.length);
    const values = filters.map(({ value }) => value);
    return this.#connect(
      parent,
      args,
      filters,
      (after) => readPage(this.#deps.sql, source, { values: [...parent, ...values], after, limit: args.first }),
      async () => (await this.#counts([parent], filters))[0] ?? 0,
    );
  }

  /** The same page, read in one statement with those of all parents that ask for it in this request. */
  async nested(
    memory: RequestCache,
    parent: ParentKey,
    args: PageArgs,
    filters: readonly Filter[] = [],
  ): Promise<Page<Row>> {
    const { sql } = this.#deps;
    const source = narrowed(this.#source, filters, parent.length);
    const values = filters.map(({ value }) => value);
    const name = `${this.#name} ${JSON.stringify(filters)}`;
    return this.#connect(
      parent,
      args,
      filters,
      (after) =>
        loaderOf<Slice<Row>>(memory, `${name} ${args.first} ${after ?? ''}`, (parents) =>
          readPages(sql, source, parents, { values, after, limit: args.first }),
        ).load(parent),
      () => loaderOf<number>(memory, `${name} count`, (parents) => this.#counts(parents, filters)).load(parent),
    );
  }

  async #counts(parents: readonly ParentKey[], filters: readonly Filter[]): Promise<number[]> {
    if (this.#keptCounts && filters.length === 0) return this.#keptCounts(parents);
    const source = narrowed(this.#source, filters, parents[0]?.length ?? 0);
    return countPages(
      this.#deps.sql,
      source,
      parents,
      filters.map(({ value }) => value),
    );
  }

  async #connect(
    parent: ParentKey,
    args: PageArgs,
    filters: readonly Filter[],
    read: (after: string | null) => Promise<Slice<Row>>,
    total: () => Promise<number>,
  ): Promise<Page<Row>> {
    const { cursors } = this.#deps;
    const scope = { list: this.#name, filters: [...parent, ...filters] };
    const after = cursors.decode(scope, args.after);
    return pageOf(cursors, scope, await read(after), after, total);
  }
}
