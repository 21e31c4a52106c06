import type { Actor } from '../access/caller.ts';
import type {
  AppPlace,
  Checked,
  NamespacePlace,
  OrganizationPlace,
  PlacePart,
  WorkspacePlace,
} from '../access/checked-place.ts';
import { restrictionsOf } from '../access/token-grant.ts';
import type { ScopeKind } from '../activity/activity-scope.ts';
import { readSeries, type SeriesPoint } from '../activity/activity-sums.ts';
import { addSpans, startOf } from '../activity/time-spans.ts';
import { isUnstorable } from '../core/constraints.ts';
import { forbidden, invalidInput, notFound } from '../core/errors.ts';
import type { Owner } from '../core/owner.ts';
import { atLeast } from '../core/roles.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import {
  type KeptCounts,
  RETENTION_OF_COUNTS,
  type ResourceCounts,
  readAllCounts,
  readCounts,
  readOrganization,
  readWorkspace,
  resourcesOf,
} from './kept-counts.ts';
import { type Point, pointsOf, type Step } from './points.ts';
import { type ExecutionMetrics, executionsOf, RETENTION_OF_RUNS, readExecutions } from './runs.ts';

/** Spec, Analytics shapes. */
export interface WorkspaceAnalytics {
  orgId: string;
  workspaceId: string;
  resources: ResourceCounts;
  executions: ExecutionMetrics;
  updatedAt: Date;
}

/** Analytics of an organization (defaults §9). */
export interface OrganizationAnalytics {
  orgId: string;
  /** Number of workspaces. */
  workspaces: number;
  /** Number of members. */
  users: number;
  resources: ResourceCounts;
  executions: ExecutionMetrics;
  updatedAt: Date;
}

/** Spec, Time series. */
export interface ExecutionSeries {
  metric: 'executions';
  period: 'hourly' | 'daily';
  data: readonly Point[];
}

export interface AppAnalytics extends AppPlace {
  augmentations: number;
  namespaces: number;
  endpoints: number;
  releases: number;
}

export interface NamespaceAnalytics extends NamespacePlace {
  threads: number;
  sources: number;
}

export interface ActionAnalytics {
  totalActions: number;
  enabledActions: number;
  triggerActions: number;
  scheduledActions: number;
}

export interface SecretAnalytics {
  totalSecrets: number;
  activeSecrets: number;
  secretsByType: Record<string, number>;
}

export interface SourceAnalytics {
  totalSources: number;
  indexedSources: number;
  failedSources: number;
  pendingSources: number;
  totalChunks: number;
  totalTokens: number;
  totalBytes: number;
  workspaceSources: number;
  namespaceSources: number;
  sourcesByType: Record<string, number>;
  sourcesByStatus: Record<string, number>;
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

/**
 * Counts and series of a place. All are kept by triggers with the rows themselves, or are sums of activity: no read
 * costs more because there is more history.
 *
 * A token that is restricted to parts of a place is refused the numbers of the whole: they would tell of the others.
 */
export class AnalyticsService implements Owner {
  readonly retention = [RETENTION_OF_RUNS, ...RETENTION_OF_COUNTS];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * An organization, or one of its workspaces.
   * @throws FORBIDDEN for callers who do not administer the organization, or read the workspace;
   * RESOURCE_NOT_FOUND `workspace`
   */
  async ofOrganization(
    actor: Actor,
    { orgId }: Checked<OrganizationPlace>,
    workspaceId?: string | null,
  ): Promise<OrganizationAnalytics> {
    const { access, sql } = this.#deps;
    const isWhole = workspaceId === null || workspaceId === undefined;
    if (isWhole) await this.#demandAll(actor, orgId);
    else {
      await access.requireWorkspace(actor, orgId, workspaceId, 'analytics:read');
      demandWhole(actor, ['workspace']);
    }
    const counts = await (isWhole ? readOrganization(sql, orgId) : readWorkspace(sql, orgId, workspaceId));
    return { orgId, workspaces: counts.of('workspaces'), users: counts.of('users'), ...summaryOf(counts) };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async ofWorkspace(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<WorkspaceAnalytics> {
    demandWhole(actor, ['workspace']);
    return { orgId, workspaceId, ...summaryOf(await readWorkspace(this.#deps.sql, orgId, workspaceId)) };
  }

  /**
   * Runs by the hour or the day of their start, the current one last. @throws FORBIDDEN for a token that is restricted
   * to parts of the workspace
   */
  async executionSeries(
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

  /** @throws FORBIDDEN for a token that is restricted to other parts of the workspace */
  async ofApp(actor: Actor, { orgId, workspaceId, appId }: Checked<AppPlace>): Promise<AppAnalytics> {
    demandWhole(actor, ['workspace', 'app']);
    const { sql } = this.#deps;
    const [ofApp, inWorkspace] = await Promise.all([
      readCounts(sql, orgId, appId, ['augmentations', 'endpoints', 'releases']),
      readCounts(sql, orgId, workspaceId, ['namespaces']),
    ]);
    return {
      orgId,
      workspaceId,
      appId,
      augmentations: ofApp.of('augmentations'),
      namespaces: inWorkspace.of('namespaces'),
      endpoints: ofApp.of('endpoints'),
      releases: ofApp.of('releases'),
    };
  }

  /** @throws FORBIDDEN for a token that is restricted to other parts of the workspace */
  async ofNamespace(actor: Actor, place: Checked<NamespacePlace>): Promise<NamespaceAnalytics> {
    const { orgId, workspaceId, namespaceId } = place;
    demandWhole(actor, ['workspace', 'namespace']);
    const counts = await readCounts(this.#deps.sql, orgId, namespaceId, ['threads', 'sources']);
    return { orgId, workspaceId, namespaceId, threads: counts.of('threads'), sources: counts.of('sources') };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async actions(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<ActionAnalytics> {
    demandWhole(actor, ['workspace']);
    const counters = ['actions', 'actions.enabled', 'actions.trigger', 'actions.scheduled'];
    const counts = await readCounts(this.#deps.sql, orgId, workspaceId, counters);
    return {
      totalActions: counts.of('actions'),
      enabledActions: counts.of('actions.enabled'),
      triggerActions: counts.of('actions.trigger'),
      scheduledActions: counts.of('actions.scheduled'),
    };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async secrets(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<SecretAnalytics> {
    demandWhole(actor, ['workspace']);
    const counts = await readAllCounts(this.#deps.sql, orgId, workspaceId);
    return {
      totalSecrets: counts.of('secrets'),
      activeSecrets: counts.of('secrets.active'),
      secretsByType: counts.by('secrets.type'),
    };
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async sources(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<SourceAnalytics> {
    demandWhole(actor, ['workspace']);
    const counts = await readAllCounts(this.#deps.sql, orgId, workspaceId);
    const totalSources = counts.of('sources');
    const workspaceSources = counts.of('sources.of_workspace');
    return {
      totalSources,
      indexedSources: counts.of('sources.status ready'),
      failedSources: counts.of('sources.status failed'),
      pendingSources: counts.of('sources.status pending'),
      totalChunks: counts.of('sources.chunks'),
      totalTokens: counts.of('sources.tokens'),
      totalBytes: counts.of('sources.bytes'),
      workspaceSources,
      namespaceSources: totalSources - workspaceSources,
      sourcesByType: counts.by('sources.type'),
      sourcesByStatus: counts.by('sources.status'),
    };
  }

  /**
   * A series of an organization, or of a workspace, an app, a token or a user in it. Of an organization, and of the
   * tokens and users of others, it is for the organization's administrators.
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND; InputError for more than one of these, an end before the start, too many
   * points, and the hours of a user
   */
  async series(actor: Actor, of: SeriesOf, asked: SeriesRange): Promise<Series> {
    const { metric, step } = asked;
    const scope = scopeOf(of);
    const { since, until } = rangeOf(asked);
    if (scope.kind === 'user' && step === 'hour' && metric !== 'executions')
      throw invalidInput(['step'], 'the operations of a user are summed by day');
    await this.#demandScope(actor, of, scope);
    const range = { since, until };
    const { sql } = this.#deps;
    if (metric === 'executions') {
      const counts = await readExecutions(sql, of.orgId, scope.id, step, range);
      return { metric, step, from: since, to: until, points: pointsOf(step, range, counts) };
    }
    const { kind, id } = scope;
    const ofActivity =
      kind === 'user'
        ? { orgId: of.orgId, kind: 'organization' as const, id: of.orgId, userId: id }
        : { orgId: of.orgId, kind, id, userId: null };
    const found = await readSeries(sql, ofActivity, step, range);
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
      await this.#demandAll(actor, orgId);
      if (isUnstorable(id) || (await sql.read(IS_MEMBER, [orgId, id])).length === 0) throw notFound('user', id);
      return;
    }
    if (kind === 'token') {
      if (id === token?.id) return;
      const [owner] = isUnstorable(id) ? [] : await sql.read<{ userId: string }>(OWNER_OF_TOKEN, [orgId, id]);
      if (owner?.userId === userId) return demandWhole(actor, []);
      await this.#demandAll(actor, orgId);
      if (!owner) throw notFound('api_token', id);
      return;
    }
    await this.#demandAll(actor, orgId);
  }

  /** What is of a whole organization is for its administrators (defaults §13). @throws FORBIDDEN */
  async #demandAll(actor: Actor, orgId: string): Promise<void> {
    const role = await this.#deps.access.organizationRole(actor, orgId);
    if (!role || !atLeast(role, 'admin')) throw forbidden('analytics:read');
    demandWhole(actor, []);
  }
}

type NamedPlace = 'workspace' | PlacePart;

const places = ['workspace', 'namespace', 'environment', 'app'] as const satisfies readonly NamedPlace[];

/**
 * What a token is restricted to must be what the numbers are of, and not a part of it: that it is one of the token's
 * own was checked with the permission.
 * @param named the kinds of places that the numbers are restricted to
 * @throws FORBIDDEN
 */
function demandWhole({ principal }: Actor, named: readonly NamedPlace[]): void {
  const restricted = restrictionsOf(principal.token);
  // an app's token is restricted to the workspace of its app as well
  const isPart = places.some((place) => restricted[`${place}Id`] && !named.includes(place));
  if (isPart) throw forbidden('analytics:read');
}

function summaryOf(counts: KeptCounts) {
  return { resources: resourcesOf(counts), executions: executionsOf(counts), updatedAt: new Date() };
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
