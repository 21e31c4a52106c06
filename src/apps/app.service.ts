import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { recordRemovals } from '../environments/deployment.records.ts';
import { holdSlotsOfApp, passesLocks } from '../environments/slots.ts';
import { type App, Prisma } from '../generated/prisma/client.ts';
import { ChildReads } from '../graphql/child-reads.ts';
import type { Connection } from '../graphql/connections.ts';
import { notFound } from '../graphql/errors.ts';
import type { PageArgs, RequestMemory } from '../graphql/nested-connection.ts';
import { newId } from '../infra/ids.ts';
import { type Filter, filtersOf, type ParentKey } from '../infra/pages.ts';
import { recordChange } from '../infra/record-change.ts';
import type { ServiceDeps } from '../services.ts';
import { holdTokensOfApp } from '../tokens/api-token.holds.ts';

export interface CreateApp {
  name: string;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
}

export interface UpdateApp {
  name?: string | null;
  description?: string | null;
  metadata?: Record<string, unknown> | null;
}

interface Place {
  orgId: string;
  workspaceId: string;
}

/** Apps of a workspace. */
export class AppService {
  readonly reads: ChildReads<App>;
  readonly #deps: ServiceDeps & { authentication: Authentication };

  constructor(deps: ServiceDeps & { authentication: Authentication }) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'app',
      table: 'apps',
      columns: Object.values(Prisma.AppScalarFieldEnum),
      below: ['orgId', 'workspaceId'],
    });
  }

  /** Those that the actor may see, newest first. */
  async list(actor: Actor, { orgId, workspaceId }: Place, args: PageArgs): Promise<Connection<App>> {
    return this.reads.list.page([orgId, workspaceId], args, this.#visible(actor));
  }

  /** The same list below a workspace of a list. */
  async nested(context: RequestMemory & { actor: Actor }, parent: ParentKey, args: PageArgs): Promise<Connection<App>> {
    return this.reads.list.nested(context, parent, args, this.#visible(context.actor));
  }

  async create(actor: Actor, { orgId, workspaceId }: Place, input: CreateApp): Promise<App> {
    return this.#deps.changes.run(actor, async (tx) => {
      const metadata = (input.metadata ?? {}) as Prisma.InputJsonObject;
      const app = await tx.db.app.create({
        data: {
          id: newId('app'),
          orgId,
          workspaceId,
          name: input.name,
          description: input.description ?? null,
          metadata,
          createdBy: actor.principal.userId,
        },
      });
      recordChange(tx, 'create', 'app', { ...app, appId: app.id });
      return app;
    });
  }

  /** Changes what is given; what is left out stays. @throws RESOURCE_NOT_FOUND */
  async update(actor: Actor, { orgId, workspaceId }: Place, id: string, input: UpdateApp): Promise<App> {
    return this.#deps.changes.run(actor, async (tx) => {
      const metadata = (input.metadata ?? undefined) as Prisma.InputJsonObject | undefined;
      await tx.expectVersion({ table: 'apps', key: { id } });
      const [app] = await tx.db.app.updateManyAndReturn({
        where: { id, orgId, workspaceId },
        data: { name: input.name ?? undefined, description: input.description, metadata },
      });
      if (!app) throw notFound('app', id);
      recordChange(tx, 'update', 'app', { ...app, appId: id }, { fields: Object.keys(input) });
      return app;
    });
  }

  /**
   * Undeploys an app everywhere and deletes it with its releases and its tokens.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `environment_locked` for those who may not undeploy it from a locked environment
   */
  async delete(actor: Actor, place: Place, id: string): Promise<void> {
    const { orgId, workspaceId } = place;
    const passes = await passesLocks(this.#deps.access, actor, { ...place, appId: id });
    await this.#deps.changes.run(actor, async (tx) => {
      const held = await tx.db.$queryRaw<unknown[]>`
        select 1 from apps where id = ${id} and org_id = ${orgId} and workspace_id = ${workspaceId} for update`;
      if (held.length === 0) throw notFound('app', id);
      await tx.expectVersion({ table: 'apps', key: { id } });
      await recordRemovals(tx, actor, place, await holdSlotsOfApp(tx, id, passes));
      await holdTokensOfApp(tx, id);
      await tx.db.app.delete({ where: { id } });
      recordChange(tx, 'delete', 'app', { id, orgId, workspaceId, appId: id });
      tx.afterCommit(() => this.#deps.authentication.appDeleted());
    });
  }

  /** An app's token sees its own app alone. */
  #visible(actor: Actor): Filter[] {
    return filtersOf({ 't.id = any(?)': this.#deps.access.visibleApps(actor) });
  }
}
