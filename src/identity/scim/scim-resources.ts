import { versionOf } from './directory.ts';
import type { UserFields } from './scim-fields.ts';
import type { Attributes } from './scim-sql.ts';

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group';

/** A row of somebody in the directory. */
export interface ScimUserRow extends Omit<UserFields, 'active'> {
  id: string;
  userId: string | null;
  active: boolean;
  createdAt: Date;
  updatedAt: Date;
  resourceVersion: number;
  groups?: readonly { value: string; display: string }[];
}

/** A row of a group. */
export interface ScimGroupRow {
  id: string;
  displayName: string;
  externalId: string | null;
  createdAt: Date;
  updatedAt: Date;
  resourceVersion: number;
  members?: readonly { value: string; display: string }[];
}

/** Whether somebody in the directory is active: whether their account is a member. */
const ACTIVE = '(m.user_id is not null and u.is_active and u.deactivated_at is null)';

export const USERS = `scim_users s left join users u on u.id = s.user_id
  left join organization_members m on m.org_id = s.org_id and m.user_id = s.user_id`;

export const USER_COLUMNS = `s.id, s.user_id as "userId", s.user_name as "userName", s.external_id as "externalId",
  s.display_name as "displayName", s.formatted_name as "formattedName", s.given_name as "givenName",
  s.family_name as "familyName", s.email, coalesce(${ACTIVE}, false) as active, s.created_at as "createdAt",
  s.updated_at as "updatedAt", s.resource_version as "resourceVersion"`;

/** In a list a group shows so many members and a user so many groups: the first ones. By itself each shows them all. */
const MEMBERS_SHOWN = 1_000;
const GROUPS_SHOWN = 100;
const limitOf = (isInList: boolean, most: number): string => (isInList ? ` limit ${most}` : '');

export const groupsOfUser = (isInList: boolean): string => `(select coalesce(json_agg(g), '[]') from (
    select g.id as value, g.display_name as display from scim_group_members gm join scim_groups g on g.id = gm.group_id
    where gm.scim_user_id = s.id order by g.id${limitOf(isInList, GROUPS_SHOWN)}) g) as groups`;

export const GROUPS = 'scim_groups s';

export const GROUP_COLUMNS = `s.id, s.display_name as "displayName", s.external_id as "externalId",
  s.created_at as "createdAt", s.updated_at as "updatedAt", s.resource_version as "resourceVersion"`;

export const membersOfGroup = (isInList: boolean): string => `(select coalesce(json_agg(g), '[]') from (
    select x.id as value, coalesce(x.display_name, x.user_name) as display from scim_group_members gm
    join scim_users x on x.id = gm.scim_user_id where gm.group_id = s.id
    order by x.id${limitOf(isInList, MEMBERS_SHOWN)}) g) as members`;

const META = {
  'meta.created': { sql: 's.created_at', as: 'time' },
  'meta.lastmodified': { sql: 's.updated_at', as: 'time' },
} as const;

const EMAIL = { sql: 's.email', as: 'text' } as const;
const inGroup = { sql: memberOf('gm.group_id = ?', 'gm.scim_user_id = s.id'), as: 'member' } as const;
const hasMember = { sql: memberOf('gm.scim_user_id = ?', 'gm.group_id = s.id'), as: 'member' } as const;

function memberOf(...conditions: string[]): string {
  return `exists (select from scim_group_members gm where ${conditions.join(' and ')})`;
}

/** What users are filtered and sorted by. */
export const userAttributes: Attributes = {
  id: { sql: 's.id', as: 'exact' },
  externalid: { sql: 's.external_id', as: 'exact' },
  username: { sql: 's.user_name_key', as: 'key' },
  displayname: { sql: 's.display_name', as: 'text' },
  'name.formatted': { sql: 's.formatted_name', as: 'text' },
  'name.givenname': { sql: 's.given_name', as: 'text' },
  'name.familyname': { sql: 's.family_name', as: 'text' },
  active: { sql: ACTIVE, as: 'flag' },
  emails: EMAIL,
  'emails.value': EMAIL,
  'emails.type': { sql: `case when s.email is not null then 'work' end`, as: 'text' },
  'emails.primary': { sql: '(s.email is not null)', as: 'flag' },
  groups: inGroup,
  'groups.value': inGroup,
  ...META,
};

/** What groups are filtered and sorted by. */
export const groupAttributes: Attributes = {
  id: { sql: 's.id', as: 'exact' },
  externalid: { sql: 's.external_id', as: 'exact' },
  displayname: { sql: 's.display_key', as: 'key' },
  members: hasMember,
  'members.value': hasMember,
  ...META,
};

/** Without what is empty, as RFC 7643 has it. */
const given = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));

/** A user as the directory sees it. @param base the address of the directory */
export function userResource(row: ScimUserRow, base: string): Record<string, unknown> {
  const { formattedName, givenName, familyName, email, groups } = row;
  const name = given({ formatted: formattedName, givenName, familyName });
  return given({
    schemas: [USER_SCHEMA],
    id: row.id,
    externalId: row.externalId,
    userName: row.userName,
    name: Object.keys(name).length > 0 ? name : null,
    displayName: row.displayName,
    active: row.active,
    emails: email === null ? null : [{ value: email, type: 'work', primary: true }],
    groups: groups?.map((group) => ({ ...group, $ref: `${base}/Groups/${group.value}` })),
    meta: metaOf(row, 'User', `${base}/Users/${row.id}`),
  });
}

/** A group as the directory sees it. */
export function groupResource(row: ScimGroupRow, base: string): Record<string, unknown> {
  return given({
    schemas: [GROUP_SCHEMA],
    id: row.id,
    externalId: row.externalId,
    displayName: row.displayName,
    members: row.members?.map((member) => ({ ...member, type: 'User', $ref: `${base}/Users/${member.value}` })),
    meta: metaOf(row, 'Group', `${base}/Groups/${row.id}`),
  });
}

const metaOf = (row: ScimUserRow | ScimGroupRow, resourceType: string, location: string) => ({
  resourceType,
  created: row.createdAt.toISOString(),
  lastModified: row.updatedAt.toISOString(),
  location,
  version: versionOf(row),
});
