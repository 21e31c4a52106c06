import type { Access } from '../../access/access.ts';
import { granted, rolesWith } from '../../access/permissions.ts';
import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { FreshFactorNeeded } from '../../access/step-up.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { columnsOf, containing, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { type CallerContext, noCache } from '../../data/request-cache.ts';
import type { Secret as SecretRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { type ApiError, conflict, forbidden, isRefusal, notFound } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';
import type { Role } from '../../kernel/roles.ts';
import { isLiveWorkspace } from '../../tenancy/views.ts';
import type { SecretValue } from './envelope.ts';
import { findPlace, type PlaceInput, type SecretPlace } from './secret-place.ts';

/** The columns of a secret that callers may see: no key material and no internal notes of the service. */
export const secretColumns = columnsOf(
  words(
    'id orgId scope workspaceId namespaceId environmentId name secretType status description vaultVersion expiresAt',
    'rotationReminderDays lastRotatedAt lastAccessedAt accessCount createdBy createdAt updatedAt deletedAt',
    'resourceVersion',
  ),
);

/** A secret without its value, as in lists. */
export type ListedSecret = Pick<SecretRow, keyof typeof secretColumns>;

/** A secret as callers see it. `value` is set only if it was requested and revealed. */
export interface Secret extends ListedSecret {
  value?: SecretValue;
}

/** The part of a row that callers may see. */
export const withoutKeys = (row: SecretRow): Secret =>
  Object.fromEntries(Object.entries(row).filter(([property]) => property in secretColumns)) as unknown as Secret;

/** Filters of a list of secrets. */
interface SecretArgs extends PageArgs {
  secretType?: string | null;
  /** Default: all except deleted secrets. */
  status?: string | null;
  includeExpired?: boolean | null;
  workspaceId?: string | null;
  /** Part of the name. */
  search?: string | null;
  name?: string;
  /** Only secrets that live exactly there, and the organization's own. */
  livingIn?: SecretPlace | null;
  scope?: SecretPlace['scope'];
}

/** What identifies a secret and its place. */
type Owned = Pick<ListedSecret, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId'>;

/** Key of the place: its most specific identifier. The unique index uses the same expression. */
const PLACE_KEY = `coalesce(t.environment_id, t.namespace_id, t.workspace_id, '')`;
const keyOfPlace = ({ environmentId, namespaceId, workspaceId }: SecretPlace) =>
  environmentId ?? namespaceId ?? workspaceId ?? '';

const secrets = {
  kind: 'secret',
  from: 'secrets',
  columns: secretColumns,
  always: [`(t.workspace_id is null or ${isLiveWorkspace('t.workspace_id')})`],
  index: { lead: 't.org_id' },
  filters: ({ secretType, status, includeExpired, workspaceId, search, name, livingIn, scope }: SecretArgs) => ({
    't.secret_type = ?': secretType,
    't.workspace_id = ?': workspaceId,
    [status ? 't.status = ?' : 't.status <> ?']: status ?? 'deleted',
    // The value is a constant, because cursors are bound to it.
    'coalesce(t.expires_at <= now(), false) = ?': includeExpired === false ? false : null,
    't.name ilike ?': search ? containing(search) : null,
    't.name = ?': name,
    't.scope = ?': scope,
    [`(t.scope = 'organization' or t.scope = '${livingIn?.scope}' and ${PLACE_KEY} = ?)`]:
      livingIn && keyOfPlace(livingIn),
  }),
} as const;

const READERS = rolesWith('secret:read')
  .map((role) => `'${role}'`)
  .join(', ');
/** The role in the organization, or in the workspace (`secret:read`), of a user who does not administer it. */
const MAY_READ = `case when t.workspace_id is null
  then exists (select 1 from organization_members o
    where o.org_id = t.org_id and o.user_id = $me and o.role in (${READERS}))
  else exists (select 1 from workspace_members m
    where m.workspace_id = t.workspace_id and m.user_id = $me and m.role in (${READERS})) end`;

/**
 * Reads of secrets and their permissions, which are checked where the secret lives. Only callers who may read a secret
 * learn that it exists; for all others it answers like a missing one. A caller who has the requested permission nowhere
 * gets FORBIDDEN first and learns nothing about the secret.
 */
export class SecretReads {
  /** All secrets of an organization, for those who administer it. */
  readonly all: Reads<ListedSecret, OrganizationPlace, SecretArgs>;
  /** The secrets that other callers may read. */
  readonly readable: Reads<ListedSecret, OrganizationPlace, SecretArgs>;
  /** The secrets of a workspace, of its namespaces and environments, for those who may read them. */
  readonly inWorkspace: Reads<ListedSecret, WorkspacePlace, SecretArgs>;
  readonly #deps: ServiceDeps;
  readonly #access: Access;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#access = deps.access;
    this.all = new Reads(deps, { ...secrets, below: ['orgId'] });
    this.readable = new Reads(deps, { ...secrets, name: 'readable_secrets', below: ['orgId'], mine: MAY_READ });
    this.inWorkspace = new Reads(deps, { ...secrets, name: 'workspace_secrets', below: ['orgId', 'workspaceId'] });
  }

  /**
   * The secrets of an organization that the caller may read, newest first.
   * @param role the actor's role in the organization
   * @throws FORBIDDEN `secret:read` if the caller may read none
   */
  async list(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    role: Role | null,
    args: SecretArgs,
  ): Promise<Page<ListedSecret>> {
    const { caller } = context;
    const { orgId } = place;
    const { workspaceId } = args;
    if (typeof workspaceId === 'string') await this.#access.requireWorkspace(caller, orgId, workspaceId, 'secret:read');
    if (!(await this.#maySomewhere(caller, orgId, role, 'secret:read'))) throw forbidden('secret:read');
    return this.#listed(role).list(context, place, args);
  }

  /**
   * A secret that the caller has the permission for. @throws like {@link demand}, RESOURCE_NOT_FOUND for a deleted one
   */
  async get(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    permission: Permission,
  ): Promise<ListedSecret> {
    const secret = await this.getDeletedToo(caller, place, id, permission);
    if (secret.status === 'deleted') throw notFound('secret', id);
    return secret;
  }

  /** Like {@link get}, but also returns soft-deleted secrets. */
  async getDeletedToo(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    permission: Permission,
  ): Promise<ListedSecret> {
    const secret = await this.all.find(noCache, place, id);
    if (!secret) throw await this.#refusal(caller, place.orgId, permission, notFound('secret', id));
    await this.demand(caller, secret, permission);
    return secret;
  }

  /** A secret of any organization, if the caller may read it. @throws RESOURCE_NOT_FOUND, FORBIDDEN */
  async node(context: CallerContext, id: string): Promise<ListedSecret | null> {
    const secret = await this.all.findUnscoped(context, id);
    if (!secret || secret.status === 'deleted') return null;
    await this.demand(context.caller, secret, 'secret:read');
    return secret;
  }

  /**
   * A secret by its name. With a place: the secret that lives exactly in its most specific identifier, else the
   * organization's own. Without a place: the organization's own, else the only one that the caller may read.
   * @throws RESOURCE_NOT_FOUND for an unknown name or place; FORBIDDEN `secret:read`; RESOURCE_CONFLICT
   * `ambiguous_name`
   */
  async getByName(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    name: string,
    input: PlaceInput,
  ): Promise<ListedSecret> {
    const { caller } = context;
    const { orgId, asked } = place;
    await this.#access.requireToken(caller, 'secret:read', { orgId });
    if (!(await this.#maySomewhere(caller, orgId, asked.role, 'secret:read'))) throw forbidden('secret:read');
    const isPlaced = Boolean(input.workspaceId || input.namespaceId || input.environmentId);
    const livingIn = isPlaced ? await findPlace(this.#deps, caller, orgId, 'secret:read', input, []) : null;
    const listed = this.#listed(asked.role);
    const called = async (more: Partial<SecretArgs>) =>
      (await listed.list(context, place, { first: 2, name, ...more })).nodes;
    const preferred = livingIn?.scope ?? 'organization';
    const named = await called({ livingIn });
    let secret = named.find(({ scope }) => scope === preferred);
    // In a place a name is unique. Without a place, two others may hide the organization's own.
    if (!secret && named.length > 1) [secret] = await called({ scope: preferred });
    if (!secret && named.length > 1) throw ambiguous(name);
    secret ??= named[0];
    if (!secret) throw notFound('secret', name);
    await this.demand(caller, secret, 'secret:read');
    return secret;
  }

  /**
   * Requires a permission where the secret lives: in its workspace, or in the organization.
   * @throws FORBIDDEN with the permission if the caller has it nowhere or may read this secret; else RESOURCE_NOT_FOUND
   */
  async demand(caller: Caller, secret: Owned, permission: Permission): Promise<void> {
    if (await this.may(caller, secret, permission)) return;
    const isKnown = permission !== 'secret:read' && (await this.may(caller, secret, 'secret:read'));
    if (isKnown) throw forbidden(permission);
    throw await this.#refusal(caller, secret.orgId, permission, notFound('secret', secret.id));
  }

  /** Whether the caller has a permission where the secret lives. @throws FORBIDDEN `fresh_factor` */
  async may(caller: Caller, secret: Owned, permission: Permission): Promise<boolean> {
    const { orgId, workspaceId } = secret;
    try {
      if (workspaceId) await this.#access.requireWorkspace(caller, orgId, workspaceId, permission, secret);
      else await this.#access.requireOrganization(caller, orgId, permission);
      return true;
    } catch (error) {
      if (isRefusal(error) && !(error instanceof FreshFactorNeeded)) return false;
      throw error;
    }
  }

  /** The error for a missing or hidden secret. */
  async #refusal(caller: Caller, orgId: string, permission: Permission, missing: ApiError): Promise<ApiError> {
    const role = await this.#access.organizationRole(caller, orgId);
    return (await this.#maySomewhere(caller, orgId, role, permission)) ? missing : forbidden(permission);
  }

  /**
   * Whether the caller has the permission anywhere: a viewer of the organization may have a higher role in a workspace.
   */
  async #maySomewhere(caller: Caller, orgId: string, role: Role | null, permission: Permission): Promise<boolean> {
    if (role && granted(role, permission) !== 'none') return true;
    return (await this.#access.rightsSomewhere(caller, orgId))(permission);
  }

  /** The secrets that the caller may read. */
  #listed(role: Role | null): Reads<ListedSecret, OrganizationPlace, SecretArgs> {
    return role !== null && reachesEveryWorkspace(role) ? this.all : this.readable;
  }
}

const ambiguous = (name: string) =>
  conflict(
    'secret',
    name,
    'ambiguous_name',
    `Several secrets have the name '${name}': name the workspace, namespace or environment.`,
  );
