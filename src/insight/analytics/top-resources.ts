import type { ServiceDeps } from '../../access/service-deps.ts';
import { demandWhole } from '../../access/whole-place.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { forbidden, invalidInput } from '../../kernel/errors.ts';
import { addSpans, startOf } from '../activity/time-spans.ts';
import { LATEST_TIME } from './points.ts';

/** What resources are compared by. */
export type TopMetric = 'requests' | 'errors' | 'executions';

/** A resource that was used. */
export interface UsedResource {
  orgId: string;
  resourceType: string;
  resourceId: string;
  /** How often. */
  uses: number;
}

export interface TopRange {
  metric: TopMetric;
  resourceType?: string | null;
  from?: Date | null;
  to?: Date | null;
  first: number;
}

/** Most resources of an answer. */
export const MOST_TOP = 50;
const DEFAULT_DAYS = 30;

/** Removes what is told no more. */
export const RETENTION_OF_USES = `delete from activity_uses where start < now() - interval '91 days'`;

const ORDER = 'order by uses desc, 2, 3 limit $6';
const ofRecords = (column: 'requests' | 'errors') => `select u.org_id as "orgId", u.resource_type as "resourceType",
    u.resource_id as "resourceId", sum(u.${column})::float8 as uses
  from activity_uses u where u.org_id = $1 and u.workspace_id = $2 and u.start >= $3 and u.start < $4
    and ($5::text is null or u.resource_type = $5)
  group by 1, 2, 3 having sum(u.${column}) > 0 ${ORDER}`;

/** `offset 0`: PostgreSQL looks each app up by its index. */
const OF_RUNS = `select a.org_id as "orgId", 'app' as "resourceType", a.id as "resourceId", sum(e.n)::float8 as uses
  from apps a cross join lateral (select s.n from execution_sums s where s.org_id = a.org_id and s.scope_id = a.id
    and s.span = 'day' and s.start >= $3 and s.start < $4 offset 0) e
  where a.org_id = $1 and a.workspace_id = $2 and coalesce($5::text, 'app') = 'app'
  group by 1, 2, 3 having sum(e.n) > 0 ${ORDER}`;

const texts: Readonly<Record<TopMetric, string>> = {
  requests: ofRecords('requests'),
  errors: ofRecords('errors'),
  executions: OF_RUNS,
};

/** What of a workspace is used most: kept by days, so that an answer costs no more with a longer history. */
export class TopResources {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * The resources that most records of some days name, or the apps with most runs; the most used first.
   * @throws FORBIDDEN for callers who read only their own records, and for a token that is restricted to parts of the
   * workspace; InputError for an end before the start
   */
  of(
    caller: Caller,
    { orgId, workspaceId, asked }: Checked<WorkspacePlace>,
    { metric, resourceType, first, ...range }: TopRange,
  ): Promise<UsedResource[]> {
    if (asked.grant !== 'all') throw forbidden('activity:read');
    demandWhole(caller, ['workspace'], 'activity:read');
    const [since, until] = daysOf(range);
    return this.#deps.slowReads
      .of(orgId, { caller })
      .read<UsedResource>(texts[metric], [orgId, workspaceId, since, until, resourceType ?? null, first]);
  }
}

/** The whole days that contain a range, which does not include its end. @throws InputError */
function daysOf({ from, to }: Pick<TopRange, 'from' | 'to'>): [since: Date, until: Date] {
  const end = to ?? new Date();
  if (end.getTime() >= LATEST_TIME) throw invalidInput(['to'], 'it must be an earlier time');
  if (from && from > end) throw invalidInput([to ? 'to' : 'from'], 'the end is before the start');
  const last = startOf('day', end);
  const until = to && last.getTime() === to.getTime() ? last : addSpans('day', last, 1);
  return [from ? startOf('day', from) : addSpans('day', until, -DEFAULT_DAYS), until];
}
