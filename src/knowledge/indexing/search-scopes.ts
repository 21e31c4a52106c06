import type { Access } from '../../access/access.ts';
import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import { restrictionsOf } from '../../kernel/token-grant.ts';
import { hasInWorkspace } from '../../tenancy/views.ts';
import type { SearchedPlaces } from './artifact-ranking.ts';

/** Where a search looks; empty for everywhere. */
interface NamedPlaces {
  workspaceIds?: readonly string[] | null;
  namespaceIds?: readonly string[] | null;
}

/** Each word of a query is looked up in every namespace: more of them take longer than a search may. */
const MOST_NAMESPACES = 1_000;

const VISIBLE = `select n.id from namespaces n join workspaces w on w.id = n.workspace_id and w.deleted_at is null
  where n.org_id = $1 and ($2::text[] is null or n.workspace_id = any($2)) and ($3::text[] is null or n.id = any($3))`;
const EVERY = VISIBLE;
const OWN = `${VISIBLE} and ${hasInWorkspace('artifact:read', 'w.id', '$4')}`;
const filled = (visible: string): string =>
  `${visible} and exists (select 1 from artifact_languages l where l.namespace_id = n.id)
    order by n.id limit ${MOST_NAMESPACES + 1}`;

/**
 * The namespaces that a search looks at: those of the named places that have artifacts which the caller may read. A
 * place that a caller names and may not read is refused as the search of that place is.
 */
export class SearchScopes {
  readonly #sql: Sql;
  readonly #access: Access;

  constructor(sql: Sql, access: Access) {
    this.#sql = sql;
    this.#access = access;
  }

  /** @throws RESOURCE_NOT_FOUND for a named namespace; invalid input for more of them than one search looks at */
  async ofWorkspace(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    { namespaceIds }: NamedPlaces,
  ): Promise<SearchedPlaces> {
    return this.#read(
      place.orgId,
      EVERY,
      this.#named(caller, { workspaceIds: [place.workspaceId], namespaceIds }),
      namespaceIds,
    );
  }

  /**
   * @throws FORBIDDEN or RESOURCE_NOT_FOUND for a named workspace, RESOURCE_NOT_FOUND for a named namespace; invalid
   * input for more of them than one search looks at
   */
  async ofOrganization(caller: Caller, place: Checked<OrganizationPlace>, named: NamedPlaces): Promise<SearchedPlaces> {
    const asked = (named.workspaceIds ?? []).map(async (id) =>
      this.#access.requireWorkspace(caller, place.orgId, id, 'artifact:read'),
    );
    await Promise.all(asked);
    const places = this.#named(caller, named);
    return reachesEveryWorkspace(place.asked.role)
      ? this.#read(place.orgId, EVERY, places, named.namespaceIds)
      : this.#read(place.orgId, OWN, [...places, caller.principal.userId], named.namespaceIds);
  }

  #named({ principal }: Caller, { workspaceIds, namespaceIds }: NamedPlaces): unknown[] {
    const { workspaceId, namespaceId } = restrictionsOf(principal.token);
    return [both(workspaceIds, workspaceId), both(namespaceIds, namespaceId)];
  }

  async #read(
    orgId: string,
    visible: string,
    values: unknown[],
    named: readonly string[] | null | undefined,
  ): Promise<SearchedPlaces> {
    if (named && named.length > 0) {
      const there = new Set((await this.#sql.read<{ id: string }>(visible, [orgId, ...values])).map(({ id }) => id));
      const missing = named.find((id) => !there.has(id));
      if (missing !== undefined) throw notFound('namespace', missing);
    }
    const rows = await this.#sql.read<{ id: string }>(filled(visible), [orgId, ...values]);
    if (rows.length > MOST_NAMESPACES)
      throw invalidInput(
        ['input', 'query'],
        `one search covers at most ${MOST_NAMESPACES} namespaces: name the namespaces to search`,
      );
    return { orgId, namespaceIds: rows.map(({ id }) => id) };
  }
}

/** What is in both lists; `null` for everything. */
function both(named: readonly string[] | null | undefined, allowed: readonly string[] | undefined) {
  if (!named || named.length === 0) return allowed ?? null;
  return allowed ? named.filter((id) => allowed.includes(id)) : named;
}
