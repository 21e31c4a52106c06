import { selectOf } from './find-row.ts';
import { type Columns, type Row, type TableName, tableOf } from './tables.ts';
import { conditionOf, type Statement, type Write } from './writes.ts';

/**
 * How a row is locked, the weakest first. `key share`: it stays, and so does its key. `share`: it stays as it is. `no
 * key update`: it is about to be changed. `update`: it is about to go, or must not even be referred to meanwhile.
 */
export type LockStrength = 'key share' | 'share' | 'no key update' | 'update';

/**
 * THE order in which a change locks rows: whoever needs several waits for others, and never in a ring. Of one table the
 * row with the lower key comes first. Locks of the database itself (`pg_advisory_xact_lock`) come before all rows. What
 * takes rows with `skip locked` never waits, and needs no order.
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
  'apps',
  'releases',
  'environments',
  'environment_slots',
  'root_keys',
  'model_entitlements',
  'provider_accounts',
  'secrets',
  'logical_models',
  'model_targets',
  'api_tokens',
] as const satisfies readonly TableName[];

/** A table whose rows changes lock. */
export type LockableTable = (typeof lockOrder)[number];

/** What puts the rows of a table in order, where that is not `id`. */
const keys: { [Name in LockableTable]?: string } = { environment_slots: 't.environment_id, t.app_id' };

/** Holds the locks of one transaction against {@link lockOrder}. */
export class LockOrder {
  readonly #held = new Set<string>();
  #last = 0;

  /** @throws Error for a table that comes before one of which a row is locked already, unless this very row is */
  take(table: LockableTable, where: object = {}): void {
    const row = `${table} ${JSON.stringify('id' in where ? where.id : where)}`;
    if (this.#held.has(row)) return;
    this.#held.add(row);
    const place = lockOrder.indexOf(table);
    if (place < this.#last)
      throw new Error(`A change locks ${table} after ${lockOrder[this.#last]}: see the order of locks.`);
    this.#last = place;
  }
}

/** What a change locks and reads at once. */
export interface RowLocks {
  /**
   * The row that has these values, locked until the end, as it is then: what changed while it was waited for is seen.
   * Locks are taken in the order that `locks.ts` lists. @param orElse the error when there is none; without it that is
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
  /** The same of several rows. @param condition on a row `t` */
  lockAll<Name extends LockableTable>(table: Name, condition: Statement, strength: LockStrength): Promise<Row<Name>[]>;
}

/** Locks one row, and reads it as it is then. */
export function lockOf<Name extends LockableTable>(
  name: Name,
  where: Columns<Name>,
  strength: LockStrength,
): Statement {
  const row = selectOf(name, where);
  return { text: `${row.text} for ${strength}`, values: row.values };
}

/** Locks the rows `t` that a condition holds for, in the order of their keys. */
export function lockAllOf(name: LockableTable, { text, values }: Statement, strength: LockStrength): Statement {
  const order = keys[name] ?? 't.id';
  return {
    text: `select ${tableOf(name).named} from ${name} t where ${text} order by ${order} for ${strength}`,
    values,
  };
}

/** Locks a row that has to be there, together with what else is written. */
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
