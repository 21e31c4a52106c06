import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { Positions } from '../../data/cursors.ts';
import { emptyPage, type Page, type PageArgs, pageOf } from '../../data/page.ts';
import {
  countPages,
  type Filter,
  filtersOf,
  type PageSource,
  type ParentKey,
  readPage,
  readPages,
  type Slice,
  withFilters,
} from '../../data/paging.ts';
import { loaderOf } from '../../data/reads.ts';
import { readsOf } from '../../data/replica-reads.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { ReadRunner, RoutedReads, Sql } from '../../data/sql.ts';
import type { Activity } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { isUnstorable } from '../../kernel/constraints.ts';
import { forbidden, invalidInput, notFound } from '../../kernel/errors.ts';
import type { Grant } from '../../kernel/roles.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { restrictionsOf } from '../../kernel/token-grant.ts';
import { IS_MEMBER } from '../../tenancy/views.ts';
import {
  type ActivityScope,
  columnOf,
  isRead,
  isSummed,
  keyOfRecord,
  type ListKind,
  leavingReadsOut,
  lists,
  type ScopeKind,
  scopeKinds,
} from './activity-scope.ts';
import { type ActivityKind, type ActivitySums, type CountOfScope, countOfScope, readSums } from './activity-sums.ts';

/** The filters of a list of records. All of them apply. */
export interface ActivityFilters {
  /** The earliest time, which is included. */
  startTime?: Date | null;
  /** The latest time, which is not included. */
  endTime?: Date | null;
  action?: string | null;
  resourceType?: string | null;
  resourceId?: string | null;
  userId?: string | null;
  tokenId?: string | null;
  success?: boolean | null;
  /** Leaves out successful reads: what looks on is recorded as well, and is most of the records. */
  withoutReads?: boolean | null;
}

export interface ActivityListArgs extends PageArgs, ActivityFilters {}

/** Records of an organization that name all of these, as far as they are given. */
export type ActivityPlace = { orgId: string } & { [Kind in Exclude<ScopeKind, 'organization'>]?: string };

/** What the operations on a place come to (spec, Activity summary). */
export interface ActivitySummary {
  totalRequests: number;
  successfulRequests: number;
  failedRequests: number;
  avgDurationMs: number;
  totalTokensUsed: number;
  byAction: Record<string, number>;
  byResource: Record<string, number>;
  startTime: Date;
  endTime: Date;
}

/** Every read of sums adds the records that are not summed yet: so many cost it as much as the rest. */
const MANY = 100;

/**
 * Whether more records than these are not summed. Also with `offset 0`: without it, PostgreSQL takes the order and the
 * limit out of `exists`, expects such a record anywhere, and reads the whole table when there is none.
 */
const areMoreThan = (records: number) =>
  `exists (select 1 from activity a where (a.xid, a.id) >= (f.xid, f.record_id)
    order by a.xid, a.id offset ${records} limit 1)`;

/** Records are due to be summed when there are many, or any for a minute. */
const IS_DUE = `select 1 from activity_fold f where f.xid > pg_snapshot_xmax(pg_current_snapshot())
  or ${areMoreThan(MANY)}
  or f.folded_at < now() - interval '1 minute' and ${areMoreThan(0)}`;

const FOLD_BATCH = 20_000;
/** The pause after which more records are summed while many come. */
const FOLD_PAUSE_MS = 200;
const MONTHS_AHEAD = 3;

/** Adds the records that are not in the sums, as far as no older transaction is open. */
export async function foldActivity(sql: Sql, signal?: AbortSignal): Promise<void> {
  let isMore = true;
  while (isMore && !signal?.aborted) {
    const [row] = await sql.change<{ more: boolean }>('select fold_activity($1) as more', [FOLD_BATCH]);
    isMore = row!.more;
  }
}

/** Adds the records to the sums as they come, until there are few. */
async function foldWhileMany(sql: Sql, signal: AbortSignal): Promise<void> {
  const areMany = async () =>
    (await sql.read(`select 1 from activity_fold f where ${areMoreThan(MANY)}`, [])).length > 0;
  do {
    await foldActivity(sql, signal);
    await delay(FOLD_PAUSE_MS, null, { signal });
  } while (await areMany());
}

/**
 * Reads the activity records: lists, and sums that no list has to be walked for. Everybody reads their own records;
 * `activity:read` on everything is needed for those of others. A token that is restricted to places reads the records
 * of these places only.
 */
export class ActivityService {
  readonly tasks: readonly Task[] = [
    scheduled('sum_activity', { everySeconds: 1, ifAny: IS_DUE }, ({ signal }) =>
      foldWhileMany(this.#deps.sql, signal),
    ),
    scheduled('prepare_activity_months', { everySeconds: 3_600 }, () =>
      this.#deps.sql.change('select prepare_activity_months($1)', [MONTHS_AHEAD]),
    ),
  ];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Records of a place in which the caller has the permission: all of them, or the caller's own.
   * @throws InputError for an end before the start
   */
  async list(
    context: CallerContext,
    place: ActivityPlace,
    grant: Grant,
    given: ActivityListArgs,
  ): Promise<Page<Activity>> {
    demandOrder(given);
    const kinds = kindsOf(given);
    if (!kinds) return emptyPage;
    const args = { ...given, ...kinds };
    const sql = readsOf(this.#deps, context.caller);
    const asked = this.#asked(context.caller, place, grant, args);
    if (asked.scopes?.length === 0) return emptyPage;
    const { listKind, list, key, filters } = listFor(asked, args);
    const source = withFilters(list, filters, key.length);
    const scope = [listKind, ...key, ...filters, ...(args.withoutReads ? ['without reads'] : [])];
    const positions = new Positions({ list: 'activity', filters: scope });
    const after = positions.keyAt(args.after);
    const values = filters.map(({ value }) => value);
    const name = `activity ${listKind} ${args.withoutReads} ${JSON.stringify(filters)}`;
    const total = () =>
      asked.scopes
        ? this.#total(context, asked.scopes, args)
        : loaderOf(context, `${name} count`, (parents) => countPages(sql, source, parents, values)).load(key);
    // what counts the records of each parent, with the parameters that follow those of its page
    const counts = context.once(`${name} counts`, () => new Map<string, CountOfScope>());
    const count = args.counted ? countWithPage(asked.scopes, args, key.length + values.length + 1) : null;
    if (count) counts.set(key.join(' '), count);
    const page = loaderOf(context, `${name} ${args.first} ${after ?? ''} ${args.counted}`, (parents) => {
      const one = parents.length === 1 ? counts.get(parents[0]!.join(' ')) : undefined;
      const request = { values: [...values, ...(one?.values ?? [])], after, limit: args.first, count: one?.text };
      return readPages(sql, source, parents, request);
    }).load(key);
    // counted with the page: a moment later, the record of this request itself would be one more
    const [slice, apart] = await Promise.all([page, args.counted && !count ? total() : null]);
    const counted = apart ?? slice.total ?? (args.counted ? await total() : null);
    return pageOf(positions, slice, after, counted === null ? total : () => counted, keyOfRecord);
  }

  /**
   * The next records of a place in which the caller has the permission, in the order of their list. They are not
   * counted, and read by the share of slow reads: somebody wants all of them.
   * @param after the key of the last record that was read; `null` for the beginning
   * @throws InputError for an end before the start
   */
  async next(
    caller: Caller,
    place: ActivityPlace,
    grant: Grant,
    given: ActivityFilters,
    { after, limit, limitMs }: { after: string | null; limit: number; limitMs: number },
  ): Promise<Pick<Slice<Activity>, 'rows' | 'hasMore'>> {
    demandOrder(given);
    const kinds = kindsOf(given);
    const asked = this.#asked(caller, place, grant, given);
    if (!kinds || asked.scopes?.length === 0) return { rows: [], hasMore: false };
    const { list, key, filters: left } = listFor(asked, { ...given, ...kinds });
    const reads = this.#deps.slowReads.of(place.orgId, { limitMs, caller });
    const routed: RoutedReads = {
      read: (text, params) => reads.read(text, params),
      readMarked: async (text, params) => ({ rows: await reads.read(text, params), marks: [] }),
    };
    const values = [...key, ...left.map(({ value }) => value)];
    return readPage(routed, withFilters(list, left, key.length), { values, after, limit });
  }

  /** What the last hours of a place come to, as far as the caller may see it. */
  async summary(
    caller: Caller,
    place: ActivityPlace,
    grant: Grant,
    hours: number,
    userId: string | null = null,
  ): Promise<ActivitySummary> {
    const endTime = new Date();
    const startTime = new Date(endTime.getTime() - hours * 3_600_000);
    const asked = this.#asked(caller, place, grant, { userId });
    const reads = this.#deps.slowReads.of(place.orgId, { caller });
    const rows = asked.scopes
      ? await readSums(reads, 'kind', asked.scopes, { since: startTime, until: null })
      : await this.#scanned(reads, asked, startTime);
    return { ...summaryOf(rows), startTime, endTime };
  }

  /**
   * The grant for the records of a member: their own are everybody's to read.
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND
   */
  async grantFor(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    userId: string,
    workspaceId?: string | null,
  ): Promise<Grant> {
    const { access, sql } = this.#deps;
    const { grant } = workspaceId
      ? await access.requireWorkspace(caller, orgId, workspaceId, 'activity:read')
      : await access.requireOrganization(caller, orgId, 'activity:read');
    if (userId === caller.principal.userId) return grant;
    if (grant !== 'all') throw forbidden('activity:read');
    if (isUnstorable(userId) || (await sql.read(IS_MEMBER, [orgId, userId])).length === 0)
      throw notFound('user', userId);
    return grant;
  }

  /** What the caller asks for, with what the caller may see. */
  #asked({ principal }: Caller, place: ActivityPlace, grant: Grant, filters: ActivityFilters): ActivityQuery {
    const { orgId, ...named } = place;
    const mine = grant === 'all' ? null : principal.userId;
    const restricted = restrictionsOf(principal.token);
    const ids = new Map<ScopeKind, readonly string[]>();
    const add = (kind: ScopeKind, values: readonly string[] | undefined) => {
      if (values)
        ids.set(
          kind,
          (ids.get(kind) ?? values).filter((id) => values.includes(id)),
        );
    };
    for (const kind of scopeKinds) if (kind !== 'organization' && named[kind]) add(kind, [named[kind]]);
    if (filters.resourceId) add('resource', [filters.resourceId]);
    if (filters.tokenId) add('token', [filters.tokenId]);
    add('workspace', restricted.workspaceId);
    add('namespace', restricted.namespaceId);
    add('environment', restricted.environmentId);
    add('app', restricted.appId);
    // an app is in one workspace
    if (ids.has('app')) ids.delete('workspace');
    const users = [...new Set([mine, filters.userId].filter((id) => id !== null && id !== undefined))];
    return { orgId, ids, users, scopes: scopesOf(orgId, ids, users) };
  }

  async #total(context: CallerContext, scopes: readonly ActivityScope[], args: ActivityFilters): Promise<number> {
    const { action, resourceType, success, withoutReads, startTime, endTime } = args;
    const range = { since: startTime ?? null, until: endTime ?? null };
    const filters = { action, resourceType, success, withoutReads, ...range };
    const name = `activity total ${scopes[0]?.kind} ${scopes[0]?.userId === null} ${JSON.stringify(filters)}`;
    const loader = loaderOf(context, name, async (keys) => {
      const asked = keys.map(
        ([orgId, kind, id, userId]) => ({ orgId, kind, id, userId: userId || null }) as ActivityScope,
      );
      const rows = await readSums(this.#deps.sql, 'count', asked, filters);
      const totals = new Map(rows.map(({ at, requests }) => [at, requests]));
      return asked.map((_, at) => totals.get(at) ?? 0);
    });
    const each = await loader.loadMany(scopes.map(({ orgId, kind, id, userId }) => [orgId, kind, id, userId ?? '']));
    return each.reduce<number>((sum, part) => {
      if (part instanceof Error) throw part;
      return sum + part;
    }, 0);
  }

  /** The sums of what has no kept ones: of the records themselves. */
  async #scanned(reads: ReadRunner, asked: ActivityQuery, since: Date): Promise<(ActivitySums & ActivityKind)[]> {
    const { list, key, filters } = listFor(asked, { startTime: since });
    const { from, where } = withFilters(list, filters, key.length);
    return reads.read(
      `select t.action, coalesce(t.resource_type, '') as "resourceType", t.success,
        false as "isMargin", count(*)::float8 as requests, sum(t.duration_ms)::float8 as "durationMs",
        coalesce(sum((t.token_usage ->> 'total')::numeric)
          filter (where jsonb_typeof(t.token_usage -> 'total') = 'number'), 0)::float8 as tokens
      from ${from} where ${where.join(' and ')} group by 1, 2, 3`,
      [...key, ...filters.map(({ value }) => value)],
    );
  }
}

/** What a caller asks for. */
interface ActivityQuery {
  orgId: string;
  /** The identifiers that records must name, by kind. */
  ids: ReadonlyMap<ScopeKind, readonly string[]>;
  /** Records must be of all of these users: of none, if there are two. */
  users: readonly string[];
  /** The scopes that add up to it, none if nothing can be it; `null` if there are no sums for it. */
  scopes: readonly ActivityScope[] | null;
}

/** @throws InputError */
function demandOrder({ startTime, endTime }: ActivityFilters): void {
  if (startTime && endTime && endTime < startTime) throw invalidInput(['endTime'], 'the end is before the start');
}

/**
 * Which kinds are left, without the flag where the other filters say it; `null` for none, as nothing is a successful
 * read and is left out as well.
 */
function kindsOf({
  action,
  success = null,
  withoutReads,
}: ActivityFilters): Pick<ActivityFilters, 'success' | 'withoutReads'> | null {
  if (!withoutReads || success === false) return { success, withoutReads: false };
  if (typeof action !== 'string') return { success, withoutReads: true };
  if (!isRead(action)) return { success, withoutReads: false };
  return success ? null : { success: false, withoutReads: false };
}

function scopesOf(
  orgId: string,
  ids: ReadonlyMap<ScopeKind, readonly string[]>,
  users: readonly string[],
): readonly ActivityScope[] | null {
  if (users.length > 1 || [...ids.values()].some((values) => values.length === 0)) return [];
  const [userId = null] = users;
  const [[kind, values] = ['organization', [orgId]] as const, ...more] = ids;
  const scopes = values.map((id) => ({ orgId, kind, id, userId }));
  return more.length === 0 && scopes.every(isSummed) ? scopes : null;
}

/** Counts the records of a list with its page, if it is of one scope and of all times. */
function countWithPage(
  scopes: readonly ActivityScope[] | null,
  { startTime, endTime, action, resourceType, success, withoutReads }: ActivityFilters,
  first: number,
): CountOfScope | null {
  const [scope, ...others] = scopes ?? [];
  if (!scope || others.length > 0 || startTime || endTime) return null;
  return countOfScope(scope, { action, resourceType, success, withoutReads }, first);
}

/** The narrowest first: the fewer records it has, the fewer are passed over. */
const narrowKinds: readonly ('resource' | 'token' | 'app' | 'workspace')[] = ['resource', 'token', 'app', 'workspace'];

/** What a list is of, its key, and the filters that are left. */
function listFor(
  { orgId, ids, users }: Pick<ActivityQuery, 'orgId' | 'ids' | 'users'>,
  args: ActivityFilters,
): { listKind: ListKind; list: PageSource<Activity>; key: ParentKey; filters: Filter[] } {
  const narrow = narrowKinds.find(
    (kind) => ids.get(kind)?.length === 1 && (kind !== 'workspace' || users.length === 0),
  );
  const inWorkspace = ids.get('workspace');
  const [userId] = users;
  const [listKind, ...key] = ((): [ListKind, ...ParentKey] => {
    if (narrow) return [narrow, orgId, ids.get(narrow)![0]!];
    if (userId === undefined) return ['organization', orgId];
    return inWorkspace?.length === 1 ? ['user in workspace', orgId, userId, inWorkspace[0]!] : ['user', orgId, userId];
  })();
  const isListKey = (kind: ScopeKind) =>
    kind === 'organization' || kind === narrow || (kind === 'workspace' && listKind === 'user in workspace');
  const places = [...ids].flatMap(([kind, values]): Filter[] =>
    isListKey(kind) ? [] : [{ where: `${columnOf(kind)} = any ((select ?::text[])::text[])`, value: values }],
  );
  const others = listKind.startsWith('user')
    ? []
    : users.map((value): Filter => ({ where: 't.user_id = (select ?::text)', value }));
  const given = filtersOf({
    't.timestamp >= (select ?::timestamptz)': args.startTime,
    't.timestamp < (select ?::timestamptz)': args.endTime,
    't.action = (select ?::text)': args.action,
    't.resource_type = (select ?::text)': args.resourceType,
    't.success = (select ?::bool)': args.success,
  });
  const list = args.withoutReads ? leavingReadsOut(lists[listKind]) : lists[listKind];
  return { listKind, list, key, filters: [...places, ...others, ...given] };
}

function summaryOf(rows: readonly (ActivitySums & ActivityKind)[]): Omit<ActivitySummary, 'startTime' | 'endTime'> {
  const all = rows.filter(({ isMargin }) => !isMargin);
  const sum = (of: readonly (ActivitySums & ActivityKind)[], what: keyof ActivitySums) =>
    of.reduce((total, row) => total + row[what], 0);
  const by = (what: 'action' | 'resourceType') => {
    const counts: Record<string, number> = {};
    for (const row of rows) if (row[what] !== '') counts[row[what]] = (counts[row[what]] ?? 0) + row.requests;
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  };
  const totalRequests = sum(all, 'requests');
  const successfulRequests = sum(
    all.filter(({ success }) => success),
    'requests',
  );
  return {
    totalRequests,
    successfulRequests,
    failedRequests: totalRequests - successfulRequests,
    avgDurationMs: totalRequests === 0 ? 0 : sum(all, 'durationMs') / totalRequests,
    totalTokensUsed: sum(all, 'tokens'),
    byAction: by('action'),
    byResource: by('resourceType'),
  };
}
