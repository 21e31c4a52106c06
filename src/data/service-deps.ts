import type { Access } from '../access/access.ts';
import type { Changes } from './changes.ts';
import type { Cursors } from './cursors.ts';
import type { Sql } from './sql.ts';

/** The dependencies of every resource's service. */
export interface ServiceDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  cursors: Cursors;
}
