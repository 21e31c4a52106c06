import { type EndpointPattern, matchesPath } from './endpoint-paths.ts';
import type { Place } from './place.ts';
import type { Permission } from './resources.ts';

/**
 * What an API token or app token narrows the rights of its user to (spec, Authentication 6). Empty lists restrict
 * nothing.
 */
export interface TokenGrant {
  /** `tok_…` */
  id: string;
  type: 'pat' | 'app';
  /** The same for a token and the tokens that it was refreshed to: they share a rate limit. */
  familyId: string;
  /** The hash that the token is looked up by. */
  hash: string;
  /** The only organization that the token works in. */
  orgId: string;
  /** For an app token: its app, with the workspace of the app in `workspaceIds`. */
  appId: string | null;
  /** The application of somebody's that the user has granted this to; absent for tokens that were made by hand. */
  applicationId?: string;
  permissions: ReadonlySet<Permission>;
  /** What it lists, as it was written: names of permissions, and words that stand for many. Absent for none. */
  names?: readonly string[];
  workspaceIds: readonly string[];
  namespaceIds: readonly string[];
  environmentIds: readonly string[];
  /**
   * The workspaces of the namespaces and environments, for a token that names these and no workspaces: it reaches no
   * others. `null` for any other token.
   */
  impliedWorkspaceIds: readonly string[] | null;
  /** `null` if every path is allowed. */
  endpoints: readonly EndpointPattern[] | null;
  rateLimitRps: number | null;
  rateLimitBurst: number | null;
  /** For a token made by a token: the first token of the line. Its rate limits all of them together. */
  root: { familyId: string; rateLimitRps: number | null; rateLimitBurst: number | null } | null;
}

/** The place of an action. */
export interface Reach extends Place {
  orgId: string;
  /** Absent for what belongs to the organization as a whole. */
  workspaceId?: string | null | undefined;
}

/**
 * The places of each kind that a token is restricted to; absent for unrestricted kinds. An app token sees only its own
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
    workspaceId: lists.impliedWorkspaceIds ?? some(lists.workspaceIds),
    namespaceId: some(lists.namespaceIds),
    environmentId: some(lists.environmentIds),
    appId: appId ? [appId] : undefined,
  };
}

/** Whether a token is for some places of a kind only, besides its organization. */
export const isRestricted = ({ workspaceIds, namespaceIds, environmentIds, appId }: TokenGrant): boolean =>
  workspaceIds.length + namespaceIds.length + environmentIds.length > 0 || appId !== null;

/** The same token for one of its workspaces only; `null` for a workspace that it does not reach. */
export function narrowedTo(token: TokenGrant, workspaceId: string): TokenGrant | null {
  const { workspaceIds, impliedWorkspaceIds } = token;
  if (impliedWorkspaceIds)
    return impliedWorkspaceIds.includes(workspaceId) ? { ...token, impliedWorkspaceIds: [workspaceId] } : null;
  if (workspaceIds.length > 0 && !workspaceIds.includes(workspaceId)) return null;
  return { ...token, workspaceIds: [workspaceId] };
}

/** Permissions that change nothing. Restricted tokens may use them without naming a place. */
const isHarmless = (permission: Permission): boolean =>
  permission.endsWith(':read') || permission === 'organization:access' || permission === 'sync:subscribe';

/** Resources in the workspace of an app that do not belong to any app. */
const BESIDE_APPS = new Set(['workspace', 'workspace_member']);

/** Whether the token grants a permission at all. `organization:access`, for its own organization, is always granted. */
export const grants = ({ permissions }: TokenGrant, permission: Permission): boolean =>
  permission === 'organization:access' || permissions.has(permission);

/**
 * Whether a token may do something in a place, given its permissions and all its restrictions. Changes must be within
 * the restricted places. Reads need not name a place, but must not name one outside.
 * @param where with a namespace by its id, `default` already resolved
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

/** An empty id counts as named too: it refers to something that does not exist. */
const isNamed = (id: string | null | undefined): id is string => id !== null && id !== undefined;

function inWorkspaces(token: TokenGrant, permission: Permission, { workspaceId }: Reach): boolean {
  const allowed = token.impliedWorkspaceIds ?? token.workspaceIds;
  if (allowed.length === 0 && !token.impliedWorkspaceIds) return true;
  return isNamed(workspaceId) ? allowed.includes(workspaceId) : isHarmless(permission);
}

function inParts({ namespaceIds, environmentIds }: TokenGrant, permission: Permission, where: Reach): boolean {
  if (namespaceIds.length === 0 && environmentIds.length === 0) return true;
  const inNamespace = isListed(namespaceIds, where.namespaceId);
  const inEnvironment = isListed(environmentIds, where.environmentId);
  if (inNamespace === false || inEnvironment === false) return false;
  return isHarmless(permission) || inNamespace === true || inEnvironment === true;
}

/** Whether a list contains the named id; `null` if there is no list, or nothing is named. */
const isListed = (list: readonly string[], id: string | null | undefined): boolean | null =>
  list.length === 0 || !isNamed(id) ? null : list.includes(id);

function inApp({ appId, type }: TokenGrant, permission: Permission, where: Reach): boolean {
  if (type !== 'app') return true;
  if (isNamed(where.appId)) return where.appId === appId;
  const [resource] = permission.split(':') as [string];
  // an action without an app creates another app; what belongs to the organization alone was already checked by
  // workspace
  return isHarmless(permission) || (permission !== 'app:create' && !BESIDE_APPS.has(resource));
}

/** Whether a token may use an endpoint: the canonical path of a REST route, or `/graphql`. */
export function mayEnter({ endpoints }: TokenGrant, endpointOf: (() => string | undefined) | undefined): boolean {
  if (endpoints === null) return true;
  const endpoint = endpointOf?.();
  return endpoint !== undefined && endpoints.some((pattern) => matchesPath(pattern, endpoint));
}
