import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { InputError, type InputIssue } from '../../kernel/errors.ts';

/** A target as a caller gives it. Omitted or null fields get their default. */
export interface TargetInput {
  providerAccountId: string;
  modelName: string;
  weight?: number | null;
  priority?: number | null;
  enabled?: boolean | null;
  temperatureOverride?: number | null;
  maxTokensOverride?: number | null;
}

const REPLACE = `insert into model_targets (model_id, position, provider_account_id, model_name, weight, priority,
    enabled, temperature_override, max_tokens_override)
  select $1, r.* from jsonb_to_recordset($2::jsonb) as r(position int, "providerAccountId" text, "modelName" text,
    weight int, priority int, enabled boolean, "temperatureOverride" float8, "maxTokensOverride" int)
  on conflict (model_id, provider_account_id, model_name) do update set position = excluded.position,
    weight = excluded.weight, priority = excluded.priority, enabled = excluded.enabled,
    temperature_override = excluded.temperature_override, max_tokens_override = excluded.max_tokens_override`;
const REMOVE = `delete from model_targets m where m.model_id = $1 and not exists (
  select 1 from jsonb_to_recordset($2::jsonb) as r("providerAccountId" text, "modelName" text)
  where r."providerAccountId" = m.provider_account_id and r."modelName" = m.model_name)`;

/**
 * Replaces the targets of a model. Their accounts must be locked. A target with the same account and model name keeps
 * its failures and successes.
 */
export function replaceTargets(tx: Tx, modelId: string, targets: readonly TargetInput[]): void {
  const rows = JSON.stringify(
    targets.map((target, position) => ({
      ...target,
      position,
      weight: target.weight ?? 100,
      priority: target.priority ?? 1,
      enabled: target.enabled ?? true,
    })),
  );
  tx.write({ text: REMOVE, values: [modelId, rows] });
  tx.write({ text: REPLACE, values: [modelId, rows] });
}

/**
 * Locks the accounts of targets, so that none is deleted meanwhile. Call it before locking the model.
 * @returns a check of the targets, which throws InputError for each unknown account and each duplicate target
 */
export async function lockTargets(tx: Tx, orgId: string, targets: readonly TargetInput[]): Promise<() => void> {
  if (targets.length === 0) return () => undefined;
  const ids = [...new Set(targets.map(({ providerAccountId }) => providerAccountId))];
  const named = statement`t.org_id = ${orgId} and t.id = any(${ids})`;
  const accounts = await tx.lockAll('provider_accounts', named, 'key share');
  const known = new Set(accounts.map(({ id }) => id));
  return () => refuseTargets(targets, known);
}

function refuseTargets(targets: readonly TargetInput[], known: ReadonlySet<string>): void {
  const seen = new Map<string, number>();
  const issues = targets.flatMap(({ providerAccountId, modelName }, index): InputIssue[] => {
    if (!known.has(providerAccountId))
      return [
        issueAt(index, 'providerAccountId', `there is no provider account '${providerAccountId}' in the organization`),
      ];
    const key = `${providerAccountId} ${modelName}`;
    const first = seen.get(key);
    seen.set(key, first ?? index);
    return first === undefined ? [] : [issueAt(index, 'modelName', `the target is the same as targets.${first}`)];
  });
  if (issues.length > 0) throw new InputError(issues);
}

const issueAt = (index: number, field: string, error: string): InputIssue => ({
  path: ['input', 'targets', index, field],
  type: 'value_error',
  msg: `Value error, ${error}`,
  ctx: { error },
});
