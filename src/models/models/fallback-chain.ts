import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { InputError, type InputIssue } from '../../kernel/errors.ts';

/**
 * Locks the models of an organization until the transaction ends, for changes of fallback chains: two changes that are
 * valid alone must not form a cycle together.
 */
export async function lockModels(tx: Tx, orgId: string): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`models of ${orgId}`}, 0))`);
}

/**
 * Checks a chain: it names other models of the organization, each once, and does not lead back to the model itself. The
 * models must be locked.
 * @throws InputError at each wrong item
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

interface ChainSurroundings {
  logicalModelId: string;
  chain: readonly string[];
  chains: ReadonlyMap<string, readonly string[]>;
}

function problemOf(id: string, index: number, { logicalModelId, chain, chains }: ChainSurroundings): string | null {
  if (id === logicalModelId) return 'a model cannot fall back to itself';
  if (chain.indexOf(id) < index) return `'${id}' is in the chain already`;
  if (!chains.has(id)) return `there is no model '${id}' in the organization`;
  const way = wayBack(id, logicalModelId, chains);
  return way ? `it leads back to '${logicalModelId}': ${way.join(' → ')}` : null;
}

/** The shortest path from one model to another along the chains; `null` if there is none. */
function wayBack(from: string, to: string, chains: ReadonlyMap<string, readonly string[]>): string[] | null {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  for (const id of cameFrom.keys()) {
    if (id === to) {
      const way: string[] = [];
      for (let step: string | null = id; step !== null; step = cameFrom.get(step) ?? null) way.unshift(step);
      return way;
    }
    // The loop also visits keys that are added during iteration: breadth first, each model once.
    for (const next of chains.get(id) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, id);
  }
  return null;
}
