import type { Access } from '../../access/access.ts';
import type { Authentication } from '../../access/authentication.ts';
import type { Changes } from '../../data/changes.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { joinOrganization } from '../../tenancy/organizations/membership.ts';
import type { EndedRole, OrganizationMemberService } from '../../tenancy/organizations/organization-member.service.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import { type Directory, demandAuthority, demandVersion, versionOf } from './directory.ts';
import { accountFor, type DirectoryAccount, fullNameOf } from './directory-accounts.ts';
import { applyGroups, lockPlaces } from './directory-roles.ts';
import { ScimError } from './scim-error.ts';
import { patchedUser, type UserFields, wholeUser } from './scim-fields.ts';
import { readList, type ScimPage } from './scim-list.ts';
import { readOperations } from './scim-patch.ts';
import { isAsked, type ScimQuery } from './scim-query.ts';
import { groupsOfUser, type ScimUserRow, USER_COLUMNS, USERS, userAttributes } from './scim-resources.ts';
import { folded } from './scim-sql.ts';

export interface ScimDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  sessions: Sessions;
  authentication: Authentication;
  factorEnds: FactorEnds;
  organizationMembers: OrganizationMemberService;
}

/** What a change needs of somebody beyond what is shown. */
interface Stored extends ScimUserRow {
  accountEmail: string | null;
  savedRoles: EndedRole[] | null;
  /** The role in the organization; `null` for who is no member. */
  role: Role | null;
  /** The address of the account now; `null` for an account that is gone. */
  currentEmail: string | null;
  isSuspended: boolean;
  isManaged: boolean;
}

const MOST = 100;
const MAX_USERS = 100_000;
const notThere = (id: string) => new ScimError(404, `The directory has no user '${id.slice(0, 80)}'.`);
const STORED = `${USER_COLUMNS}, s.account_email as "accountEmail", s.saved_roles as "savedRoles",
  case when u.deactivated_at is null then m.role end as role,
  case when u.deactivated_at is null then u.email end as "currentEmail",
  coalesce(not u.is_active or u.is_platform_admin, false) as "isSuspended",
  coalesce(u.home_org_id = s.org_id, false) as "isManaged"`;

/** The fields that a change may change; whether somebody is active is no column. */
const COLUMNS = [
  'userName',
  'externalId',
  'displayName',
  'formattedName',
  'givenName',
  'familyName',
  'email',
] as const satisfies (keyof UserFields)[];

/** The people in the directories of organizations: members, with an account (docs/decisions/0068). */
export class ScimUsers {
  /** What is personal goes with the account. */
  readonly retention = [`delete from scim_users s using users u where u.id = s.user_id and u.purged_at is not null`];
  readonly #deps: ScimDeps;

  constructor(deps: ScimDeps) {
    this.#deps = deps;
  }

  list({ token: { orgId } }: Directory, query: ScimQuery): Promise<ScimPage<ScimUserRow>> {
    const columns = columnsFor(query, true);
    const source = { from: USERS, columns, attributes: userAttributes, most: MOST };
    return readList<ScimUserRow>(this.#deps.sql, source, orgId, query);
  }

  /** @throws ScimError 404 */
  async get({ token: { orgId } }: Directory, id: string, query: ScimQuery): Promise<ScimUserRow> {
    const text = `select ${columnsFor(query, false)} from ${USERS} where s.org_id = $1 and s.id = $2`;
    const [row] = await this.#deps.sql.read<ScimUserRow>(text, [orgId, id]);
    if (!row) throw notThere(id);
    return row;
  }

  /** Adds somebody, with their account and their membership if they are active. @returns the identifier */
  create(directory: Directory, body: unknown): Promise<string> {
    const fields = wholeUser(body, true);
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      await refuseTaken(tx, orgId, fields.userName, null);
      const [known] = await tx.query<{ count: number }>(
        statement`select count(*)::int as count from scim_users where org_id = ${orgId}`,
      );
      if ((known?.count ?? 0) >= MAX_USERS)
        throw new ScimError(409, `A directory has at most ${MAX_USERS} users.`, 'tooMany');
      const id = newId('scim_user');
      const account = fields.active ? await accountFor(tx, this.#deps, directory, fields) : null;
      tx.insert('scim_users', { id, orgId, ...columnsOf(fields), ...account });
      const metadata = account ? { user_id: account.userId } : {};
      tx.audit({ action: 'create', resourceType: 'scim_user', resourceId: id, orgId, metadata });
      return id;
    });
  }

  /** Replaces what the directory says of somebody. @throws ScimError 404, 412 */
  replace(directory: Directory, id: string, body: unknown, ifMatch: string | undefined): Promise<void> {
    // before anything is locked
    wholeUser(body, true, id);
    return this.#update(directory, id, ifMatch, ({ active }) => wholeUser(body, active, id));
  }

  /** @throws ScimError 404, 412 */
  patch(directory: Directory, id: string, body: unknown, ifMatch: string | undefined): Promise<void> {
    const operations = readOperations(body);
    return this.#update(directory, id, ifMatch, (before) => patchedUser(before, operations, id));
  }

  /** Ends the membership and forgets somebody. @throws ScimError 404, 412; RESOURCE_CONFLICT `last_owner` */
  delete(directory: Directory, id: string, ifMatch: string | undefined): Promise<void> {
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      const row = await stored(tx, orgId, id);
      demandVersion(ifMatch, versionOf(row));
      if (row.userId !== null && row.role !== null) await this.#deactivate(tx, directory, row, row.userId);
      tx.remove('scim_users', { id, orgId });
      // who comes again begins anew
      tx.write(statement`delete from identity_grants where user_id = ${row.userId} and org_id = ${orgId}`);
      const metadata = row.userId === null ? {} : { user_id: row.userId };
      tx.audit({ action: 'delete', resourceType: 'scim_user', resourceId: id, orgId, metadata });
    });
  }

  #run<Result>(directory: Directory, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return whileTaken(() =>
      this.#deps.changes.run(directory.caller, async (tx) => {
        await lockPlaces(tx, directory.token.orgId);
        return work(tx);
      }),
    );
  }

  #update(
    directory: Directory,
    id: string,
    ifMatch: string | undefined,
    change: (before: UserFields) => UserFields,
  ): Promise<void> {
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      const row = await stored(tx, orgId, id);
      demandVersion(ifMatch, versionOf(row));
      // an account that is suspended is not active, and still a member
      const isMember = row.role !== null;
      const after = change({ ...fieldsOf(row), active: isMember });
      const changed = COLUMNS.filter((name) => row[name] !== after[name]);
      if (changed.includes('userName')) await refuseTaken(tx, orgId, after.userName, id);
      const isActivated = after.active && !isMember;
      const isDeactivated = !after.active && isMember;
      const account = isActivated ? await this.#activate(tx, directory, row, after) : null;
      if (changed.length > 0 || account) tx.update('scim_users', { id, orgId }, { ...columnsOf(after), ...account });
      if (isActivated) await this.#rolesOf(tx, directory, account?.userId ?? row.userId);
      this.#updateProfile(tx, directory, row, after);
      if (isDeactivated) {
        const savedRoles = await this.#deactivate(tx, directory, row, row.userId!);
        tx.write(statement`update scim_users set saved_roles = ${JSON.stringify(savedRoles)}::jsonb,
          updated_at = clock_timestamp() where id = ${id}`);
      }
      const fields = [...changed, ...(isActivated || isDeactivated ? ['active'] : [])];
      if (fields.length > 0)
        tx.audit({ action: 'update', resourceType: 'scim_user', resourceId: id, orgId, metadata: { fields } });
    });
  }

  /** Only what the organization manages is its directory's to change, and nobody above the maker of the token. */
  #updateProfile(tx: Tx, directory: Directory, row: Stored, after: UserFields): void {
    const fullName = fullNameOf(after);
    if (row.userId === null || !row.isManaged || row.role === null || fullName === fullNameOf(row)) return;
    demandAuthority(directory, row.role);
    tx.update('users', { id: row.userId, homeOrgId: directory.token.orgId }, { fullName });
  }

  async #rolesOf(tx: Tx, directory: Directory, userId: string | null): Promise<void> {
    if (userId !== null) await applyGroups(tx, this.#deps.access, directory, { userIds: [userId], names: null });
  }

  /** Makes somebody a member: with the roles that they had, if the directory ended them. @returns a new account */
  async #activate(
    tx: Tx,
    directory: Directory,
    row: Stored,
    after: UserFields,
  ): Promise<(DirectoryAccount & { savedRoles?: undefined }) | null> {
    const { userId, currentEmail: email } = row;
    if (userId === null || email === null) return accountFor(tx, this.#deps, directory, after);
    if (row.isSuspended) throw new ScimError(409, 'The account is suspended: an administrator has to end that first.');
    if (email.toLowerCase() !== row.accountEmail?.toLowerCase())
      throw new ScimError(
        409,
        'The account has another address now: delete this user of the directory and create it anew.',
      );
    await this.#restore(tx, directory, userId, row.savedRoles ?? []);
    tx.write(statement`update scim_users set saved_roles = null, updated_at = clock_timestamp() where id = ${row.id}`);
    return null;
  }

  async #restore(tx: Tx, directory: Directory, userId: string, saved: readonly EndedRole[]): Promise<void> {
    const { orgId } = directory.token;
    const { access } = this.#deps;
    for (const { role } of saved) demandAuthority(directory, role);
    const role = saved.find(({ workspaceId }) => workspaceId === null)?.role ?? 'member';
    const roles = new Map(
      saved.flatMap((ended) => (ended.workspaceId === null ? [] : [[ended.workspaceId, ended.role]])),
    );
    const isLive = statement`t.org_id = ${orgId} and t.deleted_at is null and t.id = any(${[...roles.keys()]}::text[])`;
    const live = await tx.lockAll('workspaces', isLive, 'no key update');
    await joinOrganization(tx, access, { orgId, userId, role, addedBy: null, isUnasked: true });
    for (const { id: workspaceId } of live) {
      const place = { orgId, workspaceId };
      const inWorkspace = roles.get(workspaceId)!;
      tx.insert('workspace_members', {
        id: newId('workspace_member'),
        ...place,
        userId,
        role: inWorkspace,
        addedBy: null,
      });
      recordChange(tx, 'create', 'workspace_member', { id: userId, ...place }, { role: inWorkspace });
      tx.afterCommit(() => access.facts.workspaceChanged(orgId, workspaceId, userId));
    }
  }

  /**
   * Ends a membership, and all that leads into the organization: sessions, tokens, and what was granted to
   * applications. The account stays what it is elsewhere.
   */
  async #deactivate(tx: Tx, directory: Directory, { role }: Stored, userId: string): Promise<EndedRole[]> {
    const { organizationMembers, authentication } = this.#deps;
    const { orgId, makerId } = directory.token;
    if (userId === makerId)
      throw new ScimError(
        409,
        'The user has made the token that the directory works with: another administrator has to make a new one first.',
      );
    demandAuthority(directory, role);
    const ended = await organizationMembers.end(tx, { orgId, userId });
    tx.write(statement`update sessions set revoked_at = now(), revoked_reason = 'scim_deactivated'
      where user_id = ${userId} and revoked_at is null and (org_id = ${orgId}
        or identity_provider_id in (select p.id from identity_providers p where p.org_id = ${orgId}))`);
    tx.write(statement`update sso_codes set used_at = now()
      where user_id = ${userId} and org_id = ${orgId} and used_at is null`);
    tx.afterCommit(() => authentication.sessionsChanged());
    return ended;
  }
}

const columnsFor = (query: ScimQuery, isInList: boolean): string =>
  isAsked(query, 'groups', false) ? `${USER_COLUMNS}, ${groupsOfUser(isInList)}` : USER_COLUMNS;

const fieldsOf = ({
  userName,
  externalId,
  displayName,
  formattedName,
  givenName,
  familyName,
  email,
}: Omit<UserFields, 'active'>) => ({
  userName,
  externalId,
  displayName,
  formattedName,
  givenName,
  familyName,
  email,
});

const columnsOf = (fields: UserFields) => ({ ...fieldsOf(fields), userNameKey: folded(fields.userName) });

/** @throws ScimError 404 */
async function stored(tx: Tx, orgId: string, id: string): Promise<Stored> {
  const text = `select ${STORED} from ${USERS} where s.org_id = $1 and s.id = $2`;
  const [row] = await tx.query<Stored>({ text, values: [orgId, id] });
  if (!row) throw notThere(id);
  return row;
}

/** @throws ScimError 409 for a user name that somebody else in the directory has */
async function refuseTaken(tx: Tx, orgId: string, userName: string, id: string | null): Promise<void> {
  const [other] = await tx.query(statement`select 1 from scim_users
    where org_id = ${orgId} and user_name_key = ${folded(userName)} and id is distinct from ${id}`);
  if (other) throw new ScimError(409, 'Another user of the directory has this userName.', 'uniqueness');
}
