import type { Changes } from '../data/changes.ts';
import type { ReplicaReads } from '../data/replica-reads.ts';
import type { SlowReads } from '../data/slow-reads.ts';
import type { Sql } from '../data/sql.ts';
import type { Access } from './access.ts';
import type { Budgets } from './budgets.ts';

/** The dependencies of every resource's service. */
export interface ServiceDeps {
  sql: Sql;
  /** `null` without replicas. */
  replicaReads?: ReplicaReads | null;
  slowReads: SlowReads;
  changes: Changes;
  access: Access;
  budgets: Budgets;
}
