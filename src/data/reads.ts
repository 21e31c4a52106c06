import DataLoader from 'dataloader';
import type { Checked } from '../kernel/checked-place.ts';
import { forbidden, notFound } from '../kernel/errors.ts';
import { declarationOf } from '../kernel/resources.ts';
import { restrictionsOf } from '../kernel/token-grant.ts';
import { Positions } from './cursors.ts';
import { JoinedRows } from './joined-rows.ts';
import { type Page, type PageArgs, pageOf } from './page.ts';
import {
  columnsOf,
  countOf,
  countPages,
  type Filter,
  filtersOf,
  keptCountOf,
  keptCounts,
  type PageSource,
  type ParentKey,
  placeCountOf,
  placeCounts,
  readPages,
  type Slice,
  withFilters,
} from './paging.ts';
import type { ReadsOptions } from './reads-options.ts';
import { type ReadDeps, readsOf } from './replica-reads.ts';
import { noCache, type ReadContext, type RequestCache } from './request-cache.ts';
import type { RoutedReads } from './sql.ts';

interface Identified {
  id: string;
}

/**
 * The reads of a resource: its lists below a parent and its rows, batched for each request and the same at every depth.
 * It always puts the tenant first in a statement, shows a restricted token only the contents of its places, and accepts
 * only places that were checked.
 */
export class Reads<
  Row extends Identified,
  Place extends object,
  Args extends PageArgs = PageArgs,
  Stored extends Identified = Row,
> {
  /** The statements. Test suites compare their rows with Prisma's. */
  readonly sources: Readonly<Record<'list' | 'one' | 'inTenant' | 'anywhere', PageSource<Stored>>>;
  readonly #deps: ReadDeps;
  readonly #options: ReadsOptions<Row, Place, Args, Stored>;
  readonly #joined: JoinedRows;
  readonly #name: string;
  readonly #below: readonly (keyof Place & string)[];
  /** The condition on the token's places, by restriction. */
  readonly #visible: Readonly<Record<string, string>>;

  constructor(deps: ReadDeps, options: NoInfer<ReadsOptions<Row, Place, Args, Stored>>) {
    const { below, from } = options;
    const columns = isList(below) ? columnsOf(below) : below;
    this.#deps = deps;
    this.#options = options;
    this.#joined = new JoinedRows(deps.sql);
    this.#name = options.name ?? from;
    this.#below = Object.keys(columns) as (keyof Place & string)[];
    this.sources = sourcesOf(options, Object.values<string>(columns));
    this.#visible = visibilityOf(options, this.#below);
  }

  /**
   * A page of the rows below a place that the caller may see.
   * @throws InputError for a cursor of another list; what the list demands
   */
  async list(context: ReadContext, place: Checked<Place>, args: Args): Promise<Page<Row>> {
    if (this.#options.demands) await this.#options.demands(place, args);
    const sql = readsOf(this.#deps, context.anyCaller);
    const filters = this.#filters(context, args);
    const values = filters.map(({ value }) => value);
    const parent = this.#parentOf(context, place);
    const source = withFilters(this.sources.list, filters, parent.length);
    const positions = new Positions({ list: this.#name, filters: [...parent, ...filters] });
    const after = positions.keyAt(args.after);
    const name = `${this.#name} ${JSON.stringify(filters)}`;
    const count = args.counted ? this.#countOf(source, filters) : undefined;
    const slice = await loaderOf(context, `${name} ${args.first} ${after ?? ''} ${count !== undefined}`, (parents) =>
      this.#completed(context, readPages(sql, source, parents, { values, after, limit: args.first, count })),
    ).load(parent);
    const total = () =>
      slice.total ?? loaderOf(context, `${name} count`, (parents) => this.#counts(sql, parents, filters)).load(parent);
    return pageOf(positions, slice, after, total, this.#options.index?.keyOf);
  }

  /**
   * The first rows below a place, without a cursor. Places that are asked for together are read with one statement and
   * share `together` rows; each has at least `least` of its own.
   */
  firstOf(
    context: RequestCache,
    place: Checked<Place>,
    { first, together, least }: { first: number; together: number; least: number },
  ): Promise<Row[]> {
    return loaderOf(context, `${this.#name} first ${first}`, async (parents) => {
      const limit = Math.min(first, Math.max(least, Math.floor(together / parents.length)));
      const request = { values: [], after: null, limit, looksFurther: false };
      const pages = readPages(this.#deps.sql, this.sources.list, parents, request);
      return (await this.#completed(context, pages)).map(({ rows }) => rows);
    }).load(this.#keyOf(place));
  }

  /** A row of a place. @throws RESOURCE_NOT_FOUND */
  async get(context: RequestCache, place: Checked<Place>, id: string): Promise<Row> {
    const row = await this.find(context, place, id);
    if (!row) throw notFound(this.#options.kind, id);
    return row;
  }

  /** A row of a place; `null` if it does not exist. */
  async find(context: RequestCache, place: Checked<Place>, id: string): Promise<Row | null> {
    const { known: { alias } = {}, kind } = this.#options;
    if (this.#below.length === 0)
      throw new Error(`'${this.#name}' is below nothing that could hold a row to its tenant.`);
    const isAlias = alias?.word === id;
    const { one } = this.sources;
    const source = isAlias
      ? { ...one, where: [...one.where.slice(0, -1), `${alias.column} = $${this.#below.length + 1}`] }
      : one;
    return this.#row(context, `${kind} ${this.#name} ${isAlias ? 'alias' : 'row'}`, source, [
      ...this.#keyOf(place),
      id,
    ]);
  }

  /**
   * A row of a place for which the caller has the required permission, perhaps only because the row is the caller's
   * own. Never read from a cache.
   * @throws RESOURCE_NOT_FOUND, FORBIDDEN with the permission
   */
  async own(caller: ReadContext['anyCaller'], place: Checked<Place>, id: string): Promise<Row> {
    const row = await this.get(noCache, place, id);
    const { grant, permission } = place.asked;
    const createdBy = 'createdBy' in row ? row.createdBy : null;
    if (grant === 'all' || (grant === 'own' && createdBy !== null && createdBy === caller.principal?.userId))
      return row;
    throw forbidden(permission);
  }

  /** A row by its id, of any tenant. Not scoped: the calling code must authorize. */
  async findUnscoped(context: RequestCache, id: string): Promise<Row | null> {
    return this.#row(context, `${this.#name} anywhere`, this.sources.anywhere, [id]);
  }

  /** A row by its id, anywhere in a tenant. The calling code must authorize. */
  async findInTenant(context: RequestCache, orgId: string, id: string): Promise<Row | null> {
    return this.#row(context, `${this.#name} in tenant`, this.sources.inTenant, [orgId, id]);
  }

  #row(context: RequestCache, name: string, source: PageSource<Stored>, key: ParentKey): Promise<Row | null> {
    const cache = context.rows ?? context;
    return loaderOf<Row | null>(cache, name, async (keys) => {
      const pages = await this.#completed(cache, this.#joined.pages(source, keys));
      return pages.map((page) => page.rows[0] ?? null);
    }).load(key);
  }

  /** The pages with complete rows. */
  async #completed(context: RequestCache, read: Promise<Slice<Stored>[]>): Promise<Slice<Row>[]> {
    const pages = await read;
    const { complete } = this.#options;
    if (!complete) return pages as Slice<Identified>[] as Slice<Row>[];
    const rows = await complete(
      context,
      pages.flatMap((page) => page.rows),
    );
    let from = 0;
    return pages.map((page) => {
      const until = from + page.rows.length;
      const completed = { ...page, rows: rows.slice(from, until) };
      from = until;
      return completed;
    });
  }

  #filters({ anyCaller }: ReadContext, args: Args): Filter[] {
    const shown: Readonly<Record<string, unknown>> = restrictionsOf(anyCaller.principal?.token ?? null);
    // one by one: columns of different kinds may have the same condition
    const visible = Object.entries(this.#visible).flatMap(([name, where]) => filtersOf({ [where]: shown[name] }));
    return [...filtersOf(this.#options.filters?.(args) ?? {}), ...visible];
  }

  #keyOf(place: Checked<Place>): string[] {
    return this.#below.map((name) => {
      const id: unknown = place[name];
      if (typeof id !== 'string') throw new Error(`A place of '${this.#name}' has no '${name}'.`);
      return id;
    });
  }

  #parentOf({ anyCaller }: ReadContext, place: Checked<Place>): string[] {
    if (!this.#options.mine) return this.#keyOf(place);
    const userId = anyCaller.principal?.userId ?? anyCaller.signedInAs?.userId;
    if (!userId) throw new Error(`'${this.#name}' lists what is the caller's own, but nobody is known to call.`);
    return [...this.#keyOf(place), userId];
  }

  /** The statement that counts the rows of a list for one parent. */
  #countOf(source: PageSource<Stored>, filters: readonly Filter[]): string {
    const { count } = this.#options;
    if (!count || filters.length > 0) return countOf(source);
    if ('ofPlace' in count) return placeCountOf(count.ofPlace, this.#below.length);
    return 'kept' in count ? keptCountOf(count.kept) : countOf({ ...source, from: count.from });
  }

  async #counts(sql: RoutedReads, parents: readonly ParentKey[], filters: readonly Filter[]): Promise<number[]> {
    const { count } = this.#options;
    const { list } = this.sources;
    if (!count || filters.length > 0) {
      const source = withFilters(list, filters, parents[0]?.length ?? 0);
      const values = filters.map(({ value }) => value);
      return countPages(sql, source, parents, values);
    }
    if ('ofPlace' in count) return placeCounts(sql, parents, count.ofPlace);
    if ('from' in count) return countPages(sql, { ...list, from: count.from }, parents, []);
    const tenants = parents.map(([orgId]) => orgId!);
    return keptCounts(sql, tenants, count.kept);
  }
}

/** A batching loader of values by composite keys, one per request. */
export const loaderOf = <Value>(
  context: RequestCache,
  name: string,
  load: (keys: readonly ParentKey[]) => Promise<Value[]>,
) => context.once(name, () => new DataLoader<ParentKey, Value, string>(load, { cacheKeyFn: (key) => key.join(' ') }));

const isList = <Name extends string>(
  below: readonly Name[] | Readonly<Record<Name, string>>,
): below is readonly Name[] => Array.isArray(below);

function sourcesOf<Row extends Identified, Place, Args, Stored extends Identified>(
  options: ReadsOptions<Row, Place, Args, Stored>,
  below: readonly string[],
): Reads<Row, object, PageArgs, Stored>['sources'] {
  const { from: table, columns, always = [], listed = [], order = 'desc', mine, known, index } = options;
  const { key = 't.id', lead = below.at(-1), order: indexOrder = order } = index ?? {};
  const from = table.includes(' ') ? table : `${table} t`;
  const source = { from, columns, key, order };
  const equal = below.map((column, at) => `${column} = $${at + 1}`);
  const leading = below.map((column, at) =>
    column === lead ? `${column} between $${at + 1} and $${at + 1}` : equal[at]!,
  );
  const more = [...(mine ? [mine] : []), ...always, ...listed];
  const shared = options.also;
  const also = (where: (parent: readonly string[]) => readonly string[]) => {
    if (!shared) return {};
    const parent = Object.values<string>(shared.below).map((column, at) => `${column} = $${at + 1}`);
    const shownColumns = { ...columns, ...shared.columns } as Readonly<Record<keyof Stored & string, string>>;
    return { also: { ...source, from: shared.from, columns: shownColumns, where: where(parent) } };
  };
  const named = `${columns[known?.by ?? 'id']} = $${below.length + 1}`;
  return {
    list: {
      ...source,
      ...(lead === undefined ? {} : { lead: indexOrder === order ? lead : `${lead} desc` }),
      where: [...leading, ...more].map((condition) => condition.replaceAll('$me', `$${below.length + 1}`)),
      ...also((parent) => [...parent, ...more]),
    },
    one: { ...source, where: [...equal, ...always, named], ...also((parent) => [...parent, ...always, named]) },
    inTenant: {
      ...source,
      where: [...equal.slice(0, 1), ...always, `${columns.id} = $2`],
      ...also((parent) => [...parent.slice(0, 1), ...always, `${columns.id} = $2`]),
    },
    anywhere: {
      ...source,
      where: [...always, ...(shared ? below.map((column) => `${column} is not null`) : []), `${columns.id} = $1`],
    },
  };
}

const PARTS = ['workspaceId', 'namespaceId', 'environmentId', 'appId'] as const;

/** What a restricted token sees: its places themselves, and rows in its places or in no place of that kind. */
function visibilityOf<Row extends Identified, Place, Args, Stored extends Identified>(
  { kind, columns }: ReadsOptions<Row, Place, Args, Stored>,
  below: readonly string[],
): Record<string, string> {
  const { in: places } = declarationOf(kind);
  const column = (name: string): string | undefined => (columns as Readonly<Record<string, string>>)[name];
  const conditions = PARTS.flatMap((name) => {
    const expression = column(name);
    if (!expression) return [];
    return [[name, below.includes(name) ? `${expression} = any(?)` : `coalesce(${expression} = any(?), true)`]];
  });
  const self = places === kind ? [[kind === 'organization' ? 'orgId' : `${kind}Id`, `${columns.id} = any(?)`]] : [];
  return Object.fromEntries([...conditions, ...self]);
}
