import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { restrictionsOf } from '../../kernel/token-grant.ts';
import { hasInWorkspace } from '../../tenancy/views.ts';
import type { SearchedPlaces } from './artifact-ranking.ts';

/** Where a search looks; empty for everywhere. */
interface Named {
  workspaceIds?: readonly string[] | null;
  namespaceIds?: readonly string[] | null;
}

/** Each word of a query is looked up in every namespace: more of them take longer than a search may. */
const MOST_NAMESPACES = 1_000;

const LIVE = `select n.id from namespaces n join workspaces w on w.id = n.workspace_id and w.deleted_at is null
  where n.org_id = $1 and ($2::text[] is null or n.workspace_id = any($2)) and ($3::text[] is null or n.id = any($3))
    and exists (select 1 from artifact_languages l where l.namespace_id = n.id)`;
const LIMIT = `order by n.id limit ${MOST_NAMESPACES + 1}`;
const EVERY = `${LIVE} ${LIMIT}`;
const OWN = `${LIVE} and ${hasInWorkspace('artifact:read', 'w.id', '$4')} ${LIMIT}`;

/**
 * The namespaces that a search looks at: those of the named places in which the caller may read artifacts, and that have
 * any. Places that a caller names and may not read are not searched, whether or not they exist.
 */
export class SearchScopes {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** @throws invalid input for more namespaces than one search looks at */
  async ofWorkspace(caller: Caller, place: Checked<WorkspacePlace>, { namespaceIds }: Named): Promise<SearchedPlaces> {
    return this.#read(place.orgId, EVERY, this.#named(caller, { workspaceIds: [place.workspaceId], namespaceIds }));
  }

  /** @throws invalid input for more namespaces than one search looks at */
  async ofOrganization(caller: Caller, place: Checked<OrganizationPlace>, named: Named): Promise<SearchedPlaces> {
    const places = this.#named(caller, named);
    return reachesEveryWorkspace(place.asked.role)
      ? this.#read(place.orgId, EVERY, places)
      : this.#read(place.orgId, OWN, [...places, caller.principal.userId]);
  }

  #named({ principal }: Caller, { workspaceIds, namespaceIds }: Named): unknown[] {
    const { workspaceId, namespaceId } = restrictionsOf(principal.token);
    return [both(workspaceIds, workspaceId), both(namespaceIds, namespaceId)];
  }

  async #read(orgId: string, text: string, values: unknown[]): Promise<SearchedPlaces> {
    const rows = await this.#sql.read<{ id: string }>(text, [orgId, ...values]);
    if (rows.length > MOST_NAMESPACES)
      throw invalidInput(['input', 'query'], `one search looks at ${MOST_NAMESPACES} namespaces: name some of them`);
    return { orgId, namespaceIds: rows.map(({ id }) => id) };
  }
}

/** What is in both lists; `null` for everything. */
function both(named: readonly string[] | null | undefined, allowed: readonly string[] | undefined) {
  if (!named || named.length === 0) return allowed ?? null;
  return allowed ? named.filter((id) => allowed.includes(id)) : named;
}
