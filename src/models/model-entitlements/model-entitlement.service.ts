import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { Given } from '../../data/given.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ModelEntitlement as EntitlementRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { storedLimits, type WorkspaceLimits, type WorkspaceLimitsInput } from './workspace-limits.ts';

const plain = columnsOf(
  words(
    'id orgId workspaceId logicalModelId workspaceLimits allowedStepTypes allowedEndpoints allowedPurposes enabled',
    'lastUsedAt grantedBy createdAt updatedAt resourceVersion',
  ),
);

/** An entitlement as callers see it. */
export interface ModelEntitlement extends Omit<Pick<EntitlementRow, keyof typeof plain>, 'workspaceLimits'> {
  workspaceLimits: WorkspaceLimits;
  requestCount: number;
  totalTokens: number;
}

/** An empty list allows everything. */
type Lists = 'allowedStepTypes' | 'allowedEndpoints' | 'allowedPurposes';

interface UpdateModelEntitlement extends Given<EntitlementRow, Lists | 'enabled'> {
  /** Replaces all limits. `null` removes them. */
  workspaceLimits?: WorkspaceLimitsInput | null;
}

export type CreateModelEntitlement = UpdateModelEntitlement & Pick<EntitlementRow, 'logicalModelId'>;

type EntitlementArgs = PageArgs & { enabledOnly?: boolean | null };

const limitsJson = ({ workspaceLimits }: UpdateModelEntitlement) =>
  ({ ...storedLimits(workspaceLimits) }) as Prisma.InputJsonObject;

/**
 * Which workspaces may use which models, and how much. An entitlement is identified by its model within the workspace.
 */
export class ModelEntitlementService {
  readonly reads: Reads<ModelEntitlement, WorkspacePlace, EntitlementArgs>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      kind: 'model_entitlement',
      from: 'model_entitlements',
      below: ['orgId', 'workspaceId'],
      known: { by: 'logicalModelId' },
      columns: { ...plain, requestCount: 't.request_count::float8', totalTokens: 't.total_tokens::float8' },
      filters: ({ enabledOnly }) => ({ 't.enabled = ?': enabledOnly || undefined }),
    });
  }

  /** @throws RESOURCE_NOT_FOUND `model`, RESOURCE_ALREADY_EXISTS if the workspace already has the model */
  async create(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    input: CreateModelEntitlement,
  ): Promise<ModelEntitlement> {
    const { orgId, workspaceId } = place;
    const { logicalModelId } = input;
    await this.#deps.changes.run(caller, async (tx) => {
      // The lock makes the second of two concurrent grants find the first, and keeps the model from being deleted
      // meanwhile.
      const model = await tx.lock('logical_models', { orgId, logicalModelId }, 'no key update', () =>
        notFound('model', logicalModelId),
      );
      const same = await findRow(tx, 'model_entitlements', { workspaceId, logicalModelId });
      if (same) throw alreadyExists('model_entitlement', 'logical_model_id', logicalModelId, same.id);
      const id = newId('model_entitlement');
      insertEntitlement(tx, caller, { ...place, id, modelId: model.id }, input);
    });
    return this.reads.get(noCache, place, logicalModelId);
  }

  /** Changes the given fields. @throws RESOURCE_NOT_FOUND */
  async update(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    logicalModelId: string,
    input: UpdateModelEntitlement,
  ): Promise<ModelEntitlement> {
    await this.#deps.changes.run(caller, async (tx) => {
      const { id } = await lockEntitlement(tx, place, logicalModelId);
      const set = {
        workspaceLimits: input.workspaceLimits === undefined ? undefined : limitsJson(input),
        allowedStepTypes: input.allowedStepTypes ?? undefined,
        allowedEndpoints: input.allowedEndpoints ?? undefined,
        allowedPurposes: input.allowedPurposes ?? undefined,
        enabled: input.enabled ?? undefined,
      };
      tx.update('model_entitlements', { id }, set);
      const metadata = { logical_model_id: logicalModelId, fields: Object.keys(input) };
      recordChange(tx, 'update', 'model_entitlement', { id, ...place }, metadata);
    });
    return this.reads.get(noCache, place, logicalModelId);
  }

  /** Removes the model from the workspace, with its usage counts. @throws RESOURCE_NOT_FOUND */
  async delete(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    logicalModelId: string,
  ): Promise<Deleted<WorkspacePlace & { logicalModelId: string }>> {
    return this.#deps.changes.run(caller, async (tx) => {
      const { id } = await lockEntitlement(tx, place, logicalModelId);
      tx.remove('model_entitlements', { id });
      recordChange(tx, 'delete', 'model_entitlement', { id, ...place }, { logical_model_id: logicalModelId });
      return { ...place, id, logicalModelId };
    });
  }
}

/** Locks an entitlement for a change, at the expected version. @throws RESOURCE_NOT_FOUND */
async function lockEntitlement(tx: Tx, place: WorkspacePlace, logicalModelId: string): Promise<EntitlementRow> {
  const key = { orgId: place.orgId, workspaceId: place.workspaceId, logicalModelId };
  await tx.expectVersion({ table: 'model_entitlements', key });
  return tx.lock('model_entitlements', key, 'no key update', () => notFound('model_entitlement', logicalModelId));
}

/** Writes an entitlement to a locked model, with its record and its event. */
function insertEntitlement(
  tx: Tx,
  caller: Caller,
  { id, modelId, orgId, workspaceId }: WorkspacePlace & { id: string; modelId: string },
  input: CreateModelEntitlement,
): void {
  const { logicalModelId } = input;
  tx.insert('model_entitlements', {
    id,
    orgId,
    workspaceId,
    modelId,
    logicalModelId,
    workspaceLimits: limitsJson(input),
    allowedStepTypes: input.allowedStepTypes ?? [],
    allowedEndpoints: input.allowedEndpoints ?? [],
    allowedPurposes: input.allowedPurposes ?? [],
    enabled: input.enabled ?? true,
    grantedBy: caller.principal.userId,
  });
  recordChange(tx, 'create', 'model_entitlement', { id, orgId, workspaceId }, { logical_model_id: logicalModelId });
}

/**
 * Grants several models to a workspace, as a part of a larger change. One whose model is gone meanwhile is left out.
 * @returns the identifiers of the entitlements, by model
 */
export async function insertEntitlements(
  tx: Tx,
  caller: Caller,
  place: WorkspacePlace,
  inputs: readonly CreateModelEntitlement[],
): Promise<Map<string, string>> {
  if (inputs.length === 0) return new Map();
  const names = inputs.map(({ logicalModelId }) => logicalModelId);
  const models = await tx.lockAll(
    'logical_models',
    statement`t.org_id = ${place.orgId} and t.logical_model_id = any(${names}::text[])`,
    'no key update',
  );
  const ids = new Map(models.map(({ id, logicalModelId }) => [logicalModelId, id]));
  const made = new Map<string, string>();
  for (const input of inputs) {
    const modelId = ids.get(input.logicalModelId);
    if (!modelId) continue;
    const id = newId('model_entitlement');
    insertEntitlement(tx, caller, { ...place, id, modelId }, input);
    made.set(input.logicalModelId, id);
  }
  return made;
}
