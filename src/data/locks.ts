import { selectOf } from './find-row.ts';
import { type Columns, type Row, type TableName, tableNames, tableOf } from './tables.ts';
import { conditionOf, type Statement, type Write } from './writes.ts';

/**
 * How a row is locked, the weakest first. `key share`: the row and its key must stay. `share`: the row must not change.
 * `no key update`: the row is about to be changed. `update`: the row is about to be deleted, or must not even be
 * referenced meanwhile.
 */
export type LockStrength = 'key share' | 'share' | 'no key update' | 'update';

/**
 * THE order in which a change locks rows, so that waiting changes never form a cycle. Within a table, the row with the
 * lower key comes first. Advisory locks (`pg_advisory_xact_lock`) come before all rows, but that of
 * storage (`StorageLimits`) after all of them. Statements with `skip locked`
 * never wait and need no order. A table that is not listed comes after those that are, in the order of the Prisma
 * schema: that is right for what nothing else is below.
 *
 * A foreign key locks the row that a new row refers to, too, `for key share` and out of this order. It waits only for
 * `update`, so an insert below a locked row needs care where somebody holds that `update` and goes on to the locked
 * row. Who locks a workspace so, as the one who deletes it does, goes on to no row of models: a row with the usage of a
 * model is inserted while its entitlement is locked. What removes a workspace with everything in it comes 30 days
 * after it was deleted, when nobody can use it.
 */
const lockOrder = [
  'invitations',
  'organizations',
  'organization_members',
  'workspaces',
  'workspace_members',
  'users',
  'namespaces',
  'threads',
  'artifacts',
  'sources',
  'files',
  'apps',
  'releases',
  'augmentations',
  'endpoints',
  'actions',
  'executions',
  'entities',
  'memories',
  'environments',
  'environment_slots',
  'oauth_states',
  'connect_links',
  'tools',
  'tool_instances',
  'connections',
  'identity_providers',
  'identity_provider_domains',
  'identity_links',
  'identity_provider_tests',
  'sso_states',
  'sso_codes',
  'webhooks',
  'audit_streams',
  'root_keys',
  'model_entitlements',
  'provider_accounts',
  'secrets',
  'credentials',
  'logical_models',
  'model_targets',
  'api_tokens',
  'notifications',
] as const satisfies readonly TableName[];

/** A table whose rows can be locked. */
export type LockableTable =
  | (typeof lockOrder)[number]
  | { [Name in TableName]: Row<Name> extends { id: string } ? Name : never }[TableName];

const ranks = new Map([...new Set<TableName>([...lockOrder, ...tableNames])].map((table, rank) => [table, rank]));

/** The sort key of a table's rows, if it is not `id`. */
const keys: { [Name in LockableTable]?: string } = {
  environment_slots: 't.environment_id, t.app_id',
  oauth_states: 't.hash',
  connect_links: 't.hash',
  identity_provider_domains: 't.domain',
  sso_states: 't.hash',
  sso_codes: 't.hash',
};

/** Checks the locks of one transaction against {@link lockOrder}. */
export class LockOrder {
  readonly #held = new Set<string>();
  #last = 0;

  /** @throws Error for a table that precedes one with a locked row, unless this very row is locked already */
  take(table: LockableTable, where: object = {}): void {
    const row = `${table} ${JSON.stringify('id' in where ? where.id : where)}`;
    if (this.#held.has(row)) return;
    this.#held.add(row);
    const rank = ranks.get(table)!;
    if (rank < this.#last)
      throw new Error(`A change locks ${table} after ${[...ranks.keys()][this.#last]}: see the order of locks.`);
    this.#last = rank;
  }
}

/** Locks and reads rows in one step. */
export interface RowLocks {
  /**
   * Locks the row that has these values until the end, and returns it with the changes that were made while it waited.
   * Locks are taken in the order of `locks.ts`. @param orElse the error when there is none; without it the result is
   * `null`
   */
  lock<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
    orElse: () => Error,
  ): Promise<Row<Name>>;
  lock<Name extends LockableTable>(
    table: Name,
    where: Columns<Name>,
    strength: LockStrength,
  ): Promise<Row<Name> | null>;
  /** The same for several rows. @param condition on a row `t` */
  lockAll<Name extends LockableTable>(table: Name, condition: Statement, strength: LockStrength): Promise<Row<Name>[]>;
  /** The same without reading them, for rows that may be many and large. */
  lockUnread(table: LockableTable, condition: Statement, strength: LockStrength): Promise<void>;
}

/** Locks one row, and reads it once it is locked. */
export function lockOf<Name extends LockableTable>(
  name: Name,
  where: Columns<Name>,
  strength: LockStrength,
): Statement {
  const row = selectOf(name, where);
  return { text: `${row.text} for ${strength}`, values: row.values };
}

/** Locks the rows `t` that match a condition, in the order of their keys. @param columns what is read of them */
export function lockAllOf(
  name: LockableTable,
  { text, values }: Statement,
  strength: LockStrength,
  columns = tableOf(name).named,
): Statement {
  const order = keys[name] ?? 't.id';
  return { text: `select ${columns} from ${name} t where ${text} order by ${order} for ${strength}`, values };
}

/** The same for rows of which nothing is read. */
export function lockUnreadOf(name: LockableTable, condition: Statement, strength: LockStrength): Statement {
  const { text, values } = lockAllOf(name, condition, strength, '1');
  return { text: `select count(*) from (${text}) locked`, values };
}

/** Locks a row that must exist, together with the other writes. */
export function demandOf<Name extends LockableTable>(
  name: Name,
  where: Columns<Name>,
  strength: LockStrength,
  orElse: () => Error,
): Write {
  const { shape, text, values } = conditionOf(tableOf(name), where);
  return {
    shape: `lock ${name} ${shape} ${strength}`,
    text: (first) => `select 1 from ${name} t where ${text(first)} for ${strength}`,
    values,
    does: 'lock',
    table: null,
    orElse,
  };
}
