import type { Authentication } from '../../access/authentication.ts';
import { demandLiveSession } from '../../access/live-session.ts';
import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique, TryAgain } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { Given } from '../../data/given.ts';
import { Reads } from '../../data/reads.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { User } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, forbidden, invalidInput, notFound, unauthenticated } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { Permission } from '../../kernel/resources.ts';
import { atLeast, type Role, roles } from '../../kernel/roles.ts';
import { isTimezone } from '../../kernel/time-zone.ts';
import { demandMayDeactivate } from '../../tenancy/organizations/last-owner.ts';
import {
  colleagues,
  type UserListArgs,
  type UserReads,
  type UserView,
  workspaceUsers,
} from '../../tenancy/users/user.reads.ts';
import { revokeTokens } from '../api-tokens/api-token.revocation.ts';
import type { EmailChange } from '../auth/email-change.ts';
import type { NewAccount, RegistrationService } from '../auth/registration.service.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';

type Profile = 'username' | 'fullName' | 'avatarUrl' | 'bio' | 'timezone' | 'locale' | 'defaultWorkspaceId';

interface UpdateUser extends Given<User, Profile | 'email' | 'isActive'> {
  /** Proves who asks for the new address. */
  currentPassword?: string | null;
}

export interface UserDeps extends ServiceDeps {
  reads: UserReads;
  registration: RegistrationService;
  sessions: Sessions;
  authentication: Authentication;
  emailChange: EmailChange;
  factorEnds: FactorEnds;
}

/** Users, in the context of a workspace (spec, Users). */
export class UserService {
  /** Purges the personal data of a deleted account. Its id stays, because content refers to it. */
  readonly retention = [
    `update users set email = 'deleted-' || id || '@invalid', email_key = lower('deleted-' || id || '@invalid'),
       username = id, username_key = lower(id), full_name = null, avatar_url = null, bio = null, timezone = null,
       locale = null, preferences = '{}', password_hash = null, purged_at = now()
     where deactivated_at < now() - interval '30 days' and purged_at is null`,
  ];
  /** The active members of an organization. */
  readonly colleagues: Reads<UserView, OrganizationPlace>;
  /** The members of a workspace, newest accounts first. */
  readonly inWorkspace: Reads<UserView, WorkspacePlace, UserListArgs>;
  readonly #deps: UserDeps;

  constructor(deps: UserDeps) {
    this.#deps = deps;
    this.colleagues = new Reads(deps, colleagues);
    this.inWorkspace = new Reads(deps, workspaceUsers);
  }

  /** The caller. */
  async me(caller: Caller): Promise<UserView> {
    const user = await this.#deps.reads.find(caller.principal.userId, caller.principal.orgId);
    // deleted on another node a moment ago: the session is no longer valid
    if (!user) throw unauthenticated();
    return user;
  }

  /**
   * A user by id. Not scoped to a tenant: the caller must authorize.
   * @throws RESOURCE_NOT_FOUND
   */
  async view(id: string, contextOrgId: string | null): Promise<UserView> {
    const user = await this.#deps.reads.find(id, contextOrgId);
    if (!user) throw notFound('user', id);
    return user;
  }

  /**
   * The organization of a workspace whose users the caller may see.
   * @throws FORBIDDEN `user:read`, whether or not the workspace exists
   */
  async contextOf(caller: Caller, workspaceId: string): Promise<string> {
    const orgId = await this.#deps.reads.organizationOf(workspaceId);
    const role = orgId ? await this.#deps.access.workspaceRole(caller, orgId, workspaceId) : null;
    // the same answer for a missing workspace, one of another organization, and one without a membership
    if (!orgId || !role) throw forbidden('user:read');
    await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, 'user:read');
    return orgId;
  }

  /**
   * The caller, a user of the workspace's organization, or a user who shares any organization with the caller. A token
   * must grant `user:read` for all of them.
   * @throws RESOURCE_NOT_FOUND, FORBIDDEN `user:read`
   */
  async get(caller: Caller, id: string, workspaceId?: string | null): Promise<UserView> {
    const { token } = caller.principal;
    if (token) await this.#deps.access.requireToken(caller, 'user:read', { orgId: token.orgId, workspaceId });
    const orgId = typeof workspaceId === 'string' ? await this.contextOf(caller, workspaceId) : null;
    if (id === caller.principal.userId) return this.view(id, orgId ?? caller.principal.orgId);
    if (orgId) {
      if (!(await this.#roleIn(orgId, id))) throw notFound('user', id);
      return this.view(id, orgId);
    }
    const shared = await this.#deps.reads.sharedOrganization(caller, id);
    if (!shared || !(await this.#deps.access.organizationRole(caller, shared))) throw notFound('user', id);
    return this.view(id, shared);
  }

  /** Creates an account in the organization that the caller's session works in. */
  async create(caller: Caller, input: NewAccount & { role?: Role | null }): Promise<UserView> {
    const orgId = this.#currentOrganization(caller, 'user:create');
    const { access } = this.#deps;
    const permit = access.requireOrganization(caller, orgId, 'user:create');
    const act = { permission: 'user:create', stepUp: 'member_changes' } as const;
    const { role: own } = await access.steppedUp(caller, orgId, act, permit);
    const role = input.role ?? 'member';
    if (!atLeast(own, role))
      throw forbidden('user:create', `You cannot grant the role '${role}': it is above your own.`);
    const id = await this.#deps.registration.createFor(caller, orgId, { ...input, role });
    return this.view(id, orgId);
  }

  /** Changes the given fields of the caller's own profile, or of an account that the caller's organization manages. */
  async update(caller: Caller, id: string, input: UpdateUser): Promise<UserView> {
    // whoever changes how an account signs in could reach everything else with it, so tokens may not
    if (id === caller.principal.userId && (input.email || input.username)) sessionOf(caller, 'user:update');
    const contextOrgId = await this.#mayManage(caller, id, 'user:update');
    const isSelf = id === caller.principal.userId;
    if (isSelf && input.isActive === false)
      throw invalidInput(['input', 'isActive'], 'you cannot deactivate yourself: delete the account instead');
    if (input.timezone && !isTimezone(input.timezone))
      throw invalidInput(['input', 'timezone'], `'${input.timezone}' is not a time zone of the IANA database`);
    if (input.defaultWorkspaceId) await this.#demandWorkspaceOf(id, input.defaultWorkspaceId);
    const newEmail = await this.#newEmail(caller, id, input);
    await this.#deps.changes
      .run(caller, (tx) => this.#write(tx, caller, id, input, { newEmail, contextOrgId }))
      .catch((error: unknown) => {
        throw brokenUnique(error) ? alreadyExists('user', 'username', input.username ?? '') : error;
      });
    return this.view(id, contextOrgId);
  }

  /** Merges top-level keys into the caller's preferences. A key set to `null` is removed. */
  async updatePreferences(caller: Caller, preferences: Record<string, unknown>): Promise<UserView> {
    const { userId, orgId } = caller.principal;
    await this.#deps.changes.run(caller, async (tx) => {
      const dropped = Object.keys(preferences).filter((key) => preferences[key] === null);
      const kept = JSON.stringify(
        Object.fromEntries(Object.entries(preferences).filter(([, value]) => value !== null)),
      );
      await tx.expectVersion({ table: 'users', key: { id: userId } });
      const [row] = await tx.query<{ bytes: number }>(statement`
        update users set preferences = (preferences - ${dropped}::text[]) || ${kept}::jsonb, updated_at = now()
        where id = ${userId} returning octet_length(preferences::text) as bytes`);
      if ((row?.bytes ?? 0) > MAX_PREFERENCES_BYTES)
        throw invalidInput(
          ['input', 'preferences'],
          `all preferences together may have at most ${MAX_PREFERENCES_BYTES} bytes`,
        );
      tx.audit({
        action: 'update',
        resourceType: 'user',
        resourceId: userId,
        orgId,
        metadata: { fields: ['preferences'] },
      });
    });
    return this.me(caller);
  }

  /**
   * Deactivates an account. Its sessions end at once; its personal data is purged after 30 days.
   * @throws RESOURCE_CONFLICT `last_owner`
   */
  async delete(caller: Caller, id: string): Promise<{ id: string }> {
    // the account reaches beyond the organization of the token
    if (id === caller.principal.userId) sessionOf(caller, 'user:delete');
    const contextOrgId = await this.#mayManage(caller, id, 'user:delete');
    await this.#deps.changes.run(caller, async (tx) => {
      await demandMayDeactivate(tx, id);
      await tx.expectVersion({ table: 'users', key: { id } });
      const gone = { isActive: false, deactivatedAt: new Date() };
      tx.change('users', { id, deactivatedAt: null }, gone, () => notFound('user', id));
      await this.#endSessions(tx, id, 'user_deleted');
      this.#deps.factorEnds.removeAll(tx, id);
      await emitGone(tx, id);
      tx.audit({ action: 'delete', resourceType: 'user', resourceId: id, orgId: contextOrgId });
    });
    return { id };
  }

  #currentOrganization(caller: Caller, permission: Permission): string {
    if (!caller.principal.orgId) throw forbidden(permission, 'Switch to an organization first.');
    return caller.principal.orgId;
  }

  async #roleIn(orgId: string, userId: string): Promise<Role | null> {
    return this.#deps.reads.roleLoader().load({ orgId, userId });
  }

  /**
   * Checks that the caller may manage an account: always their own; another account only as an administrator of the
   * organization that manages it, not above their own role, and only while the account belongs to no other
   * organization. Otherwise an administrator of one organization could enter another through the account.
   * @returns the organization that is the context of the change
   */
  async #mayManage(caller: Caller, id: string, permission: Permission): Promise<string | null> {
    if (id === caller.principal.userId) return caller.principal.orgId;
    const [target] = await this.#deps.sql.read<{ homeOrgId: string | null; isPlatformAdmin: boolean }>(
      `select home_org_id as "homeOrgId", is_platform_admin as "isPlatformAdmin" from users
        where id = $1 and deactivated_at is null`,
      [id],
    );
    const shared = target ? await this.#deps.reads.sharedOrganization(caller, id) : null;
    if (!target || !shared) throw notFound('user', id);
    const { homeOrgId } = target;
    const own = homeOrgId ? await this.#deps.access.organizationRole(caller, homeOrgId) : null;
    if (!homeOrgId || !own)
      throw forbidden(permission, 'Only administrators of the organization that manages this account may change it.');
    await this.#deps.access.requireOrganization(caller, homeOrgId, permission);
    const theirs = await this.#roleIn(homeOrgId, id);
    // no organization manages the account of a member who left
    if (!theirs || !atLeast(own, theirs))
      throw forbidden(permission, 'You cannot change an account whose role is above your own.');
    if (await this.#deps.reads.belongsElsewhere(id, homeOrgId))
      throw forbidden(permission, 'The account belongs to other organizations too: only its owner may change it.');
    if (target.isPlatformAdmin && !caller.principal.isPlatformAdmin)
      throw forbidden(permission, 'Only administrators of the platform may change this account.');
    return homeOrgId;
  }

  /**
   * The new address, if it differs from the current one.
   * @throws as `EmailChange.prepare`
   */
  async #newEmail(caller: Caller, id: string, { email, currentPassword }: UpdateUser): Promise<string | null> {
    if (!email || email === (await this.view(id, null)).email) return null;
    await this.#deps.emailChange.prepare(caller, id, { email, currentPassword });
    return email;
  }

  async #write(
    tx: Tx,
    caller: Caller,
    id: string,
    input: UpdateUser,
    { newEmail, contextOrgId }: { newEmail: string | null; contextOrgId: string | null },
  ): Promise<void> {
    const mayDeactivate = input.isActive === false && (await findRow(tx, 'users', { id }))?.isActive === true;
    if (mayDeactivate) await demandMayDeactivate(tx, id);
    // locked: an account that is being deleted must not become active again
    const before = await tx.lock('users', { id, deactivatedAt: null }, 'no key update', () => notFound('user', id));
    if (newEmail !== null || input.username) await demandLiveSession(tx, caller);
    const isDeactivated = input.isActive === false && before.isActive;
    if (isDeactivated && !mayDeactivate) throw new TryAgain(`'${id}' has just been activated`);
    await tx.expectVersion({ table: 'users', key: { id } });
    const set = {
      username: input.username ?? undefined,
      usernameKey: input.username?.toLowerCase(),
      fullName: input.fullName,
      avatarUrl: input.avatarUrl,
      bio: input.bio,
      timezone: input.timezone,
      locale: input.locale,
      defaultWorkspaceId: input.defaultWorkspaceId,
      isActive: input.isActive ?? undefined,
    };
    tx.update('users', { id }, set);
    if (isDeactivated) await this.#endSessions(tx, id, 'user_deactivated');
    if (newEmail) await this.#deps.emailChange.begin(tx, before, newEmail);
    tx.audit({
      action: 'update',
      resourceType: 'user',
      resourceId: id,
      orgId: contextOrgId,
      metadata: { fields: Object.keys(input).filter((field) => field !== 'currentPassword') },
    });
    tx.afterCommit(() => this.#deps.authentication.sessionsChanged());
  }

  /** Ends sessions and tokens, so that nobody acts for the account any more. */
  async #endSessions(tx: Tx, id: string, reason: string): Promise<void> {
    this.#deps.sessions.revokeAll(tx, id, reason);
    await revokeTokens(tx, this.#deps.authentication, { userId: id }, 'owner_deactivated');
    tx.afterCommit(() => this.#deps.authentication.sessionsChanged());
  }

  async #demandWorkspaceOf(userId: string, workspaceId: string): Promise<void> {
    const [row] = await this.#deps.sql.read<object>(
      `select 1 from workspaces w join organization_members o on o.org_id = w.org_id and o.user_id = $1
       left join workspace_members m on m.workspace_id = w.id and m.user_id = $1
       where w.id = $2 and w.deleted_at is null and (m.user_id is not null or o.role = any($3))`,
      [userId, workspaceId, roles.filter(reachesEveryWorkspace)],
    );
    if (!row) throw invalidInput(['input', 'defaultWorkspaceId'], 'the user has no such workspace');
  }
}

const MAX_PREFERENCES_BYTES = 256 * 1024;

/** Tells the streams of organizations and workspaces that the user is no longer a member. */
async function emitGone(tx: Tx, userId: string): Promise<void> {
  const memberships = await tx.query<{ orgId: string; workspaceId: string | null }>(statement`
    select m.org_id as "orgId", m.workspace_id as "workspaceId" from (
      select org_id, null as workspace_id from organization_members where user_id = ${userId}
      union all
      select m.org_id, m.workspace_id from workspace_members m
      join workspaces w on w.id = m.workspace_id and w.deleted_at is null
      where m.user_id = ${userId}) m
    join organizations o on o.id = m.org_id and o.deleted_at is null`);
  for (const { orgId, workspaceId } of memberships) {
    const kind = workspaceId ? 'workspace_member' : 'organization_member';
    emitChange(tx, 'deleted', kind, { id: userId, orgId, workspaceId });
  }
}
