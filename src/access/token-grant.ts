import type { Place } from '../core/place.ts';
import type { Permission } from '../core/resources.ts';
import { type EndpointPattern, matchesPath } from './endpoint-paths.ts';

/**
 * What an API token or app token narrows its user's rights to (spec, Authentication 6). Empty lists restrict nothing.
 */
export interface TokenGrant {
  /** `tok_…` */
  id: string;
  type: 'pat' | 'app';
  /** Equal for a token and what it was refreshed to: they share a rate limit. */
  familyId: string;
  /** What the token is looked up by. */
  hash: string;
  /** The only organization that it works in. */
  orgId: string;
  /** Of an app's token: the app, and in `workspaceIds` its workspace. */
  appId: string | null;
  permissions: ReadonlySet<Permission>;
  workspaceIds: readonly string[];
  namespaceIds: readonly string[];
  environmentIds: readonly string[];
  /** `null` where every path is open. */
  endpoints: readonly EndpointPattern[] | null;
  rateLimitRps: number | null;
  rateLimitBurst: number | null;
  /** Of a token that a token made: the first one of the line, whose rate bounds all of them together. */
  root: { familyId: string; rateLimitRps: number | null; rateLimitBurst: number | null } | null;
}

/** Where something is to be done. */
export interface Reach extends Place {
  orgId: string;
  /** Absent for what belongs to the organization as a whole. */
  workspaceId?: string | null | undefined;
}

/**
 * What of each kind of place a token is restricted to; absent where everything is open. An app's token sees its own
 * app.
 */
export function restrictionsOf(token: TokenGrant | null): {
  readonly [Name in 'orgId' | 'workspaceId' | keyof Place]?: readonly string[];
} {
  if (!token) return {};
  const { orgId, appId, ...lists } = token;
  const some = (ids: readonly string[]) => (ids.length > 0 ? ids : undefined);
  return {
    orgId: [orgId],
    workspaceId: some(lists.workspaceIds),
    namespaceId: some(lists.namespaceIds),
    environmentId: some(lists.environmentIds),
    appId: appId ? [appId] : undefined,
  };
}

/** What does not change anything: it stays possible where a restricted token names nothing. */
const isHarmless = (permission: Permission): boolean =>
  permission.endsWith(':read') || permission === 'organization:access' || permission === 'sync:subscribe';

/** What lies in an app's workspace but beside every app. */
const BESIDE_APPS = new Set(['workspace', 'workspace_member']);

/** Whether the token grants a permission at all; membership of its organization goes without saying. */
export const grants = ({ permissions }: TokenGrant, permission: Permission): boolean =>
  permission === 'organization:access' || permissions.has(permission);

/**
 * Whether a token may do something in a place: what it grants, and each of its restrictions. Changes must happen within
 * what it is restricted to; reads need not name it, but must not name something else.
 * @param where a namespace by its id, `default` resolved
 */
export function reaches(token: TokenGrant, permission: Permission, where: Reach): boolean {
  return (
    token.orgId === where.orgId &&
    grants(token, permission) &&
    inWorkspaces(token, permission, where) &&
    inParts(token, permission, where) &&
    inApp(token, permission, where)
  );
}

/** An empty id names something too: something that is not there. */
const isNamed = (id: string | null | undefined): id is string => id !== null && id !== undefined;

function inWorkspaces({ workspaceIds }: TokenGrant, permission: Permission, { workspaceId }: Reach): boolean {
  if (workspaceIds.length === 0) return true;
  return isNamed(workspaceId) ? workspaceIds.includes(workspaceId) : isHarmless(permission);
}

function inParts({ namespaceIds, environmentIds }: TokenGrant, permission: Permission, where: Reach): boolean {
  if (namespaceIds.length === 0 && environmentIds.length === 0) return true;
  const inNamespace = isListed(namespaceIds, where.namespaceId);
  const inEnvironment = isListed(environmentIds, where.environmentId);
  if (inNamespace === false || inEnvironment === false) return false;
  return isHarmless(permission) || inNamespace === true || inEnvironment === true;
}

/** Whether a list has what is named; `null` where there is no list, or nothing is named. */
const isListed = (list: readonly string[], id: string | null | undefined): boolean | null =>
  list.length === 0 || !isNamed(id) ? null : list.includes(id);

function inApp({ appId, type }: TokenGrant, permission: Permission, where: Reach): boolean {
  if (type !== 'app') return true;
  if (isNamed(where.appId)) return where.appId === appId;
  const [resource] = permission.split(':') as [string];
  // without naming an app one makes another one; what belongs to the organization alone was judged by the workspace
  return isHarmless(permission) || (permission !== 'app:create' && !BESIDE_APPS.has(resource));
}

/** Whether a token may come in by a door: the canonical path of a REST route, or `/graphql`. */
export function mayEnter({ endpoints }: TokenGrant, doorOf: (() => string | undefined) | undefined): boolean {
  if (endpoints === null) return true;
  const door = doorOf?.();
  return door !== undefined && endpoints.some((pattern) => matchesPath(pattern, door));
}
