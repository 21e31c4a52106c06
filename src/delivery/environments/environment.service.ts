import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { Given } from '../../data/given.ts';
import type { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Environment as EnvironmentRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { lockWorkspace } from '../../tenancy/workspaces/workspace.service.ts';
import type { SecretService } from '../../vault/secrets/secret.service.ts';
import { recordRemovals } from './deployment.records.ts';
import {
  type Environment,
  type EnvironmentListArgs,
  environmentReads,
  versionedEnvironment,
} from './environment.reads.ts';
import { lockSlotsOfEnvironment } from './slots.ts';

type UpdateEnvironment = Given<EnvironmentRow, 'name' | 'slug' | 'description' | 'isDefault' | 'status'>;
type CreateEnvironment = UpdateEnvironment & Pick<EnvironmentRow, 'name' | 'slug'>;
/** An environment as a part of a larger change: with the identifier that it gets. */
export type NewEnvironment = CreateEnvironment & { id: string };

/**
 * Environments of a workspace. As long as there are any, one of them is the default (defaults §6). An archived one is
 * the default only while all are archived; the next one that is created or activated then replaces it.
 */
export class EnvironmentService {
  readonly reads: Reads<Environment, WorkspacePlace, EnvironmentListArgs>;
  readonly #deps: ServiceDeps & { secrets: SecretService };

  constructor(deps: ServiceDeps & { secrets: SecretService }) {
    this.#deps = deps;
    this.reads = environmentReads(deps);
  }

  /**
   * The first environment of a workspace that is not archived becomes its default, whatever the input.
   * @throws RESOURCE_ALREADY_EXISTS for a slug that is taken
   */
  async create(caller: Caller, place: Checked<WorkspacePlace>, input: CreateEnvironment): Promise<Environment> {
    const { orgId, workspaceId } = place;
    const environment = await this.#deps.changes.run(caller, async (tx) => {
      await lockWorkspace(tx, place, 'no key update');
      await refuseTakenSlug(tx, workspaceId, input.slug);
      const id = newId('environment');
      const isDefault = input.isDefault === true || !(await hasDefault(tx, workspaceId));
      if (isDefault) await unsetDefault(tx, workspaceId);
      const { name, slug, description = null } = input;
      recordChange(tx, 'create', 'environment', { id, orgId, workspaceId }, { slug });
      const createdBy = caller.principal.userId;
      return tx.create('environments', { id, orgId, workspaceId, name, slug, description, isDefault, createdBy });
    });
    return { ...environment, activeDeployments: {} };
  }

  /**
   * Changes the given fields; omitted ones stay. A given value that equals the current one is not a change.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_ALREADY_EXISTS for a slug that is taken; RESOURCE_CONFLICT `slug_in_use`,
   * `default_environment`, `has_active_deployments`, `environment_archived`
   */
  async update(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    input: UpdateEnvironment,
  ): Promise<Environment> {
    await this.#deps.changes.run(caller, async (tx) => {
      await lockWorkspace(tx, place, 'no key update');
      const before = await lockAlone(tx, place, id);
      await tx.expectVersion(versionedEnvironment(id));
      const changes = changesOf(before, input);
      if (Object.keys(changes).length > 0) {
        await refuseForbidden(tx, before, changes);
        const isActivated = before.status === 'archived';
        if (isActivated && !before.isDefault && !(await hasDefault(tx, before.workspaceId))) changes.isDefault = true;
        if (changes.isDefault) await unsetDefault(tx, before.workspaceId);
        tx.update('environments', { id }, changes);
        recordChange(tx, 'update', 'environment', before, {
          fields: Object.keys(changes),
          ...(changes.status && { status: changes.status }),
        });
      }
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Undeploys everything in it, then deletes it with its secrets.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `default_environment`
   */
  async delete(caller: Caller, place: Checked<WorkspacePlace>, id: string): Promise<Deleted<WorkspacePlace>> {
    return this.#deps.changes.run(caller, async (tx) => {
      await lockWorkspace(tx, place, 'no key update');
      const environment = await lockAlone(tx, place, id);
      await tx.expectVersion(versionedEnvironment(id));
      if (environment.isDefault && (await othersOf(tx, environment)).length > 0) throw isTheDefault(id);
      recordRemovals(tx, caller, place, await lockSlotsOfEnvironment(tx, id));
      tx.remove('environments', { id });
      await this.#deps.secrets.placeDeleted(tx, { environmentId: id });
      recordChange(tx, 'delete', 'environment', environment, { slug: environment.slug });
      return environment;
    });
  }
}

type ChangedFields = Partial<Pick<EnvironmentRow, 'name' | 'slug' | 'description' | 'isDefault' | 'status'>>;

/** The fields of the input that differ from the row. */
function changesOf(
  before: EnvironmentRow,
  { name, slug, description, isDefault, status }: UpdateEnvironment,
): ChangedFields {
  const given = {
    name: name ?? undefined,
    slug: slug ?? undefined,
    description,
    isDefault: isDefault ?? undefined,
    status: status ?? undefined,
  };
  const differs = ([field, value]: [string, unknown]) =>
    value !== undefined && value !== before[field as keyof EnvironmentRow];
  return Object.fromEntries(Object.entries(given).filter(differs)) as ChangedFields;
}

async function refuseForbidden(tx: Tx, before: EnvironmentRow, changes: ChangedFields): Promise<void> {
  const { id, workspaceId } = before;
  if (before.status === 'archived' && (changes.status !== 'active' || Object.keys(changes).length > 1))
    throw conflict('environment', id, 'environment_archived', 'The environment is archived: activate it first.');
  if (changes.isDefault === false) throw isTheDefault(id);
  if (changes.slug !== undefined) {
    const records = await tx.query(statement`select 1 from deployments where environment_id = ${id} limit 1`);
    if (records.length > 0)
      throw conflict('environment', id, 'slug_in_use', 'The slug cannot change after the first deployment.');
    await refuseTakenSlug(tx, workspaceId, changes.slug);
  }
  if (changes.status === 'archived') await refuseToArchive(tx, before, changes.isDefault ?? before.isDefault);
}

async function refuseToArchive(tx: Tx, environment: EnvironmentRow, isDefault: boolean): Promise<void> {
  const { id } = environment;
  const filled = await lockSlotsOfEnvironment(tx, id);
  if (filled.length > 0)
    throw conflict(
      'environment',
      id,
      'has_active_deployments',
      'Undeploy all releases before you archive the environment.',
      {
        references: filled.map(({ appId }) => ({ resource_type: 'app', resource_id: appId })),
      },
    );
  const others = await othersOf(tx, environment);
  if (isDefault && others.some(({ status }) => status !== 'archived')) throw isTheDefault(id);
}

/** The other environments of its workspace. */
async function othersOf(tx: Tx, { id, workspaceId }: EnvironmentRow): Promise<{ status: string }[]> {
  return tx.query(statement`select status from environments where workspace_id = ${workspaceId} and id <> ${id}`);
}

const isTheDefault = (id: string) =>
  conflict(
    'environment',
    id,
    'default_environment',
    'This is the default environment: make another environment the default first.',
  );

/** Whether a workspace has a default environment that can be deployed to. */
async function hasDefault(tx: Tx, workspaceId: string): Promise<boolean> {
  const found = await findRow(tx, 'environments', { workspaceId, isDefault: true });
  return found !== null && found.status !== 'archived';
}

/** Unsets the current default, if there is one. */
async function unsetDefault(tx: Tx, workspaceId: string): Promise<void> {
  const environment = await findRow(tx, 'environments', { workspaceId, isDefault: true });
  if (!environment) return;
  await tx.written(
    tx.change('environments', { id: environment.id }, { isDefault: false }, () => isTheDefault(environment.id)),
  );
  recordChange(tx, 'update', 'environment', environment, { fields: ['isDefault'] });
}

/** Slugs are compared while the workspace is locked: of two concurrent changes, the second sees the first. */
async function refuseTakenSlug(tx: Tx, workspaceId: string, slug: string): Promise<void> {
  const taken = await findRow(tx, 'environments', { workspaceId, slug });
  if (taken) throw alreadyExists('environment', 'slug', slug, taken.id);
}

/**
 * Locks the environment exclusively: running deployments in it have finished, and none can begin.
 * @throws RESOURCE_NOT_FOUND
 */
async function lockAlone(tx: Tx, { orgId, workspaceId }: WorkspacePlace, id: string): Promise<EnvironmentRow> {
  return tx.lock('environments', { id, orgId, workspaceId }, 'update', () => notFound('environment', id));
}

/**
 * Makes several environments in a locked workspace, as a part of a larger change. The default of the workspace stays
 * as long as it can be deployed to; else it is the given one, or the first that can.
 * @param inputs with new identifiers, slugs that nothing in the workspace has, and at most one default
 */
export async function insertEnvironments(
  tx: Tx,
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  inputs: readonly NewEnvironment[],
): Promise<void> {
  if (inputs.length === 0) return;
  const isOpen = ({ status }: CreateEnvironment) => status !== 'archived';
  const chosen =
    inputs.find((one) => one.isDefault && isOpen(one)) ??
    inputs.find(isOpen) ??
    inputs.find(({ isDefault }) => isDefault) ??
    inputs[0]!;
  const before = await findRow(tx, 'environments', { workspaceId, isDefault: true });
  const isFirst = before === null || (before.status === 'archived' && isOpen(chosen));
  if (isFirst) await unsetDefault(tx, workspaceId);
  const createdBy = caller.principal.userId;
  for (const input of inputs) {
    const { id, name, slug, description = null, status } = input;
    const isDefault = isFirst && input === chosen;
    const row = { id, orgId, workspaceId, name, slug, description, isDefault, createdBy };
    tx.insert('environments', { ...row, status: status ?? 'active' });
    recordChange(tx, 'create', 'environment', { id, orgId, workspaceId }, { slug });
  }
}
