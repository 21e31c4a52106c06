import { bulkInsertOf } from '../../data/bulk-insert.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import { newApp } from '../../tenancy/apps/app.service.ts';
import { newNamespace, slugOf } from '../../tenancy/namespaces/namespace.service.ts';
import { lockWorkspace } from '../../tenancy/workspaces/workspace.service.ts';
import { demandInstances } from '../../tools/tool-instances/kept-instances.ts';
import { newAction } from '../actions/action.service.ts';
import { insertAugmentation } from '../augmentations/augmentation.service.ts';
import type { KeyedStage } from '../augmentations/augmentation-stages.ts';
import { newEndpoint } from '../endpoints/endpoint.service.ts';
import { startOf } from './recipe-check.ts';
import { endpointsOf, isRunning } from './recipe-document.ts';
import type { RecipePlan } from './recipe-plan.ts';
import { stepName } from './recipe-references.ts';
import type { Surroundings } from './recipe-surroundings.ts';

/** The identifiers of what was made; without any after a dry run. */
export interface MadeByRecipe {
  appId: string | null;
  namespaceId: string | null;
  /** The first augmentation, and the main endpoint. */
  augmentationId: string | null;
  endpointId: string | null;
  stageIds: string[];
  stepIds: string[];
}

/**
 * Writes all parts of a plan, each with its record and its events as if it was made by itself.
 * @throws RESOURCE_NOT_FOUND `workspace`, or `tool_instance` for one that was deleted just now
 */
export async function applyPlan(
  tx: Tx,
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  plan: RecipePlan,
  surroundings: Surroundings,
): Promise<MadeByRecipe> {
  const { definition, ids, recipe } = plan;
  const idOf = (name: string) => ids.get(name)!;
  const appId = idOf('app');
  const namespaceId = idOf('namespace');
  const place = { orgId, workspaceId, appId };
  // namespaces that recipes make get their slugs one after the other
  await lockWorkspace(tx, { orgId, workspaceId }, 'no key update');
  const { slug, name } = await freeName(tx, { orgId, workspaceId }, plan);
  const { namespace, augmentations } = definition;

  const namespaceRow = { id: namespaceId, orgId, workspaceId };
  tx.insert('namespaces', newNamespace(caller, namespaceRow, { ...namespace, name, slug }));
  recordChange(tx, 'create', 'namespace', namespaceRow);
  demandInstances(
    tx,
    definition.steps.map((step) => surroundings.instanceOf(step)),
  );
  const { main, ...made } = insertApp(tx, caller, place, plan, {
    instanceOf: surroundings.instanceOf,
    isHeld: surroundings.missing.length > 0,
  });

  const [first] = augmentations;
  const answer = {
    appId,
    namespaceId,
    augmentationId: first ? idOf(`augmentation.${first.key}`) : null,
    endpointId: main?.id ?? null,
    ...made,
  };
  const data = { app_id: appId, namespace_id: namespaceId };
  tx.audit({ action: 'apply', resourceType: 'recipe', resourceId: recipe.id, ...place, metadata: data });
  emitChange(tx, 'applied', 'recipe', { id: recipe.id, ...place, namespaceId }, data);
  return answer;
}

/** What the parts of an app need to know of what is around it. */
interface AroundApp extends Pick<Surroundings, 'instanceOf'> {
  /** Whether schedules wait: they would run an app that lacks something. */
  isHeld: boolean;
}

/** An app with all its parts. The tool instances of its steps are kept by the caller. */
export function insertApp(
  tx: Tx,
  caller: Caller,
  place: AppPlace,
  plan: Pick<RecipePlan, 'definition' | 'ids'>,
  { instanceOf, isHeld }: AroundApp,
): Pick<MadeByRecipe, 'stageIds' | 'stepIds'> & { main: { id: string } | undefined } {
  tx.insert('apps', newApp(caller, { ...place, id: place.appId }, plan.definition.app));
  recordChange(tx, 'create', 'app', { id: place.appId, ...place });
  const made = insertAugmentations(tx, caller, place, plan, instanceOf);
  const [main] = insertEndpoints(tx, caller, place, plan);
  insertActions(tx, caller, place, plan, isHeld);
  return { ...made, main };
}

/** The augmentations with their stages and steps. @returns the identifiers of the latter, in their order */
function insertAugmentations(
  tx: Tx,
  caller: Caller,
  place: AppPlace,
  { definition: { augmentations, stages, steps }, ids }: Pick<RecipePlan, 'definition' | 'ids'>,
  instanceOf: Surroundings['instanceOf'],
): Pick<MadeByRecipe, 'stageIds' | 'stepIds'> {
  const made: Pick<MadeByRecipe, 'stageIds' | 'stepIds'> = { stageIds: [], stepIds: [] };
  const stepsBelow = grouped(steps, ({ stage }) => stage);
  const stagesBelow = grouped(stages, ({ augmentation }) => augmentation);
  for (const { key, ...augmentation } of augmentations) {
    const row = { id: ids.get(`augmentation.${key}`)!, ...place };
    const inputs = (stagesBelow.get(key) ?? []).map(
      (stage): KeyedStage => ({
        stageId: ids.get(`stage.${stage.key}`)!,
        name: stage.name,
        executionMode: stage.execution_mode,
        steps: (stepsBelow.get(stage.key) ?? []).map((step) => ({
          stepId: ids.get(stepName(key, step.key))!,
          key: step.key,
          name: step.name,
          stepType: step.step_type,
          config: step.config,
          logicalModelId: step.model,
          toolInstanceId: instanceOf(step),
          toolSlug: step.tool,
          action: step.action,
        })),
      }),
    );
    const { stageIds, stepIds } = insertAugmentation(tx, caller, row, {
      ...augmentation,
      metadata: (augmentation.metadata ?? {}) as Parameters<typeof insertAugmentation>[3]['metadata'],
      status: augmentation.status ?? 'active',
      stages: inputs,
    });
    made.stageIds.push(...stageIds);
    made.stepIds.push(...stepIds);
    recordChange(tx, 'create', 'augmentation', row);
  }
  return made;
}

const inApp = { id: 'text', orgId: 'text', workspaceId: 'text', appId: 'text', createdBy: 'text' } as const;
const running = { name: 'text', description: 'text', augmentationId: 'text', enabled: 'boolean' } as const;
const endpointRows = bulkInsertOf('endpoints', {
  ...inApp,
  ...running,
  path: 'text',
  method: 'text',
  metadata: 'jsonb',
});
const actionRows = bulkInsertOf('actions', {
  ...inApp,
  ...running,
  kind: 'text',
  triggerEvent: 'text',
  cron: 'text',
  timezone: 'text',
  input: 'jsonb',
  nextFireAt: 'timestamptz',
});

/** The endpoints, the main one first. */
function insertEndpoints(
  tx: Tx,
  caller: Caller,
  place: AppPlace,
  { definition, ids }: Pick<RecipePlan, 'definition' | 'ids'>,
): { id: string }[] {
  const rows = endpointsOf(definition).map(({ key, augmentation, metadata, method, enabled, ...rest }) => {
    const row = { id: ids.get(`endpoint.${key}`)!, ...place };
    recordChange(tx, 'create', 'endpoint', row);
    return newEndpoint(caller, row, {
      ...rest,
      augmentationId: ids.get(`augmentation.${augmentation}`)!,
      method: method ?? undefined,
      enabled: enabled ?? undefined,
      metadata: (metadata ?? {}) as Parameters<typeof newEndpoint>[2]['metadata'],
    });
  });
  if (rows.length > 0) tx.write(endpointRows(rows));
  return rows;
}

/** @param isHeld whether schedules wait: they would run an app that lacks something */
function insertActions(
  tx: Tx,
  caller: Caller,
  place: AppPlace,
  { definition: { actions }, ids }: Pick<RecipePlan, 'definition' | 'ids'>,
  isHeld: boolean,
): void {
  const rows = (actions ?? []).map((action) => {
    const row = { id: ids.get(`action.${action.key}`)!, ...place };
    recordChange(tx, 'create', 'action', row);
    return newAction(caller, row, {
      name: action.name,
      description: action.description,
      augmentationId: ids.get(`augmentation.${action.augmentation}`)!,
      enabled: isHeld && isRunning(action) ? false : (action.enabled ?? undefined),
      input: (action.input ?? {}) as Parameters<typeof newAction>[2]['input'],
      ...startOf(action),
    });
  });
  if (rows.length > 0) tx.write(actionRows(rows));
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Most numbers that are tried for a slug; after them comes the identifier. */
const MOST_ALIKE = 1_000;
const MAX_SLUG = 64;

/** The name and the slug of the namespace, with a number if the workspace has the slug already. */
async function freeName(
  tx: Tx,
  { orgId, workspaceId }: WorkspacePlace,
  { definition: { namespace }, ids }: RecipePlan,
): Promise<{ name: string; slug: string }> {
  const id = ids.get('namespace')!;
  const base = namespace.slug ?? slugOf(namespace.name, id);
  const short = base.slice(0, MAX_SLUG - `-${MOST_ALIKE}`.length).replace(/-$/, '');
  const [found] = await tx.query<{ n: number }>(statement`
    select n from generate_series(1, ${MOST_ALIKE}::int) n
    where (n > 1 or ${base}::text <> ${DEFAULT_NAMESPACE}::text) and not exists (select 1 from namespaces
      where org_id = ${orgId} and workspace_id = ${workspaceId}
        and slug = case n when 1 then ${base}::text else ${short}::text || '-' || n end)
    order by n limit 1`);
  if (found?.n === 1) return { name: namespace.name, slug: base };
  const suffix = found ? String(found.n) : id.slice(-26).toLowerCase();
  const whole = found ? `${short}-${suffix}` : `${short.slice(0, MAX_SLUG - suffix.length - 1)}-${suffix}`;
  return { name: `${[...namespace.name].slice(0, 250 - suffix.length).join('')} ${suffix}`, slug: whole };
}
