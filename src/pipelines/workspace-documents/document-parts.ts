import type { NewEnvironment } from '../../delivery/environments/environment.service.ts';
import type { CreateModelEntitlement } from '../../models/model-entitlements/model-entitlement.service.ts';
import { limitsFromNames } from '../../models/model-entitlements/workspace-limits.ts';
import type { InstanceCopy } from '../../tools/tool-instances/copied-instance.ts';
import type { CreateTool } from '../../tools/tools/tool.service.ts';
import type { EntitlementPart, EnvironmentPart, InstancePart, ToolPart } from './workspace-document.ts';

/* The parts of documents as the services of their groups take them. */

/** A tool of a document. */
export const toolOf = (part: ToolPart): CreateTool => ({
  name: part.name,
  slug: part.slug,
  description: part.description,
  shortDescription: part.short_description,
  category: part.category,
  version: part.version,
  status: part.status,
  iconUrl: part.icon_url,
  documentationUrl: part.documentation_url,
  connectionServiceName: part.connection_service_name,
  author: part.author,
  tags: part.tags,
  supportedActions: part.supported_actions,
  supportedStepTypes: part.supported_step_types,
  configSchema: part.config_schema,
  credentialSchema: part.credential_schema,
  actionSchemas: part.action_schemas,
  mcpFunctions: part.mcp_functions,
  customActionType: part.custom_action_type,
  isMcpCompatible: part.is_mcp_compatible,
  schemaChangelog: part.schema_changelog,
  supportsConnection: part.supports_connection,
});

/** A tool instance of a document. @param clientSecret the reference to the secret of its client */
export const instanceOf = (part: InstancePart, clientSecret: string | null): InstanceCopy => ({
  name: part.name,
  description: part.description,
  configuration: part.configuration,
  authMode: part.auth_mode,
  authConfig: part.auth_config as InstanceCopy['authConfig'],
  connectionCredentials: part.connection_credentials && {
    clientId: part.connection_credentials.client_id,
    clientSecretVaultId: clientSecret,
    callbackUrl: part.connection_credentials.callback_url,
    scopesOverride: part.connection_credentials.scopes_override,
  },
  customActions: part.custom_actions,
  customActionParameters: part.custom_action_parameters,
  actionDefaults: part.action_defaults,
  isActive: part.is_active,
  mcpDescriptionOverride: part.mcp_description_override,
  mcpActionFilter: part.mcp_action_filter,
  mcpActionDescriptions: part.mcp_action_descriptions as InstanceCopy['mcpActionDescriptions'],
  mcpMaxCallsPerTurn: part.mcp_max_calls_per_turn,
  mcpRequiresConfirmation: part.mcp_requires_confirmation,
  mcpParameterOverrides: part.mcp_parameter_overrides,
  schemaVersion: part.schema_version,
});

/** An environment of a document. */
export const environmentOf = (part: EnvironmentPart, id: string): NewEnvironment => ({
  id,
  name: part.name,
  slug: part.slug,
  description: part.description,
  isDefault: part.is_default,
  status: part.status,
});

/** An entitlement of a document. */
export const entitlementOf = (part: EntitlementPart): CreateModelEntitlement => ({
  logicalModelId: part.model,
  workspaceLimits: part.limits ? limitsFromNames(part.limits) : null,
  allowedStepTypes: part.allowed_step_types,
  allowedEndpoints: part.allowed_endpoints,
  allowedPurposes: part.allowed_purposes,
  enabled: part.enabled,
});
