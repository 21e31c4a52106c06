import type { Access } from '../../access/access.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { newId } from '../../kernel/ids.ts';
import { type Directory, demandVersion, versionOf } from './directory.ts';
import { applyGroups, lockPlaces } from './directory-roles.ts';
import { ScimError } from './scim-error.ts';
import { type GroupChange, patchedGroup, wholeGroup } from './scim-group-fields.ts';
import { readList, type ScimPage } from './scim-list.ts';
import { readOperations } from './scim-patch.ts';
import { isAsked, type ScimQuery } from './scim-query.ts';
import { GROUP_COLUMNS, GROUPS, groupAttributes, membersOfGroup, type ScimGroupRow } from './scim-resources.ts';
import { folded } from './scim-sql.ts';

interface ScimGroupDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
}

const MOST = 100;
/** Of groups with members. */
const MOST_WHOLE = 10;
const MAX_MEMBERS = 10_000;
const MAX_GROUPS = 5_000;
const NAMED = 5;

const notThere = (id: string) => new ScimError(404, `The directory has no group '${id.slice(0, 80)}'.`);

/** The groups of directories. They grant roles where a group mapping of an identity provider names them. */
export class ScimGroups {
  readonly #deps: ScimGroupDeps;

  constructor(deps: ScimGroupDeps) {
    this.#deps = deps;
  }

  list({ token: { orgId } }: Directory, query: ScimQuery): Promise<ScimPage<ScimGroupRow>> {
    const most = isAsked(query, 'members') ? MOST_WHOLE : MOST;
    const source = { from: GROUPS, columns: columnsFor(query, true), attributes: groupAttributes, most };
    return readList<ScimGroupRow>(this.#deps.sql, source, orgId, query);
  }

  /** @throws ScimError 404 */
  async get({ token: { orgId } }: Directory, id: string, query: ScimQuery): Promise<ScimGroupRow> {
    const text = `select ${columnsFor(query, false)} from ${GROUPS} where s.org_id = $1 and s.id = $2`;
    const [row] = await this.#deps.sql.read<ScimGroupRow>(text, [orgId, id]);
    if (!row) throw notThere(id);
    return row;
  }

  /** @returns the identifier */
  create(directory: Directory, body: unknown): Promise<string> {
    const change = wholeGroup(body);
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      const { displayName, externalId } = change;
      await refuseTaken(tx, orgId, displayName, null);
      const [known] = await tx.query<{ count: number }>(
        statement`select count(*)::int as count from scim_groups where org_id = ${orgId}`,
      );
      if ((known?.count ?? 0) >= MAX_GROUPS)
        throw new ScimError(409, `A directory has at most ${MAX_GROUPS} groups.`, 'tooMany');
      const id = newId('scim_group');
      tx.insert('scim_groups', { id, orgId, displayName, displayKey: folded(displayName), externalId });
      const scimUserIds = await writeMembers(tx, orgId, id, change);
      await this.#grant(tx, directory, { scimUserIds, names: [displayName, externalId] });
      tx.audit({ action: 'create', resourceType: 'scim_group', resourceId: id, orgId });
      return id;
    });
  }

  /** @throws ScimError 404, 412 */
  replace(directory: Directory, id: string, body: unknown, ifMatch: string | undefined): Promise<void> {
    const change = wholeGroup(body, id);
    return this.#update(directory, id, ifMatch, () => change);
  }

  /** @throws ScimError 404, 412 */
  patch(directory: Directory, id: string, body: unknown, ifMatch: string | undefined): Promise<void> {
    const operations = readOperations(body);
    return this.#update(directory, id, ifMatch, (before) => patchedGroup(before, operations, id));
  }

  /** Deletes a group: the roles that it granted end. @throws ScimError 404, 412; RESOURCE_CONFLICT `last_owner` */
  delete(directory: Directory, id: string, ifMatch: string | undefined): Promise<void> {
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      const { displayName, externalId } = await this.#stored(tx, orgId, id, ifMatch);
      const scimUserIds = await membersOf(tx, id);
      tx.remove('scim_groups', { id, orgId });
      await this.#grant(tx, directory, { scimUserIds, names: [displayName, externalId] });
      tx.audit({ action: 'delete', resourceType: 'scim_group', resourceId: id, orgId });
    });
  }

  #run<Result>(directory: Directory, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return this.#deps.changes.run(directory.caller, async (tx) => {
      await lockPlaces(tx, directory.token.orgId);
      return work(tx);
    });
  }

  async #stored(tx: Tx, orgId: string, id: string, ifMatch: string | undefined): Promise<ScimGroupRow> {
    const text = `select ${GROUP_COLUMNS} from ${GROUPS} where s.org_id = $1 and s.id = $2`;
    const [row] = await tx.query<ScimGroupRow>({ text, values: [orgId, id] });
    if (!row) throw notThere(id);
    demandVersion(ifMatch, versionOf(row));
    return row;
  }

  #update(
    directory: Directory,
    id: string,
    ifMatch: string | undefined,
    read: (before: ScimGroupRow) => GroupChange,
  ): Promise<void> {
    const { orgId } = directory.token;
    return this.#run(directory, async (tx) => {
      const before = await this.#stored(tx, orgId, id, ifMatch);
      const change = read(before);
      const { displayName, externalId } = change;
      const isRenamed = displayName !== before.displayName || externalId !== before.externalId;
      if (displayName !== before.displayName) await refuseTaken(tx, orgId, displayName, id);
      if (isRenamed)
        tx.update('scim_groups', { id, orgId }, { displayName, displayKey: folded(displayName), externalId });
      const moved = await writeMembers(tx, orgId, id, change);
      if (!isRenamed && moved.length === 0) return;
      if (!isRenamed) tx.write(statement`update scim_groups set updated_at = clock_timestamp() where id = ${id}`);
      const scimUserIds = isRenamed ? [...new Set([...moved, ...(await membersOf(tx, id))])] : moved;
      const names = [before.displayName, before.externalId, displayName, externalId];
      await this.#grant(tx, directory, { scimUserIds, names });
      const metadata = { renamed: isRenamed, members_changed: moved.length };
      tx.audit({ action: 'update', resourceType: 'scim_group', resourceId: id, orgId, metadata });
    });
  }

  async #grant(
    tx: Tx,
    directory: Directory,
    { scimUserIds, names }: { scimUserIds: readonly string[]; names: readonly (string | null)[] },
  ): Promise<void> {
    const rows = await tx.query<{ userId: string }>(statement`select user_id as "userId" from scim_users
      where id = any(${scimUserIds}::text[]) and user_id is not null order by user_id`);
    const userIds = rows.map(({ userId }) => userId);
    const given = new Set(names.filter((name) => name !== null));
    await applyGroups(tx, this.#deps.access, directory, { userIds, names: given });
  }
}

const columnsFor = (query: ScimQuery, isInList: boolean): string =>
  isAsked(query, 'members') ? `${GROUP_COLUMNS}, ${membersOfGroup(isInList)}` : GROUP_COLUMNS;

async function membersOf(tx: Tx, id: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    statement`select scim_user_id as id from scim_group_members where group_id = ${id}`,
  );
  return rows.map((row) => row.id);
}

/**
 * Adds and removes members. Who is to be removed and is none is no mistake: directories repeat themselves.
 * @returns who came and who went
 * @throws ScimError `invalidValue` for who is not in the directory
 */
async function writeMembers(
  tx: Tx,
  orgId: string,
  id: string,
  { isWhole, added, removed }: GroupChange,
): Promise<string[]> {
  const comes = [...added];
  const goes = [...removed];
  if (!isWhole && comes.length === 0 && goes.length === 0) return [];
  const known = await tx.query<{ id: string }>(
    statement`select id from scim_users where org_id = ${orgId} and id = any(${comes}::text[])`,
  );
  const found = new Set(known.map((row) => row.id));
  const strangers = comes.filter((member) => !found.has(member));
  if (strangers.length > 0)
    throw new ScimError(
      400,
      `The directory has no such users: ${strangers
        .slice(0, NAMED)
        .map((name) => name.slice(0, 80))
        .join(', ')}.`,
      'invalidValue',
    );
  const gone = await tx.query<{ id: string }>(statement`delete from scim_group_members where group_id = ${id}
    and (scim_user_id = any(${goes}::text[]) or ${isWhole}::boolean and scim_user_id <> all(${comes}::text[]))
    returning scim_user_id as id`);
  const come = await tx.query<{ id: string }>(statement`insert into scim_group_members (group_id, scim_user_id)
    select ${id}, k.id from unnest(${comes}::text[]) k(id) on conflict do nothing returning scim_user_id as id`);
  const [counted] = await tx.query<{ count: number }>(
    statement`select count(*)::int as count from scim_group_members where group_id = ${id}`,
  );
  if ((counted?.count ?? 0) > MAX_MEMBERS)
    throw new ScimError(400, `A group has at most ${MAX_MEMBERS} members.`, 'tooMany');
  return [...gone, ...come].map((row) => row.id);
}

/** @throws ScimError 409 for the name of another group */
async function refuseTaken(tx: Tx, orgId: string, displayName: string, id: string | null): Promise<void> {
  const [other] = await tx.query(statement`select 1 from scim_groups
    where org_id = ${orgId} and display_key = ${folded(displayName)} and id is distinct from ${id}`);
  if (other) throw new ScimError(409, 'Another group of the directory has this displayName.', 'uniqueness');
}
