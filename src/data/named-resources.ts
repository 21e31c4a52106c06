import { type ResourceWord, resourceWords } from '../kernel/resources.ts';
import { tableNamed } from './tables.ts';

const OWN = 'p.org_id = r.org_id';
const rowOf = (table: string, column = 'id', of = OWN): string =>
  `select from ${table} p where p.${column} = r.resource_id and ${of}`;
const MEMBER = rowOf('organization_members', 'user_id');

/**
 * SQL that finds a row of a resource by what a record `r` names it by, where that is not the `id` in a table with its
 * name. `null`: it has no identifier in an organization.
 */
const others: Readonly<Partial<Record<ResourceWord, string | null>>> = {
  organization: rowOf('organizations', 'id', 'p.id = r.org_id'),
  organization_member: MEMBER,
  user: MEMBER,
  workspace_member: rowOf('workspace_members', 'user_id'),
  execution: rowOf('executions', 'execution_id', `${OWN} and p.workspace_id = r.workspace_id`),
  app_token: rowOf('api_tokens'),
  model: rowOf('logical_models', 'logical_model_id'),
  // built-in ones are those of every organization
  tool: rowOf('tools', 'id', `(${OWN} or p.org_id is null)`),
  recipe: null,
  sync: null,
  presence: MEMBER,
  // by the instance whose action it is
  tool_action: rowOf('tool_instances'),
  analytics: null,
  activity: null,
  session: null,
  passkey: null,
  user_credential: null,
  application_grant: rowOf('oauth_grants'),
  identity_link: null,
  identity_provider_test: null,
  root_key: null,
  credential: null,
  augmentation_stage: null,
  augmentation_step: null,
  file: null,
  event: null,
  node: null,
  route: null,
};

/** @throws Error for a word that no table is named by */
function rowNamed(word: ResourceWord): string | null {
  const other = others[word];
  if (other !== undefined) return other;
  const table = tableNamed(word);
  if (!table) throw new Error(`No table is named by '${word}': say in named-resources.ts where its rows are.`);
  return rowOf(table);
}

/** SQL over a record `r`: whether what it is about, by `resource_type` and `resource_id`, is there. */
export const RESOURCE_IS_THERE = `case r.resource_type ${resourceWords
  .flatMap((word) => {
    const row = rowNamed(word);
    return row ? `when '${word}' then exists (${row})` : [];
  })
  .join(' ')} else false end`;
