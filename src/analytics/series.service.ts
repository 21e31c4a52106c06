import type { Actor } from '../access/caller.ts';
import type { Checked, WorkspacePlace } from '../access/checked-place.ts';
import type { ScopeKind } from '../activity/activity-scope.ts';
import { readSeries, type SeriesPoint } from '../activity/activity-sums.ts';
import { addSpans, startOf } from '../activity/time-spans.ts';
import { isUnstorable } from '../core/constraints.ts';
import { invalidInput, notFound } from '../core/errors.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type Point, pointsOf, type Step } from './points.ts';
import { readExecutions } from './runs.ts';
import { demandAll, demandWhole } from './whole-place.ts';

/** Spec, Time series. */
export interface ExecutionSeries {
  metric: 'executions';
  period: 'hourly' | 'daily';
  data: readonly Point[];
}

export type SeriesMetric = 'requests' | 'errors' | 'latency' | 'executions' | 'tokens';

/** What a series is of: the narrowest that is given. */
export interface SeriesOf {
  orgId: string;
  workspaceId?: string | null;
  appId?: string | null;
  tokenId?: string | null;
  userId?: string | null;
}

export interface SeriesRange {
  metric: SeriesMetric;
  from?: Date | null;
  to?: Date | null;
  step: Step;
}

/** A series of a metric, with the whole spans that it covers. */
export interface Series {
  metric: SeriesMetric;
  step: Step;
  /** The start of the first span. */
  from: Date;
  /** The end of the last span. */
  to: Date;
  points: readonly Point[];
}

/** Most points of a series. */
export const MAX_POINTS = 2_000;
const DEFAULT_POINTS = 24;

const LATEST_TIME = Date.UTC(9999, 0);

const IS_MEMBER = 'select 1 from organization_members where org_id = $1 and user_id = $2';
const OWNER_OF_TOKEN = 'select created_by_user_id as "userId" from api_tokens where org_id = $1 and id = $2';

/** Series of a place, a token or a user: sums of its activity, and its runs. No read costs more with more history. */
export class SeriesService {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Runs by the hour or the day of their start, the current one last. @throws FORBIDDEN for a token that is restricted
   * to parts of the workspace
   */
  async ofExecutions(
    actor: Actor,
    { orgId, workspaceId }: Checked<WorkspacePlace>,
    step: Step,
    count: number,
  ): Promise<ExecutionSeries> {
    demandWhole(actor, ['workspace']);
    const until = addSpans(step, startOf(step, new Date()), 1);
    const range = { since: addSpans(step, until, -count), until };
    const counts = await readExecutions(this.#deps.sql, orgId, workspaceId, step, range);
    return {
      metric: 'executions',
      period: step === 'hour' ? 'hourly' : 'daily',
      data: pointsOf(step, range, counts),
    };
  }

  /**
   * A series of an organization, or of a workspace, an app, a token or a user in it. Of an organization, and of the
   * tokens and users of others, it is for the organization's administrators.
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND; InputError for more than one of these, an end before the start, and too many
   * points
   */
  async of(actor: Actor, of: SeriesOf, asked: SeriesRange): Promise<Series> {
    const { metric, step } = asked;
    const scope = scopeOf(of);
    const { since, until } = rangeOf(asked);
    await this.#demandScope(actor, of, scope);
    const range = { since, until };
    const { sql, slowReads } = this.#deps;
    if (metric === 'executions') {
      const counts = await readExecutions(sql, of.orgId, scope.id, step, range);
      return { metric, step, from: since, to: until, points: pointsOf(step, range, counts) };
    }
    const { kind, id } = scope;
    const ofActivity =
      kind === 'user'
        ? { orgId: of.orgId, kind: 'organization' as const, id: of.orgId, userId: id }
        : { orgId: of.orgId, kind, id, userId: null };
    const found = await readSeries(slowReads.of(of.orgId), ofActivity, step, range);
    const values = new Map(found.map((point) => [point.start.getTime(), valueIn(metric, point)]));
    return { metric, step, from: since, to: until, points: pointsOf(step, range, values) };
  }

  async #demandScope(actor: Actor, { orgId, workspaceId }: SeriesOf, { kind, id }: Scope): Promise<void> {
    const { access, sql } = this.#deps;
    if (kind === 'workspace') {
      await access.requireWorkspace(actor, orgId, id, 'analytics:read');
      return demandWhole(actor, ['workspace']);
    }
    if (kind === 'app') {
      const place = { orgId, workspaceId: workspaceId! };
      await access.requireWorkspace(actor, orgId, place.workspaceId, 'analytics:read', { appId: id });
      await access.findPart(place, 'app', id);
      return demandWhole(actor, ['workspace', 'app']);
    }
    await access.requireOrganization(actor, orgId, 'analytics:read');
    const { userId, token } = actor.principal;
    if (kind === 'user') {
      if (id === userId) return demandWhole(actor, []);
      await demandAll(access, actor, orgId);
      if (isUnstorable(id) || (await sql.read(IS_MEMBER, [orgId, id])).length === 0) throw notFound('user', id);
      return;
    }
    if (kind === 'token') {
      if (id === token?.id) return;
      const [owner] = isUnstorable(id) ? [] : await sql.read<{ userId: string }>(OWNER_OF_TOKEN, [orgId, id]);
      if (owner?.userId === userId) return demandWhole(actor, []);
      await demandAll(access, actor, orgId);
      if (!owner) throw notFound('api_token', id);
      return;
    }
    await demandAll(access, actor, orgId);
  }
}

interface Scope {
  kind: Extract<ScopeKind, 'organization' | 'workspace' | 'app' | 'token'> | 'user';
  id: string;
}

/** @throws InputError for an app without its workspace, and for several of the others */
function scopeOf({ orgId, workspaceId, appId, tokenId, userId }: SeriesOf): Scope {
  const given = (
    [
      ['app', 'appId', appId],
      ['workspace', 'workspaceId', appId ? null : workspaceId],
      ['token', 'tokenId', tokenId],
      ['user', 'userId', userId],
    ] as const
  ).flatMap(([kind, name, id]) => (id === null || id === undefined ? [] : [{ kind, name, id }]));
  const [first, second] = given;
  if (second) throw invalidInput([second.name], 'a series is of one of these: a workspace, an app, a token, a user');
  if (!first) return { kind: 'organization', id: orgId };
  if (first.kind === 'app' && (workspaceId === null || workspaceId === undefined))
    throw invalidInput(['workspaceId'], 'an app is named with its workspace');
  return first;
}

/** The whole spans that contain a range. @throws InputError for an end before the start, and for too many spans */
function rangeOf({ from, to, step }: SeriesRange): { since: Date; until: Date } {
  const end = to ?? new Date();
  if (end.getTime() >= LATEST_TIME) throw invalidInput(['to'], 'it is too late');
  const last = startOf(step, end);
  // the end itself is not included
  const until = to && last.getTime() === to.getTime() ? last : addSpans(step, last, 1);
  const since = startOf(step, from ?? addSpans(step, until, -DEFAULT_POINTS));
  if (from && from > end) throw invalidInput([to ? 'to' : 'from'], 'the end is before the start');
  const count = (until.getTime() - since.getTime()) / (addSpans(step, since, 1).getTime() - since.getTime());
  if (count > MAX_POINTS) throw invalidInput(['from'], `a series has at most ${MAX_POINTS} points`);
  return { since, until };
}

function valueIn(metric: Exclude<SeriesMetric, 'executions'>, point: SeriesPoint): number {
  if (metric === 'latency') return point.requests === 0 ? 0 : point.durationMs / point.requests;
  return point[metric];
}
