import type { Actor } from '../access/caller.ts';
import { alreadyExists, notFound } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import { NestedList, nestedRow } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, filtersOf, type PageSource, readPage } from '../data/pages.ts';
import { recordChange } from '../data/record-change.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type ModelEntitlement as EntitlementRow, Prisma } from '../generated/prisma/client.ts';
import { storedLimits, type WorkspaceLimits, type WorkspaceLimitsInput } from './workspace-limits.ts';

/** An entitlement as it is shown. */
export interface ModelEntitlement
  extends Omit<EntitlementRow, 'modelId' | 'workspaceLimits' | 'requestCount' | 'totalTokens'> {
  workspaceLimits: WorkspaceLimits;
  requestCount: number;
  totalTokens: number;
}

export interface UpdateModelEntitlement {
  /** Replaced whole; null takes all limits away. */
  workspaceLimits?: WorkspaceLimitsInput | null;
  /** An empty list allows everything. */
  allowedStepTypes?: string[] | null;
  allowedEndpoints?: string[] | null;
  allowedPurposes?: string[] | null;
  enabled?: boolean | null;
}

export interface CreateModelEntitlement extends UpdateModelEntitlement {
  logicalModelId: string;
}

/** A workspace. */
interface Place {
  orgId: string;
  workspaceId: string;
}

const { modelId: _internal, ...columns } = columnsOf(Object.values(Prisma.ModelEntitlementScalarFieldEnum));

/** The entitlements of a workspace, newest first. */
const source: PageSource<ModelEntitlement> = {
  from: 'model_entitlements t',
  columns: { ...columns, requestCount: 't.request_count::float8', totalTokens: 't.total_tokens::float8' },
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', 't.workspace_id = $2'],
};
const one: PageSource<ModelEntitlement> = { ...source, where: [...source.where, 't.logical_model_id = $3'] };
const anywhere: PageSource<ModelEntitlement> = { ...source, where: ['t.id = $1'] };

export interface EntitlementFilters {
  enabledOnly?: boolean | null;
}
const withFilters = ({ enabledOnly }: EntitlementFilters) => filtersOf({ 't.enabled = ?': enabledOnly || undefined });

const limitsJson = ({ workspaceLimits }: UpdateModelEntitlement) =>
  ({ ...storedLimits(workspaceLimits) }) as Prisma.InputJsonObject;

/** Which workspaces may use which models, and how much. An entitlement is known by its model within the workspace. */
export class ModelEntitlementService {
  readonly #deps: ServiceDeps;
  readonly #list: NestedList<ModelEntitlement>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'model_entitlements', source);
  }

  async list(
    { orgId, workspaceId }: Place,
    { first, after, ...filters }: PageArgs & EntitlementFilters,
  ): Promise<Page<ModelEntitlement>> {
    return this.#list.page([orgId, workspaceId], { first, after }, withFilters(filters));
  }

  /** The same list below a workspace of a list. */
  async listNested(
    memory: RequestCache,
    { orgId, workspaceId }: Place,
    { first, after, ...filters }: PageArgs & EntitlementFilters,
  ): Promise<Page<ModelEntitlement>> {
    return this.#list.nested(memory, [orgId, workspaceId], { first, after }, withFilters(filters));
  }

  /** @throws RESOURCE_NOT_FOUND with the model's identifier */
  async get({ orgId, workspaceId }: Place, logicalModelId: string): Promise<ModelEntitlement> {
    const request = { values: [orgId, workspaceId, logicalModelId], after: null, limit: 1 };
    const { rows } = await readPage(this.#deps.sql, one, request);
    if (!rows[0]) throw notFound('model_entitlement', logicalModelId);
    return rows[0];
  }

  /** The same, read together with all that are asked for in this request; `null` where the workspace has none. */
  async findNested(memory: RequestCache, place: Place, logicalModelId: string): Promise<ModelEntitlement | null> {
    const key = [place.orgId, place.workspaceId, logicalModelId];
    return nestedRow(memory, this.#deps.sql, 'model_entitlement', one, key);
  }

  /** An entitlement of any organization by its `ment_…`: whoever asks has to check. */
  async findAnywhere(id: string): Promise<ModelEntitlement | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }

  /** @throws RESOURCE_NOT_FOUND `model`, RESOURCE_ALREADY_EXISTS for a model that the workspace may use already */
  async create(actor: Actor, place: Place, input: CreateModelEntitlement): Promise<ModelEntitlement> {
    const { orgId, workspaceId } = place;
    const { logicalModelId } = input;
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      // held: of two grants at the same time the second finds the first, and the model is not deleted meanwhile
      const [model] = await tx.db.$queryRaw<{ id: string }[]>`select id from logical_models
        where org_id = ${orgId} and logical_model_id = ${logicalModelId} for no key update`;
      if (!model) throw notFound('model', logicalModelId);
      const same = await tx.db.modelEntitlement.findUnique({
        where: { workspaceId_logicalModelId: { workspaceId, logicalModelId } },
        select: { id: true },
      });
      if (same) throw alreadyExists('model_entitlement', 'logical_model_id', logicalModelId, same.id);
      const id = newId('model_entitlement');
      await tx.db.modelEntitlement.create({
        data: {
          id,
          orgId,
          workspaceId,
          modelId: model.id,
          logicalModelId,
          workspaceLimits: limitsJson(input),
          allowedStepTypes: input.allowedStepTypes ?? [],
          allowedEndpoints: input.allowedEndpoints ?? [],
          allowedPurposes: input.allowedPurposes ?? [],
          enabled: input.enabled ?? true,
          grantedBy: actor.principal.userId,
        },
      });
      recordChange(tx, 'create', 'model_entitlement', { id, ...place }, { logical_model_id: logicalModelId });
    });
    return this.get(place, logicalModelId);
  }

  /** Changes what is given; what is left out stays. @throws RESOURCE_NOT_FOUND */
  async update(
    actor: Actor,
    place: Place,
    logicalModelId: string,
    input: UpdateModelEntitlement,
  ): Promise<ModelEntitlement> {
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await tx.expectVersion({ table: 'model_entitlements', key: { ...place, logicalModelId } });
      const [row] = await tx.db.modelEntitlement.updateManyAndReturn({
        where: { ...place, logicalModelId },
        data: {
          workspaceLimits: input.workspaceLimits === undefined ? undefined : limitsJson(input),
          allowedStepTypes: input.allowedStepTypes ?? undefined,
          allowedEndpoints: input.allowedEndpoints ?? undefined,
          allowedPurposes: input.allowedPurposes ?? undefined,
          enabled: input.enabled ?? undefined,
        },
        select: { id: true },
      });
      if (!row) throw notFound('model_entitlement', logicalModelId);
      const metadata = { logical_model_id: logicalModelId, fields: Object.keys(input) };
      recordChange(tx, 'update', 'model_entitlement', { id: row.id, ...place }, metadata);
    });
    return this.get(place, logicalModelId);
  }

  /** Takes the model from the workspace, with what was counted of its use. @throws RESOURCE_NOT_FOUND */
  async delete(actor: Actor, place: Place, logicalModelId: string): Promise<void> {
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await tx.expectVersion({ table: 'model_entitlements', key: { ...place, logicalModelId } });
      const [row] = await tx.db.$queryRaw<{ id: string }[]>`delete from model_entitlements
        where org_id = ${place.orgId} and workspace_id = ${place.workspaceId} and logical_model_id = ${logicalModelId} returning id`;
      if (!row) throw notFound('model_entitlement', logicalModelId);
      const metadata = { logical_model_id: logicalModelId };
      recordChange(tx, 'delete', 'model_entitlement', { id: row.id, ...place }, metadata);
    });
  }
}
