import type { PrismaTx } from '../data/changes.ts';
import { emitChange } from '../data/record-change.ts';
import { MODELS, STATUS } from './logical-model.source.ts';

const STATUSES = `select t.logical_model_id as id, ${STATUS} as status from ${MODELS}
  where t.id in (select model_id from model_targets where provider_account_id = $1) order by t.id`;

// of two changes at two accounts of one model, the later sees what the earlier did: only so none of them misses that the status moved
const HOLD = `select 1 from logical_models where id in (select model_id from model_targets where provider_account_id = $1)
  order by id for no key update`;

/**
 * Runs a change of an account or of the health of its targets, and tells of each model whose derived status moved with it: the event
 * `model.updated` with the new status. The models are held until the transaction ends: take the account before, its targets after.
 */
export async function tellingOfModels<T>(
  tx: PrismaTx,
  { id, orgId }: { id: string; orgId: string },
  change: () => Promise<T>,
): Promise<T> {
  const read = () => tx.db.$queryRawUnsafe<{ id: string; status: string }[]>(STATUSES, id);
  await tx.db.$queryRawUnsafe(HOLD, id);
  const before = new Map((await read()).map((model) => [model.id, model.status]));
  const result = await change();
  for (const { id: modelId, status } of await read())
    if (before.get(modelId) !== status) emitChange(tx, 'updated', 'model', { id: modelId, orgId }, { status });
  return result;
}
