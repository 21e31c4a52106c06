import type { Actor } from '../access/caller.ts';
import { DEFAULT_NAMESPACE } from '../access/place.ts';
import { type Namespace, Prisma } from '../generated/prisma/client.ts';
import { ChildReads } from '../graphql/child-reads.ts';
import type { Connection } from '../graphql/connections.ts';
import { alreadyExists, conflict, notFound } from '../graphql/errors.ts';
import type { PageArgs, RequestMemory } from '../graphql/nested-connection.ts';
import { brokenUnique, type Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';
import { columnsOf, type Filter, filtersOf, type ParentKey, selectList } from '../infra/pages.ts';
import { recordChange } from '../infra/record-change.ts';
import type { Sql } from '../infra/sql.ts';
import type { SecretService } from '../secrets/secret.service.ts';
import type { ServiceDeps } from '../services.ts';

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

interface Place {
  orgId: string;
  workspaceId: string;
}

const properties = Object.values(Prisma.NamespaceScalarFieldEnum);
const SELECT = `select ${selectList(columnsOf(properties))} from namespaces t where t.org_id = $1 and t.workspace_id = $2`;

/** A namespace of a workspace by its id, or by `default`. @throws RESOURCE_NOT_FOUND `namespace`, also for one of another workspace */
export async function resolveNamespace(
  sql: Sql,
  orgId: string,
  workspaceId: string,
  idOrDefault: string,
): Promise<Namespace> {
  const key = idOrDefault === DEFAULT_NAMESPACE ? 't.slug' : 't.id';
  const [row] = await sql.read<Namespace>(`${SELECT} and ${key} = $3`, [orgId, workspaceId, idOrDefault]);
  if (!row) throw notFound('namespace', idOrDefault);
  return row;
}

/** Holds a namespace until the transaction ends, so that something can be put into it. @throws RESOURCE_NOT_FOUND when it is gone */
export async function holdNamespace(tx: Tx, id: string): Promise<void> {
  const rows = await tx.db.$queryRaw<unknown[]>`select 1 from namespaces where id = ${id} for key share`;
  if (rows.length === 0) throw notFound('namespace', id);
}

/** Namespaces: the parts of a workspace. */
export class NamespaceService {
  readonly reads: ChildReads<Namespace>;
  readonly #deps: ServiceDeps & { secrets: SecretService };

  constructor(deps: ServiceDeps & { secrets: SecretService }) {
    this.#deps = deps;
    this.reads = new ChildReads(deps, {
      kind: 'namespace',
      table: 'namespaces',
      columns: properties,
      below: ['orgId', 'workspaceId'],
    });
  }

  /** Those that the actor may see, newest first. */
  async list(actor: Actor, { orgId, workspaceId }: Place, args: PageArgs): Promise<Connection<Namespace>> {
    return this.reads.list.page([orgId, workspaceId], args, this.#visible(actor));
  }

  /** The same list below a workspace of a list. */
  async nested(
    context: RequestMemory & { actor: Actor },
    parent: ParentKey,
    args: PageArgs,
  ): Promise<Connection<Namespace>> {
    return this.reads.list.nested(context, parent, args, this.#visible(context.actor));
  }

  /** By id, or by `default`. @throws RESOURCE_NOT_FOUND */
  async get({ orgId, workspaceId }: Place, id: string): Promise<Namespace> {
    return resolveNamespace(this.#deps.sql, orgId, workspaceId, id);
  }

  /** The slug is made from the name unless given. @throws RESOURCE_ALREADY_EXISTS for a slug that the workspace has already */
  async create(actor: Actor, { orgId, workspaceId }: Place, input: CreateNamespace): Promise<Namespace> {
    const id = newId('namespace');
    const slug = input.slug ?? slugOf(input.name, id);
    return this.#unique({ orgId, workspaceId }, slug, () =>
      this.#deps.changes.run(actor, async (tx) => {
        const data = {
          id,
          orgId,
          workspaceId,
          name: input.name,
          slug,
          description: input.description ?? null,
          createdBy: actor.principal.userId,
        };
        const namespace = await tx.db.namespace.create({ data });
        recordChange(tx, 'create', 'namespace', namespace);
        return namespace;
      }),
    );
  }

  /** Changes what is given; what is left out stays. The namespace `default` keeps its slug. */
  async update(actor: Actor, place: Place, id: string, input: UpdateNamespace): Promise<Namespace> {
    const before = await this.get(place, id);
    if (input.slug && input.slug !== before.slug) ensureNotDefault(before, 'keeps its slug');
    return this.#unique(place, input.slug ?? before.slug, () =>
      this.#deps.changes.run(actor, async (tx) => {
        await tx.expectVersion({ table: 'namespaces', key: { id: before.id } });
        const [namespace] = await tx.db.namespace.updateManyAndReturn({
          where: { id: before.id },
          data: { name: input.name ?? undefined, slug: input.slug ?? undefined, description: input.description },
        });
        if (!namespace) throw notFound('namespace', id);
        recordChange(tx, 'update', 'namespace', namespace, { fields: Object.keys(input) });
        return namespace;
      }),
    );
  }

  /** Deletes a namespace with everything in it. @throws RESOURCE_CONFLICT `default_namespace` */
  async delete(actor: Actor, place: Place, id: string): Promise<void> {
    const namespace = await this.get(place, id);
    ensureNotDefault(namespace, 'cannot be deleted');
    await this.#deps.changes.run(actor, async (tx) => {
      await tx.expectVersion({ table: 'namespaces', key: { id: namespace.id } });
      const { count } = await tx.db.namespace.deleteMany({ where: { id: namespace.id } });
      if (count === 0) throw notFound('namespace', id);
      await this.#deps.secrets.placeDeleted(tx, { namespaceId: namespace.id });
      recordChange(tx, 'delete', 'namespace', namespace, { slug: namespace.slug });
    });
  }

  /** A token that is restricted to namespaces sees these alone. */
  #visible(actor: Actor): Filter[] {
    return filtersOf({ 't.id = any(?)': this.#deps.access.visibleNamespaces(actor) });
  }

  async #unique<T>({ orgId, workspaceId }: Place, slug: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      const [other] = await this.#deps.sql.read<Namespace>(`${SELECT} and t.slug = $3`, [orgId, workspaceId, slug]);
      throw alreadyExists('namespace', 'slug', slug, other?.id);
    }
  }
}

function ensureNotDefault({ id, slug }: Namespace, what: string): void {
  if (slug === DEFAULT_NAMESPACE)
    throw conflict(
      'namespace',
      id,
      'default_namespace',
      `The namespace '${DEFAULT_NAMESPACE}' ${what}: every workspace has it.`,
    );
}

/** `Été 2025!` -> `ete-2025`; a name without Latin letters and digits gets a slug from the id. */
function slugOf(name: string, id: string): string {
  const slug = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^-|-$/g, '');
  return slug === '' ? id.toLowerCase().replace('_', '-') : slug;
}
