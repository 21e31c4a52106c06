import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import { type Given, withoutNull } from '../../data/given.ts';
import type { PageArgs } from '../../data/page.ts';
import type { Words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { RowDependents } from '../../data/row-dependents.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { LogicalModel as ModelRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { checkFallbackChain, lockModels } from './fallback-chain.ts';
import { type LogicalModel, type ModelConstraints, type ModelFilters, models } from './logical-model.reads.ts';
import { lockTargets, replaceTargets, type TargetInput } from './model-target.writes.ts';

type Changeable = Words<
  | 'name description modelType capabilities defaultTemperature defaultTopP defaultMaxTokens fallbackChain enabled'
  | 'tags'
>;

interface UpdateLogicalModel extends Given<ModelRow, Changeable> {
  /** `deprecated` or `disabled` override the derived status; `active` and null return to it. */
  status?: string | null;
  targets?: TargetInput[] | null;
  constraints?: Given<ModelConstraints, keyof ModelConstraints> | null;
}

type CreateLogicalModel = Omit<UpdateLogicalModel, 'status'> & Pick<ModelRow, 'logicalModelId' | 'name'>;

interface ModelDeps extends ServiceDeps {
  /** What uses models. */
  dependents: readonly Pick<RowDependents<OrganizationPlace & { logicalModelId: string }>, 'find'>[];
}

/** The model catalogue of an organization. A model is identified by the identifier that its organization gave it. */
export class LogicalModelService {
  readonly reads: Reads<LogicalModel, OrganizationPlace, PageArgs & ModelFilters>;
  readonly #deps: ModelDeps;

  constructor(deps: ModelDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, models);
  }

  /** @throws RESOURCE_ALREADY_EXISTS, InputError for targets and fallbacks that do not belong to the organization */
  async create(caller: Caller, place: Checked<OrganizationPlace>, input: CreateLogicalModel): Promise<LogicalModel> {
    const { orgId } = place;
    const { logicalModelId } = input;
    await this.#deps.changes.run(caller, async (tx) => {
      await lockModels(tx, orgId);
      const checkTargets = await lockTargets(tx, orgId, input.targets ?? []);
      if (await findRow(tx, 'logical_models', { orgId, logicalModelId }))
        throw alreadyExists('model', 'logical_model_id', logicalModelId, logicalModelId);
      await checkFallbackChain(tx, orgId, logicalModelId, input.fallbackChain ?? []);
      const id = newId('model');
      checkTargets();
      tx.insert('logical_models', {
        id,
        orgId,
        logicalModelId,
        name: input.name,
        description: input.description ?? null,
        modelType: input.modelType ?? 'chat',
        capabilities: input.capabilities ?? {},
        defaultTemperature: input.defaultTemperature ?? null,
        defaultTopP: input.defaultTopP ?? null,
        defaultMaxTokens: input.defaultMaxTokens ?? null,
        fallbackChain: input.fallbackChain ?? [],
        constraints: constraintsOf(input.constraints),
        enabled: input.enabled ?? true,
        tags: input.tags ?? {},
        createdBy: caller.principal.userId,
      });
      if (input.targets) replaceTargets(tx, id, input.targets);
      recordChange(tx, 'create', 'model', { id: logicalModelId, orgId });
    });
    return this.reads.get(noCache, place, logicalModelId);
  }

  /** Changes the given fields. @throws RESOURCE_NOT_FOUND, InputError like {@link create} */
  async update(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    logicalModelId: string,
    input: UpdateLogicalModel,
  ): Promise<LogicalModel> {
    const { orgId } = place;
    await this.#deps.changes.run(caller, async (tx) => {
      await lockModels(tx, orgId);
      const checkTargets = await lockTargets(tx, orgId, input.targets ?? []);
      await tx.expectVersion({ table: 'logical_models', key: { orgId, logicalModelId } });
      const { id } = await tx.lock(
        'logical_models',
        { orgId, logicalModelId },
        'no key update',
        missing(logicalModelId),
      );
      if (input.fallbackChain) await checkFallbackChain(tx, orgId, logicalModelId, input.fallbackChain);
      checkTargets();
      const set = {
        name: input.name ?? undefined,
        description: input.description,
        modelType: input.modelType ?? undefined,
        statusByHand: input.status === 'active' ? null : input.status,
        capabilities: input.capabilities ?? undefined,
        defaultTemperature: input.defaultTemperature,
        defaultTopP: input.defaultTopP,
        defaultMaxTokens: input.defaultMaxTokens,
        fallbackChain: input.fallbackChain ?? undefined,
        constraints: input.constraints === undefined ? undefined : constraintsOf(input.constraints),
        enabled: input.enabled ?? undefined,
        tags: input.tags ?? undefined,
      };
      tx.update('logical_models', { id }, set);
      if (input.targets) replaceTargets(tx, id, input.targets);
      recordChange(tx, 'update', 'model', { id: logicalModelId, orgId }, { fields: Object.keys(input) });
    });
    return this.reads.get(noCache, place, logicalModelId);
  }

  /**
   * Deletes a model with its entitlements and removes it from all fallback chains, in one transaction and with an event
   * for each.
   * @param options.force also one that is in use
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `in_use` with `references` while steps or workspaces use it
   */
  async delete(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    logicalModelId: string,
    { force }: { force: boolean },
  ): Promise<Deleted<OrganizationPlace>> {
    const { changes, dependents } = this.#deps;
    return changes.run(caller, async (tx) => {
      await lockModels(tx, orgId);
      // Locks the entitlements before the model: a usage report locks an entitlement first, then the model and a
      // target.
      await tx.lockAll(
        'model_entitlements',
        statement`t.org_id = ${orgId} and t.logical_model_id = ${logicalModelId}`,
        'update',
      );
      const { id } = await tx.lock('logical_models', { orgId, logicalModelId }, 'update', missing(logicalModelId));
      await tx.expectVersion({ table: 'logical_models', key: { orgId, logicalModelId } });
      const references = [];
      if (!force) for (const { find } of dependents) references.push(...(await find(tx, { orgId, logicalModelId })));
      if (references.length > 0)
        throw conflict(
          'model',
          logicalModelId,
          'in_use',
          'Steps of augmentations use the model, or workspaces embed with it: change them first, or delete it with ' +
            '`force`.',
          { references },
        );
      const entitlements = await tx.query<{ id: string; workspaceId: string }>(statement`
        delete from model_entitlements where model_id = ${id} returning id, workspace_id as "workspaceId"`);
      const chains = await leaveChains(tx, orgId, logicalModelId);
      tx.remove('logical_models', { id });
      for (const { id, workspaceId } of entitlements)
        emitChange(tx, 'deleted', 'model_entitlement', { id, orgId, workspaceId });
      for (const id of chains) emitChange(tx, 'updated', 'model', { id, orgId });
      const metadata = { entitlements: entitlements.map(({ id }) => id), fallback_chains: chains };
      recordChange(tx, 'delete', 'model', { id: logicalModelId, orgId }, metadata);
      return { id, orgId };
    });
  }
}

const missing = (id: string) => () => notFound('model', id);

/** Removes a model from all fallback chains. @returns the models whose chains named it */
async function leaveChains(tx: Tx, orgId: string, logicalModelId: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(statement`
    update logical_models set fallback_chain = array_remove(fallback_chain, ${logicalModelId}), updated_at = now()
    where org_id = ${orgId} and ${logicalModelId} = any(fallback_chain) returning logical_model_id as id`);
  return rows.map(({ id }) => id).sort();
}

const nothingDemanded: ModelConstraints = {
  dataResidency: [],
  requireAuditLog: false,
  maxCostPer1kTokens: null,
  maxLatencyMs: null,
  allowCaching: null,
  cacheTtlSeconds: null,
};

/** All keys, as stored and shown. */
const constraintsOf = (input: UpdateLogicalModel['constraints']): object => ({
  ...nothingDemanded,
  ...withoutNull(input),
});
