import type { Actor, Caller } from '../access/caller.ts';
import type { Config } from '../config.ts';
import { conflict, notFound } from '../core/errors.ts';
import type { PrismaTx } from '../data/changes.ts';
import { NestedList, nestedRow } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, filtersOf, type PageSource } from '../data/pages.ts';
import { recordChange } from '../data/record-change.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type Organization, Prisma } from '../generated/prisma/client.ts';
import { foundOrganization } from './founding.ts';

export interface CreateOrganization {
  name: string;
  description?: string | null;
}

export interface UpdateOrganization {
  name?: string | null;
  description?: string | null;
}

const columns = columnsOf(Object.values(Prisma.OrganizationScalarFieldEnum));

/** The organizations that a user is a member of, oldest first. */
const ofUser: PageSource<Organization> = {
  from: 'organization_members m join organizations t on t.id = m.org_id',
  columns,
  key: 't.id',
  order: 'asc',
  where: ['m.user_id = $1', 't.deleted_at is null'],
};

const byId: PageSource<Organization> = {
  from: 'organizations t',
  columns,
  key: 't.id',
  order: 'asc',
  where: ['t.id = $1', 't.deleted_at is null'],
};

export interface OrganizationDeps extends ServiceDeps {
  config: Pick<Config, 'maxOrganizationsPerUser'>;
}

/** Organizations: the tenants. */
export class OrganizationService {
  readonly retention = [
    `delete from organizations where deleted_at < now() - interval '30 days'`,
    `delete from resource_counts c where not exists (select 1 from organizations o where o.id = c.org_id)`,
  ];
  readonly #deps: OrganizationDeps;
  readonly #ofUser: NestedList<Organization>;

  constructor(deps: OrganizationDeps) {
    this.#deps = deps;
    this.#ofUser = new NestedList(deps, 'organizations', ofUser);
  }

  /** An organization that is not deleted, whoever asks, read together with all that are asked for in this request. */
  async find(memory: RequestCache, id: string): Promise<Organization | null> {
    return nestedRow(memory, this.#deps.sql, 'organization', byId, [id]);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(memory: RequestCache, id: string): Promise<Organization> {
    const organization = await this.find(memory, id);
    if (!organization) throw notFound('organization', id);
    return organization;
  }

  /** The organizations of a user, for that user; a token sees its own alone. */
  async list(context: RequestCache & { caller: Caller }, userId: string, args: PageArgs): Promise<Page<Organization>> {
    const only = filtersOf({ 't.id = ?': context.caller.principal?.token?.orgId });
    return this.#ofUser.nested(context, [userId], args, only);
  }

  /** Makes an organization with a default workspace; the caller owns both. @throws RESOURCE_CONFLICT `limit_reached` */
  async create(actor: Actor, input: CreateOrganization): Promise<Organization> {
    const { access, changes } = this.#deps;
    const founderId = actor.principal.userId;
    return changes.runWithPrisma(actor, async (tx) => {
      await this.#holdCap(tx, founderId);
      return (await foundOrganization(tx, access, { ...input, founderId })).organization;
    });
  }

  /** Holds the number of organizations that a user made until the transaction ends, and checks that one more fits. */
  async #holdCap(tx: PrismaTx, userId: string): Promise<void> {
    const { maxOrganizationsPerUser: limit } = this.#deps.config;
    if (limit === 0) return;
    await tx.db.$executeRaw`select pg_advisory_xact_lock(hashtextextended(${`organizations of ${userId}`}, 0))`;
    // a statement of its own: it sees what was committed while it waited
    const made = await tx.db.organization.count({ where: { createdBy: userId, deletedAt: null } });
    if (made < limit) return;
    const message = `You have made ${limit} organizations, which is the most. Delete some first.`;
    throw conflict('user', userId, 'limit_reached', message, { limit });
  }

  /** Changes what is given; what is left out stays. */
  async update(actor: Actor, id: string, input: UpdateOrganization): Promise<Organization> {
    return this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await lockOrganization(tx, id);
      await tx.expectVersion({ table: 'organizations', key: { id } });
      recordChange(tx, 'update', 'organization', { id, orgId: id }, { fields: Object.keys(input) });
      return tx.db.organization.update({
        where: { id },
        data: { name: input.name ?? undefined, description: input.description },
      });
    });
  }

  /** Soft: nobody is a member of it any more as far as access is concerned, so all that belongs to it is unreachable at once. */
  async delete(actor: Actor, id: string): Promise<void> {
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await lockOrganization(tx, id);
      await tx.expectVersion({ table: 'organizations', key: { id } });
      await tx.db.organization.update({ where: { id }, data: { deletedAt: new Date() } });
      await tx.db
        .$executeRaw`update users u set default_workspace_id = null from workspaces w where w.org_id = ${id} and u.default_workspace_id = w.id`;
      recordChange(tx, 'delete', 'organization', { id, orgId: id });
      tx.afterCommit(() => this.#deps.access.organizationDeleted(id));
    });
  }
}

/** Holds the organization until the transaction ends, against joins, removals and deletion. @throws RESOURCE_NOT_FOUND when it is not there or deleted */
export async function lockOrganization(tx: PrismaTx, id: string): Promise<void> {
  const rows = await tx.db.$queryRaw<
    unknown[]
  >`select 1 from organizations where id = ${id} and deleted_at is null for no key update`;
  if (rows.length === 0) throw notFound('organization', id);
}
