import DataLoader from 'dataloader';
import type { Config } from '../config.ts';
import type { Sql } from '../data/sql.ts';
import type { Caller } from '../kernel/caller.ts';
import type { PlacePart, WorkspacePlace } from '../kernel/checked-place.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { forbidden, notFound } from '../kernel/errors.ts';
import type { Permit } from '../kernel/permit.ts';
import { DEFAULT_NAMESPACE, type Place } from '../kernel/place.ts';
import type { Permission, ResourceWord } from '../kernel/resources.ts';
import { atLeast, type Grant, higherRole, type Role } from '../kernel/roles.ts';
import { type Reach, reaches, restrictionsOf } from '../kernel/token-grant.ts';
import { FreshCache } from './fresh-cache.ts';
import type { KnownFacts } from './known-facts.ts';
import { granted, permissionTable, readPermissionOf } from './permissions.ts';

interface DefaultNamespace {
  id: string | null;
}

interface OrganizationAccess {
  role: Role | null;
  /** The member has never used the organization. */
  isUnused: boolean;
}

interface WorkspaceAccess {
  /** Whether the workspace exists and is not deleted. */
  exists: boolean;
  /** The role of the membership row, also of a deleted workspace. */
  role: Role | null;
}

const ORGANIZATION_ROLE = `select m.role from organization_members m join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.user_id = $2 and o.deleted_at is null`;
const ORGANIZATION_ACCESS = `select m.role, m.used_at is null as "isUnused"
  from organization_members m join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.user_id = $2 and o.deleted_at is null`;
const USE = `update organization_members set used_at = now() where org_id = $1 and user_id = $2 and used_at is null`;
const WENT_WITH = `select 1 from organization_members m join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.user_id = $2 and o.deleted_at is not null`;
const WORKSPACE_ROLE = `select w.deleted_at is null as exists,
  (select m.role from workspace_members m where m.workspace_id = w.id and m.user_id = $3) as role
  from workspaces w where w.org_id = $1 and w.id = $2`;
const ROLES_SOMEWHERE = `array(select distinct m.role from workspace_members m
  join workspaces w on w.id = m.workspace_id
  where m.org_id = $1 and m.user_id = $2 and w.deleted_at is null)`;
const DEFAULT_NAMESPACE_ID = `select id from namespaces
  where org_id = $1 and workspace_id = $2 and slug = '${DEFAULT_NAMESPACE}'`;

const PART_TABLES: Record<PlacePart, string> = { namespace: 'namespaces', app: 'apps', environment: 'environments' };
const partById = (part: PlacePart) =>
  `select id from ${PART_TABLES[part]} where org_id = $1 and workspace_id = $2 and id = $3`;

// the same queries for many keys at once, as for the rows of a list: one statement for all
const ORGANIZATION_ROLE_OF_KEY = ORGANIZATION_ROLE.replace('$1', 'k.org_id').replace('$2', 'k.user_id');
const ORGANIZATION_ACCESSES = `select r.*
  from unnest($1::text[], $2::text[]) with ordinality k(org_id, user_id, at)
  left join lateral (${ORGANIZATION_ACCESS.replace('$1', 'k.org_id').replace('$2', 'k.user_id')}) r on true
  order by k.at`;
const WORKSPACE_ROLE_OF_KEY = WORKSPACE_ROLE.replace('$1', 'k.org_id')
  .replace('$2', 'k.workspace_id')
  .replace('$3', 'k.user_id');
const WORKSPACE_ROLES = `select r.*
  from unnest($1::text[], $2::text[], $3::text[]) with ordinality k(org_id, workspace_id, user_id, at)
  left join lateral (${WORKSPACE_ROLE_OF_KEY}) r on true order by k.at`;
const EACH_ROLES_SOMEWHERE = `select ${ROLES_SOMEWHERE.replace('$1', 'k.org_id').replace('$2', 'k.user_id')} as roles
  from unnest($1::text[], $2::text[]) with ordinality k(org_id, user_id, at) order by k.at`;

// for thousands of silent streams: nearly all facts are the known ones, and the answer is empty
const CHANGED_FACTS = `select k.at::int - 1 as at, f.facts
  from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality
    k(org_id, workspace_id, user_id, known, at)
  left join lateral (${WORKSPACE_ROLE_OF_KEY}) r on true
  cross join lateral (select concat_ws(' ', coalesce((${ORGANIZATION_ROLE_OF_KEY}), '-'), coalesce(r.role, '-'),
    coalesce(r.exists::text, '-')) as facts) f
  where f.facts is distinct from k.known`;

/**
 * Decides whether a caller may do something in a place. Reads memberships live, with a cache of under a second; changes
 * on this node drop its entries at once. Answers 403 for an organization or workspace that the caller is not a member
 * of, whether or not it exists (defaults §0.3).
 *
 * A token has the rights of its user, narrowed by its grant and restricted to the places that it lists
 * (`token-grant.ts`). A service that checks again for something in a namespace, an environment or an app must pass
 * `place`. Without it, a change counts as one outside of them, and tokens restricted to some of them are refused.
 *
 * Cached results are returned at once, others as a promise. Awaiting always would cost 0.3 us more per check, 20 us for
 * a page of 20 rows with three checks each; and each event is checked for each of its streams.
 */
export class Access {
  readonly #sql: Sql;
  readonly #organizations = new FreshCache<OrganizationAccess>();
  readonly #workspaces = new FreshCache<WorkspaceAccess>();
  readonly #defaultNamespaces = new FreshCache<DefaultNamespace>();
  // batches simultaneous queries and keeps nothing: caching is left to the caches
  readonly #organizationLoads = new DataLoader<string[], OrganizationAccess>((keys) => this.#readOrganizations(keys), {
    cache: false,
  });
  readonly #workspaceLoads = new DataLoader<string[], WorkspaceAccess>((keys) => this.#readWorkspaces(keys), {
    cache: false,
  });
  readonly #rolesSomewhereLoads = new DataLoader<string[], readonly Role[]>((keys) => this.#readRolesSomewhere(keys), {
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

  /** The caller's role in an organization; `null` for non-members and for a token of another organization. */
  async organizationRole(caller: Caller, orgId: string): Promise<Role | null> {
    if (isForeign(caller, orgId)) return null;
    return (await this.#organization(caller, orgId)).role;
  }

  /**
   * @param place the part of the organization that the check is about, if any
   * @throws FORBIDDEN `organization:access` for non-members, FORBIDDEN with the permission for members without it
   */
  requireOrganization(
    caller: Caller,
    orgId: string,
    permission: Permission,
    place?: Omit<Reach, 'orgId'>,
  ): Permit | Promise<Permit> {
    if (caller.principal.token)
      return this.requireToken(caller, permission, { orgId, ...place }).then(async () =>
        this.#requireOrganization(caller, await this.#organization(caller, orgId), orgId, permission),
      );
    const access = this.#organization(caller, orgId);
    return access instanceof Promise
      ? access.then((a) => this.#requireOrganization(caller, a, orgId, permission))
      : this.#requireOrganization(caller, access, orgId, permission);
  }

  /**
   * @param place the part of the workspace that the check is about: its namespace (by id or `default`), environment,
   * app
   * @throws FORBIDDEN for callers who cannot see the workspace, RESOURCE_NOT_FOUND for callers who could see it if it
   * existed, FORBIDDEN with the permission for callers whose role does not grant it
   */
  requireWorkspace(
    caller: Caller,
    orgId: string,
    workspaceId: string,
    permission: Permission,
    place?: Place,
  ): Permit | Promise<Permit> {
    if (caller.principal.token)
      return this.requireToken(caller, permission, { orgId, workspaceId, ...place }).then(async () =>
        this.#requireWorkspace(caller, await this.#organization(caller, orgId), orgId, workspaceId, permission),
      );
    const organization = this.#organization(caller, orgId);
    if (organization instanceof Promise)
      return organization.then((o) => this.#requireWorkspace(caller, o, orgId, workspaceId, permission));
    return this.#requireWorkspace(caller, organization, orgId, workspaceId, permission);
  }

  /**
   * Whether the caller may do something with all that a place has of a kind; in a workspace, also after its deletion.
   * For events, which are checked for each of their streams: a refusal that is thrown costs more than all of the check.
   * @param where names places by their ids, not by `default`
   */
  permits(caller: Caller, permission: Permission, where: Reach): boolean | Promise<boolean> {
    const { token } = caller.principal;
    if (this.#isUnproven(caller) || (token && !reaches(token, permission, where))) return false;
    const organization = this.#organization(caller, where.orgId);
    return organization instanceof Promise
      ? organization.then(({ role }) => this.#permitsIn(caller, role, permission, where))
      : this.#permitsIn(caller, organization.role, permission, where);
  }

  /** The same for reading a resource of a kind: by its permission to read. */
  maySee(caller: Caller, word: ResourceWord, where: Reach): boolean | Promise<boolean> {
    const permission = readPermissionOf(word);
    return permission !== null && this.permits(caller, permission, where);
  }

  /** The caller's effective role in a workspace, from its membership or through the organization; `null` for none. */
  async workspaceRole(caller: Caller, orgId: string, workspaceId: string): Promise<Role | null> {
    const { workspaceId: visible } = restrictionsOf(caller.principal.token);
    if (isForeign(caller, orgId) || visible?.includes(workspaceId) === false) return null;
    const organization = await this.#organization(caller, orgId);
    const workspace = await this.#workspace(caller, orgId, workspaceId);
    return organization.role && workspace.exists ? effectiveRole(organization.role, workspace.role) : null;
  }

  /** Whether the caller sees the addresses of other members of an organization: everybody but its guests. */
  seesAddresses(caller: Caller, orgId: string): boolean | Promise<boolean> {
    if (isForeign(caller, orgId)) return false;
    const isNoGuest = ({ role }: OrganizationAccess) => role !== null && atLeast(role, 'member');
    const organization = this.#organization(caller, orgId);
    return organization instanceof Promise ? organization.then(isNoGuest) : isNoGuest(organization);
  }

  /**
   * Checks only what a token itself allows, not what its user may do; always passes for users who have signed in. For
   * what users may do without a permission, because it is their own.
   * @throws FORBIDDEN `organization:access` for another organization, FORBIDDEN with the permission
   */
  async requireToken({ principal: { token } }: Caller, permission: Permission, where: Reach): Promise<void> {
    if (!token) return;
    if (token.orgId !== where.orgId) throw forbidden('organization:access');
    if (!reaches(token, permission, await this.#resolved(where, token.namespaceIds))) throw forbidden(permission);
  }

  /**
   * Whether the caller's user may do something anywhere in an organization: by a role in it or in any of its
   * workspaces, even if only with their own content.
   */
  async rightsSomewhere(caller: Caller, orgId: string): Promise<(permission: Permission) => boolean> {
    const own = await this.organizationRole(caller, orgId);
    if (!own) return () => false;
    const inWorkspaces = await this.#rolesSomewhereLoads.load([orgId, caller.principal.userId]);
    return (permission) =>
      isFromOrganization(own, permission) ||
      this.#grantOf(own, permission) !== 'none' ||
      inWorkspaces.some((role) => granted(role, permission) !== 'none');
  }

  /**
   * The id of a part of a workspace, found by its id or, for a namespace, by `default`.
   * @throws RESOURCE_NOT_FOUND with the part
   */
  async findPart(workspace: WorkspacePlace, part: PlacePart, id: string): Promise<string> {
    const { orgId, workspaceId } = workspace;
    if (part === 'namespace' && id === DEFAULT_NAMESPACE) {
      const found = await this.#defaultNamespace(orgId, workspaceId);
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
   * For a permission that may be limited to own content: passes when the grant covers a row made by `createdBy`.
   * @throws FORBIDDEN with the permission
   */
  ensureCovers(caller: Caller, grant: Grant, permission: Permission, createdBy: string | null): void {
    if (grant === 'all' || (grant === 'own' && createdBy === caller.principal.userId)) return;
    throw forbidden(permission);
  }

  /** Whether the caller's user was a member of an organization when it was deleted. */
  async wentWithOrganization({ principal }: Caller, orgId: string): Promise<boolean> {
    return (await this.#sql.read(WENT_WITH, [orgId, principal.userId])).length > 0;
  }

  /**
   * The facts about these users in these places that differ from the known ones, by position: what the checks here
   * decide by, as a text. All are cached as they are now, known ones too: an event must not ask for the facts about
   * each of its readers again.
   */
  async changesOf(known: KnownFacts): Promise<Map<number, string>> {
    const changed = new Map<number, string>();
    if (known.facts.length === 0) return changed;
    const read = async () => {
      const rows = await this.#sql.read<{ at: number; facts: string }>(CHANGED_FACTS, known.parameters);
      for (const { at, facts } of rows) changed.set(at, facts);
      // few different ones, of many users
      const meanings = new Map<string, ReturnType<typeof accessOf>>();
      return known.facts.map((facts, at) => {
        const text = changed.get(at) ?? facts ?? NO_FACTS;
        const meaning = meanings.get(text) ?? accessOf(text);
        meanings.set(text, meaning);
        return meaning;
      });
    };
    let found: ReturnType<typeof read> | undefined;
    const facts = () => (found ??= read());
    await Promise.all([
      this.#organizations.readAgain(known.organizationKeys, async () =>
        (await facts()).map(({ organization }) => organization),
      ),
      this.#workspaces.readAgain(known.workspaceKeys, async () => {
        const all = await facts();
        return known.inWorkspaces.map((at) => all[at]!.workspace);
      }),
    ]);
    return changed;
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

  /** Resolves `default` to the id of that namespace, if the check needs it. */
  async #resolved(where: Reach, namespaceIds: readonly string[]): Promise<Reach> {
    const { orgId, workspaceId, namespaceId } = where;
    if (namespaceIds.length === 0 || namespaceId !== DEFAULT_NAMESPACE || !workspaceId) return where;
    if (isUnstorable(workspaceId)) return where;
    return { ...where, namespaceId: (await this.#defaultNamespace(orgId, workspaceId)) ?? DEFAULT_NAMESPACE };
  }

  /**
   * The default namespace is created with its workspace and is never moved or deleted alone, so it may be cached as
   * long as the membership.
   */
  async #defaultNamespace(orgId: string, workspaceId: string): Promise<string | null> {
    const { id } = await this.#defaultNamespaces.get(`${orgId} ${workspaceId}`, async () => {
      const [row] = await this.#sql.read<{ id: string }>(DEFAULT_NAMESPACE_ID, [orgId, workspaceId]);
      return { id: row?.id ?? null };
    });
    return id;
  }

  #permitsIn(
    caller: Caller,
    role: Role | null,
    permission: Permission,
    { orgId, workspaceId }: Reach,
  ): boolean | Promise<boolean> {
    if (!role) return false;
    if (!workspaceId) return this.#grantOf(role, permission) === 'all';
    const workspace = this.#workspace(caller, orgId, workspaceId);
    return workspace instanceof Promise
      ? workspace.then((found) => grantIn(role, found.role, permission) === 'all')
      : grantIn(role, workspace.role, permission) === 'all';
  }

  #isUnproven({ principal }: Caller): boolean {
    return this.#demandsVerified && !principal.isVerified;
  }

  #organization(caller: Caller, orgId: string): OrganizationAccess | Promise<OrganizationAccess> {
    const { userId } = caller.principal;
    if (this.#isUnproven(caller)) throw forbidden('account:verified', 'Confirm your e-mail address first.');
    // checked before the input is validated: an id that PostgreSQL would not even accept belongs to nothing
    if (isUnstorable(orgId)) return NO_ORGANIZATION;
    return this.#organizations.get(`${orgId} ${userId}`, () => this.#organizationLoads.load([orgId, userId]));
  }

  #workspace(caller: Caller, orgId: string, workspaceId: string): WorkspaceAccess | Promise<WorkspaceAccess> {
    const { userId } = caller.principal;
    if (isUnstorable(workspaceId)) return { exists: false, role: null };
    return this.#workspaces.get(`${orgId} ${workspaceId} ${userId}`, () =>
      this.#workspaceLoads.load([orgId, workspaceId, userId]),
    );
  }

  async #readOrganizations(keys: readonly string[][]): Promise<OrganizationAccess[]> {
    const rows = await this.#readEach<OrganizationAccess>(keys, ORGANIZATION_ACCESS, ORGANIZATION_ACCESSES);
    return keys.map((_, index) => (rows[index]?.role ? rows[index] : NO_ORGANIZATION));
  }

  async #readWorkspaces(keys: readonly string[][]): Promise<WorkspaceAccess[]> {
    const rows = await this.#readEach<WorkspaceAccess>(keys, WORKSPACE_ROLE, WORKSPACE_ROLES);
    return keys.map((_, index) => ({ exists: rows[index]?.exists ?? false, role: rows[index]?.role ?? null }));
  }

  async #readRolesSomewhere(keys: readonly string[][]): Promise<(readonly Role[])[]> {
    const one = `select ${ROLES_SOMEWHERE} as roles`;
    return (await this.#readEach<{ roles: Role[] }>(keys, one, EACH_ROLES_SOMEWHERE)).map(({ roles }) => roles);
  }

  /**
   * Reads one row per key: with `one` for a single key, else with `many`, which takes the columns of the keys as
   * arrays.
   */
  async #readEach<Row extends object>(keys: readonly string[][], one: string, many: string): Promise<Row[]> {
    if (keys.length === 1) return this.#sql.read<Row>(one, keys[0]!);
    return this.#sql.read<Row>(
      many,
      keys[0]!.map((_, column) => keys.map((key) => key[column])),
    );
  }

  #requireWorkspace(
    caller: Caller,
    organization: OrganizationAccess,
    orgId: string,
    workspaceId: string,
    permission: Permission,
  ) {
    if (!organization.role) throw forbidden('organization:access');
    const { role } = organization;
    const workspace = this.#workspace(caller, orgId, workspaceId);
    if (organization.isUnused) return this.#useWorkspace(caller, role, { orgId, workspaceId, workspace }, permission);
    return workspace instanceof Promise
      ? workspace.then((w) => judgeWorkspace(role, w, workspaceId, permission))
      : judgeWorkspace(role, workspace, workspaceId, permission);
  }

  #requireOrganization(
    caller: Caller,
    { role, isUnused }: OrganizationAccess,
    orgId: string,
    permission: Permission,
  ): Permit | Promise<Permit> {
    const permit = this.#judge(role, permission);
    return isUnused ? this.#use(caller, orgId).then(() => permit) : permit;
  }

  async #useWorkspace(
    caller: Caller,
    role: Role,
    {
      orgId,
      workspaceId,
      workspace,
    }: { orgId: string; workspaceId: string; workspace: WorkspaceAccess | Promise<WorkspaceAccess> },
    permission: Permission,
  ): Promise<Permit> {
    const permit = judgeWorkspace(role, await workspace, workspaceId, permission);
    await this.#use(caller, orgId);
    return permit;
  }

  /** Remembers that a member has used the organization: others see their address from then on. */
  async #use({ principal: { userId } }: Caller, orgId: string): Promise<void> {
    await this.#sql.write(USE, [orgId, userId]);
    this.organizationChanged(orgId, userId);
  }

  #judge(role: Role | null, permission: Permission): Permit {
    if (!role) throw forbidden('organization:access');
    const grant = this.#grantOf(role, permission);
    if (grant === 'none') throw forbidden(permission);
    return { permission, grant, role };
  }

  /** The grant of a role in the organization, with the operator's settings applied. */
  #grantOf(role: Role, permission: Permission): Grant {
    if (permission === 'workspace:create' && this.#membersMakeWorkspaces && atLeast(role, 'member')) return 'all';
    return granted(role, permission);
  }
}

const NO_ORGANIZATION: OrganizationAccess = { role: null, isUnused: false };

/** Those about somebody without a role, in no place. */
const NO_FACTS = '- - -';

/** Reads the facts that {@link CHANGED_FACTS} writes: `admin - true`. */
function accessOf(facts: string): { organization: OrganizationAccess; workspace: WorkspaceAccess } {
  const [inOrganization, inWorkspace, exists] = facts.split(' ') as [string, string, string];
  const roleOf = (word: string) => (word === '-' ? null : (word as Role));
  return {
    // who reads events has asked for the stream, which is using the organization
    organization: { role: roleOf(inOrganization), isUnused: false },
    workspace: { exists: exists === 'true', role: roleOf(inWorkspace) },
  };
}

/** Owners and administrators of an organization have the same role in each of its workspaces. */
export function effectiveRole(organizationRole: Role, workspaceRole: Role | null): Role | null {
  return higherRole(workspaceRole, atLeast(organizationRole, 'admin') ? organizationRole : null);
}

/** Whether a role in an organization also applies in each of its workspaces. */
export const reachesEveryWorkspace = (role: Role): boolean => effectiveRole(role, null) !== null;

/** A token belongs to one organization. Users are checked as members instead. */
const isForeign = ({ principal: { token } }: Caller, orgId: string): boolean => token !== null && token.orgId !== orgId;

/** Whether a role in the organization alone grants a permission of the workspace. */
function isFromOrganization(role: Role, permission: Permission): boolean {
  const { organizationFrom } = permissionTable[permission];
  return organizationFrom !== undefined && atLeast(role, organizationFrom);
}

function judgeWorkspace(
  organizationRole: Role,
  workspace: WorkspaceAccess,
  workspaceId: string,
  permission: Permission,
): Permit {
  const role = effectiveRole(organizationRole, workspace.role);
  if (!role) throw forbidden(permission);
  if (!workspace.exists) throw notFound('workspace', workspaceId);
  const grant = grantIn(organizationRole, workspace.role, permission);
  if (grant === 'none') throw forbidden(permission);
  return { permission, grant, role };
}

/** The grant of somebody with these roles in an organization and in one of its workspaces. */
function grantIn(organizationRole: Role, workspaceRole: Role | null, permission: Permission): Grant {
  const role = effectiveRole(organizationRole, workspaceRole);
  if (!role) return 'none';
  return isFromOrganization(organizationRole, permission) ? 'all' : granted(role, permission);
}
