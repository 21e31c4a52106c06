import { type Access, reachesEveryWorkspace } from '../access/access.ts';
import type { Actor } from '../access/caller.ts';
import { granted, rolesWith } from '../access/permissions.ts';
import { type ApiError, conflict, forbidden, isRefusal, notFound } from '../core/errors.ts';
import type { Permission } from '../core/resources.ts';
import { NestedList } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, type Filter, filtersOf, narrowed, type PageSource, readPage } from '../data/pages.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import type { Sql } from '../data/sql.ts';
import { Prisma, type Secret as SecretRow } from '../generated/prisma/client.ts';
import type { SecretValue } from './envelope.ts';
import { findPlace, type PlaceInput, type SecretPlace } from './secret-place.ts';

/** What is nobody's to see: key material, and what the service notes for itself. */
const inside = ['rootKeyId', 'wrappedKey', 'rotationNoticedAt', 'expiryNoticedAt'] as const;

/** For Prisma's `omit`. */
export const hidden = { rootKeyId: true, wrappedKey: true, rotationNoticedAt: true, expiryNoticedAt: true } as const;

/** A secret as callers see it. `value` is there only when it was asked for and revealed. */
export interface Secret extends Omit<SecretRow, (typeof inside)[number]> {
  value?: SecretValue;
}

/** A row without what is nobody's to see. */
export function withoutKeys({
  rootKeyId: _rootKeyId,
  wrappedKey: _wrappedKey,
  rotationNoticedAt: _rotationNoticedAt,
  expiryNoticedAt: _expiryNoticedAt,
  ...secret
}: SecretRow): Secret {
  return secret;
}

/** What narrows a list of secrets. */
export interface SecretFilters {
  secretType?: string | null;
  /** Without one, all but deleted secrets. */
  status?: string | null;
  includeExpired?: boolean | null;
  workspaceId?: string | null;
}

/** A secret without its value: what lists hold. */
export type ListedSecret = Omit<Secret, 'value'>;

/** What tells whose matter a secret is. */
type Owned = Pick<ListedSecret, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId'>;

/** The columns of a secret that may be shown. */
export const secretColumns = columnsOf(Object.values(Prisma.SecretScalarFieldEnum).filter(isShown));
function isShown(property: string): property is keyof ListedSecret {
  return !(inside as readonly string[]).includes(property);
}

const IN_LIVE_WORKSPACE = 'exists (select 1 from workspaces w where w.id = t.workspace_id and w.deleted_at is null)';
/** All secrets of an organization, for those who administer it. */
const all: PageSource<ListedSecret> = {
  from: 'secrets t',
  columns: secretColumns,
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', `(t.workspace_id is null or ${IN_LIVE_WORKSPACE})`],
};

const READERS = rolesWith('secret:read')
  .map((role) => `'${role}'`)
  .join(', ');
/** Those that a user who does not administer the organization may read: by the role in it, or in the workspace (`secret:read`). */
const readable: PageSource<ListedSecret> = {
  ...all,
  where: [
    't.org_id = $1',
    `case when t.workspace_id is null
       then exists (select 1 from organization_members o where o.org_id = t.org_id and o.user_id = $2 and o.role in (${READERS}))
       else exists (select 1 from workspace_members m where m.workspace_id = t.workspace_id and m.user_id = $2 and m.role in (${READERS}))
         and ${IN_LIVE_WORKSPACE} end`,
  ],
};

/** What is nobody's but a place's: its most specific identifier; the unique index has it. */
const PLACE_KEY = `coalesce(t.environment_id, t.namespace_id, t.workspace_id, '')`;
const keyOfPlace = ({ environmentId, namespaceId, workspaceId }: SecretPlace) =>
  environmentId ?? namespaceId ?? workspaceId ?? '';

const inWorkspace: PageSource<ListedSecret> = {
  ...all,
  where: ['t.org_id = $1', 't.workspace_id = $2', IN_LIVE_WORKSPACE],
};
const byId: PageSource<ListedSecret> = { ...all, where: [...all.where, 't.id = $2'] };
const anywhere: PageSource<ListedSecret> = { ...all, where: ['t.id = $1', all.where[1]!] };

/**
 * Reads of secrets, and who may do what with one: it is judged where the secret lives. Which secrets there are is known to those who may
 * read them: to all others one that is there answers like one that is missing. Whoever may nowhere do what was asked for is told that
 * first, and nothing of the secret.
 */
export class SecretReads {
  readonly #deps: ServiceDeps;
  readonly #sql: Sql;
  readonly #access: Access;
  readonly #all: NestedList<ListedSecret>;
  readonly #readable: NestedList<ListedSecret>;
  readonly #inWorkspace: NestedList<ListedSecret>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#sql = deps.sql;
    this.#access = deps.access;
    this.#all = new NestedList(deps, 'secrets', all);
    this.#readable = new NestedList(deps, 'readable_secrets', readable);
    this.#inWorkspace = new NestedList(deps, 'workspace_secrets', inWorkspace);
  }

  /**
   * The secrets of an organization that the actor may read, newest first. With a `memory` the page is read together with those of all
   * organizations that are asked for in this request.
   * @throws FORBIDDEN `secret:read` for those who may read none
   */
  async page(
    actor: Actor,
    orgId: string,
    { secretType, status, includeExpired, workspaceId, ...args }: PageArgs & SecretFilters,
    memory?: RequestCache,
  ): Promise<Page<ListedSecret>> {
    const filters = this.#filters(actor, { secretType, status, includeExpired, workspaceId });
    if (typeof workspaceId === 'string') await this.#access.requireWorkspace(actor, orgId, workspaceId, 'secret:read');
    if (!(await this.#maySomewhere(actor, orgId, 'secret:read'))) throw forbidden('secret:read');
    const seesAll = await this.#readsAll(actor, orgId);
    const list = seesAll ? this.#all : this.#readable;
    const parent = seesAll ? [orgId] : [orgId, actor.principal.userId];
    return memory ? list.nested(memory, parent, args, filters) : list.page(parent, args, filters);
  }

  /** The secrets of a workspace, of its namespaces and environments, for those who may read them. */
  async ofWorkspace(
    actor: Actor,
    memory: RequestCache,
    orgId: string,
    workspaceId: string,
    { secretType, status, includeExpired, ...args }: PageArgs & Omit<SecretFilters, 'workspaceId'>,
  ): Promise<Page<ListedSecret>> {
    return this.#inWorkspace.nested(
      memory,
      [orgId, workspaceId],
      args,
      this.#filters(actor, { secretType, status, includeExpired }),
    );
  }

  /** A secret that the actor has the permission for. @throws as {@link demand}, RESOURCE_NOT_FOUND for a deleted one */
  async get(actor: Actor, orgId: string, id: string, permission: Permission): Promise<ListedSecret> {
    const secret = await this.getDeletedToo(actor, orgId, id, permission);
    if (secret.status === 'deleted') throw notFound('secret', id);
    return secret;
  }

  /** The same, of a soft-deleted one as well. */
  async getDeletedToo(actor: Actor, orgId: string, id: string, permission: Permission): Promise<ListedSecret> {
    const secret = await this.#one(byId, [orgId, id]);
    if (!secret) throw await this.#refusal(actor, orgId, permission, notFound('secret', id));
    await this.demand(actor, secret, permission);
    return secret;
  }

  /** A secret of any organization, if the actor may read it. @throws RESOURCE_NOT_FOUND, FORBIDDEN */
  async node(actor: Actor, id: string): Promise<ListedSecret | null> {
    const secret = await this.#one(anywhere, [id]);
    if (!secret || secret.status === 'deleted') return null;
    await this.demand(actor, secret, 'secret:read');
    return secret;
  }

  /**
   * A secret by its name. With a place: the one that lives exactly there, in the most specific of its identifiers, else the
   * organization's own. Without: the organization's own, else the only one that the actor may read.
   * @throws RESOURCE_NOT_FOUND for a name that leads nowhere, and for a place that is not there; FORBIDDEN `secret:read`;
   *   RESOURCE_CONFLICT `ambiguous_name`
   */
  async getByName(actor: Actor, orgId: string, name: string, input: PlaceInput): Promise<ListedSecret> {
    await this.#access.requireToken(actor, 'secret:read', { orgId });
    if (!(await this.#maySomewhere(actor, orgId, 'secret:read'))) throw forbidden('secret:read');
    const isPlaced = Boolean(input.workspaceId || input.namespaceId || input.environmentId);
    const place = isPlaced ? await findPlace(this.#deps, actor, orgId, 'secret:read', input, []) : null;
    const seesAll = await this.#readsAll(actor, orgId);
    const parent = seesAll ? [orgId] : [orgId, actor.principal.userId];
    const filters = filtersOf({
      't.name = ?': name,
      't.status <> ?': 'deleted',
      [`(t.scope = 'organization' or (t.scope = '${place?.scope}' and ${PLACE_KEY} = ?))`]: place && keyOfPlace(place),
      ...this.#visible(actor),
    });
    const preferred = place?.scope ?? 'organization';
    const { rows } = await readPage(
      this.#sql,
      // the preferred scope first; where no place was given, a second one tells that the name alone is not enough
      { ...narrowed(seesAll ? all : readable, filters, parent.length), key: `(t.scope = '${preferred}')` },
      { values: [...parent, ...filters.map(({ value }) => value)], after: null, limit: 2 },
    );
    const [first, second] = rows;
    if (!first) throw notFound('secret', name);
    if (second && first.scope !== preferred) throw ambiguous(name);
    await this.demand(actor, first, 'secret:read');
    return first;
  }

  /**
   * Asks for a permission where the secret lives: in its workspace, or in the organization.
   * @throws FORBIDDEN with the permission for those who have it nowhere, or who may read this secret; else RESOURCE_NOT_FOUND
   */
  async demand(actor: Actor, secret: Owned, permission: Permission): Promise<void> {
    if (await this.may(actor, secret, permission)) return;
    const isKnown = permission !== 'secret:read' && (await this.may(actor, secret, 'secret:read'));
    if (isKnown) throw forbidden(permission);
    throw await this.#refusal(actor, secret.orgId, permission, notFound('secret', secret.id));
  }

  /** Whether the actor has a permission where the secret lives. */
  async may(actor: Actor, secret: Owned, permission: Permission): Promise<boolean> {
    const { orgId, workspaceId } = secret;
    try {
      if (workspaceId) await this.#access.requireWorkspace(actor, orgId, workspaceId, permission, secret);
      else await this.#access.requireOrganization(actor, orgId, permission);
      return true;
    } catch (error) {
      if (isRefusal(error)) return false;
      throw error;
    }
  }

  /** What the actor is told of a secret that is missing or hidden. */
  async #refusal(actor: Actor, orgId: string, permission: Permission, missing: ApiError): Promise<ApiError> {
    return (await this.#maySomewhere(actor, orgId, permission)) ? missing : forbidden(permission);
  }

  /** A viewer of the organization, say, may be more than that in one of its workspaces. */
  async #maySomewhere(actor: Actor, orgId: string, permission: Permission): Promise<boolean> {
    const role = await this.#access.organizationRole(actor, orgId);
    if (role && granted(role, permission) !== 'none') return true;
    return (await this.#access.rightsSomewhere(actor, orgId))(permission);
  }

  async #readsAll(actor: Actor, orgId: string): Promise<boolean> {
    const role = await this.#access.organizationRole(actor, orgId);
    return role !== null && reachesEveryWorkspace(role);
  }

  #filters(actor: Actor, { secretType, status, includeExpired, workspaceId }: SecretFilters): Filter[] {
    return filtersOf({
      't.secret_type = ?': secretType,
      't.workspace_id = ?': workspaceId,
      [status ? 't.status = ?' : 't.status <> ?']: status ?? 'deleted',
      // the value is a constant: it is part of what cursors are made for
      'coalesce(t.expires_at <= now(), false) = ?': includeExpired === false ? false : null,
      ...this.#visible(actor),
    });
  }

  /** What a restricted token sees of that: what belongs to no place of a kind, or to one of its own. */
  #visible(actor: Actor): Record<string, readonly string[] | null> {
    return {
      'coalesce(t.workspace_id = any(?), true)': this.#access.visibleWorkspaces(actor),
      'coalesce(t.namespace_id = any(?), true)': this.#access.visibleNamespaces(actor),
      'coalesce(t.environment_id = any(?), true)': this.#access.visibleEnvironments(actor),
    };
  }

  async #one(source: PageSource<ListedSecret>, values: string[]): Promise<ListedSecret | null> {
    const { rows } = await readPage(this.#sql, source, { values, after: null, limit: 1 });
    return rows[0] ?? null;
  }
}

const ambiguous = (name: string) =>
  conflict(
    'secret',
    name,
    'ambiguous_name',
    `Several secrets have the name '${name}': say in which workspace, namespace or environment.`,
  );
