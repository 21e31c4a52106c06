import type pg from 'pg';

/** Rows, and what the column {@link MARK} of each contains, if the statement has one. It is no property of the row. */
export interface MarkedRows<Row = object, Mark = unknown> {
  rows: Row[];
  marks: Mark[];
}

/** The column in which a statement tells something about its rows, such as the parent that a row was read for. */
export const MARK = '$mark';

/** A reading statement. Without a name, the server parses and describes it each time. */
export interface ReadStatement {
  name: string | undefined;
  text: string;
  values: unknown[];
  types: pg.CustomTypesConfig;
}

/** How reads are run. */
export type RunRead = <Row extends object, Mark>(
  pool: pg.Pool,
  statement: ReadStatement,
) => Promise<MarkedRows<Row, Mark>>;

/**
 * Runs a read with the public API of the driver. The service runs them with `preparedRead`, which costs less; with a
 * new version of the driver this is the way to compare with, and the way back.
 */
export const plainRead: RunRead = async <Row extends object, Mark>(pool: pg.Pool, statement: ReadStatement) => {
  const { rows, fields } = await pool.query<Row & { [MARK]: Mark }>(statement);
  if (!fields.some(({ name }) => name === MARK)) return { rows, marks: [] };
  const marks = rows.map(({ [MARK]: mark }) => mark);
  return { rows: rows.map(({ [MARK]: _mark, ...row }) => row as unknown as Row), marks };
};
