import type { Actor } from '../access/caller.ts';
import type { AppService } from '../apps/app.service.ts';
import { referencesToRelease } from '../environments/slots.ts';
import { Prisma, type Release } from '../generated/prisma/client.ts';
import { ChildReads } from '../graphql/child-reads.ts';
import type { Connection } from '../graphql/connections.ts';
import { alreadyExists, conflict, notFound } from '../graphql/errors.ts';
import type { PageArgs } from '../graphql/nested-connection.ts';
import type { Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';
import { recordChange } from '../infra/record-change.ts';
import type { ServiceDeps } from '../services.ts';

export interface CreateRelease {
  version?: string | null;
  notes?: string | null;
  metadata?: Record<string, unknown> | null;
}

/** An app of a workspace. */
interface Place {
  orgId: string;
  workspaceId: string;
  appId: string;
}

/** Releases of an app. They do not change; they are numbered from 1, one after the other. */
export class ReleaseService {
  readonly reads: ChildReads<Release>;
  readonly #deps: ServiceDeps & { apps: AppService };

  constructor(deps: ServiceDeps & { apps: AppService }) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'release',
      table: 'releases',
      columns: Object.values(Prisma.ReleaseScalarFieldEnum),
      below: ['orgId', 'workspaceId', 'appId'],
    });
  }

  /** @throws RESOURCE_NOT_FOUND `app` */
  async list(place: Place, args: PageArgs): Promise<Connection<Release>> {
    await this.#ensureApp(place);
    return this.reads.list.page([place.orgId, place.workspaceId, place.appId], args);
  }

  /** @throws RESOURCE_NOT_FOUND `app` or `release` */
  async get(place: Place, id: string): Promise<Release> {
    await this.#ensureApp(place);
    return this.reads.get([place.orgId, place.workspaceId, place.appId], id);
  }

  /** The version is the number unless given. @throws RESOURCE_NOT_FOUND `app`, RESOURCE_ALREADY_EXISTS for a version that the app has already */
  async create(actor: Actor, place: Place, input: CreateRelease): Promise<Release> {
    return this.#deps.changes.run(actor, async (tx) => {
      const { appId } = place;
      const number = await nextNumber(tx, place);
      const version = input.version ?? String(number);
      const same = await tx.db.release.findUnique({
        where: { appId_version: { appId, version } },
        select: { id: true },
      });
      if (same) throw alreadyExists('release', 'version', version, same.id);
      const metadata = (input.metadata ?? {}) as Prisma.InputJsonObject;
      const release = await tx.db.release.create({
        data: {
          id: newId('release'),
          ...place,
          number,
          version,
          notes: input.notes ?? null,
          metadata,
          createdBy: actor.principal.userId,
        },
      });
      recordChange(tx, 'create', 'release', release, { number, version });
      return release;
    });
  }

  /** @throws RESOURCE_NOT_FOUND `app` or `release`; RESOURCE_CONFLICT `in_use` while it is deployed anywhere */
  async delete(actor: Actor, place: Place, id: string): Promise<void> {
    const release = await this.get(place, id);
    await this.#deps.changes.run(actor, async (tx) => {
      // who is deploying it has finished, and nobody begins
      await tx.db.$queryRaw`select 1 from releases where id = ${id} for update`;
      await tx.expectVersion({ table: 'releases', key: { id } });
      const references = await referencesToRelease(tx, id);
      if (references.length > 0)
        throw conflict('release', id, 'in_use', 'The release is deployed: undeploy it first.', { references });
      const { count } = await tx.db.release.deleteMany({ where: { id } });
      if (count === 0) throw notFound('release', id);
      recordChange(tx, 'delete', 'release', release, { number: release.number, version: release.version });
    });
  }

  async #ensureApp({ orgId, workspaceId, appId }: Place): Promise<void> {
    await this.#deps.apps.reads.get([orgId, workspaceId], appId);
  }
}

/** The next number of the app's releases. Holds the app until the transaction ends, so that numbers have no gaps. @throws RESOURCE_NOT_FOUND */
async function nextNumber(tx: Tx, { orgId, workspaceId, appId }: Place): Promise<number> {
  const [row] = await tx.db.$queryRaw<{ number: number }[]>`
    update apps set last_release = last_release + 1
    where id = ${appId} and org_id = ${orgId} and workspace_id = ${workspaceId} returning last_release as number`;
  if (!row) throw notFound('app', appId);
  return row.number;
}
