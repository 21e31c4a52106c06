import DataLoader from 'dataloader';
import type { Sql } from '../data/sql.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import type { Role } from '../kernel/roles.ts';
import { type FactorDemand, factorDemand } from './factor-demand.ts';
import { FreshCache } from './fresh-cache.ts';
import type { KnownFacts } from './known-facts.ts';
import { type SsoDemand, ssoDemand } from './sso-demand.ts';
import { type StepUp, stepUpAsked, stepUps } from './step-up.ts';

export interface OrganizationAccess {
  role: Role | null;
  /** The member has never used the organization. */
  isUnused: boolean;
  /** Whether the organization demands single sign-on of the user. */
  demand: SsoDemand;
  /** Whether it demands a second factor of the user. */
  factor: FactorDemand;
  /** What it asks a fresh factor for. */
  stepUp: readonly StepUp[];
}

export interface WorkspaceAccess {
  /** Whether the workspace exists and is not deleted. */
  exists: boolean;
  /** The role of the membership row, also of a deleted workspace. */
  role: Role | null;
}

const DEMAND = ssoDemand('o', 'm.user_id');
const FACTOR = factorDemand('o', 'm');
/** The words of the organization, as one word: `-` for none. */
const STEP_UP = `coalesce(nullif(array_to_string(${stepUpAsked('o')}, ','), ''), '-')`;
const ORGANIZATION_FACTS = `select concat_ws(' ', m.role, ${DEMAND}, ${FACTOR}, ${STEP_UP}) from organization_members m
  join organizations o on o.id = m.org_id
  where m.org_id = $1 and m.user_id = $2 and o.deleted_at is null`;
const ORGANIZATION_ACCESS = `select m.role, m.used_at is null as "isUnused", ${DEMAND} as demand, ${FACTOR} as factor,
    ${stepUpAsked('o')} as "stepUp"
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

// the same queries for many keys at once, as for the rows of a list: one statement for all
const ORGANIZATION_FACTS_OF_KEY = ORGANIZATION_FACTS.replace('$1', 'k.org_id').replace('$2', 'k.user_id');
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
  cross join lateral (select concat_ws(' ', coalesce((${ORGANIZATION_FACTS_OF_KEY}), '- - - -'), coalesce(r.role, '-'),
    coalesce(r.exists::text, '-')) as facts) f
  where f.facts is distinct from k.known`;

/**
 * What users are in organizations and workspaces, as checks decide by it: read live, with a cache of under a second.
 * Changes on this node drop its entries at once. Cached results are returned at once, others as a promise.
 */
export class MembershipFacts {
  readonly #sql: Sql;
  readonly #organizations = new FreshCache<OrganizationAccess>();
  readonly #workspaces = new FreshCache<WorkspaceAccess>();
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

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** What a user is in an organization. */
  organization(userId: string, orgId: string): OrganizationAccess | Promise<OrganizationAccess> {
    // checked before the input is validated: an id that PostgreSQL would not even accept belongs to nothing
    if (isUnstorable(orgId)) return NO_ORGANIZATION;
    return this.#organizations.get(`${orgId} ${userId}`, () => this.#organizationLoads.load([orgId, userId]));
  }

  /** What a user is in a workspace, by its own memberships alone. */
  workspace(userId: string, orgId: string, workspaceId: string): WorkspaceAccess | Promise<WorkspaceAccess> {
    if (isUnstorable(workspaceId)) return { exists: false, role: null };
    return this.#workspaces.get(`${orgId} ${workspaceId} ${userId}`, () =>
      this.#workspaceLoads.load([orgId, workspaceId, userId]),
    );
  }

  /** The roles of a user in the workspaces of an organization. Never cached. */
  rolesSomewhere(userId: string, orgId: string): Promise<readonly Role[]> {
    return this.#rolesSomewhereLoads.load([orgId, userId]);
  }

  /** Remembers that a member has used the organization: others see their address from then on. */
  async use(userId: string, orgId: string): Promise<void> {
    await this.#sql.write(USE, [orgId, userId]);
    this.organizationChanged(orgId, userId);
  }

  /** Whether a user was a member of an organization when it was deleted. */
  async wentWithOrganization(userId: string, orgId: string): Promise<boolean> {
    return (await this.#sql.read(WENT_WITH, [orgId, userId])).length > 0;
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

  /** What an organization demands of its members changed on this node. */
  demandsChanged(orgId: string): void {
    this.#organizations.dropAll(`${orgId} `);
  }

  /** The second factors of a user changed on this node. */
  factorsChanged(userId: string): void {
    this.#organizations.dropEnding(` ${userId}`);
  }

  /** An organization was deleted on this node: nobody is a member of anything in it. */
  organizationDeleted(orgId: string): void {
    this.#organizations.dropAll(`${orgId} `);
    this.#workspaces.dropAll(`${orgId} `);
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
}

const NO_ORGANIZATION: OrganizationAccess = { role: null, isUnused: false, demand: '-', factor: '-', stepUp: [] };

/** The facts about a user without any role, in no workspace. */
const NO_FACTS = '- - - - - -';

/** Reads the facts that {@link CHANGED_FACTS} writes: `admin - - - - true`. */
function accessOf(facts: string): { organization: OrganizationAccess; workspace: WorkspaceAccess } {
  const [inOrganization, demand, factor, stepUp, inWorkspace, exists] = facts.split(' ') as [
    string,
    SsoDemand,
    FactorDemand,
    string,
    string,
    string,
  ];
  const asked = stepUps.filter((word) => stepUp.split(',').includes(word));
  const roleOf = (word: string) => (word === '-' ? null : (word as Role));
  return {
    // who reads events has asked for the stream, which is using the organization
    organization: { role: roleOf(inOrganization), isUnused: false, demand, factor, stepUp: asked },
    workspace: { exists: exists === 'true', role: roleOf(inWorkspace) },
  };
}
