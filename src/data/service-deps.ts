import type { Access } from '../access/access.ts';
import type { Changes } from './changes.ts';
import type { Cursors } from './cursors.ts';
import type { SlowReads } from './slow-reads.ts';
import type { Sql } from './sql.ts';

/** The dependencies of every resource's service. */
export interface ServiceDeps {
  sql: Sql;
  slowReads: SlowReads;
  changes: Changes;
  access: Access;
  cursors: Cursors;
}
