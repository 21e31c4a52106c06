import { notFound } from '../graphql/errors.ts';
import { NestedList, nestedRow, type RequestMemory } from '../graphql/nested-connection.ts';
import type { Tx } from '../infra/change.ts';
import type { IdKind } from '../infra/ids.ts';
import { columnsOf, type PageSource, type ParentKey, readPage } from '../infra/pages.ts';
import type { ServiceDeps } from '../services.ts';

/** A row of something that belongs to a workspace, or to an app or a namespace in one. */
export interface ChildRow {
  id: string;
  orgId: string;
  workspaceId: string;
  appId?: string;
}

interface ChildTable<Row> {
  kind: IdKind;
  table: string;
  columns: readonly (keyof Row & string)[];
  /** The column of the parent within the workspace, where there is one: the last part of the parent's key. */
  parent?: keyof Row & string;
}

/**
 * Reads of such rows, always below their parent `[orgId, workspaceId]` or `[orgId, workspaceId, appId]`: what belongs to another one is
 * missing.
 */
export class ChildReads<Row extends ChildRow> {
  /** The rows below a parent, newest first. */
  readonly list: NestedList<Row>;
  readonly #deps: ServiceDeps;
  readonly #kind: IdKind;
  readonly #one: PageSource<Row>;
  readonly #anywhere: PageSource<Row>;

  constructor(deps: ServiceDeps, { kind, table, columns: properties, parent }: ChildTable<Row>) {
    const columns = columnsOf(properties);
    const below = ['orgId', 'workspaceId', ...(parent ? [parent] : [])].map(
      (property, index) => `${columns[property as keyof Row & string]} = $${index + 1}`,
    );
    const source: PageSource<Row> = { from: `${table} t`, columns, key: 't.id', order: 'desc', where: below };
    this.#deps = deps;
    this.#kind = kind;
    this.#one = { ...source, where: [...below, `t.id = $${below.length + 1}`] };
    this.#anywhere = { ...source, where: ['t.id = $1'] };
    this.list = new NestedList(deps, table, source);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(parent: ParentKey, id: string): Promise<Row> {
    const { rows } = await readPage(this.#deps.sql, this.#one, { values: [...parent, id], after: null, limit: 1 });
    if (!rows[0]) throw notFound(this.#kind, id);
    return rows[0];
  }

  /** The same, read together with all that are asked for in this request. @throws RESOURCE_NOT_FOUND */
  async nested(memory: RequestMemory, parent: ParentKey, id: string): Promise<Row> {
    const row = await nestedRow(memory, this.#deps.sql, this.#kind, this.#one, [...parent, id]);
    if (!row) throw notFound(this.#kind, id);
    return row;
  }

  /** A row of any workspace: whoever asks has to check. */
  async findAnywhere(id: string): Promise<Row | null> {
    const { rows } = await readPage(this.#deps.sql, this.#anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }
}

/** Writes what every change of such a row leaves behind: its activity record and the event `<kind>.created|updated|deleted`. */
export function recordChange(
  tx: Tx,
  verb: 'create' | 'update' | 'delete',
  kind: IdKind,
  row: ChildRow,
  metadata: Record<string, unknown> = {},
): void {
  const { id, orgId, workspaceId, appId } = row;
  tx.audit({ action: verb, resourceType: kind, resourceId: id, orgId, workspaceId, appId, metadata });
  tx.emit({ type: `${kind}.${verb}d`, orgId, workspaceId, resourceType: kind, resourceId: id });
}
