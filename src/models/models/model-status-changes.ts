import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { MODELS, STATUS } from './logical-model.reads.ts';

const STATUSES = `select t.logical_model_id as id, t.name, ${STATUS} as status from ${MODELS}
  where t.id in (select model_id from model_targets where provider_account_id = $1) order by t.id`;

/**
 * Runs a change of an account or of the health of its targets, and emits the event `model.updated` with the new status
 * for each model whose derived status changed. Locks the models until the transaction ends: lock the account before,
 * its targets after.
 */
export async function emitModelStatusChanges<T>(
  tx: Tx,
  { id, orgId }: { id: string; orgId: string },
  change: () => Promise<T>,
): Promise<T> {
  const read = () => tx.query<{ id: string; name: string; status: string }>({ text: STATUSES, values: [id] });
  // Of two changes at two accounts of one model, the later must see the effect of the earlier: otherwise both could
  // miss that the status changed.
  const atAccount = statement`t.id in (select model_id from model_targets where provider_account_id = ${id})`;
  await tx.lockAll('logical_models', atAccount, 'no key update');
  const before = new Map((await read()).map((model) => [model.id, model.status]));
  const result = await change();
  for (const { id: modelId, name, status } of await read())
    if (before.get(modelId) !== status)
      emitChange(tx, 'updated', 'model', { id: modelId, orgId }, { status }, { name });
  return result;
}
