import type { Config } from '../config.ts';
import type { Sql } from '../data/sql.ts';
import type { Caller } from '../kernel/caller.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { forbidden, notFound } from '../kernel/errors.ts';
import type { Permit } from '../kernel/permit.ts';
import { DEFAULT_NAMESPACE, type Place } from '../kernel/place.ts';
import type { Permission, ResourceWord } from '../kernel/resources.ts';
import { atLeast, type Grant, type Role } from '../kernel/roles.ts';
import { type Reach, reaches, restrictionsOf } from '../kernel/token-grant.ts';
import { MembershipFacts, type OrganizationAccess, type WorkspaceAccess } from './membership-facts.ts';
import { granted, readPermissionOf } from './permissions.ts';
import { PlaceParts } from './place-parts.ts';
import { effectiveRole, grantIn, isFromOrganization } from './role-grants.ts';
import { admitted, refusalOf } from './sso-admission.ts';
import { demandStepUp, letsSecretsOut, type SteppedUp } from './step-up.ts';

/**
 * Decides whether a caller may do something in a place, by what {@link MembershipFacts} reads live. Answers 403 for an
 * organization or workspace that the caller is not a member of, whether or not it exists (defaults §0.3).
 *
 * A token has the rights of its user, narrowed by its grant and restricted to the places that it lists
 * (`token-grant.ts`). A service that checks again for something in a namespace, an environment or an app must pass
 * `place`. Without it, a change counts as one outside of them, and tokens restricted to some of them are refused.
 *
 * Cached results are returned at once, others as a promise. Awaiting always would cost 0.3 us more per check, 20 us for
 * a page of 20 rows with three checks each; and each event is checked for each of its streams.
 */
export class Access {
  /** What users are in organizations and workspaces. */
  readonly facts: MembershipFacts;
  /** The parts of workspaces. */
  readonly parts: PlaceParts;
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
    this.facts = new MembershipFacts(sql);
    this.parts = new PlaceParts(sql);
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
    const permit = this.#permitInOrganization(caller, orgId, permission, place);
    return letsSecretsOut(permission)
      ? this.steppedUp(caller, orgId, { permission, stepUp: 'secret_reveal' }, permit)
      : permit;
  }

  #permitInOrganization(
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
    const permit = this.#permitInWorkspace(caller, orgId, workspaceId, permission, place);
    return letsSecretsOut(permission)
      ? this.steppedUp(caller, orgId, { permission, stepUp: 'secret_reveal' }, permit)
      : permit;
  }

  /**
   * Passes a permit on to a caller who has proven a second factor a moment ago, if the organization asks for it. The
   * values of secrets ask by themselves, wherever their permission is checked; changes ask where they are declared.
   * @throws FORBIDDEN `fresh_factor`
   */
  async steppedUp<Found>(
    caller: Caller,
    orgId: string,
    act: SteppedUp,
    permit: Found | Promise<Found>,
  ): Promise<Found> {
    const found = await permit;
    const { stepUp } = await this.#organization(caller, orgId);
    demandStepUp(caller.principal, stepUp, act);
    return found;
  }

  #permitInWorkspace(
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
    const workspace = await this.facts.workspace(caller.principal.userId, orgId, workspaceId);
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
    const inWorkspaces = await this.facts.rolesSomewhere(caller.principal.userId, orgId);
    return (permission) =>
      isFromOrganization(own, permission) ||
      this.#grantOf(own, permission) !== 'none' ||
      inWorkspaces.some((role) => granted(role, permission) !== 'none');
  }

  /**
   * For a permission that may be limited to own content: passes when the grant covers a row made by `createdBy`.
   * @throws FORBIDDEN with the permission
   */
  demandCovers(caller: Caller, grant: Grant, permission: Permission, createdBy: string | null): void {
    if (grant === 'all' || (grant === 'own' && createdBy === caller.principal.userId)) return;
    throw forbidden(permission);
  }

  /** Resolves `default` to the id of that namespace, if the check needs it. */
  async #resolved(where: Reach, namespaceIds: readonly string[]): Promise<Reach> {
    const { orgId, workspaceId, namespaceId } = where;
    if (namespaceIds.length === 0 || namespaceId !== DEFAULT_NAMESPACE || !workspaceId) return where;
    if (isUnstorable(workspaceId)) return where;
    return { ...where, namespaceId: (await this.parts.defaultNamespace(orgId, workspaceId)) ?? DEFAULT_NAMESPACE };
  }

  #permitsIn(
    caller: Caller,
    role: Role | null,
    permission: Permission,
    { orgId, workspaceId }: Reach,
  ): boolean | Promise<boolean> {
    if (!role) return false;
    if (!workspaceId) return this.#grantOf(role, permission) === 'all';
    const workspace = this.facts.workspace(caller.principal.userId, orgId, workspaceId);
    return workspace instanceof Promise
      ? workspace.then((found) => grantIn(role, found.role, permission) === 'all')
      : grantIn(role, workspace.role, permission) === 'all';
  }

  #isUnproven({ principal }: Caller): boolean {
    return this.#demandsVerified && !principal.isVerified;
  }

  #organization(caller: Caller, orgId: string): OrganizationAccess | Promise<OrganizationAccess> {
    if (this.#isUnproven(caller)) throw forbidden('account:verified', 'Confirm your e-mail address first.');
    const { principal } = caller;
    const known = this.facts.organization(principal.userId, orgId);
    return known instanceof Promise
      ? known.then((access) => admitted(principal, orgId, access))
      : admitted(principal, orgId, known);
  }

  #requireWorkspace(
    caller: Caller,
    organization: OrganizationAccess,
    orgId: string,
    workspaceId: string,
    permission: Permission,
  ) {
    if (!organization.role) throw refusalOf(organization);
    const { role } = organization;
    const workspace = this.facts.workspace(caller.principal.userId, orgId, workspaceId);
    if (organization.isUnused) return this.#useWorkspace(caller, role, { orgId, workspaceId, workspace }, permission);
    return workspace instanceof Promise
      ? workspace.then((w) => judgeWorkspace(role, w, workspaceId, permission))
      : judgeWorkspace(role, workspace, workspaceId, permission);
  }

  #requireOrganization(
    caller: Caller,
    access: OrganizationAccess,
    orgId: string,
    permission: Permission,
  ): Permit | Promise<Permit> {
    const permit = this.#judge(access, permission);
    return access.isUnused ? this.facts.use(caller.principal.userId, orgId).then(() => permit) : permit;
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
    await this.facts.use(caller.principal.userId, orgId);
    return permit;
  }

  #judge(access: OrganizationAccess, permission: Permission): Permit {
    if (!access.role) throw refusalOf(access);
    const { role } = access;
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

/** A token belongs to one organization. Users are checked as members instead. */
const isForeign = ({ principal: { token } }: Caller, orgId: string): boolean => token !== null && token.orgId !== orgId;

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
