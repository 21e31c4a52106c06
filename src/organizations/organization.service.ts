import type { Actor } from '../access/caller.ts';
import type { OrganizationPlace } from '../access/checked-place.ts';
import type { Config } from '../config.ts';
import { conflict, notFound } from '../core/errors.ts';
import type { PrismaTx } from '../data/changes.ts';
import type { Given } from '../data/given.ts';
import { columnsOf } from '../data/pages.ts';
import { Reads } from '../data/reads.ts';
import { recordChange } from '../data/record-change.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type Organization, Prisma } from '../generated/prisma/client.ts';
import { foundOrganization } from './founding.ts';

type UpdateOrganization = Given<Organization, 'name' | 'description'>;
type CreateOrganization = UpdateOrganization & Pick<Organization, 'name'>;

const organizations = {
  kind: 'organization',
  from: 'organizations',
  columns: columnsOf(Object.values(Prisma.OrganizationScalarFieldEnum)),
  always: ['t.deleted_at is null'],
  order: 'asc',
} as const;

export interface OrganizationDeps extends ServiceDeps {
  config: Pick<Config, 'maxOrganizationsPerUser'>;
}

/** Organizations: the tenants. */
export class OrganizationService {
  readonly retention = [
    `delete from organizations where deleted_at < now() - interval '30 days'`,
    `delete from resource_counts c where not exists (select 1 from organizations o where o.id = c.org_id)`,
  ];
  /** Single organizations. */
  readonly reads: Reads<Organization, OrganizationPlace>;
  /** The organizations that the caller is a member of, oldest first; a token sees its own alone. */
  readonly own: Reads<Organization, object>;
  readonly #deps: OrganizationDeps;

  constructor(deps: OrganizationDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, { ...organizations, below: { orgId: 't.id' } });
    this.own = new Reads(deps, {
      ...organizations,
      name: 'own_organizations',
      from: 'organization_members m join organizations t on t.id = m.org_id',
      below: [],
      mine: 'm.user_id between $me and $me',
      lead: 'm.user_id',
    });
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
