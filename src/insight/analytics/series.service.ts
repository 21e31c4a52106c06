import type { ServiceDeps } from '../../access/service-deps.ts';
import { demandAll, demandWhole } from '../../access/whole-place.ts';
import { readsOf } from '../../data/replica-reads.ts';
import { TOKEN_OWNER } from '../../identity/views.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { isUnstorable } from '../../kernel/constraints.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import type { StepLength } from '../../kernel/time-zone.ts';
import { IS_MEMBER } from '../../tenancy/views.ts';
import type { ScopeKind } from '../activity/activity-scope.ts';
import { readSeries, readSeriesOfParts, type SeriesPoint } from '../activity/activity-sums.ts';
import { type LatencyKind, type LatencyMetric, percentiles, readLatencies } from './latencies.ts';
import {
  areOfUtc,
  type Borders,
  bordersOf,
  type Calendar,
  calendarOf,
  endOf,
  lastSpans,
  type Point,
  partsOf,
  pointsOf,
  type SpanRange,
} from './points.ts';
import { type RunMetric, readRuns } from './runs.ts';
import { readStorage } from './storage-samples.ts';

/** Spec, Time series. */
export interface ExecutionSeries {
  metric: 'executions';
  period: 'hourly' | 'daily';
  data: readonly Point[];
}

/**
 * Of the activity, by the time of each record; of runs, by the time of their start; or what artifacts held at the end
 * of each span.
 */
export type SeriesMetric = ActivityMetric | LatencyMetric | RunMetric | 'storage';
type ActivityMetric = 'requests' | 'errors' | 'latency';

const isOfActivity = (metric: SeriesMetric): metric is ActivityMetric =>
  metric === 'requests' || metric === 'errors' || metric === 'latency';
const isPercentile = (metric: SeriesMetric): metric is LatencyMetric => metric in percentiles;

/** What a series is of: the narrowest that is given. */
export interface SeriesOf {
  orgId: string;
  workspaceId?: string | null;
  appId?: string | null;
  tokenId?: string | null;
  userId?: string | null;
}

export interface SeriesRange extends SpanRange {
  metric: SeriesMetric;
}

/** A series of a metric, with the whole spans that it covers. */
export interface Series {
  metric: SeriesMetric;
  step: StepLength;
  /** The start of the first span. */
  from: Date;
  /** The end of the last span. */
  to: Date;
  points: readonly Point[];
}

/** Of activity by hours that are not those of UTC: these are read minute by minute, which costs forty times as much. */
export const MAX_CUT_HOURS = 336;

/** Series of a place, a token or a user: sums of its activity, and its runs. No read costs more with more history. */
export class SeriesService {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Runs by the hour or the day of their start in a time zone, the current one last. @throws InputError for no zone;
   * FORBIDDEN for a token that is restricted to parts of the workspace
   */
  async ofExecutions(
    caller: Caller,
    { orgId, workspaceId }: Checked<WorkspacePlace>,
    step: StepLength,
    count: number,
    tz: string,
  ): Promise<ExecutionSeries> {
    demandWhole(caller, ['workspace']);
    const calendar = calendarOf(tz);
    const end = calendar.next(step, calendar.startOf(step, new Date()));
    const spans = { calendar, step, borders: lastSpans(calendar, step, count, end) };
    const counts = await readRuns(readsOf(this.#deps, caller), { orgId, scopeId: workspaceId }, 'executions', spans);
    return {
      metric: 'executions',
      period: step === 'hour' ? 'hourly' : 'daily',
      data: pointsOf(spans.borders, counts),
    };
  }

  /**
   * A series of an organization, or of a workspace, an app, a token or a user in it. Of an organization, and of the
   * tokens and users of others, it is for the organization's administrators.
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND; InputError for more than one of these, for a metric that is not kept of it,
   * an end before the start, and too many points
   */
  async of(caller: Caller, of: SeriesOf, asked: SeriesRange): Promise<Series> {
    const { metric, step } = asked;
    const scope = scopeOf(of);
    const calendar = calendarOf(asked.tz);
    const borders = bordersOf(calendar, asked);
    if (isOfActivity(metric) && step === 'hour' && !areOfUtc(step, borders) && borders.length > MAX_CUT_HOURS + 1)
      throw invalidInput(
        ['from'],
        `an hourly series in a time zone whose hours differ from UTC has at most ${MAX_CUT_HOURS} points`,
      );
    demandKept(metric, scope.kind);
    await this.#demandScope(caller, of, scope);
    const values = await this.#values(caller, of.orgId, scope, metric, { calendar, step, borders });
    return { metric, step, from: borders[0], to: endOf(borders), points: pointsOf(borders, values) };
  }

  async #values(
    caller: Caller,
    orgId: string,
    scope: SeriesScope,
    metric: SeriesMetric,
    spans: { calendar: Calendar; step: StepLength; borders: Borders },
  ): Promise<Map<number, number>> {
    if (isOfActivity(metric)) return this.#activity(caller, orgId, scope, metric, spans.step, spans.borders);
    if (isPercentile(metric)) {
      const place = { orgId, kind: scope.kind as LatencyKind, id: scope.id };
      return readLatencies(this.#deps.slowReads.of(orgId, { caller }), place, metric, spans);
    }
    const reads = readsOf(this.#deps, caller);
    if (metric === 'storage') return readStorage(reads, { orgId, id: scope.id }, spans.borders);
    return readRuns(reads, { orgId, scopeId: scope.id }, metric, spans);
  }

  async #activity(
    caller: Caller,
    orgId: string,
    { kind, id }: SeriesScope,
    metric: ActivityMetric,
    step: StepLength,
    borders: Borders,
  ): Promise<Map<number, number>> {
    const reads = this.#deps.slowReads.of(orgId, { caller });
    const scope =
      kind === 'user'
        ? { orgId, kind: 'organization' as const, id: orgId, userId: id }
        : { orgId, kind, id, userId: null };
    const found = areOfUtc(step, borders)
      ? await readSeries(reads, scope, step, { since: borders[0], until: endOf(borders) })
      : await readSeriesOfParts(reads, scope, partsOf(step, borders, 'minute'));
    return new Map(found.map((point) => [point.start.getTime(), valueIn(metric, point)]));
  }

  async #demandScope(caller: Caller, { orgId, workspaceId }: SeriesOf, { kind, id }: SeriesScope): Promise<void> {
    const { access, sql } = this.#deps;
    if (kind === 'workspace') {
      await access.requireWorkspace(caller, orgId, id, 'analytics:read');
      return demandWhole(caller, ['workspace']);
    }
    if (kind === 'app') {
      const place = { orgId, workspaceId: workspaceId! };
      await access.requireWorkspace(caller, orgId, place.workspaceId, 'analytics:read', { appId: id });
      await access.parts.findPart(place, 'app', id);
      return demandWhole(caller, ['workspace', 'app']);
    }
    const { role } = await access.requireOrganization(caller, orgId, 'analytics:read');
    const { userId, token } = caller.principal;
    if (kind === 'user') {
      if (id === userId) return demandWhole(caller, []);
      demandAll(caller, role);
      if (isUnstorable(id) || (await sql.read(IS_MEMBER, [orgId, id])).length === 0) throw notFound('user', id);
      return;
    }
    if (kind === 'token') {
      if (id === token?.id) return;
      const [owner] = isUnstorable(id) ? [] : await sql.read<{ userId: string }>(TOKEN_OWNER, [orgId, id]);
      if (owner?.userId === userId) return demandWhole(caller, []);
      demandAll(caller, role);
      if (!owner) throw notFound('api_token', id);
      return;
    }
    demandAll(caller, role);
  }
}

interface SeriesScope {
  kind: Extract<ScopeKind, 'organization' | 'workspace' | 'app' | 'token'> | 'user';
  id: string;
}

/** @throws InputError for an app without its workspace, and for several of the others */
function scopeOf({ orgId, workspaceId, appId, tokenId, userId }: SeriesOf): SeriesScope {
  const given = (
    [
      ['app', 'appId', appId],
      ['workspace', 'workspaceId', appId ? null : workspaceId],
      ['token', 'tokenId', tokenId],
      ['user', 'userId', userId],
    ] as const
  ).flatMap(([kind, name, id]) => (id === null || id === undefined ? [] : [{ kind, name, id }]));
  const [first, second] = given;
  if (second) throw invalidInput([second.name], 'give only one of workspace, app, token and user');
  if (!first) return { kind: 'organization', id: orgId };
  if (first.kind === 'app' && (workspaceId === null || workspaceId === undefined))
    throw invalidInput(['workspaceId'], 'an app requires its workspace');
  return first;
}

/** @throws InputError for what nothing is kept of */
function demandKept(metric: SeriesMetric, kind: SeriesScope['kind']): void {
  if (isPercentile(metric) && (kind === 'token' || kind === 'user'))
    throw invalidInput(['metric'], 'percentiles are kept of organizations, workspaces and apps');
  if (metric === 'storage' && kind !== 'organization' && kind !== 'workspace')
    throw invalidInput(['metric'], 'storage is kept of organizations and workspaces');
}

function valueIn(metric: ActivityMetric, point: SeriesPoint): number {
  if (metric === 'latency') return point.requests === 0 ? 0 : point.durationMs / point.requests;
  return point[metric];
}
