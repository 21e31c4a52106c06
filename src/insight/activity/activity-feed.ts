import type { FedRecord, FeedPosition, FeedTerms, RecordFeed } from '../../data/record-feed.ts';
import type { Sql } from '../../data/sql.ts';
import type { Activity } from '../../generated/prisma/client.ts';
import { COLUMNS } from './activity-scope.ts';
import { writers } from './exported-activity.ts';

type FoundRecord = Activity & { xid: string; isWanted: boolean };

const SELECTED = Object.entries(COLUMNS)
  .map(([property, column]) => `${column} as "${property}"`)
  .join(', ');

/** Whether the terms `$2` to `$6` ask for a record `t`. */
const IS_WANTED = `($2::text is null or t.xid = $3::xid8 or not pg_visible_in_snapshot(t.xid, $2::pg_snapshot))
  and (cardinality($4::text[]) = 0 or t.action = any($4))
  and (cardinality($5::text[]) = 0 or t.resource_type = any($5))
  and ($6::bool is null or t.success = $6)`;

/** SQL: the records behind a position, in a form for which the planner takes the index of the organization. */
const BEHIND = `t.org_id between $1 and $1 and (t.org_id, t.xid, t.id) > ($1, $7::xid8, $8)`;
/** Only of transactions older than every running one, so that none that commits late is missed. */
const NEXT = `select ${SELECTED}, t.xid::text as xid, coalesce(${IS_WANTED}, false) as "isWanted"
  from activity t where ${BEHIND} and t.xid < pg_snapshot_xmin(pg_current_snapshot())
  order by t.org_id, t.xid, t.id limit $9`;
const BETWEEN = `select ${SELECTED}, t.xid::text as xid, true as "isWanted"
  from activity t where ${BEHIND} and (t.org_id, t.xid, t.id) <= ($1, $9::xid8, $10) and ${IS_WANTED}
  order by t.org_id, t.xid, t.id`;

const valuesOf = ({ orgId, begunSnapshot, begunXid, actions, resourceTypes, success }: FeedTerms): unknown[] => [
  orgId,
  begunSnapshot,
  begunXid,
  actions,
  resourceTypes,
  success,
];

const fed = (record: FoundRecord): FedRecord => ({
  xid: record.xid,
  id: record.id,
  timestamp: record.timestamp,
  line: writers.ndjson.write(record),
  isWanted: record.isWanted,
});

/** The records of an organization in the order of commits, for readers that must miss none. */
export class ActivityFeed implements RecordFeed {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The next records of the organization behind a position, also those that the terms do not ask for. */
  async next(terms: FeedTerms, after: FeedPosition, limit: number): Promise<FedRecord[]> {
    const values = [...valuesOf(terms), after.xid, after.id, limit];
    return (await this.#sql.read<FoundRecord>(NEXT, values)).map(fed);
  }

  /** Those between two positions that the terms ask for. */
  async between(terms: FeedTerms, from: FeedPosition, to: FeedPosition): Promise<FedRecord[]> {
    const values = [...valuesOf(terms), from.xid, from.id, to.xid, to.id];
    return (await this.#sql.read<FoundRecord>(BETWEEN, values)).map(fed);
  }
}
