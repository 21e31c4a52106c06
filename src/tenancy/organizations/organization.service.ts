import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Config } from '../../config.ts';
import type { Given } from '../../data/given.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import { type Organization, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, notFound } from '../../kernel/errors.ts';
import type { Removals } from '../removals.ts';
import { ROWS_AFTER } from '../workspaces/long-deleted.ts';
import { foundOrganization } from './founding.ts';
import { lockOrganization } from './membership.ts';

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
  removals: Removals;
  config: Pick<Config, 'maxOrganizationsPerUser'>;
}

/** Organizations: the tenants. */
export class OrganizationService {
  /** An organization stays as long as it has connections: these are revoked first. */
  readonly retention = [
    `delete from organizations o where deleted_at < now() - ${ROWS_AFTER}
     and not exists (select 1 from connections c where c.org_id = o.id)`,
    `delete from resource_counts c where not exists (select 1 from organizations o where o.id = c.org_id)`,
  ];
  /** Reads single organizations. */
  readonly reads: Reads<Organization, OrganizationPlace>;
  /** The organizations that the caller is a member of, oldest first. A token sees only its own. */
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
      index: { lead: 'm.user_id' },
    });
  }

  /**
   * Creates an organization with a default workspace. The caller owns both.
   * @throws RESOURCE_CONFLICT `limit_reached`
   */
  async create(caller: Caller, input: CreateOrganization): Promise<Organization> {
    const { access, changes } = this.#deps;
    const founderId = caller.principal.userId;
    return changes.run(caller, async (tx) => {
      await this.#lockCap(tx, founderId);
      return (await foundOrganization(tx, access, { ...input, founderId })).organization;
    });
  }

  /**
   * Locks the number of organizations that a user created until the transaction ends, and checks that one more is
   * allowed.
   */
  async #lockCap(tx: Tx, userId: string): Promise<void> {
    const { maxOrganizationsPerUser: limit } = this.#deps.config;
    if (limit === 0) return;
    await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`organizations of ${userId}`}, 0))`);
    // a separate statement: it sees what was committed while the lock was awaited
    const [made] = await tx.query<{ n: number }>(
      statement`select count(*)::int as n from organizations where created_by = ${userId} and deleted_at is null`,
    );
    if (made!.n < limit) return;
    const message = `You have created ${limit} organizations, the maximum. Delete an organization first.`;
    throw conflict('user', userId, 'limit_reached', message, { limit });
  }

  /** Changes the given fields. Omitted fields stay as they are. */
  async update(caller: Caller, id: string, input: UpdateOrganization): Promise<Organization> {
    return this.#deps.changes.run(caller, async (tx) => {
      await lockOrganization(tx, id, 'no key update');
      await tx.expectVersion({ table: 'organizations', key: { id } });
      recordChange(tx, 'update', 'organization', { id, orgId: id }, { fields: Object.keys(input) });
      const set = { name: input.name ?? undefined, description: input.description };
      return tx.change('organizations', { id }, set, () => notFound('organization', id));
    });
  }

  /**
   * A soft delete. Access treats nobody as a member any more, so everything in the organization becomes unreachable at
   * once.
   */
  async delete(caller: Caller, id: string): Promise<{ id: string }> {
    const remove = async (tx: Tx) => {
      await lockOrganization(tx, id, 'no key update');
      await tx.expectVersion({ table: 'organizations', key: { id } });
      await this.#deps.removals.ofMember(tx, { orgId: id, userId: null });
      tx.write(statement`update users u set default_workspace_id = null from workspaces w
        where w.org_id = ${id} and u.default_workspace_id = w.id`);
      tx.update('organizations', { id }, { deletedAt: new Date() });
      recordChange(tx, 'delete', 'organization', { id, orgId: id });
      tx.afterCommit(() => this.#deps.access.facts.organizationDeleted(id));
    };
    await whileTaken(() => this.#deps.changes.run(caller, remove));
    return { id };
  }
}
