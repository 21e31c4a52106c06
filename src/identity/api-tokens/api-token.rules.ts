import { isPermission } from '../../access/permissions.ts';
import { expandPermission, expandScope, isWord } from '../../access/scopes.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import type { ApiToken } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { coversPattern, parseEndpointPattern } from '../../kernel/endpoint-paths.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';
import type { TokenGrant } from '../../kernel/token-grant.ts';

const LISTS = ['scopes', 'permissions', 'workspaceIds', 'namespaceIds', 'environmentIds', 'endpointPaths'] as const;
type ListName = (typeof LISTS)[number];

/** Name and restrictions of a new token. Omitted or null lists are empty. */
export interface TokenInput
  extends Given<ApiToken, ListName | 'description' | 'rateLimitRps' | 'rateLimitBurst' | 'expiresAt'> {
  name: string;
  /** `null`, here or in `expiresAt`, never expires; only where the operator allows it. */
  expiresInDays?: number | null;
}

/** The lists of a token as they are stored. */
export type TokenLists = Record<ListName, string[]>;

export const listsOf = (input: TokenInput): TokenLists =>
  Object.fromEntries(LISTS.map((list) => [list, [...new Set(input[list] ?? [])]])) as TokenLists;

/** Where a new token belongs: an organization, or an app in one of its workspaces. */
export interface TokenHome {
  orgId: string;
  workspaceId: string | null;
}

/**
 * Checks what a new token asks for against the permissions of its creator: names must be known and granted somewhere,
 * places must be visible to the creator, paths must be able to match. If the creator is itself a token, nothing may
 * exceed that token (defaults §3).
 * @throws InputError naming every item that is wrong
 */
export async function checkTokenLists(
  deps: ServiceDeps,
  caller: Caller,
  home: TokenHome,
  lists: TokenLists,
): Promise<void> {
  const issues = [
    ...(await nameIssues(deps, caller, home.orgId, lists)),
    ...(await placeIssues(deps, caller, home, lists)),
    ...pathIssues(lists),
    ...(caller.principal.token ? beyondIssues(caller.principal.token, within(home, lists)) : []),
  ];
  if (issues.length > 0) throw new InputError(issues);
}

/** An app token is implicitly restricted to the workspace of its app. */
const within = ({ workspaceId }: TokenHome, lists: TokenLists): TokenLists =>
  workspaceId && lists.workspaceIds.length === 0 ? { ...lists, workspaceIds: [workspaceId] } : lists;

const issueAt = (message: string, ...place: [ListName] | [ListName, number]): InputIssue =>
  valueIssue(['input', ...place], message);

const eachOf = (
  lists: TokenLists,
  list: ListName,
  problem: (item: string) => string | null | undefined,
): InputIssue[] =>
  lists[list].flatMap((item, index) => {
    const message = problem(item);
    return message ? issueAt(message, list, index) : [];
  });

async function nameIssues(
  { access }: ServiceDeps,
  caller: Caller,
  orgId: string,
  lists: TokenLists,
): Promise<InputIssue[]> {
  const mayDo = await access.rightsSomewhere(caller, orgId);
  const problemOf = (name: string, permissions: readonly Permission[]) => {
    if (permissions.length === 0) return `'${name}' is neither a permission nor a pattern that matches one`;
    if (isWord(name)) return null;
    const isEnough = isPermission(name) ? mayDo(name) : permissions.some(mayDo);
    return isEnough ? null : `you do not have '${name}' yourself`;
  };
  return [
    ...eachOf(lists, 'scopes', (name) => problemOf(name, expandScope(name))),
    ...eachOf(lists, 'permissions', (name) => problemOf(name, expandPermission(name))),
  ];
}

/** Namespaces and environments by id, with their workspaces. */
const parentsIn = (table: string) =>
  `select id, workspace_id as "workspaceId" from ${table} where org_id = $1 and id = any($2::text[])`;

async function placeIssues(
  { access, sql }: ServiceDeps,
  caller: Caller,
  { orgId, workspaceId: home }: TokenHome,
  lists: TokenLists,
): Promise<InputIssue[]> {
  const workspaces = new Map<string, boolean>();
  const see = async (ids: readonly string[]) => {
    const roles = await Promise.all(ids.map((id) => access.workspaceRole(caller, orgId, id)));
    ids.forEach((id, index) => {
      workspaces.set(id, roles[index] !== null);
    });
  };
  await see(lists.workspaceIds);
  const issues = eachOf(lists, 'workspaceIds', (id) => {
    if (!workspaces.get(id)) return `there is no such workspace: '${id}'`;
    return home && id !== home ? 'the app belongs to another workspace' : null;
  });
  const allowed = home ? [home] : lists.workspaceIds;
  for (const kind of ['namespace', 'environment'] as const) {
    const list = `${kind}Ids` as const;
    if (lists[list].length === 0) continue;
    const rows = await sql.read<{ id: string; workspaceId: string }>(parentsIn(`${kind}s`), [orgId, lists[list]]);
    await see(rows.map(({ workspaceId }) => workspaceId));
    const parents = new Map(rows.map((row) => [row.id, row.workspaceId]));
    issues.push(
      ...eachOf(lists, list, (id) => {
        const workspaceId = parents.get(id);
        if (!workspaceId || !workspaces.get(workspaceId)) return `there is no such ${kind}: '${id}'`;
        return allowed.length > 0 && !allowed.includes(workspaceId)
          ? `the ${kind} is in none of the given workspaces`
          : null;
      }),
    );
  }
  return issues;
}

const pathIssues = (lists: TokenLists): InputIssue[] =>
  eachOf(lists, 'endpointPaths', (path) =>
    parseEndpointPattern(path)
      ? null
      : "must be a path like '/v1/orgs/org_1/secrets', in which '*' may stand for a segment " +
        "and '**' at the end for any rest",
  );

const RESTRICTED = 'the token that creates it has restrictions here: give one or more of its values';

/** The issues of a new token that asks for more than the token that creates it. */
function beyondIssues(own: TokenGrant, lists: TokenLists): InputIssue[] {
  const isWithin = (permissions: Iterable<Permission>) => [...permissions].every((p) => own.permissions.has(p));
  const beyond = 'it exceeds the rights of the token that creates it';
  const issues = [
    ...eachOf(lists, 'scopes', (name) => (isWithin(expandScope(name)) ? null : beyond)),
    ...eachOf(lists, 'permissions', (name) => (isWithin(expandPermission(name)) ? null : beyond)),
  ];
  if (lists.scopes.length + lists.permissions.length === 0)
    issues.push(issueAt('a token that is created with a token must name its scopes or permissions', 'permissions'));
  const restrictions = {
    workspaceIds: own.workspaceIds,
    namespaceIds: own.namespaceIds,
    environmentIds: own.environmentIds,
  };
  // A change is allowed within either of the two. If one list is restricted, an unrestricted other list would be a
  // way out.
  const isInParts = own.namespaceIds.length + own.environmentIds.length > 0;
  for (const [list, allowed] of Object.entries(restrictions) as [keyof typeof restrictions, readonly string[]][]) {
    if (allowed.length === 0 && !(isInParts && list !== 'workspaceIds')) continue;
    issues.push(...eachOf(lists, list, (id) => (allowed.includes(id) ? null : beyond)));
    if (allowed.length > 0 && lists[list].length === 0) issues.push(issueAt(RESTRICTED, list));
  }
  const { endpoints } = own;
  if (!endpoints) return issues;
  if (lists.endpointPaths.length === 0) issues.push(issueAt(RESTRICTED, 'endpointPaths'));
  return [
    ...issues,
    ...eachOf(lists, 'endpointPaths', (path) => {
      const pattern = parseEndpointPattern(path);
      return !pattern || endpoints.some((wide) => coversPattern(wide, pattern)) ? null : beyond;
    }),
  ];
}
