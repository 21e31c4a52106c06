import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Account, call } from '../api.ts';
import { compare, type Question, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

/** Each has a limit of 600 calls a minute. */
const INSTANCES = 128;
/** As many as an organization may have at the same time. */
const CONNECTIONS = 8;

/** Actions that are executed, and calls through the proxy, at a provider on this machine. */
export async function toolCalls(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const provider = createServer((request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end('{"items":[{"id":1},{"id":2}]}');
    });
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const org = `/v1/orgs/${account.orgId}`;
  const home = `${org}/workspaces/${account.workspaceId}/tool-instances`;
  const made = <Body>(path: string, body: object) => call<Body>(product, account.token, 'POST', path, body);
  try {
    const { tool_id } = await made<{ tool_id: string }>(`${org}/tools`, {
      name: 'Bench',
      slug: `bench-${Date.now().toString(36)}`,
      description: 'Answers at once.',
      category: 'productivity',
      config_schema: [{ name: 'base_url', type: 'string' }],
      credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
      action_schemas: [{ name: 'list', method: 'GET', url_template: '{{base_url}}/items', response_result_path: '$' }],
    });
    const paths: string[] = [];
    for (let n = 0; n < INSTANCES; n++) {
      const configuration = { base_url, api_key: `key-${n}` };
      const { instance_id } = await made<{ instance_id: string }>(home, { tool_id, name: `Bench ${n}`, configuration });
      paths.push(`${home}/${instance_id}`);
    }
    const given = { ...rounds, connections: CONNECTIONS };
    const executed: Question[] = paths.map((path) => ({
      method: 'POST',
      path: `${path}/execute`,
      body: '{"action":"list"}',
    }));
    print('execute an action', await compare(servers, executed, account.token, given));
    const proxied = paths.map((path) => `${path}/proxy/items`);
    print('call a provider through the proxy', await compare(servers, proxied, account.token, given));
  } finally {
    provider.closeAllConnections();
    provider.close();
  }
}
