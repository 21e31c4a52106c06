import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ProviderAccount } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import type { Owner } from '../../kernel/owner.ts';
import { atLeast } from '../../kernel/roles.ts';
import {
  type AccountHealth,
  accountAfter,
  affectsHealth,
  type RequestOutcome,
  targetFailuresAfter,
} from '../provider-accounts/provider-account.health.ts';
import { MONTH } from '../provider-accounts/provider-account.reads.ts';
import { FAILURES_ALLOWED } from './logical-model.reads.ts';
import { periodAt } from './model-routing.reads.ts';
import { COST_BELIEVED_SECONDS, LATENCY_BELIEVED_SECONDS } from './model-routing.rules.ts';
import { emitModelStatusChanges } from './model-status-changes.ts';
import { RETENTION_OF_USAGE, removeUsageOfEnded, sumUsage } from './model-usage.sums.ts';

/** How one request to a target ended, as its sender reports it. */
export interface UsageReport {
  providerAccountId: string;
  modelName: string;
  outcome: RequestOutcome;
  inputTokens?: number | null;
  outputTokens?: number | null;
  latencyMs?: number | null;
  /** Cost: a decimal number, in the unit of the model's `max_cost_per_1k_tokens`. */
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
  /** Failures of the target in a row; `null` if the model no longer has that target. */
  consecutiveFailures: number | null;
}

interface UsagePlace {
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

/**
 * Handles reports about requests to models. Each report updates the counters of the entitlement, its windows and the
 * account, the sums over time, and the health of account and target, all or nothing. Reports wait for one another, and
 * none is lost.
 *
 * Whoever may use a model may report, but must not be able to block it for others. Refused credentials, cost and
 * latency count only from editors of the workspace and above. From others, refused credentials count as any other
 * failure, from which target and account recover by themselves.
 */
export class ModelUsageService implements Owner {
  readonly retention = [RETENTION_OF_USAGE];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** Removes the usage of workspaces and organizations that end for good. @returns how many sums */
  removeParts(): Promise<number> {
    return removeUsageOfEnded(this.#deps.sql);
  }

  /**
   * A report under a disabled entitlement, or about a target that the model does not have (any more), counts for the
   * entitlement alone: whoever may use one model must not affect what serves others.
   * @throws RESOURCE_NOT_FOUND `model` or `model_entitlement`, InputError for an account outside the organization
   */
  async report(
    caller: Caller,
    checked: Checked<WorkspacePlace>,
    logicalModelId: string,
    report: UsageReport,
  ): Promise<UsageSummary> {
    const { orgId, workspaceId, asked } = checked;
    return this.#count(caller, { orgId, workspaceId }, logicalModelId, report, atLeast(asked.role, 'editor'));
  }

  /**
   * A report of the service about a request of its own, for a workspace.
   * @throws RESOURCE_NOT_FOUND, InputError like {@link report}
   */
  reportOwn(
    caller: AnyCaller,
    { orgId, workspaceId }: WorkspacePlace,
    logicalModelId: string,
    report: UsageReport,
  ): Promise<UsageSummary> {
    return this.#count(caller, { orgId, workspaceId }, logicalModelId, report, true);
  }

  async #count(
    caller: AnyCaller,
    place: UsagePlace,
    logicalModelId: string,
    report: UsageReport,
    isTrusted: boolean,
  ): Promise<UsageSummary> {
    const input = report.inputTokens ?? 0;
    const output = report.outputTokens ?? 0;
    const tokens = input + output;
    const { orgId } = place;
    return this.#deps.changes.run(caller, async (tx) => {
      const entitlement = await countEntitlement(tx, place, logicalModelId, tokens);
      const windows = await countWindows(tx, entitlement.id, tokens);
      const { providerAccountId: id } = report;
      const account = await tx.lock('provider_accounts', { id, orgId }, 'no key update', () =>
        invalidInput(['input', 'providerAccountId'], `there is no provider account '${id}' in the organization`),
      );
      const target = { modelId: entitlement.modelId, providerAccountId: account.id, modelName: report.modelName };
      // A disabled entitlement must not affect the health that others see.
      const consecutiveFailures = entitlement.enabled
        ? await moveHealth(tx, account, target, believed(report, isTrusted), tokens)
        : null;
      sumUsage(tx, place, logicalModelId, target, { ...report, isTrusted });
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

/** Counts the report, and locks the entitlement until the transaction ends. */
async function countEntitlement(
  tx: Tx,
  { orgId, workspaceId }: UsagePlace,
  logicalModelId: string,
  tokens: number,
): Promise<LockedEntitlement> {
  const [row] = await tx.query<LockedEntitlement>(statement`
    update model_entitlements set request_count = request_count + 1, total_tokens = total_tokens + ${tokens}::bigint,
      last_used_at = greatest(last_used_at, statement_timestamp())
    where org_id = ${orgId} and workspace_id = ${workspaceId} and logical_model_id = ${logicalModelId}
    returning id, model_id as "modelId", enabled, request_count::float8 as "requestCount",
      total_tokens::float8 as "totalTokens"`);
  if (row) return row;
  const model = await findRow(tx, 'logical_models', { orgId, logicalModelId });
  throw notFound(model ? 'model_entitlement' : 'model', logicalModelId);
}

const kept = (counter: string) =>
  `case when model_usage.period = excluded.period then model_usage.${counter} else 0 end + excluded.${counter}`;
// The statement reads its clock while the entitlement is locked: of two reports the later never sees an earlier period.
const COUNT_WINDOWS = `insert into model_usage (entitlement_id, "window", period, requests, tokens)
  select $1, w, ${periodAt('statement_timestamp()', 'w')}, 1, $2::bigint from unnest(array['day', 'minute', 'month']) w
  on conflict (entitlement_id, "window") do update set period = excluded.period,
    requests = ${kept('requests')}, tokens = ${kept('tokens')}
  returning "window", requests::float8 as requests, tokens::float8 as tokens`;

type Windows = Pick<UsageSummary, 'tokensThisMonth' | 'requestsToday' | 'requestsThisMinute' | 'tokensThisMinute'>;

async function countWindows(tx: Tx, entitlementId: string, tokens: number): Promise<Windows> {
  const rows = await tx.query<{ window: string; requests: number; tokens: number }>({
    text: COUNT_WINDOWS,
    values: [entitlementId, tokens],
  });
  const of = (window: string) => rows.find((row) => row.window === window) ?? { requests: 0, tokens: 0 };
  const [month, day, minute] = [of('month'), of('day'), of('minute')];
  return {
    tokensThisMonth: month.tokens,
    requestsToday: day.requests,
    requestsThisMinute: minute.requests,
    tokensThisMinute: minute.tokens,
  };
}

interface UsedModel {
  modelId: string;
  providerAccountId: string;
  modelName: string;
}

/** The health and figures of a report, as far as its sender is trusted. */
interface TrustedReport {
  outcome: RequestOutcome;
  latencyMs: number | null;
  cost: number | null;
}

function believed({ outcome, latencyMs, cost }: UsageReport, isTrusted: boolean): TrustedReport {
  if (!isTrusted) return { outcome: outcome === 'AUTH_FAILURE' ? 'FAILURE' : outcome, latencyMs: null, cost: null };
  // How fast a request was refused says nothing about how long an answer takes.
  const isTimed = outcome === 'SUCCESS' || outcome === 'TIMEOUT';
  return { outcome, latencyMs: isTimed ? (latencyMs ?? null) : null, cost: cost ? Number(cost) : null };
}

/**
 * Updates account and target from the report.
 * @returns the target's failures in a row; `null` if the model has no such target
 */
async function moveHealth(
  tx: Tx,
  account: ProviderAccount,
  target: UsedModel,
  { outcome, latencyMs, cost }: TrustedReport,
  tokens: number,
): Promise<number | null> {
  // Failures change only while the account is locked, so this value stays current.
  const failures = (await findRow(tx, 'model_targets', target))?.consecutiveFailures;
  if (failures === undefined) return null;
  const after = accountAfter(account, outcome);
  const failuresAfter = targetFailuresAfter(failures, outcome);
  const move = async () => {
    // The target may have been removed from the model meanwhile.
    if (!(await tx.lock('model_targets', target, 'no key update'))) return null;
    writeAccount(tx, account.id, after, outcome, tokens);
    if (affectsHealth(outcome)) tx.update('model_targets', target, outcomeOf(failuresAfter, outcome));
    if (latencyMs !== null || cost !== null) writeFigures(tx, target, { latencyMs, cost, tokens });
    return failuresAfter;
  };
  const isFailing = (count: number) => count >= FAILURES_ALLOWED;
  const movesModels = after.status !== account.status || isFailing(failures) !== isFailing(failuresAfter);
  const moved = await (movesModels ? emitModelStatusChanges(tx, account, move) : move());
  if (moved !== null && after.status !== account.status && account.enabled) {
    const { id, orgId, status } = { ...account, status: after.status };
    const name = status === 'degraded' ? 'degraded' : 'updated';
    emitChange(tx, name, 'provider_account', { id, orgId }, { status }, { name: account.name });
  }
  return moved;
}

/** Moving average: a new figure counts one fifth. An outdated average is replaced. */
const averaged = (column: string, at: string, figure: string, seconds: number) =>
  `${column} = case when ${figure} is null then ${column}
     when ${at} > statement_timestamp() - interval '${seconds} seconds'
       then ${column} * 0.8 + ${figure} * 0.2 else ${figure} end,
   ${at} = case when ${figure} is null then ${at} else statement_timestamp() end`;
/** Reports of fewer tokens say nothing about the cost of 1,000. */
const MIN_PRICED_TOKENS = 100;
const WRITE_FIGURES = `update model_targets set
  ${averaged('average_latency_ms', 'latency_at', '$4::float8', LATENCY_BELIEVED_SECONDS)},
  ${averaged('cost_per_1k_tokens', 'cost_at', '$5::float8', COST_BELIEVED_SECONDS)}
  where model_id = $1 and provider_account_id = $2 and model_name = $3`;

function writeFigures(
  tx: Tx,
  { modelId, providerAccountId, modelName }: UsedModel,
  { latencyMs, cost, tokens }: { latencyMs: number | null; cost: number | null; tokens: number },
): void {
  // For a few tokens, the cost reflects the smallest amount that a provider bills rather than the price.
  const costPer1k = cost === null || tokens < MIN_PRICED_TOKENS ? null : (cost * 1_000) / tokens;
  tx.write({ text: WRITE_FIGURES, values: [modelId, providerAccountId, modelName, latencyMs, costPer1k] });
}

const counted = (counter: string, more: string) =>
  `${counter} = case when usage_period = ${MONTH} then ${counter} else 0 end + ${more}`;
// The row is already locked, so no later report can have started a month that is unknown to this statement's clock.
const WRITE_ACCOUNT = `update provider_accounts set status = $2, status_reason = $3, consecutive_failures = $4,
  auth_failures = $5,
  last_health_check = case when $6 then statement_timestamp() else last_health_check end,
  ${counted('current_month_tokens', '$7::bigint')}, ${counted('current_month_requests', '1')}, usage_period = ${MONTH}
  where id = $1`;

function writeAccount(tx: Tx, id: string, after: AccountHealth, outcome: RequestOutcome, tokens: number): void {
  const { status, statusReason, consecutiveFailures, authFailures } = after;
  const health = [status, statusReason, consecutiveFailures, authFailures, affectsHealth(outcome)];
  tx.write({ text: WRITE_ACCOUNT, values: [id, ...health, tokens] });
}

function outcomeOf(consecutiveFailures: number, outcome: RequestOutcome): Columns<'model_targets'> {
  const now = new Date();
  return { consecutiveFailures, ...(outcome === 'SUCCESS' ? { lastSuccess: now } : { lastFailure: now }) };
}
