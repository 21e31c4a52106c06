import { type Account, call, demandSameAnswer } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

const INSTANCES = 50;

const parameter = (name: string, more: object = {}) => ({
  name,
  display_name: `The ${name}`,
  type: 'string',
  description: `The ${name} that the action is about.`,
  ...more,
});

const action = (name: string, method: string, more: object = {}) => ({
  name,
  description: `Asks the tracker to ${name} tickets.`,
  method,
  url_template: `{{base_url}}/tickets/{{id}}/${name}`,
  parameters: [parameter('id', { required: true }), parameter('language', { default: 'en' }), parameter('fields')],
  ...more,
});

const TOOL = {
  name: 'Tickets',
  slug: 'tickets',
  description: 'Reads and writes tickets of a tracker.',
  category: 'productivity',
  supported_step_types: ['tool', 'agent'],
  config_schema: [
    { name: 'base_url', display_name: 'Address', required: true, validation: { pattern: '^https?://' } },
    { name: 'region', default: 'eu', options: [{ value: 'eu', label: 'Europe' }, { value: 'us' }] },
    { name: 'retries', type: 'integer', default: 3, validation: { min_value: 0, max_value: 5 } },
    { name: 'token', type: 'secret' },
  ],
  action_schemas: [
    action('get', 'GET', { is_read_only: true }),
    action('list', 'GET', { is_read_only: true }),
    action('create', 'POST'),
    action('assign', 'PUT'),
    action('remove', 'DELETE', { is_destructive: true }),
  ],
  custom_action_type: 'custom_rest',
};

/** Half of the instances use the tool as it is, a quarter changes its actions, a quarter is of a built-in tool. */
const instanceOf = (n: number, tools: { own: string; builtIn: string }) => {
  const shown = { name: `Instance ${n}`, description: 'Made to be measured.' };
  if (n % 4 === 3) return { ...shown, tool_id: tools.builtIn, configuration: { owner: 'bench' } };
  const configuration = { base_url: 'https://tickets.example', ...(n % 2 ? { token: `token ${n}` } : {}) };
  if (n % 4 !== 1) return { ...shown, tool_id: tools.own, configuration };
  return {
    ...shown,
    tool_id: tools.own,
    configuration,
    action_defaults: { get: { language: 'de' } },
    custom_action_parameters: { list: [parameter('page')] },
    custom_actions: [{ name: 'ping', url_template: '{{base_url}}/ping', method: 'GET' }],
    mcp_action_filter: ['get', 'list', 'remove', 'ping'],
    mcp_action_descriptions: { get: `Reads a ticket of team ${n}.` },
    mcp_requires_confirmation: n % 8 === 1,
    mcp_parameter_overrides: { list: { fields: { description: 'Only these fields.', required: true } } },
  };
};

/** A list of 50 tool instances with everything that follows from their tools. */
export async function instances(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const organization = `/v1/orgs/${account.orgId}`;
  const list = `${organization}/workspaces/${account.workspaceId}/tool-instances`;
  const ask = <Body>(method: string, path: string, body?: object) =>
    call<Body>(product, account.token, method, path, body);
  const [own, builtIn] = await Promise.all([
    ask<{ tool_id: string }>('POST', `${organization}/tools`, TOOL),
    ask<{ tool_id: string }>('GET', `${organization}/tools/slug/github`),
  ]);
  for (let n = 0; n < INSTANCES; n++)
    await ask('POST', list, instanceOf(n, { own: own.tool_id, builtIn: builtIn.tool_id }));
  const bytes = await demandSameAnswer(servers, list, account.token);
  print(
    `list of ${INSTANCES} tool instances with all derived fields (${(bytes / 1024).toFixed(0)} KiB)`,
    await compare(servers, list, account.token, rounds),
  );
}
