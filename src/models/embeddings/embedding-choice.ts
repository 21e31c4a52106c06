import { findRow } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { EMBEDDING } from './embeddings.ts';

/**
 * Checks the embedding model that a workspace chooses. Whether it may use it, and whether anything serves it, is asked
 * when it is used: both may change.
 * @throws InputError unless the organization has such a model
 */
export async function demandEmbeddingModel(tx: Tx, orgId: string, logicalModelId: string): Promise<void> {
  const model = await findRow(tx, 'logical_models', { orgId, logicalModelId });
  if (!model)
    throw invalidInput(['input', 'embeddingModelId'], `there is no model '${logicalModelId}' in the organization`);
  if (model.modelType !== EMBEDDING)
    throw invalidInput(
      ['input', 'embeddingModelId'],
      `the model '${logicalModelId}' is of the type '${model.modelType}'`,
    );
}
