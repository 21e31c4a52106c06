import type { Access } from '../../access/access.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { emitChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { Prisma, type Source as SourceRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, NamespacePlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

/** A source as callers see it. */
export interface Source extends Omit<SourceRow, 'sizeBytes'> {
  sizeBytes: number;
}

/** Filters of a list of sources. */
export interface SourceFilters {
  /** Only sources of this namespace. */
  namespaceId?: string | null;
}

type UpdateSource = Given<SourceRow, 'name' | 'description'>;

interface CreateSource extends Given<SourceRow, 'description' | 'sourceType' | 'namespaceId'> {
  name: string;
}

const sources = {
  kind: 'source',
  from: 'sources',
  columns: {
    ...columnsOf(Object.values(Prisma.SourceScalarFieldEnum)),
    sizeBytes: 't.size_bytes::float8',
  },
} as const;

const shown = (row: SourceRow): Source => ({ ...row, sizeBytes: Number(row.sizeBytes) });

/**
 * Sources: knowledge that a workspace, or one of its namespaces, offers to its apps. A promoted artifact is one; it
 * goes with the artifact.
 */
export class SourceService {
  readonly reads: Reads<Source, WorkspacePlace, PageArgs & SourceFilters>;
  readonly inNamespace: Reads<Source, NamespacePlace>;
  readonly #deps: ServiceDeps & { access: Access };

  constructor(deps: ServiceDeps & { access: Access }) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      ...sources,
      below: ['orgId', 'workspaceId'],
      demands: async (place, { namespaceId }) => {
        if (namespaceId) await deps.access.parts.findPart(place, 'namespace', namespaceId);
      },
      filters: ({ namespaceId }) => ({ 't.namespace_id = ?': namespaceId }),
    });
    this.inNamespace = new Reads(deps, {
      ...sources,
      name: 'sources_of_namespace',
      below: ['orgId', 'workspaceId', 'namespaceId'],
    });
  }

  /** @throws RESOURCE_NOT_FOUND `namespace` */
  async create(caller: Caller, place: Checked<WorkspacePlace>, input: CreateSource): Promise<Source> {
    const { orgId, workspaceId } = place;
    const namespaceId = input.namespaceId
      ? await this.#deps.access.parts.findPart(place, 'namespace', input.namespaceId)
      : null;
    const row = { ...input, id: newId('source'), orgId, workspaceId, namespaceId };
    const created = await createRow(this.#deps, caller, sources, row, (tx) => {
      if (namespaceId)
        tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
    });
    return shown(created);
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND */
  async update(caller: Caller, place: Checked<WorkspacePlace>, id: string, input: UpdateSource): Promise<Source> {
    const before = await this.reads.get(noCache, place, id);
    return shown(await updateRow(this.#deps, caller, sources, before, input, input));
  }

  /**
   * Deletes a source. An artifact that was promoted to it stays, and may be promoted again. @throws RESOURCE_NOT_FOUND
   */
  async delete(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
  ): Promise<Deleted<WorkspacePlace & { namespaceId: string | null }>> {
    const before = await this.reads.get(noCache, place, id);
    const rules = async (tx: Tx) => {
      const { artifactId } = before;
      const artifact = artifactId ? await tx.lock('artifacts', { id: artifactId }, 'no key update') : null;
      if (artifact) emitChange(tx, 'updated', 'artifact', artifact);
    };
    return deleteRow(this.#deps, caller, sources, before, { rules });
  }
}
