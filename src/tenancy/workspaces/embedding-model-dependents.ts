import { MAX_DEPENDENTS, type RowDependent, type RowDependents } from '../../data/row-dependents.ts';
import { statement } from '../../data/writes.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';

/** The workspaces whose artifacts a model embeds. They go on naming it, and are searched by words alone without it. */
export const embeddingModelDependents: Pick<RowDependents<OrganizationPlace & { logicalModelId: string }>, 'find'> = {
  find: async (tx, { orgId, logicalModelId }) => {
    const rows = await tx.query<{ id: string }>(statement`select id from workspaces
      where org_id = ${orgId} and embedding_model_id = ${logicalModelId} and deleted_at is null
      order by id limit ${MAX_DEPENDENTS}`);
    return rows.map(({ id }): RowDependent => ({ resource_type: 'workspace', resource_id: id }));
  },
};
