import { type ResourceWord, resourceWords } from '../kernel/resources.ts';

const OWN = 'p.org_id = r.org_id';
const rowOf = (table: string, column = 'id', of = OWN): string =>
  `select from ${table} p where p.${column} = r.resource_id and ${of}`;
const MEMBER = rowOf('organization_members', 'user_id');

/**
 * SQL that finds a row of each resource by what a record `r` names it by. `null`: it has no identifier in an
 * organization.
 */
const rows: Readonly<Record<ResourceWord, string | null>> = {
  organization: rowOf('organizations', 'id', 'p.id = r.org_id'),
  organization_member: MEMBER,
  invitation: rowOf('invitations'),
  identity_provider: rowOf('identity_providers'),
  user: MEMBER,
  workspace: rowOf('workspaces'),
  workspace_member: rowOf('workspace_members', 'user_id'),
  namespace: rowOf('namespaces'),
  app: rowOf('apps'),
  release: rowOf('releases'),
  augmentation: rowOf('augmentations'),
  endpoint: rowOf('endpoints'),
  action: rowOf('actions'),
  execution: rowOf('executions', 'execution_id', `${OWN} and p.workspace_id = r.workspace_id`),
  thread: rowOf('threads'),
  artifact: rowOf('artifacts'),
  source: rowOf('sources'),
  secret: rowOf('secrets'),
  api_token: rowOf('api_tokens'),
  app_token: rowOf('api_tokens'),
  environment: rowOf('environments'),
  deployment: rowOf('deployments'),
  model: rowOf('logical_models', 'logical_model_id'),
  provider_account: rowOf('provider_accounts'),
  model_entitlement: rowOf('model_entitlements'),
  // built-in ones are those of every organization
  tool: rowOf('tools', 'id', `(${OWN} or p.org_id is null)`),
  tool_instance: rowOf('tool_instances'),
  connection: rowOf('connections'),
  entity: rowOf('entities'),
  memory: rowOf('memories'),
  recipe: null,
  sync: null,
  presence: MEMBER,
  analytics: null,
  activity: null,
  notification: rowOf('notifications'),
  session: null,
  identity_link: null,
  identity_provider_test: null,
  root_key: null,
  credential: null,
  augmentation_stage: null,
  augmentation_step: null,
  entity_relation: rowOf('entity_relations'),
  file: null,
  event: null,
  node: null,
  route: null,
};

/** SQL over a record `r`: whether what it is about, by `resource_type` and `resource_id`, is there. */
export const RESOURCE_IS_THERE = `case r.resource_type ${resourceWords
  .flatMap((word) => (rows[word] ? `when '${word}' then exists (${rows[word]})` : []))
  .join(' ')} else false end`;
