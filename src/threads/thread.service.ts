import type { Actor } from '../access/caller.ts';
import type { Permission } from '../access/permissions.ts';
import { Prisma, type Thread } from '../generated/prisma/client.ts';
import { ChildReads } from '../graphql/child-reads.ts';
import type { Connection } from '../graphql/connections.ts';
import { notFound } from '../graphql/errors.ts';
import type { PageArgs } from '../graphql/nested-connection.ts';
import { newId } from '../infra/ids.ts';
import { recordChange } from '../infra/record-change.ts';
import { holdNamespace, resolveNamespace } from '../namespaces/namespace.service.ts';
import type { ServiceDeps } from '../services.ts';

export interface ThreadInput {
  title?: string | null;
  metadata?: Record<string, unknown> | null;
}

/** A namespace of a workspace, by its id or `default`. */
interface Place {
  orgId: string;
  workspaceId: string;
  namespaceId: string;
}

/** Threads: the conversations of a namespace. Members change what they made, editors everything. */
export class ThreadService {
  readonly reads: ChildReads<Thread>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'thread',
      table: 'threads',
      columns: Object.values(Prisma.ThreadScalarFieldEnum),
      below: ['orgId', 'workspaceId', 'namespaceId'],
    });
  }

  /** @throws RESOURCE_NOT_FOUND `namespace` */
  async list(place: Place, args: PageArgs): Promise<Connection<Thread>> {
    return this.reads.list.page(await this.#parent(place), args);
  }

  /** @throws RESOURCE_NOT_FOUND `namespace` or `thread` */
  async get(place: Place, id: string): Promise<Thread> {
    return this.reads.get(await this.#parent(place), id);
  }

  /** @throws RESOURCE_NOT_FOUND `namespace` */
  async create(
    actor: Actor,
    { orgId, workspaceId, namespaceId: idOrDefault }: Place,
    input: ThreadInput,
  ): Promise<Thread> {
    const { id: namespaceId } = await resolveNamespace(this.#deps.sql, orgId, workspaceId, idOrDefault);
    return this.#deps.changes.run(actor, async (tx) => {
      await holdNamespace(tx, namespaceId);
      const metadata = (input.metadata ?? {}) as Prisma.InputJsonObject;
      const thread = await tx.db.thread.create({
        data: {
          id: newId('thread'),
          orgId,
          workspaceId,
          namespaceId,
          title: input.title ?? null,
          metadata,
          createdBy: actor.principal.userId,
        },
      });
      recordChange(tx, 'create', 'thread', thread);
      return thread;
    });
  }

  /** Changes what is given; what is left out stays. */
  async update(actor: Actor, place: Place, id: string, input: ThreadInput): Promise<Thread> {
    await this.#own(actor, place, id, 'thread:update');
    return this.#deps.changes.run(actor, async (tx) => {
      const metadata = (input.metadata ?? undefined) as Prisma.InputJsonObject | undefined;
      await tx.expectVersion({ table: 'threads', key: { id } });
      const [thread] = await tx.db.thread.updateManyAndReturn({
        where: { id },
        data: { title: input.title, metadata },
      });
      if (!thread) throw notFound('thread', id);
      recordChange(tx, 'update', 'thread', thread, { fields: Object.keys(input) });
      return thread;
    });
  }

  async delete(actor: Actor, place: Place, id: string): Promise<void> {
    const thread = await this.#own(actor, place, id, 'thread:delete');
    await this.#deps.changes.run(actor, async (tx) => {
      await tx.expectVersion({ table: 'threads', key: { id } });
      const { count } = await tx.db.thread.deleteMany({ where: { id } });
      if (count === 0) throw notFound('thread', id);
      recordChange(tx, 'delete', 'thread', thread);
    });
  }

  /** A thread that the actor may change. @throws RESOURCE_NOT_FOUND, FORBIDDEN for a member and somebody else's thread */
  async #own(actor: Actor, place: Place, id: string, permission: Permission): Promise<Thread> {
    const grant = await this.#deps.access.requireWorkspace(actor, place.orgId, place.workspaceId, permission, place);
    const thread = await this.get(place, id);
    this.#deps.access.ensureCovers(actor, grant, permission, thread.createdBy);
    return thread;
  }

  async #parent({ orgId, workspaceId, namespaceId }: Place): Promise<string[]> {
    const namespace = await resolveNamespace(this.#deps.sql, orgId, workspaceId, namespaceId);
    return [orgId, workspaceId, namespace.id];
  }
}
