import { InputError, type InputIssue } from '../core/errors.ts';
import type { Tx } from '../data/changes.ts';
import { statement } from '../data/writes.ts';

/**
 * Locks the models of an organization until the transaction ends, for whoever changes what they say of one another: two
 * changes that are fine alone must not close a circle together.
 */
export async function lockModels(tx: Tx, orgId: string): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`models of ${orgId}`}, 0))`);
}

/**
 * A chain names other models of the organization, each once, and leads nowhere back to the model itself. The models are
 * locked.
 * @throws InputError at the item that is wrong
 */
export async function checkFallbackChain(
  tx: Tx,
  orgId: string,
  logicalModelId: string,
  chain: readonly string[],
): Promise<void> {
  if (chain.length === 0) return;
  const rows = await tx.query<{ id: string; chain: string[] }>(statement`
    select logical_model_id as id, fallback_chain as chain from logical_models
    where org_id = ${orgId} and (fallback_chain <> '{}' or logical_model_id = any(${chain}))`);
  const chains = new Map(rows.map((row) => [row.id, row.chain]));
  const issues = chain.flatMap((id, index): InputIssue[] => {
    const problem = problemOf(id, index, { logicalModelId, chain, chains });
    if (!problem) return [];
    const issue = { type: 'value_error', msg: `Value error, ${problem}`, ctx: { error: problem }, input: id };
    return [{ path: ['input', 'fallbackChain', index], ...issue }];
  });
  if (issues.length > 0) throw new InputError(issues);
}

interface Surroundings {
  logicalModelId: string;
  chain: readonly string[];
  chains: ReadonlyMap<string, readonly string[]>;
}

function problemOf(id: string, index: number, { logicalModelId, chain, chains }: Surroundings): string | null {
  if (id === logicalModelId) return 'a model cannot fall back to itself';
  if (chain.indexOf(id) < index) return `'${id}' is in the chain already`;
  if (!chains.has(id)) return `there is no model '${id}' in the organization`;
  const way = wayBack(id, logicalModelId, chains);
  return way ? `it leads back to '${logicalModelId}': ${way.join(' → ')}` : null;
}

/** The shortest way from one model to another along the chains; `null` when there is none. */
function wayBack(from: string, to: string, chains: ReadonlyMap<string, readonly string[]>): string[] | null {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  for (const id of cameFrom.keys()) {
    if (id === to) {
      const way: string[] = [];
      for (let step: string | null = id; step !== null; step = cameFrom.get(step) ?? null) way.unshift(step);
      return way;
    }
    // keys that are added while walking are walked too: breadth first, each model once
    for (const next of chains.get(id) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, id);
  }
  return null;
}
