import type { Actor } from '../access/caller.ts';
import { invalidInput, notFound } from '../core/errors.ts';
import { atLeast } from '../core/roles.ts';
import type { PrismaTx } from '../data/changes.ts';
import { emitChange } from '../data/record-change.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import {
  type AccountHealth,
  accountAfter,
  isTelling,
  type Outcome,
  targetFailuresAfter,
} from '../provider-accounts/provider-account.health.ts';
import { MONTH } from '../provider-accounts/provider-account.source.ts';
import { tellingOfModels } from './logical-model.reads.ts';
import { FAILURES_ALLOWED } from './logical-model.source.ts';
import { periodAt } from './model-routing.reads.ts';
import { COST_BELIEVED_SECONDS, LATENCY_BELIEVED_SECONDS } from './model-routing.rules.ts';

/** How one request to a target ended, as its sender reports it. */
export interface UsageReport {
  providerAccountId: string;
  modelName: string;
  outcome: Outcome;
  inputTokens?: number | null;
  outputTokens?: number | null;
  latencyMs?: number | null;
  /** What it cost: a decimal number, in the unit of the model's `max_cost_per_1k_tokens`. */
  cost?: string | null;
  purpose?: string | null;
  executionId?: string | null;
}

/** What the workspace has used of the model after a report. */
export interface UsageSummary {
  orgId: string;
  workspaceId: string;
  logicalModelId: string;
  requestCount: number;
  totalTokens: number;
  tokensThisMonth: number;
  requestsToday: number;
  requestsThisMinute: number;
  tokensThisMinute: number;
  /** Failures in a row of the target; `null` where the model has that target no more. */
  consecutiveFailures: number | null;
}

interface Place {
  orgId: string;
  workspaceId: string;
}

interface LockedEntitlement {
  id: string;
  modelId: string;
  enabled: boolean;
  requestCount: number;
  totalTokens: number;
}

interface LockedAccount extends AccountHealth {
  id: string;
  orgId: string;
  enabled: boolean;
}

/**
 * Takes reports of how requests to models went. Each moves the counters of the entitlement, its windows and the account, and the
 * health of account and target, at once or not at all. Rows are held in one order (entitlement, account, models, target), so that reports
 * wait for one another and none is lost.
 *
 * Whoever may use a model may report, but not take it from others. That the credentials of an account were refused, what a target costs and
 * how long it takes is believed of editors of the workspace and above. From others refused credentials count as any other failure, from
 * which target and account recover by themselves.
 */
export class ModelUsageService {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * A report under a disabled entitlement, or of a target that is not, or no longer, one of the model's, counts for the entitlement alone: whoever may use one model must
   * not move what serves others.
   * @throws RESOURCE_NOT_FOUND `model` or `model_entitlement`, InputError for an account that is not of the organization
   */
  async report(actor: Actor, place: Place, logicalModelId: string, report: UsageReport): Promise<UsageSummary> {
    const input = report.inputTokens ?? 0;
    const output = report.outputTokens ?? 0;
    const tokens = input + output;
    const role = await this.#deps.access.workspaceRole(actor, place.orgId, place.workspaceId);
    const isTrusted = role !== null && atLeast(role, 'editor');
    return this.#deps.changes.runWithPrisma(actor, async (tx) => {
      const entitlement = await countEntitlement(tx, place, logicalModelId, tokens);
      const windows = await countWindows(tx, entitlement.id, tokens);
      const account = await lockAccount(tx, place.orgId, report.providerAccountId);
      const target = { modelId: entitlement.modelId, accountId: account.id, modelName: report.modelName };
      // what may not be used has nothing to say of the health of others
      const consecutiveFailures = entitlement.enabled
        ? await moveHealth(tx, account, target, believed(report, isTrusted), tokens)
        : null;
      tx.audit({
        action: 'execute',
        resourceType: 'model',
        resourceId: logicalModelId,
        ...place,
        executionId: report.executionId,
        tokenUsage: { input, output, total: tokens },
        metadata: {
          provider_account_id: account.id,
          model_name: report.modelName,
          outcome: report.outcome.toLowerCase(),
          latency_ms: report.latencyMs ?? null,
          cost: report.cost ?? null,
          purpose: report.purpose ?? null,
        },
      });
      const { requestCount, totalTokens } = entitlement;
      return { ...place, logicalModelId, requestCount, totalTokens, ...windows, consecutiveFailures };
    });
  }
}

/** Counts, and holds the entitlement until the transaction ends. */
async function countEntitlement(
  tx: PrismaTx,
  { orgId, workspaceId }: Place,
  logicalModelId: string,
  tokens: number,
): Promise<LockedEntitlement> {
  const [row] = await tx.db.$queryRaw<LockedEntitlement[]>`
    update model_entitlements set request_count = request_count + 1, total_tokens = total_tokens + ${tokens}::bigint,
      last_used_at = greatest(last_used_at, statement_timestamp())
    where org_id = ${orgId} and workspace_id = ${workspaceId} and logical_model_id = ${logicalModelId}
    returning id, model_id as "modelId", enabled, request_count::float8 as "requestCount", total_tokens::float8 as "totalTokens"`;
  if (row) return row;
  const model = await tx.db.logicalModel.findUnique({
    where: { orgId_logicalModelId: { orgId, logicalModelId } },
    select: { id: true },
  });
  throw notFound(model ? 'model_entitlement' : 'model', logicalModelId);
}

const kept = (counter: string) =>
  `case when model_usage.period = excluded.period then model_usage.${counter} else 0 end + excluded.${counter}`;
// the statement's clock is read when the entitlement is already held: of two reports the later one never sees an earlier period
const COUNT_WINDOWS = `insert into model_usage (entitlement_id, "window", period, requests, tokens)
  select $1, w, ${periodAt('statement_timestamp()', 'w')}, 1, $2::bigint from unnest(array['day', 'minute', 'month']) w
  on conflict (entitlement_id, "window") do update set period = excluded.period, requests = ${kept('requests')}, tokens = ${kept('tokens')}
  returning "window", requests::float8 as requests, tokens::float8 as tokens`;

type Windows = Pick<UsageSummary, 'tokensThisMonth' | 'requestsToday' | 'requestsThisMinute' | 'tokensThisMinute'>;

async function countWindows(tx: PrismaTx, entitlementId: string, tokens: number): Promise<Windows> {
  const rows = await tx.db.$queryRawUnsafe<{ window: string; requests: number; tokens: number }[]>(
    COUNT_WINDOWS,
    entitlementId,
    tokens,
  );
  const of = (window: string) => rows.find((row) => row.window === window) ?? { requests: 0, tokens: 0 };
  const [month, day, minute] = [of('month'), of('day'), of('minute')];
  return {
    tokensThisMonth: month.tokens,
    requestsToday: day.requests,
    requestsThisMinute: minute.requests,
    tokensThisMinute: minute.tokens,
  };
}

async function lockAccount(tx: PrismaTx, orgId: string, id: string): Promise<LockedAccount> {
  const [account] = await tx.db.$queryRaw<LockedAccount[]>`
    select id, org_id as "orgId", enabled, status, status_reason as "statusReason", consecutive_failures as "consecutiveFailures",
      auth_failures as "authFailures" from provider_accounts where org_id = ${orgId} and id = ${id} for no key update`;
  if (!account)
    throw invalidInput(['input', 'providerAccountId'], `there is no provider account '${id}' in the organization`);
  return account;
}

interface Target {
  modelId: string;
  accountId: string;
  modelName: string;
}

/** What a report tells of health and figures, as far as its sender is believed. */
interface Told {
  outcome: Outcome;
  latencyMs: number | null;
  cost: number | null;
}

function believed({ outcome, latencyMs, cost }: UsageReport, isTrusted: boolean): Told {
  if (!isTrusted) return { outcome: outcome === 'AUTH_FAILURE' ? 'FAILURE' : outcome, latencyMs: null, cost: null };
  // how soon a request was refused says nothing of how long an answer takes
  const isTimed = outcome === 'SUCCESS' || outcome === 'TIMEOUT';
  return { outcome, latencyMs: isTimed ? (latencyMs ?? null) : null, cost: cost ? Number(cost) : null };
}

/** Moves what the report tells of account and target. @returns the target's failures in a row; `null` where the model has no such target */
async function moveHealth(
  tx: PrismaTx,
  account: LockedAccount,
  target: Target,
  { outcome, latencyMs, cost }: Told,
  tokens: number,
): Promise<number | null> {
  // its failures move only under the account, which is held: they stay what they are
  const failures = await failuresOf(tx, target);
  if (failures === null) return null;
  const after = accountAfter(account, outcome);
  const failuresAfter = targetFailuresAfter(failures, outcome);
  const move = async () => {
    if (!(await lockTarget(tx, target))) return null;
    await writeAccount(tx, account.id, after, outcome, tokens);
    if (isTelling(outcome)) await writeTarget(tx, target, failuresAfter, outcome);
    if (latencyMs !== null || cost !== null) await writeFigures(tx, target, { latencyMs, cost, tokens });
    return failuresAfter;
  };
  const isFailing = (count: number) => count >= FAILURES_ALLOWED;
  const movesModels = after.status !== account.status || isFailing(failures) !== isFailing(failuresAfter);
  const moved = await (movesModels ? tellingOfModels(tx, account, move) : move());
  if (moved !== null && after.status !== account.status && account.enabled) {
    const { id, orgId, status } = { ...account, status: after.status };
    emitChange(tx, status === 'degraded' ? 'degraded' : 'updated', 'provider_account', { id, orgId }, { status });
  }
  return moved;
}

async function failuresOf(tx: PrismaTx, { modelId, accountId, modelName }: Target): Promise<number | null> {
  const [row] = await tx.db.$queryRaw<{ failures: number }[]>`
    select consecutive_failures as failures from model_targets
    where model_id = ${modelId} and provider_account_id = ${accountId} and model_name = ${modelName}`;
  return row?.failures ?? null;
}

/** Holds the target until the transaction ends; false where it was taken from the model meanwhile. */
async function lockTarget(tx: PrismaTx, { modelId, accountId, modelName }: Target): Promise<boolean> {
  const rows = await tx.db.$queryRaw<unknown[]>`
    select 1 from model_targets
    where model_id = ${modelId} and provider_account_id = ${accountId} and model_name = ${modelName} for no key update`;
  return rows.length > 0;
}

/** Share of a new figure in the average; what is older than it is believed for counts no more. */
const averaged = (column: string, at: string, figure: string, seconds: number) =>
  `${column} = case when ${figure} is null then ${column}
     when ${at} > statement_timestamp() - interval '${seconds} seconds' then ${column} * 0.8 + ${figure} * 0.2 else ${figure} end,
   ${at} = case when ${figure} is null then ${at} else statement_timestamp() end`;
/** Reports of fewer tokens say nothing of what 1,000 cost. */
const MIN_PRICED_TOKENS = 100;
const WRITE_FIGURES = `update model_targets set
  ${averaged('average_latency_ms', 'latency_at', '$4::float8', LATENCY_BELIEVED_SECONDS)},
  ${averaged('cost_per_1k_tokens', 'cost_at', '$5::float8', COST_BELIEVED_SECONDS)}
  where model_id = $1 and provider_account_id = $2 and model_name = $3`;

async function writeFigures(
  tx: PrismaTx,
  { modelId, accountId, modelName }: Target,
  { latencyMs, cost, tokens }: { latencyMs: number | null; cost: number | null; tokens: number },
): Promise<void> {
  // of a few tokens the smallest amount that a provider counts says more than its price
  const costPer1k = cost === null || tokens < MIN_PRICED_TOKENS ? null : (cost * 1_000) / tokens;
  await tx.db.$executeRawUnsafe(WRITE_FIGURES, modelId, accountId, modelName, latencyMs, costPer1k);
}

const counted = (counter: string, more: string) =>
  `${counter} = case when usage_period = ${MONTH} then ${counter} else 0 end + ${more}`;
// the row is held already, so that no later report can have begun a month that this statement's clock does not know
const WRITE_ACCOUNT = `update provider_accounts set status = $2, status_reason = $3, consecutive_failures = $4, auth_failures = $5,
  last_health_check = case when $6 then statement_timestamp() else last_health_check end,
  ${counted('current_month_tokens', '$7::bigint')}, ${counted('current_month_requests', '1')}, usage_period = ${MONTH}
  where id = $1`;

async function writeAccount(
  tx: PrismaTx,
  id: string,
  after: AccountHealth,
  outcome: Outcome,
  tokens: number,
): Promise<void> {
  const { status, statusReason, consecutiveFailures, authFailures } = after;
  const health = [status, statusReason, consecutiveFailures, authFailures, isTelling(outcome)];
  await tx.db.$executeRawUnsafe(WRITE_ACCOUNT, id, ...health, tokens);
}

async function writeTarget(
  tx: PrismaTx,
  { modelId, accountId, modelName }: Target,
  failures: number,
  outcome: Outcome,
): Promise<void> {
  const now = new Date();
  await tx.db.modelTarget.update({
    where: {
      modelId_providerAccountId_modelName: { modelId, providerAccountId: accountId, modelName },
    },
    data: { consecutiveFailures: failures, ...(outcome === 'SUCCESS' ? { lastSuccess: now } : { lastFailure: now }) },
    select: { modelId: true },
  });
}
