import DataLoader from 'dataloader';
import type { Config } from '../config.ts';
import { isUnstorable } from '../graphql/constraints.ts';
import { forbidden, notFound } from '../graphql/errors.ts';
import { FreshCache } from '../infra/fresh-cache.ts';
import type { Sql } from '../infra/sql.ts';
import type { Actor } from './caller.ts';
import {
  atLeast,
  type Grant,
  granted,
  higherRole,
  type Permission,
  permissionTable,
  type Role,
} from './permissions.ts';

interface OrganizationAccess {
  role: Role | null;
}

interface WorkspaceAccess {
  /** The workspace is there and not deleted. */
  exists: boolean;
  /** The role of the membership row, also of a deleted workspace. */
  role: Role | null;
}

const ORGANIZATION_ROLE = `select m.role from organization_members m join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.user_id = $2 and o.deleted_at is null`;
const WORKSPACE_ROLE = `select w.deleted_at is null as exists,
  (select m.role from workspace_members m where m.workspace_id = w.id and m.user_id = $3) as role
  from workspaces w where w.org_id = $1 and w.id = $2`;

// the same questions asked many times at once, as the rows of a list do: one statement for all
const ORGANIZATION_ROLES = `select (${ORGANIZATION_ROLE.replace('$1', 'k.org_id').replace('$2', 'k.user_id')}) as role
  from unnest($1::text[], $2::text[]) with ordinality k(org_id, user_id, at) order by k.at`;
const WORKSPACE_ROLES = `select r.* from unnest($1::text[], $2::text[], $3::text[]) with ordinality k(org_id, workspace_id, user_id, at)
  left join lateral (${WORKSPACE_ROLE.replace('$1', 'k.org_id').replace('$2', 'k.workspace_id').replace('$3', 'k.user_id')}) r on true order by k.at`;

/**
 * May this caller do that here? Reads memberships live, with a cache of under a second that this node's own changes drop at
 * once. Answers 403 alike for an organization or workspace that one is no member of, whether or not it exists (defaults §0.3).
 */
export class Access {
  readonly #sql: Sql;
  readonly #organizations = new FreshCache<OrganizationAccess>();
  readonly #workspaces = new FreshCache<WorkspaceAccess>();
  // gathers what is asked at the same moment; it keeps nothing, that is the caches' task
  readonly #organizationLoads = new DataLoader<string[], OrganizationAccess>((keys) => this.#readOrganizations(keys), {
    cache: false,
  });
  readonly #workspaceLoads = new DataLoader<string[], WorkspaceAccess>((keys) => this.#readWorkspaces(keys), {
    cache: false,
  });

  readonly #demandsVerified: boolean;

  readonly #membersMakeWorkspaces: boolean;

  /**
   * @param config.requireVerifiedEmail accounts that have not proven their address reach no organization
   * @param config.allowMemberWorkspaces plain members may create workspaces
   */
  constructor(
    sql: Sql,
    { requireVerifiedEmail, allowMemberWorkspaces }: Pick<Config, 'requireVerifiedEmail' | 'allowMemberWorkspaces'>,
  ) {
    this.#sql = sql;
    this.#demandsVerified = requireVerifiedEmail;
    this.#membersMakeWorkspaces = allowMemberWorkspaces;
  }

  /** The caller's role in an organization; `null` for a stranger to it. */
  async organizationRole(actor: Actor, orgId: string): Promise<Role | null> {
    return (await this.#organization(actor, orgId)).role;
  }

  /** @throws FORBIDDEN `organization:access` for strangers, FORBIDDEN with the permission for members without it. */
  requireOrganization(actor: Actor, orgId: string, permission: Permission): Grant | Promise<Grant> {
    const access = this.#organization(actor, orgId);
    return access instanceof Promise
      ? access.then((a) => this.#judge(a.role, permission))
      : this.#judge(access.role, permission);
  }

  /**
   * @throws FORBIDDEN for those who cannot see the workspace, RESOURCE_NOT_FOUND for those who could see it were it there,
   *   FORBIDDEN with the permission for those whose role does not grant it.
   */
  requireWorkspace(actor: Actor, orgId: string, workspaceId: string, permission: Permission): Grant | Promise<Grant> {
    const organization = this.#organization(actor, orgId);
    if (organization instanceof Promise)
      return organization.then((o) => this.#requireWorkspace(actor, o, orgId, workspaceId, permission));
    return this.#requireWorkspace(actor, organization, orgId, workspaceId, permission);
  }

  /** The caller's effective role in a workspace: of its membership, or through the organization; `null` for none. */
  async workspaceRole(actor: Actor, orgId: string, workspaceId: string): Promise<Role | null> {
    const organization = await this.#organization(actor, orgId);
    const workspace = await this.#workspace(actor, orgId, workspaceId);
    return organization.role && workspace.exists ? effectiveRole(organization.role, workspace.role) : null;
  }

  /**
   * For a permission that may be limited to own content: passes when the grant covers a row made by `createdBy`.
   * @throws FORBIDDEN with the permission.
   */
  ensureCovers(actor: Actor, grant: Grant, permission: Permission, createdBy: string | null): void {
    if (grant === 'all' || (grant === 'own' && createdBy === actor.principal.userId)) return;
    throw forbidden(permission);
  }

  /** A membership of an organization changed on this node. */
  organizationChanged(orgId: string, userId: string): void {
    this.#organizations.drop(`${orgId} ${userId}`);
  }

  /** A membership of a workspace changed on this node, or the workspace itself. */
  workspaceChanged(orgId: string, workspaceId: string, userId?: string): void {
    if (userId) this.#workspaces.drop(`${orgId} ${workspaceId} ${userId}`);
    else this.#workspaces.dropAll(`${orgId} ${workspaceId} `);
  }

  /** An organization was deleted on this node: nobody is a member of anything in it. */
  organizationDeleted(orgId: string): void {
    this.#organizations.dropAll(`${orgId} `);
    this.#workspaces.dropAll(`${orgId} `);
  }

  #organization(actor: Actor, orgId: string): OrganizationAccess | Promise<OrganizationAccess> {
    const { userId, isVerified } = actor.principal;
    if (this.#demandsVerified && !isVerified) throw forbidden('account:verified', 'Confirm your e-mail address first.');
    // asked before the input is checked: an id that PostgreSQL would not even take is that of nothing
    if (isUnstorable(orgId)) return { role: null };
    return this.#organizations.get(`${orgId} ${userId}`, () => this.#organizationLoads.load([orgId, userId]));
  }

  #workspace(actor: Actor, orgId: string, workspaceId: string): WorkspaceAccess | Promise<WorkspaceAccess> {
    const { userId } = actor.principal;
    if (isUnstorable(workspaceId)) return { exists: false, role: null };
    return this.#workspaces.get(`${orgId} ${workspaceId} ${userId}`, () =>
      this.#workspaceLoads.load([orgId, workspaceId, userId]),
    );
  }

  async #readOrganizations(keys: readonly string[][]): Promise<OrganizationAccess[]> {
    const rows = await this.#readEach<{ role: Role | null }>(keys, ORGANIZATION_ROLE, ORGANIZATION_ROLES);
    return keys.map((_, index) => ({ role: rows[index]?.role ?? null }));
  }

  async #readWorkspaces(keys: readonly string[][]): Promise<WorkspaceAccess[]> {
    const rows = await this.#readEach<WorkspaceAccess>(keys, WORKSPACE_ROLE, WORKSPACE_ROLES);
    return keys.map((_, index) => ({ exists: rows[index]?.exists ?? false, role: rows[index]?.role ?? null }));
  }

  /** One row for each key: of `one` where there is a single key, else of `many`, which takes the columns of the keys as arrays. */
  async #readEach<Row extends object>(keys: readonly string[][], one: string, many: string): Promise<Row[]> {
    if (keys.length === 1) return this.#sql.read<Row>(one, keys[0]!);
    return this.#sql.read<Row>(
      many,
      keys[0]!.map((_, column) => keys.map((key) => key[column])),
    );
  }

  #requireWorkspace(
    actor: Actor,
    organization: OrganizationAccess,
    orgId: string,
    workspaceId: string,
    permission: Permission,
  ) {
    if (!organization.role) throw forbidden('organization:access');
    const { role } = organization;
    const workspace = this.#workspace(actor, orgId, workspaceId);
    return workspace instanceof Promise
      ? workspace.then((w) => judgeWorkspace(role, w, workspaceId, permission))
      : judgeWorkspace(role, workspace, workspaceId, permission);
  }

  #judge(role: Role | null, permission: Permission): Grant {
    if (!role) throw forbidden('organization:access');
    const grant = granted(role, permission);
    if (grant !== 'none') return grant;
    if (permission === 'workspace:create' && this.#membersMakeWorkspaces && atLeast(role, 'member')) return 'all';
    throw forbidden(permission);
  }
}

/** Owners and administrators of an organization are that in each of its workspaces. */
export function effectiveRole(organizationRole: Role, workspaceRole: Role | null): Role | null {
  return higherRole(workspaceRole, atLeast(organizationRole, 'admin') ? organizationRole : null);
}

function judgeWorkspace(
  organizationRole: Role,
  workspace: WorkspaceAccess,
  workspaceId: string,
  permission: Permission,
): Grant {
  const role = effectiveRole(organizationRole, workspace.role);
  if (!role) throw forbidden(permission);
  if (!workspace.exists) throw notFound('workspace', workspaceId);
  const rule = permissionTable[permission];
  if ('organizationFrom' in rule && atLeast(organizationRole, rule.organizationFrom)) return 'all';
  const grant = granted(role, permission);
  if (grant === 'none') throw forbidden(permission);
  return grant;
}
