import type { Sql } from '../data/sql.ts';
import type { PlacePart, WorkspacePlace } from '../kernel/checked-place.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { notFound } from '../kernel/errors.ts';
import { DEFAULT_NAMESPACE } from '../kernel/place.ts';
import { FreshCache } from './fresh-cache.ts';

interface DefaultNamespace {
  id: string | null;
}

const DEFAULT_NAMESPACE_ID = `select id from namespaces
  where org_id = $1 and workspace_id = $2 and slug = '${DEFAULT_NAMESPACE}'`;

const PART_TABLES: Record<PlacePart, string> = { namespace: 'namespaces', app: 'apps', environment: 'environments' };
const partById = (part: PlacePart) =>
  `select id from ${PART_TABLES[part]} where org_id = $1 and workspace_id = $2 and id = $3`;

/** Finds the parts of workspaces that a request names: namespaces, apps and environments. */
export class PlaceParts {
  readonly #sql: Sql;
  readonly #defaultNamespaces = new FreshCache<DefaultNamespace>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * The id of a part of a workspace, found by its id or, for a namespace, by `default`.
   * @throws RESOURCE_NOT_FOUND with the part
   */
  async findPart(workspace: WorkspacePlace, part: PlacePart, id: string): Promise<string> {
    const { orgId, workspaceId } = workspace;
    if (part === 'namespace' && id === DEFAULT_NAMESPACE) {
      const found = await this.defaultNamespace(orgId, workspaceId);
      if (!found) throw notFound(part, id);
      return found;
    }
    const [row] = isUnstorable(id)
      ? []
      : await this.#sql.read<{ id: string }>(partById(part), [orgId, workspaceId, id]);
    if (!row) throw notFound(part, id);
    return row.id;
  }

  /**
   * The same for several parts, with one statement.
   * @throws RESOURCE_NOT_FOUND with the first part that does not exist
   */
  async findParts(
    workspace: WorkspacePlace,
    named: readonly { part: PlacePart; id: string }[],
  ): Promise<{ [Part in PlacePart as `${Part}Id`]?: string }> {
    const [only, ...more] = named;
    if (only && more.length === 0) return { [`${only.part}Id`]: await this.findPart(workspace, only.part, only.id) };
    const { orgId, workspaceId } = workspace;
    const columns = named.map(({ part, id }, at) =>
      part === 'namespace' && id === DEFAULT_NAMESPACE
        ? `(${DEFAULT_NAMESPACE_ID} and $${at + 3}::text is not null) as "${part}Id"`
        : `(${partById(part).replace('$3', `$${at + 3}`)}) as "${part}Id"`,
    );
    const unstorable = named.find(({ id }) => isUnstorable(id));
    if (unstorable) throw notFound(unstorable.part, unstorable.id);
    const [row = {}] = await this.#sql.read<{ [Part in PlacePart as `${Part}Id`]?: string }>(
      `select ${columns.join(', ')}`,
      [orgId, workspaceId, ...named.map(({ id }) => id)],
    );
    const missing = named.find(({ part }) => !row[`${part}Id`]);
    if (missing) throw notFound(missing.part, missing.id);
    return row;
  }

  /**
   * The id of the default namespace; `null` if there is no such workspace. The namespace is created with its workspace
   * and is never moved or deleted alone, so it may be cached as long as the membership.
   */
  async defaultNamespace(orgId: string, workspaceId: string): Promise<string | null> {
    const { id } = await this.#defaultNamespaces.get(`${orgId} ${workspaceId}`, async () => {
      const [row] = await this.#sql.read<{ id: string }>(DEFAULT_NAMESPACE_ID, [orgId, workspaceId]);
      return { id: row?.id ?? null };
    });
    return id;
  }
}
