import type { Actor } from '../access/caller.ts';
import type { Checked, WorkspacePlace } from '../access/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { PrismaTx } from '../data/changes.ts';
import type { Given } from '../data/given.ts';
import type { Reads } from '../data/reads.ts';
import { recordChange } from '../data/record-change.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import type { Environment as EnvironmentRow, Prisma } from '../generated/prisma/client.ts';
import type { SecretService } from '../secrets/secret.service.ts';
import { recordRemovals } from './deployment.records.ts';
import {
  type Environment,
  type EnvironmentListArgs,
  environmentReads,
  versionedEnvironment,
} from './environment.reads.ts';
import { holdSlotsOfEnvironment } from './slots.ts';

type UpdateEnvironment = Given<EnvironmentRow, 'name' | 'slug' | 'description' | 'isDefault' | 'status'>;
type CreateEnvironment = UpdateEnvironment & Pick<EnvironmentRow, 'name' | 'slug'>;

/**
 * Environments of a workspace. One of them is the default as long as there is any (defaults §6): an archived one only
 * while all are archived, then the next one that is made or activated takes its place.
 */
export class EnvironmentService {
  readonly reads: Reads<Environment, WorkspacePlace, EnvironmentListArgs>;
  readonly #deps: ServiceDeps & { secrets: SecretService };

  constructor(deps: ServiceDeps & { secrets: SecretService }) {
    this.#deps = deps;
    this.reads = environmentReads(deps);
  }

  /**
   * The first one of a workspace that is not archived is its default, whatever it says.
   * @throws RESOURCE_ALREADY_EXISTS for a slug that is taken
   */
  async create(actor: Actor, place: Checked<WorkspacePlace>, input: CreateEnvironment): Promise<Environment> {
    const { orgId, workspaceId } = place;
    return this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await holdWorkspace(tx, place);
      await refuseTakenSlug(tx, workspaceId, input.slug);
      const id = newId('environment');
      const isDefault = input.isDefault === true || !(await hasDefault(tx, workspaceId));
      if (isDefault) await unsetDefault(tx, workspaceId);
      const environment = await tx.db.environment.create({
        data: {
          id,
          orgId,
          workspaceId,
          name: input.name,
          slug: input.slug,
          description: input.description ?? null,
          isDefault,
          createdBy: actor.principal.userId,
        },
      });
      recordChange(tx, 'create', 'environment', environment, { slug: input.slug });
      return { ...environment, activeDeployments: {} };
    });
  }

  /**
   * Changes what is given; what is left out stays. What is said but already so is no change.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_ALREADY_EXISTS for a slug that is taken; RESOURCE_CONFLICT `slug_in_use`,
   *   `default_environment`, `has_active_deployments`, `environment_archived`
   */
  async update(
    actor: Actor,
    place: Checked<WorkspacePlace>,
    id: string,
    input: UpdateEnvironment,
  ): Promise<Environment> {
    return this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await holdWorkspace(tx, place);
      const before = await holdAlone(tx, place, id);
      await tx.expectVersion(versionedEnvironment(id));
      const changes = changesOf(before, input);
      if (Object.keys(changes).length > 0) {
        await refuseForbidden(tx, before, changes);
        const isActivated = before.status === 'archived';
        if (isActivated && !before.isDefault && !(await hasDefault(tx, before.workspaceId))) changes.isDefault = true;
        if (changes.isDefault) await unsetDefault(tx, before.workspaceId);
        await tx.db.environment.update({ where: { id }, data: changes });
        recordChange(tx, 'update', 'environment', before, {
          fields: Object.keys(changes),
          ...(changes.status && { status: changes.status }),
        });
      }
      const { slots, ...environment } = await tx.db.environment.findUniqueOrThrow({
        where: { id },
        include: { slots: { orderBy: { appId: 'asc' } } },
      });
      const filled = slots.filter(({ releaseId }) => releaseId !== null);
      const activeDeployments = Object.fromEntries(filled.map(({ appId, releaseId }) => [appId, releaseId!]));
      const records = slots.reduce((sum, { lastNumber }) => sum + lastNumber, 0);
      return { ...environment, activeDeployments, resourceVersion: environment.resourceVersion + records };
    });
  }

  /**
   * Takes out everything that is deployed in it, then deletes it with its secrets.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `default_environment`
   */
  async delete(actor: Actor, place: Checked<WorkspacePlace>, id: string): Promise<void> {
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await holdWorkspace(tx, place);
      const environment = await holdAlone(tx, place, id);
      await tx.expectVersion(versionedEnvironment(id));
      const others = { workspaceId: place.workspaceId, id: { not: id } };
      if (environment.isDefault && (await tx.db.environment.count({ where: others })) > 0) throw isTheDefault(id);
      await recordRemovals(tx, actor, place, await holdSlotsOfEnvironment(tx, id));
      await tx.db.environment.delete({ where: { id } });
      await this.#deps.secrets.placeDeleted(tx, { environmentId: id });
      recordChange(tx, 'delete', 'environment', environment, { slug: environment.slug });
    });
  }
}

type Changes = Pick<Prisma.EnvironmentUpdateInput, 'description'> & {
  name?: string;
  slug?: string;
  isDefault?: boolean;
  status?: string;
};

/** What of the input differs from what is there. */
function changesOf(before: EnvironmentRow, { name, slug, description, isDefault, status }: UpdateEnvironment): Changes {
  const given: Changes = {
    name: name ?? undefined,
    slug: slug ?? undefined,
    description,
    isDefault: isDefault ?? undefined,
    status: status ?? undefined,
  };
  const differs = ([field, value]: [string, unknown]) =>
    value !== undefined && value !== before[field as keyof EnvironmentRow];
  return Object.fromEntries(Object.entries(given).filter(differs)) as Changes;
}

async function refuseForbidden(tx: PrismaTx, before: EnvironmentRow, changes: Changes): Promise<void> {
  const { id, workspaceId } = before;
  if (before.status === 'archived' && (changes.status !== 'active' || Object.keys(changes).length > 1))
    throw conflict(
      'environment',
      id,
      'environment_archived',
      'The environment is archived: all it takes is activation.',
    );
  if (changes.isDefault === false) throw isTheDefault(id);
  if (changes.slug !== undefined) {
    const record = await tx.db.deployment.findFirst({ where: { environmentId: id }, select: { id: true } });
    if (record)
      throw conflict('environment', id, 'slug_in_use', 'The slug stays as it is once something was deployed.');
    await refuseTakenSlug(tx, workspaceId, changes.slug);
  }
  if (changes.status === 'archived') await refuseToArchive(tx, before, changes.isDefault ?? before.isDefault);
}

async function refuseToArchive(tx: PrismaTx, { id, workspaceId }: EnvironmentRow, isDefault: boolean): Promise<void> {
  const filled = await holdSlotsOfEnvironment(tx, id);
  if (filled.length > 0)
    throw conflict('environment', id, 'has_active_deployments', 'Undeploy everything before you archive it.', {
      references: filled.map(({ appId }) => ({ resource_type: 'app', resource_id: appId })),
    });
  const others = { workspaceId, id: { not: id }, status: { not: 'archived' } };
  if (isDefault && (await tx.db.environment.count({ where: others })) > 0) throw isTheDefault(id);
}

const isTheDefault = (id: string) =>
  conflict('environment', id, 'default_environment', 'It is the default environment: make another one the default.');

/** Whether a workspace has a default environment that can be deployed to. */
async function hasDefault(tx: PrismaTx, workspaceId: string): Promise<boolean> {
  const where = { workspaceId, isDefault: true, status: { not: 'archived' } };
  return (await tx.db.environment.count({ where })) > 0;
}

/** Where there is a default, it is none any more. */
async function unsetDefault(tx: PrismaTx, workspaceId: string): Promise<void> {
  const unset = await tx.db.environment.updateManyAndReturn({
    where: { workspaceId, isDefault: true },
    data: { isDefault: false },
  });
  for (const environment of unset) recordChange(tx, 'update', 'environment', environment, { fields: ['isDefault'] });
}

/** Slugs are compared while the workspace is held: of two at once, the second sees the first. */
async function refuseTakenSlug(tx: PrismaTx, workspaceId: string, slug: string): Promise<void> {
  const taken = await tx.db.environment.findUnique({
    where: { workspaceId_slug: { workspaceId, slug } },
    select: { id: true },
  });
  if (taken) throw alreadyExists('environment', 'slug', slug, taken.id);
}

/**
 * Lets one transaction at a time change which environments a workspace has. Others may go on adding what refers to the
 * workspace.
 * @throws RESOURCE_NOT_FOUND when the workspace was deleted
 */
async function holdWorkspace(tx: PrismaTx, { orgId, workspaceId }: WorkspacePlace): Promise<void> {
  const rows = await tx.db.$queryRaw<unknown[]>`
    select 1 from workspaces where org_id = ${orgId} and id = ${workspaceId} and deleted_at is null for no key update`;
  if (rows.length === 0) throw notFound('workspace', workspaceId);
}

/** Holds the environment alone: who deploys in it has finished, and nobody begins. @throws RESOURCE_NOT_FOUND */
async function holdAlone(tx: PrismaTx, { orgId, workspaceId }: WorkspacePlace, id: string): Promise<EnvironmentRow> {
  const rows = await tx.db.$queryRaw<unknown[]>`
    select 1 from environments where id = ${id} and org_id = ${orgId} and workspace_id = ${workspaceId} for update`;
  if (rows.length === 0) throw notFound('environment', id);
  return tx.db.environment.findUniqueOrThrow({ where: { id } });
}
