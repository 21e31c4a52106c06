import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { newInstance, placesOf } from '../tool-instances/instances.ts';
import { exchange, initiate, rowOf, startConnectingApp } from './connecting.ts';
import { newOAuthInstance } from './oauth-instances.ts';

/** The next answers of the token endpoint: status and body. */
let answers: [status: number, body: object][];
let app: TestApp;
let provider: TargetServer;
let ann: Person;
beforeAll(async () => {
  provider = await startTarget((_request, response) => {
    const [status, body] = answers.shift() ?? [200, {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  app = await startConnectingApp();
});
beforeEach(async () => {
  answers = [];
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await provider.close();
});

const base = () => `${ann.home}/connections`;
const service = (more: object = {}) => {
  const url = `http://127.0.0.1:${provider.port}`;
  const urls = { authorization_url: `${url}/auth`, token_url: `${url}/token`, revocation_url: `${url}/revoke` };
  return { name: 'oauth', type: 'oauth2', ...urls, ...more };
};
const CLIENT = { id: '11aa-22_bb.33', secret: 'secret_a-b.c~' };

async function begin(more: object = {}) {
  const { instance_id: id } = await newOAuthInstance(ann, service(more), CLIENT, 'https://api.example.test/');
  return { id, ...(await initiate(ann, base(), id)) };
}

describe('an authorization at a built-in tool asks as its provider documents it', () => {
  const challenge = { code_challenge: expect.stringMatching(/^[\w-]{43}$/) as string, code_challenge_method: 'S256' };
  const google = { access_type: 'offline', prompt: 'consent', ...challenge };
  const scopes = 'https://www.googleapis.com/auth/';
  test.each<[string, string, object]>([
    ['github', 'https://github.com/login/oauth/authorize', { scope: 'repo read:user', ...challenge }],
    // an app takes PKCE only if its owner has made it a public client
    ['slack', 'https://slack.com/oauth/v2/authorize', { scope: 'chat:write,channels:read' }],
    // there are no scopes
    ['notion', 'https://api.notion.com/v1/oauth/authorize', { owner: 'user' }],
    [
      'gmail',
      'https://accounts.google.com/o/oauth2/v2/auth',
      { scope: `${scopes}gmail.readonly ${scopes}gmail.send`, ...google },
    ],
    ['google-drive', 'https://accounts.google.com/o/oauth2/v2/auth', { scope: `${scopes}drive.readonly`, ...google }],
  ])('%s', async (slug, endpoint, parameters) => {
    const { body: tool } = await ann.call<{ tool_id: string }>('GET', `/v1/orgs/${ann.orgId}/tools/slug/${slug}`);
    const { instance_id: id } = await newInstance(ann, tool.tool_id, {
      configuration: {},
      connection_credentials: { client_id: CLIENT.id },
    });
    const begun = await initiate(ann, base(), id);
    const { origin, pathname, searchParams } = new URL(begun.authorization_url);
    expect([origin + pathname, Object.fromEntries(searchParams)]).toEqual([
      endpoint,
      {
        response_type: 'code',
        client_id: CLIENT.id,
        redirect_uri: expect.stringMatching(/\/connections\/callback$/),
        state: begun.state,
        ...parameters,
      },
    ]);
  });
});

describe('requests to the token endpoint', () => {
  const credentials = (id: string, secret: string) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;

  test('with HTTP Basic change nothing in the usual identifiers: some providers decode nothing', async () => {
    const token_endpoint_auth_method = 'client_secret_basic';
    const begun = await begin({ token_endpoint_auth_method });
    answers = [[200, { access_token: 'a', token_type: 'bearer' }]];
    expect((await exchange(ann, 'c', begun.state)).status).toBe(200);
    expect(provider.requests.at(-1)!.headers.authorization).toBe(credentials(CLIENT.id, 'secret_a-b.c%7E'));
  });

  test('are JSON with more headers where the provider wants that, in all three steps', async () => {
    const begun = await begin({
      pkce: false,
      token_endpoint_auth_method: 'client_secret_basic',
      token_request_format: 'json',
      token_request_headers: { 'Notion-Version': '2022-06-28', authorization: 'none of theirs' },
    });
    const seen = provider.requests.length;
    answers = [
      [200, { access_token: 'a-1', refresh_token: 'r-1', workspace_name: 'Our notes' }],
      [200, { access_token: 'a-2', refresh_token: 'r-2' }],
    ];
    const done = await exchange(ann, 'the-code', begun.state);
    expect(done).toMatchObject({ status: 200, body: { account_label: 'Our notes', expires_at: null } });
    await app.services.connectionRefresh.refresh(begun.connection_id, 'a-1', 'refused');
    await ann.call('DELETE', `${base()}/${begun.id}`);
    await app.jobsDone();
    const requests = provider.requests.slice(seen);
    expect(requests.map(({ path, body }) => [path, JSON.parse(body) as unknown])).toEqual([
      [
        '/token',
        {
          grant_type: 'authorization_code',
          code: 'the-code',
          redirect_uri: expect.stringMatching(/\/connections\/callback$/),
        },
      ],
      ['/token', { grant_type: 'refresh_token', refresh_token: 'r-1' }],
      ['/revoke', { token: 'r-2' }],
      ['/revoke', { token: 'a-2' }],
    ]);
    for (const { headers } of requests)
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'notion-version': '2022-06-28',
        authorization: credentials(CLIENT.id, 'secret_a-b.c%7E'),
      });
  });
});

describe('a code or a token that is not valid, in the words of', () => {
  const words: [string, number, object][] = [
    ['RFC 6749', 400, { error: 'invalid_grant' }],
    ['GitHub, for a code', 200, { error: 'bad_verification_code', error_description: 'The code passed is incorrect.' }],
    ['GitHub, for a token', 200, { error: 'bad_refresh_token', error_description: 'The refresh token is incorrect.' }],
    ['Slack, for a code', 200, { ok: false, error: 'invalid_code' }],
    ['Slack, for a token', 200, { ok: false, error: 'invalid_refresh_token' }],
    ['Notion', 400, { object: 'error', status: 400, code: 'invalid_grant', message: 'Invalid code.' }],
  ];
  test.each(words)('%s', async (_provider, status, body) => {
    const begun = await begin();
    answers = [[status, body]];
    const refused = await exchange(ann, 'c', begun.state);
    expect([refused.status, placesOf(refused.body)]).toEqual([422, [['code', 'value_error']]]);
    const again = await initiate(ann, base(), begun.id);
    answers = [
      [200, { access_token: 'a', refresh_token: 'r' }],
      [status, body],
    ];
    expect((await exchange(ann, 'c', again.state)).status).toBe(200);
    await app.services.connectionRefresh.refresh(begun.connection_id, 'a', 'refused');
    const { status: shown, lastError } = await rowOf(app, begun.connection_id);
    expect([shown, lastError]).toEqual([
      'needs_reauth',
      expect.stringMatching(/^The provider 'tracker' answered invalid_grant/),
    ]);
  });

  test('no provider: other errors are not the end of a connection', async () => {
    const begun = await begin();
    answers = [
      [200, { access_token: 'a', refresh_token: 'r' }],
      [400, { code: 'invalid_client', message: 'Unknown client.' }],
    ];
    await exchange(ann, 'c', begun.state);
    await app.services.connectionRefresh.refresh(begun.connection_id, 'a', 'refused');
    expect(await rowOf(app, begun.connection_id)).toMatchObject({
      status: 'connected',
      lastError: "The provider 'tracker' answered invalid_client: Unknown client.",
    });
  });
});
