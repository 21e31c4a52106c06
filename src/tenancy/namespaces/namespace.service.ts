import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { NewRow } from '../../data/tables.ts';
import { type Namespace, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import { slugged } from '../../kernel/slug.ts';
import type { Removals } from '../removals.ts';

export interface CreateNamespace {
  name: string;
  slug?: string | null;
  description?: string | null;
}

export interface UpdateNamespace {
  name?: string | null;
  slug?: string | null;
  description?: string | null;
}

interface NamespaceDeps extends ServiceDeps {
  removals: Removals;
}

/** Namespaces: the parts of a workspace. */
export class NamespaceService {
  readonly reads: Reads<Namespace, WorkspacePlace>;
  readonly #deps: NamespaceDeps;

  constructor(deps: NamespaceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, {
      kind: 'namespace',
      from: 'namespaces',
      columns: columnsOf(Object.values(Prisma.NamespaceScalarFieldEnum)),
      below: ['orgId', 'workspaceId'],
      known: { alias: { word: DEFAULT_NAMESPACE, column: 't.slug' } },
    });
  }

  /**
   * The slug is made from the name unless given. @throws RESOURCE_ALREADY_EXISTS for a slug that the workspace has
   * already
   */
  async create(caller: Caller, place: Checked<WorkspacePlace>, input: CreateNamespace): Promise<Namespace> {
    const id = newId('namespace');
    const slug = input.slug ?? slugOf(input.name, id);
    return this.#unique(place, slug, () =>
      this.#deps.changes.run(caller, async (tx) => {
        recordChange(tx, 'create', 'namespace', { id, ...place });
        return tx.create('namespaces', newNamespace(caller, { id, ...place }, { ...input, slug }));
      }),
    );
  }

  /** Changes what is given; what is left out stays. The namespace `default` keeps its slug. */
  async update(caller: Caller, place: Checked<WorkspacePlace>, id: string, input: UpdateNamespace): Promise<Namespace> {
    const before = await this.reads.get(noCache, place, id);
    if (input.slug && input.slug !== before.slug) demandNotDefault(before, 'keeps its slug');
    return this.#unique(place, input.slug ?? before.slug, () =>
      this.#deps.changes.run(caller, async (tx) => {
        await tx.expectVersion({ table: 'namespaces', key: { id: before.id } });
        recordChange(tx, 'update', 'namespace', before, { fields: Object.keys(input) });
        const set = { name: input.name ?? undefined, slug: input.slug ?? undefined, description: input.description };
        return tx.change('namespaces', { id: before.id }, set, () => notFound('namespace', id));
      }),
    );
  }

  /**
   * Deletes a namespace with everything in it: what its contents mean besides rows is in the owners that
   * `src/wiring/removal-order.ts` lists. The tokens of its connections are revoked.
   * @param options.force also what is used elsewhere in the workspace
   * @throws RESOURCE_CONFLICT `default_namespace`, and `in_use` with `references` while something uses its contents
   */
  async delete(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    { force }: { force: boolean },
  ): Promise<Namespace> {
    const namespace = await this.reads.get(noCache, place, id);
    demandNotDefault(namespace, 'cannot be deleted');
    const { orgId, workspaceId } = namespace;
    const contents = await this.#deps.removals.ofPlace(caller, {
      kind: 'namespace',
      id: namespace.id,
      orgId,
      workspaceId,
      force,
    });
    await this.#deps.changes.run(caller, async (tx) => {
      await tx.lock('namespaces', { id: namespace.id }, 'update', () => notFound('namespace', id));
      await tx.expectVersion({ table: 'namespaces', key: { id: namespace.id } });
      await contents.before(tx);
      tx.remove('namespaces', { id: namespace.id }, () => notFound('namespace', id));
      await contents.after(tx);
      recordChange(tx, 'delete', 'namespace', namespace, { slug: namespace.slug });
    });
    return namespace;
  }

  async #unique<T>(place: Checked<WorkspacePlace>, slug: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      const { orgId, workspaceId } = place;
      const [other] = await this.#deps.sql.read<{ id: string }>(
        'select id from namespaces where org_id = $1 and workspace_id = $2 and slug = $3',
        [orgId, workspaceId, slug],
      );
      throw alreadyExists('namespace', 'slug', slug, other?.id);
    }
  }
}

function demandNotDefault({ id, slug }: Namespace, what: string): void {
  if (slug === DEFAULT_NAMESPACE)
    throw conflict(
      'namespace',
      id,
      'default_namespace',
      `The namespace '${DEFAULT_NAMESPACE}' ${what}: every workspace has it.`,
    );
}

/** The row of a new namespace: written as a part of a change that is recorded. */
export const newNamespace = (
  caller: Caller,
  { id, orgId, workspaceId }: WorkspacePlace & { id: string },
  { name, slug, description }: CreateNamespace & { slug: string },
): NewRow<'namespaces'> => ({
  id,
  orgId,
  workspaceId,
  name,
  slug,
  description: description ?? null,
  createdBy: caller.principal.userId,
});

/** The slug of a name; a name without Latin letters and digits gets one from the id. */
export const slugOf = (name: string, id: string): string => slugged(name, 64) || id.toLowerCase().replace('_', '-');
