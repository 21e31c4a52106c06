import { ApiError } from '../kernel/errors.ts';

const names = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Most tools of one set. */
export const MAX_IN_SET = 12;
/** Most tools of a list: clients stop at 40 to 128, and each crowds out what else a model knows. */
export const MAX_TOOLS = 40;

/** Sets of operations of the REST API, picked by hand, which the address of `/mcp` may name. */
export const TOOL_SETS: Readonly<Record<string, readonly string[]>> = {
  activity: names(`
    ListActivity GetActivitySummary ListWorkspaceActivity GetWorkspaceActivitySummary ListUserActivity ListAppActivity
    GetResourceCounts GetExecutionMetrics ListExecutions GetExecution`),
  deployments: names(`
    ListApps GetApp ListReleases GetRelease CreateRelease ListEnvironments GetEnvironment DeployRelease PromoteRelease
    UndeployApp ListDeployments ListDeploymentHistory`),
  files: names(`
    ListArtifacts GetArtifact CreateArtifact UpdateArtifact DeleteArtifact ListArtifactVersions ListThreadArtifacts
    PromoteArtifact QueryArtifacts`),
  members: names(`
    ListOrganizationMembers AddOrganizationMember UpdateOrganizationMember RemoveOrganizationMember
    ListWorkspaceMembers AddWorkspaceMember UpdateWorkspaceMember RemoveWorkspaceMember`),
  models: names(`
    ListLogicalModels GetLogicalModel CreateLogicalModel UpdateLogicalModel ListModelEntitlements GetModelEntitlement
    CreateModelEntitlement UpdateModelEntitlement ListProviderAccounts GetProviderAccount RouteModel`),
  secrets: names(`
    ListSecrets GetSecret GetSecretByName CreateSecret UpdateSecret RotateSecret DeleteSecret RestoreSecret`),
  tools: names(`
    ListTools GetTool GetToolBySlug ListToolInstances GetToolInstance CreateToolInstance UpdateToolInstance
    ToggleToolInstance TestToolInstance ListWorkspaceConnections ListNamespaceConnections GetConnectionRequirements`),
};

/** What an address asks for. */
export interface SetOptions {
  /** Names of operations of the REST API. */
  operations: readonly string[];
  /** The workspace of all calls; `null` if each names its own. */
  workspaceId: string | null;
}

/**
 * The operations of the sets that an address names, each once.
 * @throws INVALID_REQUEST for an unknown set, and for more tools than a list has
 */
export function operationsOfSets(given: string): string[] {
  const operations = new Set<string>();
  for (const name of given.split(',').map((text) => text.trim())) {
    const set = Object.hasOwn(TOOL_SETS, name) ? TOOL_SETS[name]! : null;
    if (!set)
      throw refused(`There is no set '${name.slice(0, 50)}'. The sets are: ${Object.keys(TOOL_SETS).join(', ')}.`);
    for (const operation of set) operations.add(operation);
  }
  if (operations.size <= MAX_TOOLS) return [...operations];
  throw refused(`The sets have ${operations.size} tools together. A list has at most ${MAX_TOOLS}: name fewer sets.`);
}

/** What is wrong with the options of an address. */
export const refused = (message: string): ApiError => new ApiError('INVALID_REQUEST', { reason: 'query' }, message);
