import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { checkActionChanges, type GivenChanges } from './action-changes.ts';
import { checkConfiguration, fieldsOf } from './configuration.ts';
import type { CreateToolInstance } from './tool-instance.service.ts';

/** A tool, as far as its instances depend on it. */
export type ToolOfInstance = Pick<
  ToolRow,
  'id' | 'status' | 'configSchema' | 'credentialSchema' | 'customActionType' | 'currentSchemaVersion'
>;

/** An instance as it is copied from another workspace: without anything that is kept secret. */
export interface InstanceCopy extends Omit<CreateToolInstance, 'toolId' | 'namespaceId'> {
  /** That of the tool which the configuration was made for. */
  schemaVersion?: number | null;
}

/** What is stored of a copy, once it is checked. */
export interface CheckedCopy {
  configuration: Record<string, unknown>;
  actionChanges: ReturnType<typeof checkActionChanges>;
  schemaVersion: number;
  issues: InputIssue[];
}

/**
 * Checks a copy with its tool. What was stored for an earlier version of the tool stays as it is, to be upgraded later;
 * so do keys that the tool does not know any more.
 */
export function checkCopy(tool: ToolOfInstance, copy: InstanceCopy): CheckedCopy {
  const given = { ...copy.configuration } as Record<string, unknown>;
  const fields = fieldsOf(tool);
  const schemaVersion = Math.min(copy.schemaVersion ?? tool.currentSchemaVersion, tool.currentSchemaVersion);
  const isOutdated = schemaVersion < tool.currentSchemaVersion;
  const checked = checkConfiguration(fields, given, given, ['input', 'configuration']);
  const issues = checked.issues.filter(({ type }) => !(isOutdated && type === 'missing'));
  for (const name of Object.keys(checked.secrets))
    issues.push(
      valueIssue(['input', 'configuration', name], 'the tool keeps it secret: give it to the instance afterwards'),
    );
  const plain = Object.fromEntries(Object.entries(given).filter(([name]) => !fields.sensitive.has(name)));
  const configuration = isOutdated ? plain : checked.plain;
  return { configuration, schemaVersion, ...actionChangesOf(tool, configuration, copy, issues) };
}

function actionChangesOf(
  tool: ToolOfInstance,
  configuration: Record<string, unknown>,
  copy: GivenChanges,
  issues: InputIssue[],
): Pick<CheckedCopy, 'actionChanges' | 'issues'> {
  try {
    const actionChanges = checkActionChanges({ tool, configuration, customActionParameters: {} }, copy);
    return { actionChanges, issues };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { actionChanges: {}, issues: [...issues, ...error.issues] };
  }
}

/** Writes a copy that was checked, with its record and its event. @param clientSecret a reference that was ensured */
export function insertCopy(
  tx: Tx,
  caller: Caller,
  row: WorkspacePlace & { id: string; namespaceId: string | null; toolId: string },
  copy: InstanceCopy,
  { configuration, actionChanges, schemaVersion }: CheckedCopy,
): void {
  const { id, orgId, workspaceId, namespaceId, toolId } = row;
  const client = copy.connectionCredentials;
  tx.insert('tool_instances', {
    id,
    orgId,
    workspaceId,
    namespaceId,
    toolId,
    name: copy.name,
    description: copy.description ?? null,
    configuration: configuration as object,
    credentialRefs: {},
    authMode: copy.authMode ?? undefined,
    authConfig: copy.authConfig ?? undefined,
    ...actionChanges,
    clientId: client?.clientId ?? null,
    clientSecretVaultId: client?.clientSecretVaultId ?? null,
    callbackUrl: client?.callbackUrl ?? null,
    scopesOverride: client?.scopesOverride ?? [],
    isActive: copy.isActive ?? undefined,
    mcpDescriptionOverride: copy.mcpDescriptionOverride ?? null,
    mcpActionFilter: copy.mcpActionFilter ?? [],
    mcpActionDescriptions: copy.mcpActionDescriptions ?? undefined,
    mcpMaxCallsPerTurn: copy.mcpMaxCallsPerTurn ?? null,
    mcpRequiresConfirmation: copy.mcpRequiresConfirmation ?? undefined,
    schemaVersion,
    createdBy: caller.principal.userId,
  });
  recordChange(tx, 'create', 'tool_instance', { id, orgId, workspaceId, namespaceId }, { tool_id: toolId });
}
