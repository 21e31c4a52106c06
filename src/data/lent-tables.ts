import type { TableName } from './tables.ts';

/**
 * The tables of a group, and which of them others name in their SQL: a join costs less than asking twice, and a row
 * that is locked or written with others must be in the same statement. `npm run arrows` refuses every other use that
 * it sees in a text, and loans that nobody needs.
 */
export interface GroupTables {
  owns: readonly TableName[];
  /** For each table that is lent: the folder that reads it, or `<folder> (writes)`, with why. */
  lends: { readonly [Name in TableName]?: Readonly<Record<string, string>> };
}
