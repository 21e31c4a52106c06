import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import { columnsOf } from '../../data/pages.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { Prisma, type Thread } from '../../generated/prisma/client.ts';
import type { Actor } from '../../kernel/caller.ts';
import type { Checked, NamespacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

type ThreadInput = Given<Thread, 'title' | 'metadata'>;

/** Threads: the conversations of a namespace. Members may change their own threads, editors all. */
export class ThreadService {
  readonly reads: Reads<Thread, NamespacePlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      kind: 'thread',
      from: 'threads',
      columns: columnsOf(Object.values(Prisma.ThreadScalarFieldEnum)),
      below: ['orgId', 'workspaceId', 'namespaceId'],
    });
  }

  async create(actor: Actor, place: Checked<NamespacePlace>, { title, metadata }: ThreadInput): Promise<Thread> {
    const row = { id: newId('thread'), ...place };
    return this.#deps.changes.run(actor, async (tx) => {
      const { namespaceId } = place;
      tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
      recordChange(tx, 'create', 'thread', row);
      return tx.create('threads', { ...row, title, metadata: metadata ?? {}, createdBy: actor.principal.userId });
    });
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND; FORBIDDEN for a thread of others */
  async update(actor: Actor, place: Checked<NamespacePlace>, id: string, input: ThreadInput): Promise<Thread> {
    await this.reads.own(actor, place, id);
    const set = { ...input, metadata: input.metadata ?? undefined };
    return this.#deps.changes.run(actor, async (tx) => {
      await tx.expectVersion({ table: 'threads', key: { id } });
      recordChange(tx, 'update', 'thread', { ...place, id }, { fields: Object.keys(input) });
      return tx.change('threads', { id }, set, () => notFound('thread', id));
    });
  }

  /** @throws as {@link update} */
  async delete(actor: Actor, place: Checked<NamespacePlace>, id: string): Promise<boolean> {
    await this.reads.own(actor, place, id);
    return this.#deps.changes.run(actor, async (tx) => {
      await tx.expectVersion({ table: 'threads', key: { id } });
      tx.remove('threads', { id }, () => notFound('thread', id));
      recordChange(tx, 'delete', 'thread', { ...place, id });
      return true;
    });
  }
}
