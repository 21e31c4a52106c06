import { notFound } from '../core/errors.ts';
import type { IdKind } from '../core/resources.ts';
import { NestedList, nestedRow } from './keyset-list.ts';
import { columnsOf, type PageSource, type ParentKey, readPage } from './pages.ts';
import type { RequestCache } from './request-cache.ts';
import type { ServiceDeps } from './service-deps.ts';

interface ChildTable<Row> {
  kind: IdKind;
  /** Table, view or subquery. */
  table: string;
  columns: readonly (keyof Row & string)[];
  /** The properties that name the parent, tenant first: the parent's key, in this order. */
  below: readonly (keyof Row & string)[];
  /** Conditions that every row of the resource meets, such as not being deleted. */
  always?: readonly string[];
}

/**
 * Reads of rows that belong to something: to an organization (`[orgId]`), a workspace (`[orgId, workspaceId]`), an app in one. What
 * belongs to another parent is missing.
 */
export class ChildReads<Row extends { id: string; orgId: string }> {
  /** The rows below a parent, newest first. */
  readonly list: NestedList<Row>;
  readonly #deps: ServiceDeps;
  readonly #kind: IdKind;
  readonly #one: PageSource<Row>;
  readonly #anywhere: PageSource<Row>;

  constructor(deps: ServiceDeps, { kind, table, columns: properties, below: parents, always = [] }: ChildTable<Row>) {
    const columns = columnsOf(properties);
    const below = parents.map((property, index) => `${columns[property]} = $${index + 1}`);
    const where = [...below, ...always];
    const source: PageSource<Row> = { from: `${table} t`, columns, key: 't.id', order: 'desc', where };
    this.#deps = deps;
    this.#kind = kind;
    this.#one = { ...source, where: [...where, `t.id = $${below.length + 1}`] };
    this.#anywhere = { ...source, where: ['t.id = $1', ...always] };
    this.list = new NestedList(deps, table, source);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(parent: ParentKey, id: string): Promise<Row> {
    const { rows } = await readPage(this.#deps.sql, this.#one, { values: [...parent, id], after: null, limit: 1 });
    if (!rows[0]) throw notFound(this.#kind, id);
    return rows[0];
  }

  /** The same, read together with all that are asked for in this request. @throws RESOURCE_NOT_FOUND */
  async nested(memory: RequestCache, parent: ParentKey, id: string): Promise<Row> {
    const row = await this.findNested(memory, parent, id);
    if (!row) throw notFound(this.#kind, id);
    return row;
  }

  /** The same, for what may be gone: `null` then. */
  async findNested(memory: RequestCache, parent: ParentKey, id: string): Promise<Row | null> {
    return nestedRow(memory, this.#deps.sql, this.#kind, this.#one, [...parent, id]);
  }

  /** A row of any tenant: whoever asks has to check. */
  async findAnywhere(id: string): Promise<Row | null> {
    const { rows } = await readPage(this.#deps.sql, this.#anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }
}
