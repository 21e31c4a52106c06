import type { GroupTables } from '../data/lent-tables.ts';

/** Who is present on a stream. Events are of the ground. */
export const tables: GroupTables = {
  owns: ['presences'],
  lends: {},
};
