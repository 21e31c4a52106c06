import type { ServiceDeps } from '../../access/service-deps.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { type RandomSource, routingOrder, seededRandom } from './model-routing.order.ts';
import { type RoutedModel, type RoutedTarget, readRoutedModels } from './model-routing.reads.ts';
import {
  entitlementFinding,
  judgeTarget,
  modelFinding,
  nothingLeft,
  type RouteFinding,
  type RouteLimit,
  type RouteRequest,
  strictestRate,
  tooManyModels,
  weightZero,
} from './model-routing.rules.ts';

/** A target to try. */
export interface RouteTarget extends RoutedTarget {
  orgId: string;
  logicalModelId: string;
  isFallback: boolean;
  isProbe: boolean;
  temperature: number | null;
  topP: number | null;
  maxTokens: number | null;
}

/** Something that is not tried: a target, or (without an account) a whole model. */
export interface LeftOut extends RouteFinding {
  orgId: string;
  logicalModelId: string;
  providerAccountId: string | null;
  modelName: string | null;
}

export interface ModelRoute {
  orgId: string;
  logicalModelId: string;
  targets: RouteTarget[];
  leftOut: LeftOut[];
  /** Why there is nothing to try; `null` if there is a target to try. */
  refusal: RouteFinding | null;
  /** The strictest rate limit on the caller's requests. */
  strictestRate: RouteLimit | null;
}

export interface RouteModel extends RouteRequest {
  /** The same seed gives the same order while nothing else changes. */
  seed?: number | null;
}

/** Maximum number of models per request: a chain has at most 5 models, and their own chains follow. */
const MAX_MODELS = 16;

/** Share of requests that try a rested target first: otherwise nobody would find out that it works again. */
const PROBE_CHANCE = 0.1;

/**
 * Decides which targets a request to a model may try now, in which order, and why it may not try the others. It sends
 * no requests itself.
 */
export class ModelRoutingService {
  readonly #deps: ServiceDeps & { activity: ActivityRecorder };

  constructor(deps: ServiceDeps & { activity: ActivityRecorder }) {
    this.#deps = deps;
  }

  /**
   * Where a request may go. If the model or one of its fallbacks requires an audit log, the route is returned only
   * after its audit record is written.
   * @throws RESOURCE_NOT_FOUND
   */
  async route(caller: Caller, place: WorkspacePlace, logicalModelId: string, request: RouteModel): Promise<ModelRoute> {
    const { route, audited } = await this.#find(caller, place, logicalModelId, request);
    if (audited.length === 0) return route;
    const targets = route.targets.map((target) => ({
      logical_model_id: target.logicalModelId,
      provider_account_id: target.providerAccountId,
      model_name: target.modelName,
    }));
    const metadata = { require_audit_log: audited, targets };
    await this.#deps.activity.recordNow(
      caller,
      { action: 'read', resourceType: 'model', resourceId: logicalModelId, ...place, metadata },
      route,
    );
    return route;
  }

  /**
   * The model's own targets first, then those of its fallback chain, then those of their chains; no model twice. Each
   * model needs its own entitlement. Without one for the requested model the whole request is refused.
   */
  async #find(
    { principal }: Caller,
    place: WorkspacePlace,
    logicalModelId: string,
    { seed, ...request }: RouteModel,
  ): Promise<{ route: ModelRoute; audited: string[] }> {
    const random = seed === null || seed === undefined ? Math.random : seededRandom(seed);
    const { orgId } = place;
    const route: ModelRoute = { orgId, logicalModelId, targets: [], leftOut: [], refusal: null, strictestRate: null };
    const audited: string[] = [];
    const seen = new Set([logicalModelId]);
    for (let level = [logicalModelId]; level.length > 0; ) {
      const models = await readRoutedModels(this.#deps.sql, place, level);
      const next: string[] = [];
      for (const id of level) {
        const model = models.get(id);
        const isFallback = id !== logicalModelId;
        if (!model && !isFallback) throw notFound('model', id);
        if (!model) continue; // deleted just now
        if (model.constraints.requireAuditLog) audited.push(id);
        if (!isFallback) route.strictestRate = strictestRate(model.entitlement, principal.token);
        const refused = entitlementFinding(model, request);
        if (refused && !isFallback) return { route: { ...route, refusal: refused }, audited };
        if (refused) leaveModelOut(route, id, refused);
        else {
          addTargets(route, model, request, { random, isFallback });
          next.push(...model.fallbackChain.filter((other) => !seen.has(other)));
        }
      }
      const following = [...new Set(next)];
      level = following.slice(0, MAX_MODELS - seen.size);
      for (const id of following.slice(level.length)) leaveModelOut(route, id, tooManyModels(id));
      for (const id of level) seen.add(id);
    }
    if (route.targets.length === 0) route.refusal = nothingLeft(logicalModelId, route.leftOut);
    return { route, audited };
  }
}

const leaveModelOut = ({ orgId, leftOut }: ModelRoute, logicalModelId: string, found: RouteFinding) =>
  leftOut.push({ ...found, orgId, logicalModelId, providerAccountId: null, modelName: null });

/** Adds the targets of one model, in the order to try them, and the excluded ones. */
function addTargets(
  route: ModelRoute,
  model: RoutedModel,
  request: RouteRequest,
  { random, isFallback }: { random: RandomSource; isFallback: boolean },
): void {
  const { orgId } = route;
  const { logicalModelId } = model;
  const found = modelFinding(model);
  if (found) {
    leaveModelOut(route, logicalModelId, found);
    return;
  }
  const leaveOut = ({ providerAccountId, modelName }: RoutedTarget, why: RouteFinding) =>
    route.leftOut.push({ ...why, orgId, logicalModelId, providerAccountId, modelName });
  const ready: RoutedTarget[] = [];
  const probes: RoutedTarget[] = [];
  for (const target of model.targets) {
    const verdict = judgeTarget(target, model, request);
    if (verdict === 'ready') ready.push(target);
    else if (verdict === 'probe') probes.push(target);
    else leaveOut(target, verdict);
  }
  const weighted = ready.filter(({ weight }) => weight > 0);
  const chosen = weighted.length > 0 ? weighted : ready;
  for (const target of ready) if (!chosen.includes(target)) leaveOut(target, weightZero(target));
  const ordered = routingOrder(chosen, random).map((target) =>
    shown(target, model, { orgId, isFallback, isProbe: false }),
  );
  const tried = routingOrder(probes, random).map((target) =>
    shown(target, model, { orgId, isFallback, isProbe: true }),
  );
  const probeFirst = tried.length > 0 && random() < PROBE_CHANCE ? tried.splice(0, 1) : [];
  route.targets.push(...probeFirst, ...ordered, ...tried);
}

const shown = (
  target: RoutedTarget,
  model: RoutedModel,
  flags: Pick<RouteTarget, 'orgId' | 'isFallback' | 'isProbe'>,
): RouteTarget => ({
  ...target,
  ...flags,
  logicalModelId: model.logicalModelId,
  temperature: target.temperatureOverride ?? model.defaultTemperature,
  topP: model.defaultTopP,
  maxTokens: target.maxTokensOverride ?? model.defaultMaxTokens,
});
