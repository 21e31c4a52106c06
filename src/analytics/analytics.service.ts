import DataLoader from 'dataloader';
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
import type { ActorContext, RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import {
  type CountedKind,
  type CountedPlace,
  type KeptCounts,
  RETENTION_OF_COUNTS,
  type ResourceCounts,
  readAllCounts,
  readCounts,
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
    if (workspaceId === null || workspaceId === undefined) {
      await this.#demandAll(actor, orgId);
      const whole = { orgId, id: orgId };
      return organizationOf(whole, await this.#read('organization', whole));
    }
    await this.#deps.access.requireWorkspace(actor, orgId, workspaceId, 'analytics:read');
    demandWhole(actor, ['workspace']);
    const place = { orgId, id: workspaceId };
    return organizationOf(place, await this.#read('workspace', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async ofWorkspace(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<WorkspaceAnalytics> {
    demandWhole(actor, ['workspace']);
    const place = { orgId, id: workspaceId };
    return workspaceOf(place, await this.#read('workspace', place));
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
    const place = { orgId, workspaceId, id: appId };
    return appOf(place, await this.#read('app', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to other parts of the workspace */
  async ofNamespace(actor: Actor, place: Checked<NamespacePlace>): Promise<NamespaceAnalytics> {
    const { orgId, workspaceId, namespaceId } = place;
    demandWhole(actor, ['workspace', 'namespace']);
    const named = { orgId, workspaceId, id: namespaceId };
    return namespaceOf(named, await this.#read('namespace', named));
  }

  /**
   * The numbers of an organization that was read, and of places of other kinds below: read together for all rows of a
   * list. `null` for callers who do not administer the organization, and for tokens that are restricted to a part of
   * the place.
   */
  async organizationBelow(context: ActorContext, { id }: { id: string }): Promise<OrganizationAnalytics | null> {
    const place = { orgId: id, id };
    if (isPart(context.actor, []) || !(await this.#administers(context.actor, id))) return null;
    return organizationOf(place, await this.#load(context, 'organization', place));
  }

  async workspaceBelow(context: ActorContext, { orgId, id }: PlaceRow): Promise<WorkspaceAnalytics | null> {
    const place = { orgId, id };
    if (isPart(context.actor, ['workspace'])) return null;
    return workspaceOf(place, await this.#load(context, 'workspace', place));
  }

  async appBelow(context: ActorContext, { orgId, workspaceId, id }: PartRow): Promise<AppAnalytics | null> {
    const place = { orgId, workspaceId, id };
    if (isPart(context.actor, ['workspace', 'app'])) return null;
    return appOf(place, await this.#load(context, 'app', place));
  }

  async namespaceBelow(context: ActorContext, { orgId, workspaceId, id }: PartRow): Promise<NamespaceAnalytics | null> {
    const place = { orgId, workspaceId, id };
    if (isPart(context.actor, ['workspace', 'namespace'])) return null;
    return namespaceOf(place, await this.#load(context, 'namespace', place));
  }

  /** @throws FORBIDDEN for a token that is restricted to parts of the workspace */
  async actions(actor: Actor, { orgId, workspaceId }: Checked<WorkspacePlace>): Promise<ActionAnalytics> {
    demandWhole(actor, ['workspace']);
    const counts = await this.#read('actions of workspace', { orgId, id: workspaceId });
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
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND; InputError for more than one of these, an end before the start, and too many
   * points
   */
  async series(actor: Actor, of: SeriesOf, asked: SeriesRange): Promise<Series> {
    const { metric, step } = asked;
    const scope = scopeOf(of);
    const { since, until } = rangeOf(asked);
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
    if (!(await this.#administers(actor, orgId))) throw forbidden('analytics:read');
    demandWhole(actor, []);
  }

  async #administers(actor: Actor, orgId: string): Promise<boolean> {
    const role = await this.#deps.access.organizationRole(actor, orgId);
    return role !== null && atLeast(role, 'admin');
  }

  async #read(kind: CountedKind, place: CountedPlace): Promise<KeptCounts> {
    const [counts] = await readCounts(this.#deps.sql, kind, [place]);
    return counts!;
  }

  #load(cache: RequestCache, kind: CountedKind, place: CountedPlace): Promise<KeptCounts> {
    const { sql } = this.#deps;
    const loader = cache.once(
      `analytics of ${kind}`,
      () => new DataLoader<CountedPlace, KeptCounts>((places) => readCounts(sql, kind, places)),
    );
    return loader.load(place);
  }
}

type NamedPlace = 'workspace' | PlacePart;

const places = ['workspace', 'namespace', 'environment', 'app'] as const satisfies readonly NamedPlace[];

interface PlaceRow {
  id: string;
  orgId: string;
}

interface PartRow extends PlaceRow {
  workspaceId: string;
}

/**
 * Whether a token is restricted to less than what numbers are of: that it is one of the token's own places was checked
 * with the permission.
 * @param named the kinds of places that the numbers are restricted to
 */
function isPart({ principal }: Actor, named: readonly NamedPlace[]): boolean {
  const restricted = restrictionsOf(principal.token);
  // an app's token is restricted to the workspace of its app as well
  return places.some((place) => restricted[`${place}Id`] && !named.includes(place));
}

/** @throws FORBIDDEN for a token that is restricted to less than what the numbers are of */
function demandWhole(actor: Actor, named: readonly NamedPlace[]): void {
  if (isPart(actor, named)) throw forbidden('analytics:read');
}

function summaryOf(counts: KeptCounts) {
  return { resources: resourcesOf(counts), executions: executionsOf(counts), updatedAt: new Date() };
}

const organizationOf = ({ orgId }: PlaceRow, counts: KeptCounts): OrganizationAnalytics => ({
  orgId,
  workspaces: counts.of('workspaces'),
  users: counts.of('users'),
  ...summaryOf(counts),
});

const workspaceOf = ({ orgId, id }: PlaceRow, counts: KeptCounts): WorkspaceAnalytics => ({
  orgId,
  workspaceId: id,
  ...summaryOf(counts),
});

const appOf = ({ orgId, workspaceId, id }: PartRow, counts: KeptCounts): AppAnalytics => ({
  orgId,
  workspaceId,
  appId: id,
  augmentations: counts.of('augmentations'),
  namespaces: counts.of('namespaces'),
  endpoints: counts.of('endpoints'),
  releases: counts.of('releases'),
});

const namespaceOf = ({ orgId, workspaceId, id }: PartRow, counts: KeptCounts): NamespaceAnalytics => ({
  orgId,
  workspaceId,
  namespaceId: id,
  threads: counts.of('threads'),
  sources: counts.of('sources'),
});

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
