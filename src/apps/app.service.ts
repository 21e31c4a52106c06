import type { Actor } from '../access/caller.ts';
import { type App, Prisma } from '../generated/prisma/client.ts';
import { ChildReads } from '../graphql/child-reads.ts';
import { notFound } from '../graphql/errors.ts';
import { newId } from '../infra/ids.ts';
import { recordChange } from '../infra/record-change.ts';
import type { ServiceDeps } from '../services.ts';

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
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'app',
      table: 'apps',
      columns: Object.values(Prisma.AppScalarFieldEnum),
      below: ['orgId', 'workspaceId'],
    });
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
      const [app] = await tx.db.app.updateManyAndReturn({
        where: { id, orgId, workspaceId },
        data: { name: input.name ?? undefined, description: input.description, metadata },
      });
      if (!app) throw notFound('app', id);
      recordChange(tx, 'update', 'app', { ...app, appId: id }, { fields: Object.keys(input) });
      return app;
    });
  }

  /** Deletes an app with its releases. @throws RESOURCE_NOT_FOUND */
  async delete(actor: Actor, { orgId, workspaceId }: Place, id: string): Promise<void> {
    await this.#deps.changes.run(actor, async (tx) => {
      const { count } = await tx.db.app.deleteMany({ where: { id, orgId, workspaceId } });
      if (count === 0) throw notFound('app', id);
      recordChange(tx, 'delete', 'app', { id, orgId, workspaceId, appId: id });
    });
  }
}
