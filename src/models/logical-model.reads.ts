import { notFound } from '../core/errors.ts';
import type { PrismaTx } from '../data/changes.ts';
import { NestedList, nestedRow } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { countPages, filtersOf, type PageSource, readPage } from '../data/pages.ts';
import { emitChange } from '../data/record-change.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type LogicalModel, MODELS, modelsSource, STATUS } from './logical-model.source.ts';

export interface ModelFilters {
  modelType?: string | null;
  /** The status that is shown, derived or set by hand. */
  status?: string | null;
  /** Those that are enabled, healthy or not (defaults §8). */
  enabledOnly?: boolean | null;
}

const one: PageSource<LogicalModel> = { ...modelsSource, where: ['t.org_id = $1', 't.logical_model_id = $2'] };
const anywhere: PageSource<LogicalModel> = { ...modelsSource, where: ['t.id = $1'] };
// who only counts needs no targets
const bare: PageSource<LogicalModel> = { ...modelsSource, from: 'logical_models t' };

const withFilters = ({ modelType, status, enabledOnly }: ModelFilters) =>
  filtersOf({ 't.model_type = ?': modelType, [`${STATUS} = ?`]: status, 't.enabled = ?': enabledOnly || undefined });

/** Reads of models; each is known by the identifier that its organization gave it. */
export class LogicalModelReads {
  readonly #deps: ServiceDeps;
  readonly #list: NestedList<LogicalModel>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'logical_models', modelsSource, (parents) =>
      countPages(deps.sql, bare, parents, []),
    );
  }

  async list(orgId: string, { first, after, ...filters }: PageArgs & ModelFilters): Promise<Page<LogicalModel>> {
    return this.#list.page([orgId], { first, after }, withFilters(filters));
  }

  /** The same list below an organization of a list. */
  async listNested(
    memory: RequestCache,
    orgId: string,
    { first, after, ...filters }: PageArgs & ModelFilters,
  ): Promise<Page<LogicalModel>> {
    return this.#list.nested(memory, [orgId], { first, after }, withFilters(filters));
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(orgId: string, logicalModelId: string): Promise<LogicalModel> {
    const request = { values: [orgId, logicalModelId], after: null, limit: 1 };
    const { rows } = await readPage(this.#deps.sql, one, request);
    if (!rows[0]) throw notFound('model', logicalModelId);
    return rows[0];
  }

  /** The same, read together with all that are asked for in this request. @throws RESOURCE_NOT_FOUND */
  async nested(memory: RequestCache, orgId: string, logicalModelId: string): Promise<LogicalModel> {
    const model = await nestedRow(memory, this.#deps.sql, 'model', one, [orgId, logicalModelId]);
    if (!model) throw notFound('model', logicalModelId);
    return model;
  }

  /** A model of any organization by its `mdl_…`: whoever asks has to check. */
  async findAnywhere(id: string): Promise<LogicalModel | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }
}

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
