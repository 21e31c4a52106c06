import type { Access } from '../access/access.ts';
import type { Actor } from '../access/caller.ts';
import { atLeast, type Permission } from '../access/permissions.ts';
import { Prisma, type Secret as SecretRow } from '../generated/prisma/client.ts';
import type { Connection } from '../graphql/connections.ts';
import { ApiError, conflict, forbidden, notFound } from '../graphql/errors.ts';
import { NestedList, type PageArgs, type RequestMemory } from '../graphql/nested-connection.ts';
import { columnsOf, type Filter, filtersOf, narrowed, type PageSource, readPage } from '../infra/pages.ts';
import type { Sql } from '../infra/sql.ts';
import type { ServiceDeps } from '../services.ts';
import type { SecretValue } from './envelope.ts';

/** What is nobody's to see: key material, and what the service notes for itself. */
const inside = ['rootKeyId', 'wrappedKey', 'rotationNoticedAt', 'expiryNoticedAt'] as const;

/** For Prisma's `omit`. */
export const hidden = { rootKeyId: true, wrappedKey: true, rotationNoticedAt: true, expiryNoticedAt: true } as const;

/** A secret as callers see it. `value` is there only when it was asked for and revealed. */
export interface Secret extends Omit<SecretRow, (typeof inside)[number]> {
  value?: SecretValue;
}

/** What narrows a list of secrets. */
export interface SecretFilters {
  secretType?: string | null;
  /** Without one, all but deleted secrets. */
  status?: string | null;
  includeExpired?: boolean | null;
  workspaceId?: string | null;
}

/** Where a name is looked for: exactly there; in the whole organization when nothing is given. */
export interface NameScope {
  workspaceId?: string | null;
  namespaceId?: string | null;
  environmentId?: string | null;
}

/** A secret without its value: what lists hold. */
export type ListedSecret = Omit<Secret, 'value'>;

/** The columns of a secret that may be shown. */
export const secretColumns = columnsOf(Object.values(Prisma.SecretScalarFieldEnum).filter(isShown));
function isShown(property: string): property is keyof ListedSecret {
  return !(inside as readonly string[]).includes(property);
}

const IN_LIVE_WORKSPACE = 'exists (select 1 from workspaces w where w.id = t.workspace_id and w.deleted_at is null)';
/** A membership of the secret's workspace that `$2` has. */
const membership = (condition: string) =>
  `exists (select 1 from workspace_members m where m.workspace_id = t.workspace_id and m.user_id = $2${condition})`;

/** All secrets of an organization, for those who administer it. */
const all: PageSource<ListedSecret> = {
  from: 'secrets t',
  columns: secretColumns,
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', `(t.workspace_id is null or ${IN_LIVE_WORKSPACE})`],
};

/** Those that a user who does not administer the organization may read: by the role in it, or in the workspace (`secret:read`). */
const readable: PageSource<ListedSecret> = {
  ...all,
  where: [
    't.org_id = $1',
    `case when t.workspace_id is null
       then exists (select 1 from organization_members o where o.org_id = t.org_id and o.user_id = $2 and o.role <> 'viewer')
       else ${membership(` and m.role <> 'viewer'`)} and ${IN_LIVE_WORKSPACE} end`,
  ],
};

/** Those whose existence such a user may know of. */
const seen: PageSource<ListedSecret> = {
  ...all,
  where: ['t.org_id = $1', `(t.workspace_id is null or (${membership('')} and ${IN_LIVE_WORKSPACE}))`],
};

const inWorkspace: PageSource<ListedSecret> = {
  ...all,
  where: ['t.org_id = $1', 't.workspace_id = $2', IN_LIVE_WORKSPACE],
};
const byId: PageSource<ListedSecret> = { ...all, where: [...all.where, 't.id = $2'] };
const anywhere: PageSource<ListedSecret> = { ...all, where: ['t.id = $1', all.where[1]!] };

/** Reads of secrets, and who may do what with one: it is judged where the secret lives. */
export class SecretReads {
  readonly #sql: Sql;
  readonly #access: Access;
  readonly #all: NestedList<ListedSecret>;
  readonly #readable: NestedList<ListedSecret>;
  readonly #inWorkspace: NestedList<ListedSecret>;

  constructor(deps: ServiceDeps) {
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
    memory?: RequestMemory,
  ): Promise<Connection<ListedSecret>> {
    const filters = this.#filters(actor, { secretType, status, includeExpired, workspaceId });
    if (workspaceId) await this.#access.requireWorkspace(actor, orgId, workspaceId, 'secret:read');
    const role = await this.#access.organizationRole(actor, orgId);
    const seesAll = role !== null && atLeast(role, 'admin');
    if (role === 'viewer' && !(await this.#readsSomewhere(actor, orgId))) throw forbidden('secret:read');
    const list = seesAll ? this.#all : this.#readable;
    const parent = seesAll ? [orgId] : [orgId, actor.principal.userId];
    return memory ? list.nested(memory, parent, args, filters) : list.page(parent, args, filters);
  }

  /** The secrets of a workspace, of its namespaces and environments, for those who may read them. */
  async ofWorkspace(
    actor: Actor,
    memory: RequestMemory,
    orgId: string,
    workspaceId: string,
    { secretType, status, includeExpired, ...args }: PageArgs & Omit<SecretFilters, 'workspaceId'>,
  ): Promise<Connection<ListedSecret>> {
    return this.#inWorkspace.nested(
      memory,
      [orgId, workspaceId],
      args,
      this.#filters(actor, { secretType, status, includeExpired }),
    );
  }

  /** A secret that the actor has the permission for. @throws RESOURCE_NOT_FOUND for one that is hidden or deleted, FORBIDDEN */
  async get(actor: Actor, orgId: string, id: string, permission: Permission): Promise<ListedSecret> {
    const secret = await this.getDeletedToo(actor, orgId, id, permission);
    if (secret.status === 'deleted') throw notFound('secret', id);
    return secret;
  }

  /** The same, of a soft-deleted one as well. */
  async getDeletedToo(actor: Actor, orgId: string, id: string, permission: Permission): Promise<ListedSecret> {
    const secret = await this.#one(byId, [orgId, id]);
    if (!secret) throw notFound('secret', id);
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
   * A secret by its name: in the given scope, else the organization's own, else the only one that the actor may know of.
   * @throws RESOURCE_NOT_FOUND, FORBIDDEN `secret:read`, RESOURCE_CONFLICT `ambiguous_name`
   */
  async getByName(actor: Actor, orgId: string, name: string, scope: NameScope): Promise<ListedSecret> {
    const role = await this.#access.organizationRole(actor, orgId);
    const seesAll = role !== null && atLeast(role, 'admin');
    const source = seesAll ? all : seen;
    const parent = seesAll ? [orgId] : [orgId, actor.principal.userId];
    const { environmentId, namespaceId, workspaceId } = scope;
    const filters = filtersOf({
      't.name = ?': name,
      't.status <> ?': 'deleted',
      't.environment_id = ?': environmentId,
      't.namespace_id = ?': namespaceId,
      't.workspace_id = ?': workspaceId,
      ...this.#visible(actor),
    });
    const preferred = environmentId
      ? 'environment'
      : namespaceId
        ? 'namespace'
        : workspaceId
          ? 'workspace'
          : 'organization';
    const { rows } = await readPage(
      this.#sql,
      // the preferred scope first; a second one tells that the name alone is not enough
      { ...narrowed(source, filters, parent.length), key: `(t.scope = '${preferred}')` },
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
   * @throws RESOURCE_NOT_FOUND when the actor cannot see that workspace, or it is deleted; FORBIDDEN with the permission
   */
  async demand(
    actor: Actor,
    secret: Pick<ListedSecret, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'environmentId'>,
    permission: Permission,
  ): Promise<void> {
    const { id, orgId, workspaceId } = secret;
    if (!workspaceId) {
      await this.#access.requireOrganization(actor, orgId, permission);
      return;
    }
    if (!(await this.#access.workspaceRole(actor, orgId, workspaceId))) throw notFound('secret', id);
    await this.#access.requireWorkspace(actor, orgId, workspaceId, permission, secret);
  }

  /** Whether the actor has a permission for a secret that it can see. */
  async may(actor: Actor, secret: ListedSecret, permission: Permission): Promise<boolean> {
    try {
      await this.demand(actor, secret, permission);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'FORBIDDEN') return false;
      throw error;
    }
  }

  /** A viewer of the organization may be more than that in one of its workspaces. */
  async #readsSomewhere({ principal }: Actor, orgId: string): Promise<boolean> {
    const rows = await this.#sql.read(
      `select 1 from workspace_members m join workspaces w on w.id = m.workspace_id
       where m.org_id = $1 and m.user_id = $2 and m.role <> 'viewer' and w.deleted_at is null limit 1`,
      [orgId, principal.userId],
    );
    return rows.length > 0;
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
