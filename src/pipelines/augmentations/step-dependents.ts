import { recordChange } from '../../data/record-change.ts';
import { MAX_DEPENDENTS, type RowDependent, type RowDependents } from '../../data/row-dependents.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';

interface DependentRow {
  id: string;
  workspaceId: string;
  appId: string;
  keys: string[];
}

const dependentOf = ({ id, workspaceId, appId, keys }: DependentRow): RowDependent => ({
  resource_type: 'augmentation',
  resource_id: id,
  workspace_id: workspaceId,
  app_id: appId,
  steps: keys,
});

/** The augmentations of an organization, the first of the values, with steps `p` that a condition names. */
async function dependentsWith(tx: Tx, condition: string, values: readonly unknown[]): Promise<RowDependent[]> {
  const rows = await tx.query<DependentRow>({
    text: `select t.id, t.workspace_id as "workspaceId", t.app_id as "appId", array_agg(p.key order by p.key) as keys
      from augmentations t join augmentation_stages g on g.augmentation_id = t.id
      join augmentation_steps p on p.stage_id = g.id
      where t.org_id = $1 and ${condition}
      group by t.id order by t.id limit ${MAX_DEPENDENTS}`,
    values: [...values],
  });
  return rows.map(dependentOf);
}

/** The augmentations with steps that use tool instances. Without them, steps still name their tools: they miss them. */
export const instanceDependents: RowDependents<WorkspacePlace & { ids: readonly string[] }> = {
  lock: (tx, { ids, orgId, workspaceId }) =>
    tx.lockUnread(
      'augmentations',
      statement`t.org_id = ${orgId} and t.workspace_id = ${workspaceId} and exists (
        select 1 from augmentation_stages g join augmentation_steps p on p.stage_id = g.id
        where g.augmentation_id = t.id and p.tool_instance_id = any(${ids}::text[]))`,
      'no key update',
    ),
  find: (tx, { ids, orgId, workspaceId }) =>
    dependentsWith(tx, 't.workspace_id = $2 and p.tool_instance_id = any($3::text[])', [orgId, workspaceId, ids]),
  detach: async (tx, { ids, orgId, workspaceId }) => {
    const changed = await tx.query<{ id: string; appId: string }>(statement`
      with released as (update augmentation_steps p set tool_instance_id = null
          from augmentation_stages g join augmentations t on t.id = g.augmentation_id
          where p.stage_id = g.id and t.org_id = ${orgId} and t.workspace_id = ${workspaceId}
            and p.tool_instance_id = any(${ids}::text[])
          returning t.id, t.app_id)
      select distinct r.id, r.app_id as "appId" from released r order by 1`);
    tx.write(raiseVersions(changed.map((one) => one.id)));
    for (const one of changed)
      recordChange(tx, 'update', 'augmentation', { ...one, orgId, workspaceId }, { fields: ['stages'] });
  },
};

/** The augmentations with steps that name a model. They go on naming it, and miss it: a later one may have its name. */
export const modelDependents: Pick<RowDependents<OrganizationPlace & { logicalModelId: string }>, 'find'> = {
  find: (tx, { orgId, logicalModelId }) => dependentsWith(tx, 'p.logical_model_id = $2', [orgId, logicalModelId]),
};

/** Raises the versions of augmentations whose steps were changed by themselves: they are a part of them. */
export const raiseVersions = (augmentationIds: readonly string[]): Statement =>
  statement`update augmentations set resource_version = resource_version + 1, updated_at = now()
    where id = any(${augmentationIds}::text[])`;
