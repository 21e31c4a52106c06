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

/** The name of the five tools over the whole schema, among the sets. */
const PLATFORM = 'platform';
const PLATFORM_TOOLS = 5;
/** The set that an address may name together with `reveal=1`. */
const SECRETS = 'secrets';

/** The tools that an address asks for. */
export interface ChosenTools {
  /** Whether the five tools over the whole schema are among them. */
  hasPlatform: boolean;
  /** Whether values of secrets may be asked for, as far as the address says. */
  hasSecrets: boolean;
  /** Names of operations of the REST API, each once. */
  operations: readonly string[];
}

/**
 * The tools of the sets that an address names.
 * @throws INVALID_REQUEST for an unknown set, and for more tools than a list has
 */
export function toolsOfSets(given: string): ChosenTools {
  const sets = new Set(given.split(',').map((text) => text.trim()));
  const operations = [...new Set([...sets].flatMap(operationsOf))];
  const hasPlatform = sets.has(PLATFORM);
  const count = operations.length + (hasPlatform ? PLATFORM_TOOLS : 0);
  if (count > MAX_TOOLS)
    throw refused(`The sets have ${count} tools together. A list has at most ${MAX_TOOLS}: name fewer sets.`);
  return { hasPlatform, hasSecrets: sets.has(SECRETS), operations };
}

function operationsOf(set: string): readonly string[] {
  if (set === PLATFORM) return [];
  if (Object.hasOwn(TOOL_SETS, set)) return TOOL_SETS[set]!;
  const known = [...Object.keys(TOOL_SETS), PLATFORM].sort().join(', ');
  throw refused(`There is no set '${set.slice(0, 50)}'. The sets are: ${known}.`);
}

/** What is wrong with the options of an address. */
export const refused = (message: string): ApiError => new ApiError('INVALID_REQUEST', { reason: 'query' }, message);
