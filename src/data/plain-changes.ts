import type { Caller } from '../kernel/caller.ts';
import { notFound } from '../kernel/errors.ts';
import type { EventName, ResourceWord } from '../kernel/resources.ts';
import type { Changes } from './changes.ts';
import { type ChangedRow, recordChange } from './record-change.ts';
import { type Columns, type NewRow, type Row, type TableName, tableOf } from './tables.ts';
import type { Tx } from './tx.ts';
import type { VersionedTable } from './versioned-rows.ts';

/** The resources that have an event of this name. */
type With<Name extends string> = { [Word in ResourceWord]: Name extends EventName<Word> ? Word : never }[ResourceWord];

/** A resource and its table, as its `Reads` names them. */
interface Kept<Word extends ResourceWord, Name extends TableName> {
  kind: Word;
  from: Name;
}

interface PlainChangeDeps {
  changes: Changes;
}

/** Values as inputs give them: `null` for a column that is never null is the same as none. */
type NullableColumns<Values> = { [Key in keyof Values]: Values[Key] | null };

/** The columns that no input sets: those that identify and place a row, and those that the service keeps. */
type KeptColumn =
  | 'id'
  | 'orgId'
  | 'workspaceId'
  | 'namespaceId'
  | 'environmentId'
  | 'appId'
  | 'createdBy'
  | 'createdAt'
  | 'updatedAt'
  | 'resourceVersion';

type RequiredKey<Values> = { [Key in keyof Values]-?: object extends Pick<Values, Key> ? never : Key }[keyof Values];

/**
 * What inputs may set of a row: all columns but those that place it and those that the service keeps. Each may be
 * omitted or null; the schema says which may not.
 */
export type FieldsOf<Name extends TableName> = {
  [Key in Exclude<keyof NewRow<Name>, KeptColumn>]?: NewRow<Name>[Key] | null | undefined;
};

/** The same of a new row: with the columns that every row needs. */
export type NewFieldsOf<Name extends TableName> = FieldsOf<Name> &
  Pick<NewRow<Name>, Exclude<RequiredKey<NewRow<Name>>, KeptColumn>>;

/** What must hold, or also happens, before the row is written. It takes locks in the order of `locks.ts`. */
type Rules<Result> = (tx: Tx) => Result | Promise<Result>;

/** Creates a row and records it. @param row with its place @returns it as the database stores it */
export async function createRow<Name extends TableName>(
  { changes }: PlainChangeDeps,
  caller: Caller,
  { kind, from }: Kept<With<'created'>, Name>,
  row: ChangedRow & NullableColumns<Omit<NewRow<Name>, 'createdBy'>>,
  rules?: Rules<void>,
): Promise<Row<Name>> {
  return changes.run(caller, async (tx) => {
    await rules?.(tx);
    recordChange(tx, 'create', kind, row);
    return tx.create(from, { ...columnsGiven(from, row), createdBy: caller.principal.userId } as NewRow<Name>);
  });
}

/**
 * Changes a row and records the fields of the input.
 * @param row its id and place, all of which it must have
 * @param set the columns to set; as {@link Rules}, it returns them
 * @returns the row as it is afterwards
 * @throws RESOURCE_NOT_FOUND
 */
export async function updateRow<Name extends VersionedTable>(
  { changes }: PlainChangeDeps,
  caller: Caller,
  { kind, from }: Kept<With<'updated'>, Name>,
  row: ChangedRow,
  input: object,
  set: NullableColumns<Columns<Name>> | Rules<NullableColumns<Columns<Name>>>,
): Promise<Row<Name>> {
  return changes.run(caller, async (tx) => {
    const values = typeof set === 'function' ? await set(tx) : set;
    const key = keyOf(from, row);
    await tx.expectVersion({ table: from, key });
    recordChange(tx, 'update', kind, row, { fields: Object.keys(input) });
    return tx.change(from, key, columnsGiven(from, values), () => notFound(kind, row.id));
  });
}

/** Deletes a row and records it. @param row as in {@link updateRow} @returns it @throws RESOURCE_NOT_FOUND */
export async function deleteRow<Name extends VersionedTable, Target extends ChangedRow>(
  { changes }: PlainChangeDeps,
  caller: Caller,
  { kind, from }: Kept<With<'deleted'>, Name>,
  row: Target,
  { rules, metadata }: { rules?: Rules<void>; metadata?: Record<string, unknown> } = {},
): Promise<Target> {
  return changes.run(caller, async (tx) => {
    await rules?.(tx);
    const key = keyOf(from, row);
    await tx.expectVersion({ table: from, key });
    tx.remove(from, key, () => notFound(kind, row.id));
    recordChange(tx, 'delete', kind, row, metadata);
    return row;
  });
}

const PLACES = ['id', 'orgId', 'workspaceId', 'namespaceId', 'environmentId', 'appId'] as const;

/** What identifies a row in its place: a row of another place is not found. */
function keyOf<Name extends TableName>(from: Name, row: ChangedRow): Columns<Name> {
  const { columns } = tableOf(from);
  return Object.fromEntries(PLACES.filter((name) => name in columns).map((name) => [name, row[name]])) as Columns<Name>;
}

/** The columns that the input of a new row sets, for one that is written beside others. */
export const newRow = <Name extends TableName>(from: Name, input: NewFieldsOf<Name>) =>
  columnsGiven(from, input) as Pick<NewRow<Name>, Exclude<keyof NewRow<Name>, KeptColumn>>;

/** The values without the nulls of columns that are never null. */
function columnsGiven<Name extends TableName>(from: Name, values: object): Columns<Name> {
  const { required } = tableOf(from);
  return Object.fromEntries(
    Object.entries(values).filter(([name, value]) => value !== null || !required.has(name)),
  ) as Columns<Name>;
}
