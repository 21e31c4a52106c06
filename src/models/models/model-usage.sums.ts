import { inBatches } from '../../data/batches.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { LONG_DELETED } from '../../tenancy/workspaces/long-deleted.ts';
import type { RequestOutcome } from '../provider-accounts/provider-account.health.ts';

/** Removes what is told no more: 90 days of any time zone are. */
export const RETENTION_OF_USAGE = `delete from model_usage_sums where start < now() - interval '91 days'`;

/** Sums that one statement removes. */
const BATCH = 10_000;

const KEY = ['workspace_id', 'start', 'logical_model_id', 'provider_account_id', 'model_name'];
const OF_ENDED = `delete from model_usage_sums where (${KEY.join(', ')}) in (
  select ${KEY.map((column) => `s.${column}`).join(', ')} from (select w.id ${LONG_DELETED}) w
  join model_usage_sums s on s.workspace_id = w.id limit ${BATCH})`;

/** Removes the sums of workspaces that end for good, in parts: a busy one has a hundred thousand. @returns how many */
export const removeUsageOfEnded = (sql: Sql): Promise<number> => inBatches(BATCH, () => sql.write(OF_ENDED, []));

const added = (column: string) => `${column} = model_usage_sums.${column} + excluded.${column}`;

// Senders choose the account and the name that they report: only targets of the model have sums of their own.
const SUM = `insert into model_usage_sums (workspace_id, start, logical_model_id, provider_account_id, model_name,
    requests, errors, input_tokens, output_tokens, cost)
  select $1, date_bin('15 minutes', statement_timestamp(), '2000-01-01T00:00:00Z'::timestamptz), $2,
    coalesce(t.provider_account_id, ''), coalesce(t.model_name, ''), 1, $6::bigint, $7::bigint, $8::bigint, $9::numeric
  from (select) one left join model_targets t
    on t.model_id = $3 and t.provider_account_id = $4 and t.model_name = $5
  on conflict (${KEY.join(', ')}) do update set
    ${['requests', 'errors', 'input_tokens', 'output_tokens', 'cost'].map(added).join(', ')}`;

interface ReportedUsage {
  outcome: RequestOutcome;
  inputTokens?: number | null;
  outputTokens?: number | null;
  cost?: string | null;
  /** Whether the reported cost counts. */
  isTrusted: boolean;
}

/**
 * Adds a report to the usage over time. The entitlement must be locked: then no two reports wait for one sum.
 *
 * The first report of a quarter inserts its row, whose foreign key locks the workspace after the entitlement, as that
 * of a new entitlement does after the model. It waits for nobody who waits for a report: see `locks.ts`.
 */
export function sumUsage(
  tx: Tx,
  { workspaceId }: { workspaceId: string },
  logicalModelId: string,
  target: { modelId: string; providerAccountId: string; modelName: string },
  { outcome, inputTokens, outputTokens, cost, isTrusted }: ReportedUsage,
): void {
  tx.write({
    text: SUM,
    values: [
      workspaceId,
      logicalModelId,
      target.modelId,
      target.providerAccountId,
      target.modelName,
      outcome === 'SUCCESS' ? 0 : 1,
      inputTokens ?? 0,
      outputTokens ?? 0,
      isTrusted ? (cost ?? '0') : '0',
    ],
  });
}
