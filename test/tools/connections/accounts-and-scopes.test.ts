import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { missingScopes } from '../../../src/tools/connections/missing-scopes.ts';
import type { TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { type Json, newInstance, newTool } from '../tool-instances/instances.ts';
import { exchange, initiate, startConnectingApp } from './connecting.ts';
import { newOAuthInstance } from './oauth-instances.ts';

let app: TestApp;
let provider: TargetServer;
let ann: Person;
/** The next answer of the token endpoint, over what every one has. */
let granted: object;
/** What the provider says about the account. */
let account: { status?: number; body?: unknown; breaks?: boolean; location?: string };
beforeAll(async () => {
  provider = await startTarget((request, response) => {
    const isToken = request.url === '/token';
    const { status = 200, body = {}, breaks, location } = isToken ? { body: granted } : account;
    if (!isToken && breaks) return response.destroy();
    response
      .writeHead(status, { 'content-type': 'application/json', ...(!isToken && location && { location }) })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  app = await startConnectingApp();
});
beforeEach(async () => {
  [granted, account] = [{ access_token: 'a-1', refresh_token: 'r-1', token_type: 'bearer' }, {}];
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await provider.close();
});

const base = () => `${ann.home}/connections`;
const url = () => `http://127.0.0.1:${provider.port}`;
const service = (more: Json) => ({
  name: 'oauth',
  type: 'oauth2',
  authorization_url: `${url()}/auth`,
  token_url: `${url()}/token`,
  userinfo_url: `${url()}/me?fields=user`,
  ...more,
});
interface Exchanged {
  connection_id: string;
  account_label: string | null;
  scopes: string[];
}

async function connected(more: Json = {}): Promise<Exchanged & { instanceId: string }> {
  const client = { id: 'a-client', secret: null };
  const { instance_id: instanceId } = await newOAuthInstance(ann, service(more), client, 'https://api.example.test/');
  const { state } = await initiate(ann, base(), instanceId);
  const { status, body } = await exchange<Exchanged>(ann, 'a-code', state);
  expect(status, JSON.stringify(body)).toBe(200);
  return { ...body, instanceId };
}
const shown = async (id: string) => {
  const { data } = await ann.ask<{ node: Json }>(
    `{ node(id: "${id}") { ... on ToolAuthorization {
      status scopes requestedScopes missingScopes accountLabel } } }`,
  );
  return data!.node;
};

describe('the name of a connected account', () => {
  test.each<[string, unknown, Json, string | null]>([
    ['of the usual claims', { sub: '7', name: 'Ann', email: 'ann@x.test' }, {}, 'ann@x.test'],
    ['of a login', { id: 7, login: 'ann-7' }, {}, 'ann-7'],
    ['at a path', { user: { mail: ' Ann\nof x ' } }, { account_label_path: '$.user.mail' }, 'Ann of x'],
    ['that is none', { user: { mail: 7 } }, { account_label_path: '$.user.mail' }, null],
    ['at no path', { name: 'Ann' }, { account_label_path: '$.constructor.name' }, null],
    ['in no object', ['ann@x.test'], {}, null],
    ['in no JSON', '<html>', {}, null],
  ])('is asked for: %s', async (_title, body, more, label) => {
    account = { body };
    const seen = provider.requests.length;
    const made = await connected(more);
    expect(made.account_label).toBe(label);
    expect(await shown(made.connection_id)).toMatchObject({ status: 'connected', accountLabel: label });
    expect(provider.requests.slice(seen).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /token',
      'GET /me?fields=user',
    ]);
    expect(provider.requests.at(-1)!.headers.authorization).toBe('Bearer a-1');
  });

  test.each<[string, typeof account]>([
    ['refuses', { status: 401, body: { name: 'Nobody' } }],
    ['breaks off', { breaks: true }],
    ['sends too much', { body: { name: 'x'.repeat(300_000) } }],
    ['leads elsewhere', { status: 302, location: '/token' }],
  ])('stays unknown where the provider %s, and the connection works', async (_title, answer) => {
    account = answer;
    const made = await connected();
    expect(made.account_label).toBeNull();
    expect(await shown(made.connection_id)).toMatchObject({ status: 'connected' });
  });

  test('is not asked for at an address that the service does not call, or if the token answer has it', async () => {
    const blocked = await connected({ userinfo_url: 'https://169.254.169.254/me' });
    expect(blocked.account_label).toBeNull();
    granted = { ...granted, workspace_name: 'Our notes' };
    account = { body: { name: 'Another' } };
    const seen = provider.requests.length;
    expect((await connected()).account_label).toBe('Our notes');
    expect(provider.requests.slice(seen)).toHaveLength(1);
  });
});

describe('scopes that the provider did not grant', () => {
  const requirementsOf = async (instanceId: string) => {
    const { body: made } = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, {
      name: 'Mail',
      metadata: { uses: instanceId },
    });
    const path = `${ann.home}/namespaces/default/connections/requirements?app_id=${made.app_id}`;
    const { body } = await ann.call<{ requirements: Json[]; all_satisfied: boolean }>('GET', path);
    const { data } = await ann.ask<{ connectionRequirements: { requirements: Json[] } }>(
      `{ connectionRequirements(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", namespaceId: "default",
        appId: "${made.app_id}") { requirements { status missingScopes satisfied } } }`,
    );
    return [body.requirements[0]!.satisfied, body.all_satisfied, data!.connectionRequirements.requirements[0]];
  };

  test('are shown, and do not satisfy the requirement; the rest works', async () => {
    granted = { ...granted, scope: 'read' };
    const made = await connected({ scopes: ['read', 'write'] });
    const [status, missing] = ['connected', ['write']];
    expect(await shown(made.connection_id)).toMatchObject({
      status,
      scopes: ['read'],
      requestedScopes: ['read', 'write'],
      missingScopes: missing,
    });
    expect(await requirementsOf(made.instanceId)).toEqual([
      false,
      false,
      { status, missingScopes: missing, satisfied: false },
    ]);
    // a refresh without scopes leaves those that were granted
    granted = { access_token: 'a-2', refresh_token: 'r-2', token_type: 'bearer' };
    await app.services.connectionRefresh.refresh(made.connection_id, 'a-1', 'refused');
    expect(await shown(made.connection_id)).toMatchObject({ status, scopes: ['read'], missingScopes: missing });
    // authorized again, with all of them
    granted = { ...granted, access_token: 'a-3', scope: 'write read' };
    const { state } = await initiate(ann, base(), made.instanceId);
    expect((await exchange(ann, 'a-code', state)).status).toBe(200);
    expect(await shown(made.connection_id)).toMatchObject({ status, missingScopes: [] });
    expect(await requirementsOf(made.instanceId)).toEqual([true, true, { status, missingScopes: [], satisfied: true }]);
  });

  test('that the tool needs since then are missing, too', async () => {
    const made = await connected({ scopes: ['read'] });
    expect(await requirementsOf(made.instanceId)).toMatchObject([true, true, { satisfied: true }]);
    const { tool_id } = (await ann.call<Json>('GET', `${ann.home}/tool-instances/${made.instanceId}`)).body;
    const credential_schema = [service({ scopes: ['read', 'write'] })];
    const tool = `/v1/orgs/${ann.orgId}/tools/${String(tool_id)}`;
    expect((await ann.call('PUT', tool, { credential_schema })).status).toBe(200);
    expect(await requirementsOf(made.instanceId)).toMatchObject([false, false, { missingScopes: ['write'] }]);
    // the authorization has what it asked for
    expect(await shown(made.connection_id)).toMatchObject({ missingScopes: [] });
  });

  test.each<[string[], string[], string[]]>([
    [['openid', 'email', 'profile'], ['https://www.googleapis.com/auth/userinfo.email'], ['profile']],
    [['offline_access', 'https://graph.microsoft.com/Mail.Read'], ['mail.read'], []],
    [['repo:status', 'read:org', 'read:user', 'user:email'], ['repo', 'admin:org', 'user'], []],
    [
      ['write:org', 'repo'],
      ['read:org', 'public_repo'],
      ['write:org', 'repo'],
    ],
    [['a', 'b'], [], ['a', 'b']],
    [[], ['a'], []],
  ])('of %j with %j are %j', (asked, has, missing) => {
    expect(missingScopes(asked, has)).toEqual(missing);
  });
});

describe('an API key', () => {
  const asked = async (instanceId: string): Promise<unknown[]> => {
    const body = { tool_instance_id: instanceId, api_key: 'sk-1' };
    const namespace = `${ann.home}/namespaces/default/connections`;
    const answers = [
      await ann.call<Json>('POST', namespace, body),
      await ann.call<Json>('POST', `${base()}/api-key`, body),
    ];
    const { data, errors } = await ann.ask(
      `mutation { createWorkspaceConnection(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}",
        input: { toolInstanceId: "${instanceId}", apiKey: "sk-1" }) { status } }`,
    );
    const reasons = answers.map((answer) => (answer.body.details as Json | undefined)?.reason);
    return [...answers.map(({ status }, index) => [status, reasons[index]]), errors?.[0]?.extensions ?? data];
  };

  test('is refused by a tool that knows OAuth only', async () => {
    const { body: gmail } = await ann.call<{ tool_id: string }>('GET', `/v1/orgs/${ann.orgId}/tools/slug/gmail`);
    const { instance_id } = await newInstance(ann, gmail.tool_id, { configuration: {} });
    const reason = 'api_key_not_supported';
    expect(await asked(instance_id)).toEqual([
      [409, reason],
      [409, reason],
      expect.objectContaining({ code: 'RESOURCE_CONFLICT' }),
    ]);
    expect((await ann.call('GET', base())).body).toMatchObject({ total: 0 });
  });

  test('is taken by a tool that describes one, whatever it says of connections', async () => {
    const toolId = await newTool(ann, { supports_connection: false });
    const { instance_id } = await newInstance(ann, toolId);
    expect(await asked(instance_id)).toEqual([
      [201, undefined],
      [201, undefined],
      { createWorkspaceConnection: { status: 'connected' } },
    ]);
    const bare = await newInstance(ann, await newTool(ann, { credential_schema: [] }));
    expect(await asked(bare.instance_id)).toMatchObject([
      [409, 'connection_not_supported'],
      [409, 'connection_not_supported'],
      { code: 'RESOURCE_CONFLICT' },
    ]);
  });

  test('of a connection goes where the action names it, and else where the tool says', async () => {
    const tried = async (credential: Json, headers: Json) => {
      const toolId = await newTool(ann, {
        config_schema: [],
        credential_schema: [{ name: 'api_key', type: 'secret', ...credential }],
        action_schemas: [{ name: 'get', url_template: `${url()}/api/{{id}}`, headers, parameters: [{ name: 'id' }] }],
      });
      const { instance_id } = await newInstance(ann, toolId, { configuration: {} });
      await ann.call('POST', `${base()}/api-key`, { tool_instance_id: instance_id, api_key: 'sk-1' });
      const path = `${ann.home}/tool-instances/${instance_id}/test`;
      for (const dry_run of [true, false])
        expect((await ann.call('POST', path, { parameters: { id: '7' }, dry_run })).body).toMatchObject({
          success: true,
        });
      const { 'x-key': own, authorization } = provider.requests.at(-1)!.headers;
      return [own, authorization];
    };
    expect(await tried({}, { 'X-Key': 'Key {{api_key}}' })).toEqual(['Key sk-1', undefined]);
    expect(await tried({}, {})).toEqual([undefined, 'Bearer sk-1']);
    expect(await tried({ placement: { in: 'header', name: 'x-key' } }, {})).toEqual(['sk-1', undefined]);
  });
});
