import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf, sameness } from '../../support/calls.ts';
import { stopAges } from '../../support/passing-time.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { issueToken, type TestToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
let url: string;
let number = 0;

beforeAll(async () => {
  app = await startTestApp();
  await register(app); // the first account administers the platform
});
afterAll(() => app.close());
beforeEach(async () => {
  owner = await register(app);
  url = `/v1/orgs/${owner.orgId}/api-tokens`;
  number += 1;
});

const DAY = 86_400_000;
const list = async (headers = owner.headers, path = '') => {
  const answer = await callsOf(app).get(`${url}${path}`, headers);
  expect(answer.statusCode).toBe(200);
  return answer.json().tokens as { token_id: string }[];
};
const sql = async <Row extends object>(text: string, values: unknown[] = []) =>
  (await app.database.pool.query<Row>(text, values)).rows;

describe('issuing', () => {
  it('answers 201 with the record and both plaintexts, which are nowhere else', async () => {
    const before = Date.now();
    const answer = await callsOf(app).post(url, { name: 'CI' }, owner.headers);
    expect(answer.statusCode).toBe(201);
    const { token, plaintext_token, refresh_token_plaintext, ...rest } = answer.json();
    expect(rest).toEqual({});
    expect(plaintext_token).toMatch(/^pat_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    expect(refresh_token_plaintext).toMatch(/^rft_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    expect(token).toEqual({
      token_id: expect.stringMatching(/^tok_[0-9A-Z]{26}$/),
      token_type: 'pat',
      owner_type: 'user',
      owner_id: owner.userId,
      org_id: owner.orgId,
      name: 'CI',
      description: null,
      prefix: plaintext_token.slice(0, 12),
      created_by_user_id: owner.userId,
      issued_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      expires_at: expect.any(String),
      last_used_at: null,
      revoked_at: null,
      revoked_reason: null,
      scopes: [],
      permissions: [],
      workspace_ids: [],
      namespace_ids: [],
      environment_ids: [],
      endpoint_paths: [],
      rate_limit_rps: null,
      rate_limit_burst: null,
    });
    expect(Date.parse(token.expires_at) - Date.parse(token.issued_at)).toBe(90 * DAY);
    expect(Date.parse(token.issued_at)).toBeGreaterThanOrEqual(before);
    expect(await list()).toEqual([token]);
  });

  it('keeps all that was asked for', async () => {
    const { json } = await callsOf(app).post(
      `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/namespaces`,
      { name: 'one' },
      owner.headers,
    );
    const asked = {
      name: 'narrow',
      description: 'for the build',
      scopes: ['read', 'thread'],
      permissions: ['app:create'],
      workspace_ids: [owner.workspaceId],
      namespace_ids: [json().namespace_id],
      endpoint_paths: ['/v1/orgs', '/v1/*/x/**'],
      rate_limit_rps: 5,
      rate_limit_burst: 9,
      expires_in_days: 7,
    };
    const { token } = await issueToken(app, owner, asked);
    const { expires_in_days: _days, ...kept } = asked;
    expect(token).toMatchObject(kept);
    expect(Date.parse(token.expires_at!) - Date.parse(token.issued_at)).toBe(7 * DAY);
  });

  it('leaves its record and its event, with the prefix alone', async () => {
    const { token, plaintext_token } = await issueToken(app, owner);
    const [event] = await sql(
      `select type, org_id, workspace_id, resource_type, data from events where resource_id = $1`,
      [token.token_id],
    );
    expect(event).toEqual({
      type: 'api_token.created',
      org_id: owner.orgId,
      workspace_id: null,
      resource_type: 'api_token',
      data: {},
    });
    const [record] = await sql(`select action, principal_type, metadata from activity where resource_id = $1`, [
      token.token_id,
    ]);
    expect(record).toEqual({
      action: 'create',
      principal_type: 'user',
      metadata: { prefix: plaintext_token.slice(0, 12) },
    });
  });

  const refusals: [string, object, (string | number)[]][] = [
    ['no name', { name: undefined }, ['body', 'name']],
    ['an unknown scope', { scopes: ['read', 'secrets'] }, ['body', 'scopes', 1]],
    ['an unknown permission', { permissions: ['secret:reed'] }, ['body', 'permissions', 0]],
    ['a word among permissions', { permissions: ['admin'] }, ['body', 'permissions', 0]],
    ['a workspace that is not there', { workspace_ids: ['ws_none'] }, ['body', 'workspace_ids', 0]],
    ['a namespace by its slug', { namespace_ids: ['default'] }, ['body', 'namespace_ids', 0]],
    ['an environment that is not there', { environment_ids: ['env_none'] }, ['body', 'environment_ids', 0]],
    [
      'a star that hides in an encoding',
      { endpoint_paths: ['/v1', '/v1/orgs/%2A/secrets'] },
      ['body', 'endpoint_paths', 1],
    ],
    ['a path without a slash', { endpoint_paths: ['v1/orgs'] }, ['body', 'endpoint_paths', 0]],
    ['a path with a doubled slash', { endpoint_paths: ['/v1', '/v1//orgs'] }, ['body', 'endpoint_paths', 1]],
    ['a path with dots', { endpoint_paths: ['/v1/orgs/../users'] }, ['body', 'endpoint_paths', 0]],
    ['a path with ** in the middle', { endpoint_paths: ['/v1/**/secrets'] }, ['body', 'endpoint_paths', 0]],
    ['a rate of 0', { rate_limit_rps: 0 }, ['body', 'rate_limit_rps']],
    ['a rate of 1001', { rate_limit_rps: 1_001 }, ['body', 'rate_limit_rps']],
    ['a burst of 5001', { rate_limit_burst: 5_001 }, ['body', 'rate_limit_burst']],
    ['a life of 0 days', { expires_in_days: 0 }, ['body', 'expires_in_days']],
    ['a life of 366 days', { expires_in_days: 366 }, ['body', 'expires_in_days']],
    ['no end', { expires_in_days: null }, ['body', 'expires_in_days']],
    ['no end by its date', { expires_at: null }, ['body', 'expires_at']],
    ['no end and an end', { expires_at: null, expires_in_days: 2 }, ['body', 'expires_at']],
    ['an end and no end', { expires_at: new Date(Date.now() + DAY), expires_in_days: null }, ['body', 'expires_at']],
    ['an end in the past', { expires_at: '2020-01-01T00:00:00Z' }, ['body', 'expires_at']],
    ['an end in two years', { expires_at: new Date(Date.now() + 700 * DAY) }, ['body', 'expires_at']],
    ['both ends', { expires_at: new Date(Date.now() + DAY), expires_in_days: 2 }, ['body', 'expires_at']],
  ];
  it.each(refusals)('refuses %s, naming the item', async (_what, body, loc) => {
    const answer = await callsOf(app).post(url, { name: 'x', ...body }, owner.headers);
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail.map((item: { loc: unknown }) => item.loc)).toEqual([loc]);
    expect(await list()).toEqual([]);
  });

  it("refuses another tenant's places like missing ones", async () => {
    const other = await register(app);
    const refused = (workspaceId: string) =>
      callsOf(app).post(url, { name: 'x', workspace_ids: [workspaceId] }, owner.headers);
    const [foreign, missing] = [await refused(other.workspaceId), await refused('ws_none')];
    expect(foreign.statusCode).toBe(422);
    expect(foreign.body.replaceAll(other.workspaceId, 'ws_none')).toBe(missing.body);
  });

  it('gives tokens without an end where the operator allows it', async () => {
    const lax = await startTestApp({
      env: { ALLOW_NON_EXPIRING_TOKENS: 'true', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
    try {
      const { token, headers } = await issueToken(lax, owner, { expires_in_days: null });
      expect(token.expires_at).toBeNull();
      const byDate = await issueToken(lax, owner, { expires_at: null });
      expect(byDate.token.expires_at).toBeNull();
      const usual = await issueToken(lax, owner);
      expect(Date.parse(usual.token.expires_at!) - Date.parse(usual.token.issued_at)).toBe(90 * DAY);
      expect((await callsOf(lax).get('/v1/auth/me', headers)).statusCode).toBe(200);
    } finally {
      await lax.close();
    }
  });
});

describe('a token', () => {
  it('is taken with `Bearer`, in any case, and bare', async () => {
    const { plaintext_token } = await issueToken(app, owner);
    for (const authorization of [`Bearer ${plaintext_token}`, `bEARER   ${plaintext_token}`, plaintext_token]) {
      const answer = await callsOf(app).get('/v1/auth/me', { authorization });
      expect(answer.json()).toMatchObject({ user_id: owner.userId });
    }
  });

  it('never administers the platform, and knows of one organization only', async () => {
    const { headers } = await issueToken(app, owner, { permissions: ['user:read'] });
    const made = await callsOf(app).post('/v1/orgs', { name: 'second' }, owner.headers);
    expect(made.statusCode).toBe(201);
    const me = (await callsOf(app).get('/v1/auth/me', headers)).json();
    expect(me.settings.organizations.map(({ org_id }: { org_id: string }) => org_id)).toEqual([owner.orgId]);
    const answer = await callsOf(app).graphql(
      '{ organizations { totalCount nodes { id } } me { organizations { nodes { id } } } }',
      {},
      headers,
    );
    expect(answer.json()).toEqual({
      data: {
        organizations: { totalCount: 1, nodes: [{ id: owner.orgId }] },
        me: { organizations: { nodes: [{ id: owner.orgId }] } },
      },
    });
    const elsewhere = await callsOf(app).get(`/v1/orgs/${made.json().org_id}/workspaces`, headers);
    expect(elsewhere.statusCode).toBe(403);
    expect(elsewhere.json().details).toEqual({ required_permission: 'organization:access' });
  });

  const dead: [string, (token: string, id: string) => Promise<string> | string][] = [
    ['unknown', (token) => token.replace(/^pat_.*/, 'pat_AAAAAAAA_0000000000000000000000000000000000000000000_000000')],
    ['mistyped', (token) => `${token.slice(0, 20)}${token[20] === 'a' ? 'b' : 'a'}${token.slice(21)}`],
    ['cut off', (token) => token.slice(0, -1)],
    ['a refresh token', (token) => `rft${token.slice(3)}`],
    [
      'expired',
      async (token, id) => {
        await sql(`update api_tokens set expires_at = now() - interval '1 s' where id = $1`, [id]);
        return token;
      },
    ],
    [
      'revoked',
      async (token, id) => {
        await callsOf(app).delete(`${url}/${id}`, owner.headers);
        return token;
      },
    ],
    [
      'of a suspended account',
      async (token) => {
        await sql(`update users set is_active = false where id = $1`, [owner.userId]);
        return token;
      },
    ],
  ];
  it.each(dead)('that is %s is 401 with the very same body as no token', async (_what, make) => {
    const { id, plaintext_token } = await issueToken(app, owner);
    const authorization = await make(plaintext_token, id);
    const [refused, without] = [
      await callsOf(app).get('/v1/auth/me', { authorization }),
      await callsOf(app).get('/v1/auth/me'),
    ];
    expect(refused.statusCode).toBe(401);
    expect(sameness(refused)).toEqual(sameness(without));
  });

  it('stops at its end, although it was let in a moment before', async () => {
    const status = async ({ headers }: TestToken) => (await callsOf(app).get('/v1/auth/me', headers)).statusCode;
    // what was read of a token is used for longer than that
    const ages = stopAges();
    const token = await waitUntil(async () => {
      const made = await issueToken(app, owner);
      await sql(`update api_tokens set expires_at = now() + interval '600 ms' where id = $1`, [made.id]);
      return (await status(made)) === 200 && made;
    });
    ages.pass(600);
    expect(await status(token)).toBe(401);
  });

  it('cannot sign out, change the password, switch, found or join: that is for sessions', async () => {
    const { headers } = await issueToken(app, owner, { scopes: ['admin'] });
    const { post, graphql } = callsOf(app);
    const refusals = [
      [await post('/v1/auth/logout', undefined, headers), 'user:update'],
      [await post('/v1/auth/switch-org', { org_id: owner.orgId }, headers), 'organization:access'],
      [await post('/v1/orgs', { name: 'x' }, headers), 'organization:access'],
      [await post('/v1/invitations/accept', { token: 'x' }, headers), 'organization:access'],
    ] as const;
    for (const [answer, required_permission] of refusals) {
      expect(answer.statusCode).toBe(403);
      expect(answer.json()).toMatchObject({
        message: 'An API token cannot do this: sign in instead.',
        details: { required_permission },
      });
    }
    const input = { currentPassword: owner.password, newPassword: 'something else' };
    const changed = await graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input },
      headers,
    );
    expect(changed.json().errors[0].extensions.details).toEqual({ required_permission: 'user:update' });
  });

  it('cannot change how its account signs in, nor delete it, whatever it grants', async () => {
    const { headers } = await issueToken(app, owner, {
      scopes: ['admin'],
      permissions: ['user:update', 'user:delete'],
    });
    const { put, delete: remove } = callsOf(app);
    const own = `/v1/users/${owner.userId}`;
    const refusals = [
      [await put(own, { email: 'thief@example.test' }, headers), 'user:update'],
      [await remove(own, headers), 'user:delete'],
    ] as const;
    for (const [answer, required_permission] of refusals) {
      expect(answer.statusCode).toBe(403);
      expect(answer.json().details).toEqual({ required_permission });
    }
    expect((await put(own, { bio: 'changed by a program' }, headers)).statusCode).toBe(200);
  });

  it('is named in activity records and events, with its user beside', async () => {
    const { headers, id } = await issueToken(app, owner);
    const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
    await callsOf(app).put(workspace, { name: 'by a token' }, headers);
    await callsOf(app).get(workspace, headers);
    await callsOf(app).delete(`/v1/orgs/${owner.orgId}`, headers);
    await app.services.activity.flush();
    const rows = await sql(
      `select principal_type, principal_id, user_id, token_id, token_type, action from activity
       where token_id = $1 order by id`,
      [id],
    );
    const who = {
      principal_type: 'api_token',
      principal_id: id,
      user_id: owner.userId,
      token_id: id,
      token_type: 'pat',
    };
    expect(rows).toEqual([
      { ...who, action: 'update' },
      { ...who, action: 'read' },
      { ...who, action: 'delete' },
    ]);
    // the service itself updates the workspace, too: when its bucket is there
    const [event] = await sql(
      `select actor from events where type = 'workspace.updated' and org_id = $1
         and actor ->> 'principal_type' <> 'system'`,
      [owner.orgId],
    );
    expect(event).toEqual({
      actor: { principal_type: 'api_token', principal_id: id, username: owner.username },
    });
  });

  it('says when it was last used, once a minute', async () => {
    const { headers, id } = await issueToken(app, owner);
    const lastUsed = async () => {
      await app.services.tokenUses.flush();
      const [row] = await sql<{ at: Date | null }>('select last_used_at as at from api_tokens where id = $1', [id]);
      return row!.at;
    };
    expect(await lastUsed()).toBeNull();
    await callsOf(app).get('/v1/auth/me', headers);
    const first = await lastUsed();
    expect(first).toBeInstanceOf(Date);
    await callsOf(app).get('/v1/auth/me', headers);
    expect(await lastUsed()).toEqual(first);
  });

  it('has idempotency keys of its own', async () => {
    const [one, two] = [await issueToken(app, owner), await issueToken(app, owner)];
    const create = (headers: { authorization: string }) =>
      callsOf(app).post(
        `/v1/orgs/${owner.orgId}/workspaces`,
        { organization_id: owner.orgId, name: 'once' },
        { ...headers, 'idempotency-key': `same-${number}` },
      );
    const answers = [];
    for (const headers of [one.headers, one.headers, two.headers, owner.headers]) answers.push(await create(headers));
    expect(answers.map((answer) => answer.statusCode)).toEqual([201, 201, 201, 201]);
    expect(answers.map((answer) => answer.headers['idempotent-replayed'])).toEqual([
      undefined,
      'true',
      undefined,
      undefined,
    ]);
    expect(new Set(answers.map((answer) => answer.json().workspace_id)).size).toBe(3);
  });
});

describe('lists', () => {
  it('show the own tokens, newest first; administrators see those of everybody', async () => {
    const member = await createUser(app, owner, { username: `member-${number}` });
    const first = await issueToken(app, owner);
    const theirs = await issueToken(app, member);
    const second = await issueToken(app, owner);
    expect((await list()).map((row) => row.token_id)).toEqual([second.id, first.id]);
    expect((await list(member.headers)).map((row) => row.token_id)).toEqual([theirs.id]);
    expect((await list(owner.headers, '/admin')).map((row) => row.token_id)).toEqual([second.id, theirs.id, first.id]);
    const refused = await callsOf(app).get(`${url}/admin`, member.headers);
    expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'api_token:manage' }]);
  });

  it('keep revoked ones for 90 days, then they are gone', async () => {
    const { id } = await issueToken(app, owner);
    await callsOf(app).delete(`${url}/${id}`, owner.headers);
    expect((await list()).map((row) => row.token_id)).toEqual([id]);
    await sql(`update api_tokens set revoked_at = now() - interval '91 days' where id = $1`, [id]);
    expect(await list()).toEqual([]);
  });

  it('are pages in GraphQL, and nested below the organization', async () => {
    const [first, second] = [await issueToken(app, owner), await issueToken(app, owner)];
    const query = `query ($org: ID!, $after: String) {
      apiTokens(orgId: $org, first: 1, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { id } }
      organization(id: $org) { apiTokens(first: 1) { totalCount nodes { id } } }
    }`;
    const { data } = (await callsOf(app).graphql(query, { org: owner.orgId }, owner.headers)).json();
    expect(data.apiTokens).toMatchObject({ totalCount: 2, nodes: [{ id: second.id }] });
    expect(data.organization.apiTokens).toEqual({ totalCount: 2, nodes: [{ id: second.id }] });
    const after = data.apiTokens.pageInfo.endCursor;
    const next = (await callsOf(app).graphql(query, { org: owner.orgId, after }, owner.headers)).json();
    expect(next.data.apiTokens.nodes).toEqual([{ id: first.id }]);
  });

  it('a token is a node for its owner and for those who manage tokens', async () => {
    const member = await createUser(app, owner, { username: `node-${number}` });
    const { id } = await issueToken(app, member);
    const other = await createUser(app, owner, { username: `other-${number}` });
    const find = async (headers: { authorization: string }) =>
      (await callsOf(app).graphql('query ($id: ID!) { node(id: $id) { id } }', { id }, headers)).json().data.node;
    expect(await find(member.headers)).toEqual({ id });
    expect(await find(owner.headers)).toEqual({ id });
    expect(await find(other.headers)).toBeNull();
  });
});

describe('revoking', () => {
  const revoked = (id: string) =>
    sql('select revoked_at <= now() as done, revoked_reason as reason from api_tokens where id = $1', [id]);

  it('one’s own is 204, a second time too, and kills it at once', async () => {
    const { id, headers } = await issueToken(app, owner);
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(200);
    const first = await callsOf(app).delete(`${url}/${id}`, owner.headers);
    expect([first.statusCode, first.body]).toEqual([204, '']);
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(401);
    expect((await callsOf(app).delete(`${url}/${id}`, owner.headers)).statusCode).toBe(204);
    expect(await revoked(id)).toEqual([{ done: true, reason: 'revoked_by_user' }]);
    const events = await sql(`select type from events where resource_id = $1 order by seq`, [id]);
    expect(events).toEqual([{ type: 'api_token.created' }, { type: 'api_token.revoked' }]);
  });

  it("another's is 404 as if it were not there; for administrators 204 by their own path", async () => {
    const member = await createUser(app, owner, { username: `victim-${number}` });
    const { id } = await issueToken(app, member);
    const [theirs, missing] = [
      await callsOf(app).delete(`${url}/${id}`, owner.headers),
      await callsOf(app).delete(`${url}/tok_none`, owner.headers),
    ];
    expect(theirs.statusCode).toBe(404);
    expect(theirs.json().details).toEqual({ resource_type: 'api_token', resource_id: id });
    expect(missing.json().details).toEqual({ resource_type: 'api_token', resource_id: 'tok_none' });
    expect((await callsOf(app).delete(`${url}/admin/${id}`, member.headers)).statusCode).toBe(403);
    expect((await callsOf(app).delete(`${url}/admin/${id}`, owner.headers)).statusCode).toBe(204);
    expect(await revoked(id)).toEqual([{ done: true, reason: 'revoked_by_admin' }]);
  });

  it('happens to all tokens of an account that is deactivated, for good', async () => {
    const member = await createUser(app, owner, { username: `gone-${number}` });
    const { id, headers } = await issueToken(app, member);
    await callsOf(app).put(`/v1/users/${member.userId}`, { is_active: false }, owner.headers);
    await callsOf(app).put(`/v1/users/${member.userId}`, { is_active: true }, owner.headers);
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(401);
    expect(await revoked(id)).toEqual([{ done: true, reason: 'owner_deactivated' }]);
  });

  it('happens to the tokens of a member who leaves the organization', async () => {
    const member = await createUser(app, owner, { username: `left-${number}` });
    const { id, headers } = await issueToken(app, member);
    await callsOf(app).delete(`/v1/orgs/${owner.orgId}/members/${member.userId}`, owner.headers);
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(401);
    expect(await revoked(id)).toEqual([{ done: true, reason: 'owner_left' }]);
  });

  it('does not happen when the password is changed', async () => {
    const { headers } = await issueToken(app, owner);
    const input = { currentPassword: owner.password, newPassword: 'a whole new password' };
    const answer = await callsOf(app).graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input },
      owner.headers,
    );
    expect(answer.json()).toEqual({ data: { changePassword: { user: { id: owner.userId } } } });
    expect((await callsOf(app).get('/v1/auth/me', headers)).statusCode).toBe(200);
  });
});
