import DataLoader from 'dataloader';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, containing, selectList, words } from '../../data/paging.ts';
import type { User as UserRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Role } from '../../kernel/roles.ts';
import { addressShown } from '../organizations/shown-addresses.ts';

const shownNames = words(
  'id email username fullName authProvider avatarUrl bio timezone locale defaultWorkspaceId homeOrgId isActive',
  'isVerified isPlatformAdmin preferences lastLogin createdAt updatedAt resourceVersion',
);

/**
 * A user as the user and others may see them: without the password, and in the context of an organization, which
 * `roles` refer to.
 */
export interface UserView extends Pick<UserRow, (typeof shownNames)[number]> {
  hasPassword: boolean;
  /** Whether the organization in the context shows the address to its members. */
  isAddressShown: boolean;
  /** The organization in whose context the user was found. */
  contextOrgId: string | null;
}

/** The arguments of a list of users. */
export interface UserListArgs extends PageArgs {
  /** Part of a name or e-mail address. */
  search?: string | null;
  /** Whether the search finds addresses, too: those that are shown. */
  findsAddresses: boolean;
}

/** A membership as `settings.organizations` shows it. */
export interface OwnOrganization {
  org_id: string;
  name: string;
  role: Role;
}

const shown = { ...columnsOf(shownNames), hasPassword: 't.password_hash is not null' };

/** Reads users `t` as members, from a table `m` of memberships and the membership `o` of the organization. */
const members = {
  kind: 'user',
  columns: { ...shown, contextOrgId: 'm.org_id', isAddressShown: addressShown('o', 't') },
  index: { key: 'm.user_id', order: 'asc' },
} as const;

/** The active members of an organization. */
export const colleagues = {
  ...members,
  name: 'colleagues',
  columns: { ...members.columns, isAddressShown: addressShown('m', 't') },
  from: 'organization_members m join users t on t.id = m.user_id',
  below: { orgId: 'm.org_id' },
  always: ['t.is_active'],
} as const;

const NAMED = '(t.username ilike ? or t.full_name ilike ?)';
const NAMED_OR_ADDRESSED = `(t.username ilike ? or t.full_name ilike ? or
  t.email ilike ? and ${addressShown('o', 't')})`;

/** The members of a workspace, newest accounts first, without deleted accounts. */
export const workspaceUsers = {
  ...members,
  name: 'users',
  from: `workspace_members m join users t on t.id = m.user_id
    left join organization_members o on o.org_id = m.org_id and o.user_id = m.user_id`,
  below: { orgId: 'm.org_id', workspaceId: 'm.workspace_id' },
  always: ['t.deactivated_at is null'],
  filters: ({ search, findsAddresses }: UserListArgs) => ({
    [findsAddresses ? NAMED_OR_ADDRESSED : NAMED]: search ? containing(search) : null,
  }),
} as const;

export class UserReads {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** A user whose account is not deleted, but perhaps suspended. `null` when there is none. */
  async find(id: string, contextOrgId: string | null): Promise<UserView | null> {
    const [row] = await this.#deps.sql.read<UserView>(
      `select ${selectList({ ...shown, isAddressShown: addressShown('m', 't') })} from users t
        left join organization_members m on m.org_id = $2 and m.user_id = t.id
        where t.id = $1 and t.deactivated_at is null`,
      [id, contextOrgId],
    );
    return row ? { ...row, contextOrgId } : null;
  }

  /** The organization of a workspace; `null` when the workspace is deleted or does not exist. */
  async organizationOf(workspaceId: string): Promise<string | null> {
    const [row] = await this.#deps.sql.read<{ orgId: string }>(
      'select org_id as "orgId" from workspaces where id = $1 and deleted_at is null',
      [workspaceId],
    );
    return row?.orgId ?? null;
  }

  /**
   * An organization that both users belong to: the preferred one first, for a token only its own. One that is
   * closed to the caller's session does not count. `null` when they share none.
   */
  async sharedOrganization({ principal }: Caller, userId: string): Promise<string | null> {
    const closed = principal.token === null ? (principal.shutOutOf ?? []) : [];
    const [row] = await this.#deps.sql.read<{ orgId: string }>(
      `select a.org_id as "orgId" from organization_members a join organization_members b on b.org_id = a.org_id
       join organizations o on o.id = a.org_id
       where a.user_id = $1 and b.user_id = $2 and o.deleted_at is null and ($4::text is null or a.org_id = $4)
         and not (a.org_id = any($5::text[]))
       order by (a.org_id = $3) desc, a.id limit 1`,
      [principal.userId, userId, principal.orgId ?? '', principal.token?.orgId ?? null, closed],
    );
    return row?.orgId ?? null;
  }

  /**
   * Loads the organizations of many users at once, oldest membership first. It caches nothing, because a request may
   * change them.
   */
  organizationsLoader(): DataLoader<string, OwnOrganization[]> {
    return new DataLoader(
      async (userIds) => {
        const rows = await this.#deps.sql.read<OwnOrganization & { user_id: string }>(
          `select m.user_id, o.id as org_id, o.name, m.role from organization_members m
           join organizations o on o.id = m.org_id where m.user_id = any($1) and o.deleted_at is null order by m.id`,
          [[...new Set(userIds)]],
        );
        return userIds.map((userId) => rows.flatMap(({ user_id, ...own }) => (user_id === userId ? own : [])));
      },
      { cache: false },
    );
  }

  /** Whether a user is a member of any other organization. */
  async belongsElsewhere(userId: string, orgId: string): Promise<boolean> {
    const rows = await this.#deps.sql.read<object>(
      `select 1 from organization_members m join organizations o on o.id = m.org_id
       where m.user_id = $1 and m.org_id <> $2 and o.deleted_at is null limit 1`,
      [userId, orgId],
    );
    return rows.length > 0;
  }

  /** Loads the roles of many users in organizations at once. */
  roleLoader(): DataLoader<{ userId: string; orgId: string }, Role | null, string> {
    return new DataLoader(
      async (keys) => {
        const rows = await this.#deps.sql.read<{ role: Role; orgId: string; userId: string }>(
          `select m.role, m.org_id as "orgId", m.user_id as "userId" from organization_members m
           join (select distinct * from unnest($1::text[], $2::text[]) k(org_id, user_id)) k
             on k.org_id = m.org_id and k.user_id = m.user_id
           join organizations o on o.id = m.org_id and o.deleted_at is null`,
          [keys.map((key) => key.orgId), keys.map((key) => key.userId)],
        );
        const roles = new Map(rows.map((row) => [`${row.orgId} ${row.userId}`, row.role]));
        return keys.map((key) => roles.get(`${key.orgId} ${key.userId}`) ?? null);
      },
      { cacheKeyFn: ({ orgId, userId }) => `${orgId} ${userId}` },
    );
  }
}
