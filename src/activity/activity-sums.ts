import type { Sql } from '../data/sql.ts';
import type { ActivityScope, ScopeKind } from './activity-scope.ts';
import { finestOf, scopeColumns } from './activity-scope.ts';
import { type Range, type Span, spansOf } from './time-spans.ts';

/** What records of one kind add up to. */
export interface ActivitySums {
  requests: number;
  durationMs: number;
  /** The sum of `token_usage.total`. */
  tokens: number;
  /** Records of an execution: with an `execution_id`, or with the action `execute` (defaults §9). */
  executions: number;
}

/** Records of one kind in a scope. */
export interface ActivityKind {
  action: string;
  /** Empty for none. */
  resourceType: string;
  success: boolean;
}

/** Which records are summed. A value of `null` or `undefined` does not restrict them. */
export interface SumFilters extends Range {
  action?: string | null;
  resourceType?: string | null;
  success?: boolean | null;
}

/** What the sums are given by: the number of the scope, and perhaps the kind of record. */
type Grouping = 'scope' | 'kind';

const EXECUTES = `(t.execution_id is not null or t.action = 'execute')`;
const TOKENS = `case when jsonb_typeof(t.token_usage -> 'total') = 'number'
  then (t.token_usage ->> 'total')::numeric else 0 end`;
const RECORD = `t.action, coalesce(t.resource_type, '') as resource_type, t.success, 1 as requests, t.duration_ms,
  ${TOKENS} as tokens, ${EXECUTES}::int as executions`;

/** The records of the transactions that are not summed yet. */
const LATEST = 'select * from activity r where r.xid >= f.xid order by r.xid limit 1000000000';

const isOf = (kind: ScopeKind, ofUser: boolean): string =>
  [
    't.org_id = k.org_id',
    ...(kind === 'organization' ? [] : [`${scopeColumns[kind]} = k.id`]),
    ...(ofUser ? ['t.user_id = k.user_id'] : []),
  ].join(' and ');

/** Columns of records, by the filters on them. Their values follow the other parameters. */
const filtered = { action: 'action', resourceType: 'resource_type', success: 'success' } as const;
type FilterName = keyof typeof filtered;

/**
 * The sums of some scopes of one kind. They consist of the kept sums of whole spans, of the records at the edges, and
 * of the records whose transactions are not summed yet: all of one snapshot, so that no record is missed or counted
 * twice.
 * `offset 0` and the limit make PostgreSQL walk the indexes, whatever it expects of the values.
 */
function textOf(kind: ScopeKind, ofUser: boolean, by: Grouping, filters: readonly FilterName[]): string {
  const scope = kind === 'organization' ? `'organization'` : `'${kind} ' || id`;
  const kinds = by === 'kind' ? `, p.action, p.resource_type as "resourceType", p.success` : '';
  const conditions = filters.map((name, index) => `p.${filtered[name]} = $${index + 11}`);
  return `with k as materialized (
    select org_id, id, user_id, at::int - 1 as at, ${scope} as scope
    from unnest($1::text[], $2::text[], $3::text[]) with ordinality g(org_id, id, user_id, at))
  select p.at${kinds}, sum(p.requests)::float8 as requests, sum(p.duration_ms)::float8 as "durationMs",
    sum(p.tokens)::float8 as tokens, sum(p.executions)::float8 as executions
  from (
    select k.at, e.* from k cross join unnest($4::text[], $5::timestamptz[], $6::timestamptz[]) g(span, since, until)
    cross join lateral (select s.action, s.resource_type, s.success, s.requests, s.duration_ms, s.tokens, s.executions
      from activity_sums s where s.org_id = k.org_id and s.scope = k.scope and s.user_id = k.user_id
        and s.span = g.span and s.start >= g.since and s.start < g.until offset 0) e
    union all
    select k.at, e.* from k cross join unnest($7::timestamptz[], $8::timestamptz[]) g(since, until)
    cross join lateral (select ${RECORD} from activity t
      where ${isOf(kind, ofUser)} and t.timestamp >= g.since and t.timestamp < g.until offset 0) e
    union all
    select k.at, ${RECORD} from activity_fold f cross join lateral (${LATEST}) t
    join k on ${isOf(kind, ofUser)} where t.timestamp >= $9 and t.timestamp < $10
  ) p${conditions.length > 0 ? ` where ${conditions.join(' and ')}` : ''}
  group by p.at${by === 'kind' ? ', p.action, p.resource_type, p.success' : ''}`;
}

const texts = new Map<string, string>();

/** The sums of scopes of one kind, by the number of the scope, and by kind of record if it is asked for. */
export async function readSums<By extends Grouping>(
  sql: Sql,
  by: By,
  scopes: readonly ActivityScope[],
  filters: SumFilters,
): Promise<(ActivitySums & { at: number } & (By extends 'kind' ? ActivityKind : unknown))[]> {
  const [first] = scopes;
  if (!first) return [];
  const given = (Object.keys(filtered) as FilterName[]).filter((name) => (filters[name] ?? null) !== null);
  const ofUser = first.userId !== null;
  const form = `${first.kind} ${String(ofUser)} ${by} ${given.join(' ')}`;
  const text = texts.get(form) ?? textOf(first.kind, ofUser, by, given);
  texts.set(form, text);
  const { whole, edges, inner } = spansOf(filters, finestOf(first));
  return sql.read(text, [
    scopes.map(({ orgId }) => orgId),
    scopes.map(({ id }) => id),
    scopes.map(({ userId }) => userId ?? ''),
    whole.map(({ span }) => span),
    whole.map(({ since }) => since ?? '-infinity'),
    whole.map(({ until }) => until ?? 'infinity'),
    edges.map(({ since }) => since ?? '-infinity'),
    edges.map(({ until }) => until ?? 'infinity'),
    inner ? (inner.since ?? '-infinity') : 'infinity',
    inner ? (inner.until ?? 'infinity') : '-infinity',
    ...given.map((name) => filters[name]),
  ]);
}

/** A point of a series: the sums of the records from its start on, until the next one. */
export type SeriesPoint = ActivitySums & { start: Date; errors: number };

const seriesText = (kind: ScopeKind, ofUser: boolean): string => `
  with k as (select $1::text as org_id, $2::text as id, $3::text as user_id)
  select p.start, sum(p.requests)::float8 as requests, sum(p.duration_ms)::float8 as "durationMs",
    sum(p.tokens)::float8 as tokens, sum(p.executions)::float8 as executions,
    coalesce(sum(p.requests) filter (where not p.success), 0)::float8 as errors
  from (
    select s.start, s.success, s.requests, s.duration_ms, s.tokens, s.executions
    from k join activity_sums s on s.org_id = k.org_id and s.user_id = k.user_id
      and s.scope = ${kind === 'organization' ? `'organization'` : `'${kind} ' || k.id`}
    where s.span = $4 and s.start >= $5 and s.start < $6 and (not $7 or s.executions > 0)
    union all
    select date_trunc($4, t.timestamp, 'UTC'), t.success, 1, t.duration_ms, ${TOKENS}, ${EXECUTES}::int
    from activity_fold f
    cross join lateral (${LATEST}) t join k on ${isOf(kind, ofUser)}
    where t.timestamp >= $5 and t.timestamp < $6 and (not $7 or ${EXECUTES})
  ) p group by 1`;

/** The sums of each span of a range that begins and ends with whole spans. Spans without records are left out. */
export async function readSeries(
  sql: Sql,
  scope: ActivityScope,
  span: Span,
  { since, until }: { since: Date; until: Date },
  onlyExecutions = false,
): Promise<SeriesPoint[]> {
  const { orgId, kind, id, userId } = scope;
  return sql.read(seriesText(kind, userId !== null), [orgId, id, userId ?? '', span, since, until, onlyExecutions]);
}
