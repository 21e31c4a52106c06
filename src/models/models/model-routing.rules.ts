import type { TokenGrant } from '../../kernel/token-grant.ts';
import { FAILURES_ALLOWED } from './logical-model.reads.ts';
import type { RoutedEntitlement, RoutedModel, RoutedTarget } from './model-routing.reads.ts';

/** Why a request is refused, or a model or target is not tried. */
export const routeReasons = {
  NOT_ENTITLED: 'The workspace has no entitlement for the model.',
  ENTITLEMENT_DISABLED: 'The entitlement of the workspace is not in force.',
  STEP_TYPE_NOT_ALLOWED: 'The entitlement does not allow the step type.',
  ENDPOINT_NOT_ALLOWED: 'The entitlement does not allow the endpoint.',
  PURPOSE_NOT_ALLOWED: 'The entitlement does not allow the purpose.',
  ENTITLEMENT_LIMIT: 'A limit of the entitlement is used up.',
  MODEL_DISABLED: 'The model is not enabled, or was set to disabled.',
  MODEL_WITHOUT_TARGETS: 'The model has no targets.',
  TARGET_DISABLED: 'The target is not enabled.',
  ACCOUNT_DISABLED: 'The account is not enabled.',
  DATA_RESIDENCY: 'The account keeps data where the model does not allow it, or does not say where it keeps data.',
  COST: 'The reported cost of the target is higher than the model allows.',
  LATENCY: 'The reported latency of the target is higher than the model allows.',
  ACCOUNT_QUOTA: 'The quota of the account is used up.',
  ACCOUNT_ERROR: 'The provider refuses the credentials of the account.',
  TARGET_FAILING: 'The target failed too often in a row.',
  TOO_MANY_MODELS: 'The fallback chains name more models than the service considers for one request.',
  WEIGHT_ZERO: 'The target has weight 0, and there are others.',
  NOTHING_LEFT: 'No target is left to try.',
} as const;

export type RouteReason = keyof typeof routeReasons;

/** A limit that a request would exceed. */
export interface RouteLimit {
  /** What the limit belongs to. */
  scope: 'ENTITLEMENT' | 'PROVIDER_ACCOUNT' | 'TOKEN';
  /** The entitlement, the account or the API token. */
  resourceId: string;
  /** Its name in the REST API: `max_tokens_per_month`. */
  name: string;
  /** `null` for an account, because not everybody may see its use by other workspaces. */
  maximum: number | null;
  /** `null` for an account, and for a token, whose requests the rate limit counts. */
  used: number | null;
}

/** Why something is not tried, and when to ask again. */
export interface RouteFinding {
  reason: RouteReason;
  message: string;
  /** Whole seconds until this may change; `null` if somebody has to change something first. */
  retryAfterSeconds: number | null;
  limit: RouteLimit | null;
}

/** Properties of the request to route. */
export interface RouteRequest {
  purpose?: string | null;
  stepType?: string | null;
  endpoint?: string | null;
  /** Tokens that the request will probably use, input and output. */
  estimatedTokens?: number | null;
}

/** How long a failed target rests. A target with refused credentials rests longer. */
export const COOL_DOWN_SECONDS = 30;
export const CREDENTIALS_COOL_DOWN_SECONDS = 300;

/** How long the reported figures of a target are valid. Then the target is tried again. */
export const LATENCY_BELIEVED_SECONDS = 300;
export const COST_BELIEVED_SECONDS = 3_600;

const finding = (reason: RouteReason, message: string, more: Partial<RouteFinding> = {}): RouteFinding => ({
  reason,
  message,
  retryAfterSeconds: null,
  limit: null,
  ...more,
});

/** Why the entitlement refuses the request; `null` if it allows it. */
export function entitlementFinding(model: RoutedModel, request: RouteRequest): RouteFinding | null {
  const { logicalModelId, entitlement, now } = model;
  if (!entitlement)
    return finding('NOT_ENTITLED', `The workspace has no entitlement for the model '${logicalModelId}'.`);
  if (!entitlement.enabled)
    return finding('ENTITLEMENT_DISABLED', `The entitlement for the model '${logicalModelId}' is not in force.`);
  return allowListFinding(logicalModelId, entitlement, request) ?? limitFinding(entitlement, request, now);
}

function allowListFinding(id: string, entitlement: RoutedEntitlement, request: RouteRequest): RouteFinding | null {
  const lists = [
    ['STEP_TYPE_NOT_ALLOWED', 'step type', entitlement.allowedStepTypes, request.stepType],
    ['ENDPOINT_NOT_ALLOWED', 'endpoint', entitlement.allowedEndpoints, request.endpoint],
    ['PURPOSE_NOT_ALLOWED', 'purpose', entitlement.allowedPurposes, request.purpose],
  ] as const;
  for (const [reason, word, allowed, given] of lists) {
    if (allowed.length === 0 || (given && allowed.includes(given))) continue;
    // A request without a value must not bypass the list.
    const what = given ? `the ${word} '${given}'` : `requests that name no ${word}`;
    return finding(reason, `The entitlement for the model '${id}' does not allow ${what}.`);
  }
  return null;
}

/** Of several exceeded limits, the one that lasts longest decides. */
function limitFinding(entitlement: RoutedEntitlement, request: RouteRequest, now: Date): RouteFinding | null {
  const { id, limits, usage } = entitlement;
  const tokens = Math.max(1, request.estimatedTokens ?? 0);
  const { month, day, minute } = endsOf(now);
  const checks = [
    ['max_tokens_per_month', limits.maxTokensPerMonth, usage.month?.tokens, tokens, month],
    ['max_requests_per_day', limits.maxRequestsPerDay, usage.day?.requests, 1, day],
    ['requests_per_minute', limits.requestsPerMinute, usage.minute?.requests, 1, minute],
    ['tokens_per_minute', limits.tokensPerMinute, usage.minute?.tokens, tokens, minute],
  ] as const;
  for (const [name, maximum, used = 0, more, retryAfterSeconds] of checks) {
    if (maximum === null || used + more <= maximum) continue;
    const limit = { scope: 'ENTITLEMENT', resourceId: id, name, maximum, used } as const;
    const message = `The limit ${name} of the entitlement allows ${maximum}, and ${used} were used.`;
    return finding('ENTITLEMENT_LIMIT', message, { retryAfterSeconds, limit });
  }
  return null;
}

/** The stricter of the entitlement's rate and the token's own rate; `null` if neither is set. */
export function strictestRate(entitlement: RoutedEntitlement | null, token: TokenGrant | null): RouteLimit | null {
  const rates: { perMinute: number; limit: RouteLimit }[] = [];
  const maximum = entitlement?.limits.requestsPerMinute ?? null;
  if (entitlement && maximum !== null) {
    const used = entitlement.usage.minute?.requests ?? 0;
    const limit = {
      scope: 'ENTITLEMENT',
      resourceId: entitlement.id,
      name: 'requests_per_minute',
      maximum,
      used,
    } as const;
    rates.push({ perMinute: maximum, limit });
  }
  const rps = token?.rateLimitRps ?? null;
  if (token && rps !== null) {
    const limit = { scope: 'TOKEN', resourceId: token.id, name: 'rate_limit_rps', maximum: rps, used: null } as const;
    rates.push({ perMinute: rps * 60, limit });
  }
  return rates.sort((a, b) => a.perMinute - b.perMinute)[0]?.limit ?? null;
}

/** Why none of the model's own targets is tried; `null` if each target is checked separately. */
export function modelFinding({ logicalModelId, enabled, statusByHand, targets }: RoutedModel): RouteFinding | null {
  if (!enabled) return finding('MODEL_DISABLED', `The model '${logicalModelId}' is not enabled.`);
  if (statusByHand === 'disabled')
    return finding('MODEL_DISABLED', `The model '${logicalModelId}' was set to disabled.`);
  return targets.length === 0
    ? finding('MODEL_WITHOUT_TARGETS', `The model '${logicalModelId}' has no targets.`)
    : null;
}

/**
 * How a target may be used now: `ready`; `probe` if it failed and has rested long enough to be tried again; else the
 * reason why it is not tried.
 */
export function judgeTarget(
  target: RoutedTarget,
  model: RoutedModel,
  request: RouteRequest,
): 'ready' | 'probe' | RouteFinding {
  const { providerAccountId: account } = target;
  if (!target.enabled) return finding('TARGET_DISABLED', `The target '${target.modelName}' is not enabled.`);
  if (!target.accountEnabled) return finding('ACCOUNT_DISABLED', `The account '${account}' is not enabled.`);
  const barred = residencyFinding(target, model.constraints.dataResidency) ?? quotaFinding(target, model.now, request);
  if (barred) return barred;
  const figures = figuresVerdict(target, model);
  if (typeof figures === 'object') return figures;
  if (target.accountStatus === 'error') {
    const rest = CREDENTIALS_COOL_DOWN_SECONDS - (target.accountCheckedAgo ?? Infinity);
    const message = `The provider refuses the credentials of the account '${account}'.`;
    return rest <= 0 ? 'probe' : finding('ACCOUNT_ERROR', message, { retryAfterSeconds: Math.ceil(rest) });
  }
  if (target.consecutiveFailures < FAILURES_ALLOWED) return figures;
  const rest = COOL_DOWN_SECONDS - (target.failedAgo ?? Infinity);
  const message = `The target '${target.modelName}' failed ${target.consecutiveFailures} times in a row.`;
  return rest <= 0 ? 'probe' : finding('TARGET_FAILING', message, { retryAfterSeconds: Math.ceil(rest) });
}

function residencyFinding(target: RoutedTarget, allowed: readonly string[]): RouteFinding | null {
  if (allowed.length === 0) return null;
  // The region is the fallback for an account without data residency.
  const place = target.dataResidency ?? target.region;
  if (place && allowed.some((one) => one.toLowerCase() === place.toLowerCase())) return null;
  const where = place ? `keeps data in '${place}'` : 'does not say where it keeps data';
  const message = `The account '${target.providerAccountId}' ${where}; the model allows ${allowed.join(', ')}.`;
  return finding('DATA_RESIDENCY', message);
}

/**
 * Checks the reported figures of a target against what the model allows. A target without reports passes, because only
 * a try gives figures. A target above the limit rests as long as its figure is valid and is a probe afterwards.
 */
function figuresVerdict(target: RoutedTarget, { constraints }: RoutedModel): 'ready' | 'probe' | RouteFinding {
  const maxCost = constraints.maxCostPer1kTokens === null ? null : Number(constraints.maxCostPer1kTokens);
  const checks = [
    ['COST', 'costs', '', target.costPer1kTokens, maxCost, target.costAgo, COST_BELIEVED_SECONDS],
    [
      'LATENCY',
      'takes',
      ' ms',
      target.averageLatencyMs,
      constraints.maxLatencyMs,
      target.latencyAgo,
      LATENCY_BELIEVED_SECONDS,
    ],
  ] as const;
  let verdict: 'ready' | 'probe' = 'ready';
  for (const [reason, verb, unit, figure, maximum, secondsAgo, believedSeconds] of checks) {
    if (figure === null || maximum === null || figure <= maximum) continue;
    const rest = believedSeconds - (secondsAgo ?? Infinity);
    const message =
      `The target '${target.modelName}' ${verb} ${+figure.toPrecision(6)}${unit}; ` +
      `the model allows ${maximum}${unit}.`;
    if (rest > 0) return finding(reason, message, { retryAfterSeconds: Math.ceil(rest) });
    verdict = 'probe';
  }
  return verdict;
}

function quotaFinding(target: RoutedTarget, now: Date, request: RouteRequest): RouteFinding | null {
  const tokens = Math.max(1, request.estimatedTokens ?? 0);
  const checks = [
    ['max_tokens_per_month', target.maxTokensPerMonth, target.currentMonthTokens, tokens],
    ['max_requests_per_month', target.maxRequestsPerMonth, target.currentMonthRequests, 1],
  ] as const;
  for (const [name, maximum, used, more] of checks) {
    if (maximum === null || used + more <= maximum) continue;
    const { providerAccountId: resourceId } = target;
    const limit = { scope: 'PROVIDER_ACCOUNT', resourceId, name, maximum: null, used: null } as const;
    const message = `The quota ${name} of the account '${resourceId}' is used up.`;
    return finding('ACCOUNT_QUOTA', message, { retryAfterSeconds: endsOf(now).month, limit });
  }
  return null;
}

/** A model of a fallback chain that is skipped because the chains name too many models. */
export const tooManyModels = (logicalModelId: string): RouteFinding =>
  finding('TOO_MANY_MODELS', `The model '${logicalModelId}' is too far down the fallback chains.`);

/** A target that gets no share of the requests while other targets do. */
export const weightZero = ({ modelName }: RoutedTarget): RouteFinding =>
  finding('WEIGHT_ZERO', `The target '${modelName}' has the weight 0, and the model has others that can be tried.`);

/** Whole seconds until the current month, day and minute (UTC) end. */
export function endsOf(now: Date): { month: number; day: number; minute: number } {
  const seconds = (end: number) => Math.max(1, Math.ceil((end - now.getTime()) / 1000));
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  return {
    month: seconds(Date.UTC(year, month + 1)),
    day: seconds(Date.UTC(year, month, day + 1)),
    minute: seconds((Math.floor(now.getTime() / 60_000) + 1) * 60_000),
  };
}

/**
 * Why nothing is left to try. If only limits are the reason, the limit that is free again first; else all reasons
 * together.
 */
export function nothingLeft(logicalModelId: string, leftOut: readonly RouteFinding[]): RouteFinding {
  const retries = leftOut.flatMap(({ retryAfterSeconds }) => (retryAfterSeconds === null ? [] : retryAfterSeconds));
  const soonest = retries.length > 0 ? Math.min(...retries) : null;
  const limited = leftOut.filter(({ limit }) => limit !== null);
  if (limited.length === leftOut.length) {
    const first = limited.find(({ retryAfterSeconds }) => retryAfterSeconds === soonest);
    if (first) return first;
  }
  const reasons = [...new Set(leftOut.map(({ reason }) => reason.toLowerCase().replaceAll('_', ' ')))].join(', ');
  return finding('NOTHING_LEFT', `Nothing can be tried for the model '${logicalModelId}' now: ${reasons}.`, {
    retryAfterSeconds: soonest,
  });
}
