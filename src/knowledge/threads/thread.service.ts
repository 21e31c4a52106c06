import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, type FieldsOf, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { Prisma, type Thread } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, NamespacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

type ThreadInput = FieldsOf<'threads'>;

const threads = {
  kind: 'thread',
  from: 'threads',
  columns: columnsOf(Object.values(Prisma.ThreadScalarFieldEnum)),
  below: ['orgId', 'workspaceId', 'namespaceId'],
} as const;

/** Threads: the conversations of a namespace. Members may change their own threads, editors all. */
export class ThreadService {
  readonly reads: Reads<Thread, NamespacePlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, threads);
  }

  async create(caller: Caller, place: Checked<NamespacePlace>, input: ThreadInput): Promise<Thread> {
    const { namespaceId } = place;
    return createRow(this.#deps, caller, threads, { id: newId('thread'), ...place, ...input }, (tx) =>
      tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId)),
    );
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND; FORBIDDEN for a thread of others */
  async update(caller: Caller, place: Checked<NamespacePlace>, id: string, input: ThreadInput): Promise<Thread> {
    await this.reads.own(caller, place, id);
    return updateRow(this.#deps, caller, threads, { id, ...place }, input, input);
  }

  /** @throws as {@link update} */
  async delete(caller: Caller, place: Checked<NamespacePlace>, id: string): Promise<Deleted<NamespacePlace>> {
    await this.reads.own(caller, place, id);
    return deleteRow(this.#deps, caller, threads, { id, ...place });
  }
}
