import type { ReadRunner } from '../../data/sql.ts';
import type { ActivityScope, ScopeKind } from './activity-scope.ts';
import { columnOf, hasMargins, scopeColumns, withoutReadsOf } from './activity-scope.ts';
import {
  addSpans,
  type Between,
  longer,
  type PartOfSpan,
  type Span,
  spansOf,
  startOf,
  type TimeRange,
  type WholeSpans,
} from './time-spans.ts';

/** What records of one kind add up to. */
export interface ActivitySums {
  requests: number;
  durationMs: number;
  /** The sum of `token_usage.total`. */
  tokens: number;
}

/**
 * Records of one kind in a scope; or all records, those of one action, or those of one type of resource. Rows must be
 * added up: one of a kind is negative where it is taken away from such a sum.
 */
export interface ActivityKind {
  /** Empty for all. */
  action: string;
  /** Empty for none, or for all. */
  resourceType: string;
  success: boolean;
  /** Whether it is of one action or of one type of resource. Rows that are not have the same records. */
  isMargin: boolean;
}

/** Which records are summed. A value of `null` or `undefined` does not restrict them. */
export interface SumFilters extends TimeRange {
  action?: string | null;
  resourceType?: string | null;
  success?: boolean | null;
  /** Leaves out successful reads. */
  withoutReads?: boolean | null;
}

/** What is given of each scope, by its number: only how many records it has, or the sums of each kind. */
type Grouping = 'count' | 'kind';

/** Which of the kept sums are read: those of each kind, those of all records, or these with their margins. */
type Kept = 'kinds' | 'total' | 'margins';

/** Whose sums a statement reads, and what it gives. */
interface Form {
  kind: ScopeKind;
  ofUser: boolean;
  by: Grouping;
  kept: Kept;
  filters: readonly FilterName[];
  withoutReads: boolean;
  /** One scope, or any number of them. */
  isOne: boolean;
}

const TOKENS = `case when jsonb_typeof(t.token_usage -> 'total') = 'number'
  then (t.token_usage ->> 'total')::float8 else 0 end`;
/** What records add up to, and what they are filtered and grouped by. */
const ofRecord = {
  action: 't.action',
  resource_type: `coalesce(t.resource_type, '')`,
  success: 't.success',
  requests: '1::float8',
  duration_ms: 't.duration_ms::float8',
  tokens: TOKENS,
} as const;
type Column = keyof typeof ofRecord;

/** The same of kept sums. Adding up 64-bit integers would cost more than reading them. */
const ofSums = {
  action: 's.action',
  resource_type: 's.resource_type',
  success: 's.success',
  requests: 's.requests::float8',
  duration_ms: 's.duration_ms::float8',
  tokens: 's.tokens::float8',
} as const satisfies Record<Column, string>;

const KINDS = ['action', 'resource_type', 'success'] as const;
const NUMBERS = ['requests', 'duration_ms', 'tokens'] as const;

const selected = (from: Readonly<Record<Column, string>>, columns: readonly Column[]): string =>
  columns.map((column) => `${from[column]} as ${column}`).join(', ');

/** The records that are not summed yet. */
export const LATEST = `select * from activity r where (r.xid, r.id) >= (f.xid, f.record_id) order by r.xid, r.id
  limit 1000000000`;

const isOf = (kind: ScopeKind, ofUser: boolean): string =>
  [
    't.org_id = k.org_id',
    ...(kind === 'organization' ? [] : [`${scopeColumns[kind]} = k.id`]),
    ...(ofUser ? ['t.user_id = k.user_id'] : []),
  ].join(' and ');

/** Columns of records, by the filters on them. Their values follow the other parameters. */
const filtered = { action: 'action', resourceType: 'resource_type', success: 'success' } as const;
type FilterName = keyof typeof filtered;

/** The filters that were given. */
const filterNames = (filters: Partial<Record<FilterName, unknown>>): FilterName[] =>
  (Object.keys(filtered) as FilterName[]).filter((name) => (filters[name] ?? null) !== null);

/** The fewest kept sums that tell what is asked for. */
function keptOf(scope: ActivityScope, by: Grouping, filters: readonly FilterName[], withoutReads: boolean): Kept {
  if (withoutReads || !hasMargins(scope) || filters.some((name) => name !== 'success')) return 'kinds';
  if (by === 'count') return 'total';
  return filters.length === 0 ? 'margins' : 'kinds';
}

/** The condition on kept sums of spans of a length. Minutes have kinds only. */
const ofSpan = (kept: Kept, span: string): string => {
  if (kept === 'kinds') return `s.span = ${span}`;
  const names = kept === 'total' ? ['total'] : ['total', 'margin'];
  const all = names.map((name) => `${span} || ' ${name}'`).join(', ');
  return `s.span = any(case ${span} when 'minute' then array[${span}] else array[${all}] end)`;
};

/**
 * Rows of a parameter. Unlike arrays, PostgreSQL expects as many of them with a plan for all values as with one for
 * these, so that it does not plan these statements again each time: that costs four times what running them does.
 */
const given = (parameter: number, columns: Readonly<Record<string, string>>): string => {
  const types = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
  return `jsonb_to_recordset($${parameter}::jsonb) as g(${types.join(', ')})`;
};

/** A part of a span, by what of it is read if the span is divided, and what if it is not. */
const partColumns = {
  span: 'text',
  start: 'timestamptz',
  within_span: 'text',
  within_start: 'timestamptz',
  since: 'timestamptz',
  until: 'timestamptz',
  sums_span: 'text',
  sums_since: 'timestamptz',
  sums_until: 'timestamptz',
  less_span: 'text',
  less_since: 'timestamptz',
  less_until: 'timestamptz',
} as const;

const partRow = ({ of, within, range, whole }: PartOfSpan): Record<keyof typeof partColumns, unknown> => ({
  span: of.span,
  start: of.start,
  within_span: within?.span ?? null,
  within_start: within?.start ?? null,
  since: range.since,
  until: range.until,
  sums_span: whole?.span ?? null,
  sums_since: whole?.since ?? null,
  sums_until: whole?.until ?? null,
  less_span: whole?.less?.span ?? null,
  less_since: whole?.less?.since ?? null,
  less_until: whole?.less?.until ?? null,
});

/** `offset 0`: PostgreSQL looks each span up. It would hash the whole table, of all tenants, for a few of them. */
const isDivided = (span: string, start: string): string => `exists (select from activity_divided d
  where d.org_id = k.org_id and d.scope = k.scope and d.user_id = k.user_id and d.span = ${span}
    and d.start = ${start} offset 0)`;

/**
 * The sums of some scopes of one kind. They consist of the kept sums of whole months; at either end of the range, of
 * the kept sums of whole days, hours and minutes, as far as a month, day and hour is divided into them (or those of the
 * longer span less the others, if these are fewer), and of the records of the one that is not; and of the records that
 * are not summed yet: all of one snapshot, so that no record is missed or counted twice.
 * `offset 0` and the limit make PostgreSQL walk the indexes, whatever it expects of the values; and compare each record
 * that is not summed yet with the few spans of one scope, instead of sorting these records for a join.
 */
function textOf({ kind, ofUser, by, kept, filters, withoutReads, isOne }: Form): string {
  const scope = kind === 'organization' ? `'organization'` : `'${kind} ' || id`;
  const isCount = by === 'count';
  const kinds = withoutReads ? KINDS : filters.map((name) => filtered[name]);
  const columns = isCount ? [...kinds, NUMBERS[0]] : [...KINDS, ...NUMBERS];
  const isMargin = (text: string) => (isCount ? '' : `, ${text} as is_margin`);
  const ofEach = `${selected(ofRecord, columns)}${isMargin('false')}`;
  const ofKept = `${selected(ofSums, columns)}${isMargin(kept === 'margins' ? `s.span like '% margin'` : 'false')}`;
  const [found, groups] = isCount
    ? ['', isOne ? '' : 'group by p.at']
    : [
        `, p.action, p.resource_type as "resourceType", p.success, p.is_margin as "isMargin",
    sum(p.sign * p.duration_ms) as "durationMs", sum(p.sign * p.tokens) as tokens`,
        // added and subtracted records of a kind may be equally many, and still differ in duration and tokens
        `group by p.at, p.action, p.resource_type, p.success, p.is_margin
    having ${NUMBERS.map((number) => `sum(p.sign * p.${number}) <> 0`).join(' or ')}`,
      ];
  const conditions = [
    ...filters.map((name, index) => `p.${filtered[name]} = $${index + 5}`),
    ...(withoutReads ? [withoutReadsOf('p')] : []),
  ];
  const latest = `${isOf(kind, ofUser)} and t.timestamp >= k.since and t.timestamp < k.until`;
  const ofOne = `select k.at, k.sign from sums k where ${latest} offset 0`;
  return `with k as materialized (
    select org_id, id, user_id, at, ${scope} as scope
    from ${given(1, { org_id: 'text', id: 'text', user_id: 'text', at: 'int' })}${isOne ? ' limit 1' : ''}),
  parts as materialized (
    select k.*, g.since, g.until, g.sums_span, g.sums_since, g.sums_until, g.less_span, g.less_since, g.less_until,
      ${isDivided('g.span', 'g.start')} as divided,
      g.within_span is null or ${isDivided('g.within_span', 'g.within_start')} as reached
    from k cross join ${given(4, partColumns)}),
  sums as materialized (
    select k.*, 'month' as span, $2::timestamptz as since, $3::timestamptz as until, 1 as sign from k
    where $2 is not null
    union all
    select org_id, id, user_id, at, scope, sums_span, sums_since, sums_until, 1 from parts
    where divided and sums_span is not null
    union all
    select org_id, id, user_id, at, scope, less_span, less_since, less_until, -1 from parts
    where divided and less_span is not null)
  select ${isCount && isOne ? '0 as at, coalesce(sum(p.sign * p.requests), 0)' : 'p.at, sum(p.sign * p.requests)'}
    as requests${found}
  from (
    select k.at, k.sign, e.* from sums k
    cross join lateral (select ${ofKept}
      from activity_sums s where s.org_id = k.org_id and s.scope = k.scope and s.user_id = k.user_id
        and ${ofSpan(kept, 'k.span')} and s.start >= k.since and s.start < k.until offset 0) e
    union all
    select k.at, 1, e.* from parts k
    cross join lateral (select ${ofEach} from activity t
      where ${isOf(kind, ofUser)} and t.timestamp >= k.since and t.timestamp < k.until offset 0) e
    where k.reached and not k.divided
    union all
    select k.at, k.sign, ${ofEach} from (select * from activity_fold limit 1) f cross join lateral (${LATEST}) t
    ${isOne ? `cross join lateral (${ofOne}) k` : `join sums k on ${latest}`}
  ) p${conditions.length > 0 ? ` where ${conditions.join(' and ')}` : ''}
  ${groups}`;
}

const texts = new Map<string, string>();

/** What `readSums` gives. */
interface GivenSums {
  count: { requests: number };
  kind: ActivitySums & ActivityKind;
}

/** The number of records, or the sums of each kind of record, of scopes of one kind, by the number of the scope. */
export async function readSums<By extends Grouping>(
  reads: ReadRunner,
  by: By,
  scopes: readonly ActivityScope[],
  filters: SumFilters,
): Promise<(GivenSums[By] & { at: number })[]> {
  const [first] = scopes;
  if (!first) return [];
  const names = filterNames(filters);
  const ofUser = first.userId !== null;
  const withoutReads = filters.withoutReads === true;
  const kept = keptOf(first, by, names, withoutReads);
  const form = { kind: first.kind, ofUser, by, kept, filters: names, withoutReads, isOne: scopes.length === 1 };
  const name = JSON.stringify(form);
  const text = texts.get(name) ?? textOf(form);
  texts.set(name, text);
  const { months, parts } = spansOf(filters);
  return reads.read(text, [
    JSON.stringify(
      scopes.map(({ orgId, id, userId }, at) => ({ org_id: orgId, id: id.toWellFormed(), user_id: userId ?? '', at })),
    ),
    months && (months.since ?? '-infinity'),
    months && (months.until ?? 'infinity'),
    JSON.stringify(parts.map(partRow)),
    ...names.map((name) => filters[name]),
  ]);
}

/** A statement that counts, with the values of its parameters. */
export interface CountOfScope {
  text: string;
  values: unknown[];
}

/**
 * What counts all records of a scope within another statement, whose next parameter has this number: as
 * {@link readSums} does without a range. PostgreSQL expects nothing of the values, so that it plans the statement once.
 */
export function countOfScope(
  scope: ActivityScope,
  filters: Omit<SumFilters, keyof TimeRange>,
  first: number,
): CountOfScope {
  const { orgId, kind, id, userId } = scope;
  const values: unknown[] = [];
  const given = (value: unknown, type = 'text'): string => {
    values.push(value);
    return `(select $${first + values.length - 1}::${type})`;
  };
  const [org, user] = [given(orgId), given(userId ?? '')];
  const name = kind === 'organization' ? null : given(id);
  const names = filterNames(filters);
  const withoutReads = filters.withoutReads === true;
  const span = keptOf(scope, 'count', names, withoutReads) === 'total' ? 'month total' : 'month';
  const kinds = [
    ...names.map((of) => ` and e.${filtered[of]} = ${given(filters[of], of === 'success' ? 'bool' : 'text')}`),
    ...(withoutReads ? [` and ${withoutReadsOf('e')}`] : []),
  ];
  const records = [
    `t.org_id = ${org}`,
    ...(name ? [`${columnOf(kind)} = ${name}`] : []),
    ...(userId === null ? [] : [`t.user_id = ${user}`]),
  ];
  const text = `select coalesce(sum(e.requests), 0) from (
    select s.action, s.resource_type, s.success, s.requests::float8 as requests from activity_sums s
    where s.org_id = ${org} and s.scope = ${name ? `'${kind} ' || ${name}` : `'${kind}'`} and s.user_id = ${user}
      and s.span = '${span}'
    union all
    select t.action, coalesce(t.resource_type, ''), t.success, 1 from activity_fold f
    cross join lateral (${LATEST}) t where ${records.join(' and ')}) e where true${kinds.join('')}`;
  return { text, values };
}

/** A point of a series: the sums of the records from its start on, until the next one. */
export type SeriesPoint = ActivitySums & { start: Date; errors: number };

const OF_SERIES = ['success', ...NUMBERS] as const;

/** Which spans a series has: those of UTC, or others, each of which consists of parts. */
type Divided = 'by spans' | 'by parts';

const startsOf: Readonly<Record<Divided, { ofSums: string; ofRecord: string; kept: string }>> = {
  'by spans': { ofSums: 's.start', ofRecord: `date_trunc($7, t.timestamp, 'UTC')`, kept: '$8' },
  'by parts': { ofSums: 'k.at', ofRecord: 'k.at', kept: 'k.kept' },
};

/** A longer span that is not divided has no sums of its parts: only its few records. */
function seriesText(kind: ScopeKind, ofUser: boolean, divided: Divided): string {
  const start = startsOf[divided];
  const parts = { at: 'timestamptz', kept: 'text', span: 'text', start: 'timestamptz', ...rangeColumns };
  return `
  with k as materialized (
    select $1::text as org_id, $2::text as id, $3::text as user_id,
      ${kind === 'organization' ? `'organization'` : `'${kind} ' || $2`} as scope),
  parts as materialized (
    select k.*, g.at, g.kept, g.since, g.until, g.span is null or ${isDivided('g.span', 'g.start')} as divided
    from k cross join ${given(4, parts)})
  select p.start, sum(p.requests) as requests, sum(p.duration_ms) as "durationMs", sum(p.tokens) as tokens,
    coalesce(sum(p.requests) filter (where not p.success), 0) as errors
  from (
    select e.* from parts k cross join lateral (
      select ${start.ofSums} as start, ${selected(ofSums, OF_SERIES)}
      from activity_sums s where s.org_id = k.org_id and s.scope = k.scope and s.user_id = k.user_id
        and s.span = ${start.kept} and s.start >= k.since and s.start < k.until offset 0) e
    where k.divided
    union all
    select e.* from parts k cross join lateral (
      select ${start.ofRecord}, ${selected(ofRecord, OF_SERIES)} from activity t
      where ${isOf(kind, ofUser)} and t.timestamp >= k.since and t.timestamp < k.until offset 0) e
    where not k.divided
    union all
    select ${start.ofRecord}, ${selected(ofRecord, OF_SERIES)}
    from activity_fold f cross join lateral (${LATEST}) t
    join parts k on k.divided and ${isOf(kind, ofUser)} and t.timestamp >= k.since and t.timestamp < k.until
    where t.timestamp >= $5 and t.timestamp < $6
  ) p group by 1`;
}

const rangeColumns = { since: 'timestamptz', until: 'timestamptz' } as const;

/** The sums of each span of a range that begins and ends with whole spans. Spans without records are left out. */
export async function readSeries(
  reads: ReadRunner,
  scope: ActivityScope,
  span: Span,
  range: Between,
): Promise<SeriesPoint[]> {
  const { orgId, kind, id, userId } = scope;
  return reads.read(seriesText(kind, userId !== null, 'by spans'), [
    orgId,
    id,
    userId ?? '',
    JSON.stringify(longerSpans(span, range)),
    range.since,
    range.until,
    span,
    keptSpan(scope, span),
  ]);
}

/** A part of a series from a time on, as whole spans of one length. */
export interface PartOfSeries extends WholeSpans<Span> {
  /** The start of the point that it is part of. */
  at: Date;
}

/** The same of a series whose points are no spans of UTC, oldest first. */
export async function readSeriesOfParts(
  reads: ReadRunner,
  scope: ActivityScope,
  parts: readonly PartOfSeries[],
): Promise<SeriesPoint[]> {
  const { orgId, kind, id, userId } = scope;
  const [first] = parts;
  if (!first) return [];
  const divided = parts.flatMap(({ at, ...whole }) =>
    longerSpans(whole.span, whole).map((part) => ({ ...part, at, kept: keptSpan(scope, whole.span) })),
  );
  return reads.read(seriesText(kind, userId !== null, 'by parts'), [
    orgId,
    id,
    userId ?? '',
    JSON.stringify(divided),
    first.since,
    parts.at(-1)!.until,
  ]);
}

/** Where the sums of a span are kept without kinds, if they are. */
const keptSpan = (scope: ActivityScope, span: Span): string =>
  hasMargins(scope) && span !== 'minute' ? `${span} total` : span;

/** A range by the longer spans that contain it; months are in none. */
function longerSpans(span: Span, range: Between): (Between & { span: Span | null; start: Date | null })[] {
  const next = longer(span);
  if (!next) return [{ ...range, span: null, start: null }];
  const found = [];
  for (let start = startOf(next, range.since); start < range.until; start = addSpans(next, start, 1)) {
    const [since, until] = [start, addSpans(next, start, 1)];
    found.push({
      span: next,
      start,
      since: since < range.since ? range.since : since,
      until: until > range.until ? range.until : until,
    });
  }
  return found;
}
