import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formIn, onwardIn, submit } from '../../identity/oauth/oauth-browser.ts';
import { listOf } from '../../insight/notifications/told.ts';
import type { TestApp } from '../../support/app.ts';
import { newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { rowOf, shownBy, startConnectingApp } from '../connections/connecting.ts';
import { type Json, newInstance, newTool } from '../tool-instances/instances.ts';
import {
  allow,
  back,
  begin,
  connectByKey,
  connectEndUser,
  endOf,
  goOn,
  KEY,
  linkFor,
  makeKeyInstance,
  makeOAuthInstance,
  newEndUser,
  RETURN_TO,
} from './connecting-end-users.ts';

const EVIL = 'https://evil.example.test';

let app: TestApp;
let server: OAuthServer;
let ann: Person;
let instanceId: string;
beforeAll(async () => {
  [app, server] = await Promise.all([startConnectingApp(), startOAuthServer()]);
  await app.listen();
});
beforeEach(async () => {
  server.misbehave.length = 0;
  server.lifetime = 3_600;
  ann = await register(app, { name: 'ann' });
  instanceId = await makeOAuthInstance(ann, server);
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const listed = async (query = '', of = instanceId) => {
  const url = `${ann.home}/tool-instances/${of}/end-user-connections${query}`;
  const { status, body } = await ann.call<{ connections: Json[]; total: number; next_cursor: string | null }>(
    'GET',
    url,
  );
  expect(status).toBe(200);
  return body;
};
const tokenOf = (endUserId?: string, of = instanceId) =>
  ann.call<Json>('POST', `${ann.home}/connections/${of}/token${endUserId ? `?end_user_id=${endUserId}` : ''}`);
const execute = (of: string, payload: Json) =>
  ann.call<Json>('POST', `${ann.home}/tool-instances/${of}/execute`, { action: 'me', ...payload });
const gone = async (answer: Response) => [answer.status, await answer.text()];
const nowhere = async () => gone(await newBrowserWithCookies().send(`${app.url}/connect?link=nothing`));

describe('an end user connects', () => {
  test('by OAuth, comes back with the id of the connection, and the app uses that connection', async () => {
    const endUserId = newEndUser();
    const browser = newBrowserWithCookies();
    const link = await linkFor(ann, instanceId, endUserId, { email: 'eve@end.test' });
    const shown = await browser.send(link);
    const text = await shown.text();
    expect([shown.status, shown.headers.get('referrer-policy'), shown.headers.get('cache-control')]).toEqual([
      200,
      'no-referrer',
      'no-store',
    ]);
    expect(shown.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    for (const part of ['Calendar', 'Eve End', 'eve@end.test', 'app.example.test']) expect(text).toContain(part);
    expect(text).not.toContain('<script');
    const at = await begin(app, browser, link);
    expect(new URL(at).searchParams.get('redirect_uri')).toBe(`${app.url}/connections/callback`);
    const end = await endOf(await browser.send(back(app, server, at)));
    const [connection] = (await listed()).connections;
    expect(end.href).toBe(`${RETURN_TO}&status=connected&connection_id=${String(connection!.connection_id)}`);
    expect(connection).toMatchObject({
      tool_instance_id: instanceId,
      namespace_id: null,
      end_user_id: endUserId,
      end_user_name: 'Eve End',
      end_user_email: 'eve@end.test',
      auth_type: 'oauth2',
      status: 'connected',
      created_by: ann.userId,
    });
    const id = String(connection!.connection_id);
    expect(await eventsOf(app, id)).toEqual(['connection.created']);
    expect((await ann.call('GET', `${ann.home}/end-user-connections/${id}`)).body).toEqual(connection);
    const records = await app.database.prisma.activity.findMany({ where: { resourceId: id } });
    expect(records).toMatchObject([
      { action: 'connect', principalType: 'anonymous', userId: null, path: '/connections/callback', success: true },
    ]);
    const { body } = await tokenOf(endUserId);
    expect(server.accessTokens).toContain(body.access_token);
    expect(body.connection_id).toBe(id);
    expect((await execute(instanceId, { end_user_id: endUserId })).body).toMatchObject({ success: true, status: 200 });
  });

  test('the connection is nobody else’s: not of the workspace, and not in its lists', async () => {
    const endUserId = newEndUser();
    const id = await connectEndUser(app, server, ann, { instanceId, endUserId });
    expect(await shownBy(app, instanceId)).toBe('not_connected');
    expect((await tokenOf()).status).toBe(404);
    for (const other of [newEndUser(), endUserId.toUpperCase()]) {
      const { status, body } = await tokenOf(other);
      expect([status, (body.details as Json).reason]).toEqual([404, 'unknown_end_user']);
      expect((await execute(instanceId, { end_user_id: other })).status).toBe(404);
    }
    const all = await ann.call<{ connections: Json[]; total: number }>('GET', `${ann.home}/connections`);
    expect(all.body).toMatchObject({ connections: [], total: 0 });
    const { data } = await ann.ask<{ toolInstance: { connections: Json } }>(
      `query ($o: ID!, $w: ID!, $i: ID!) { toolInstance(orgId: $o, workspaceId: $w, id: $i) {
        connections { totalCount nodes { id } } } }`,
      { o: ann.orgId, w: ann.workspaceId, i: instanceId },
    );
    expect(data.toolInstance.connections).toEqual({ totalCount: 0, nodes: [] });
    const stranger = await register(app, { name: 'sam' });
    expect((await stranger.call('GET', `${stranger.home}/end-user-connections/${id}`)).status).toBe(404);
  });

  test('with a key; neither that of the instance nor of another end user is sent for them', async () => {
    const of = await makeKeyInstance(ann, server);
    const [one, two] = [newEndUser(), newEndUser()];
    const wrong = await goOn(app, newBrowserWithCookies(), await linkFor(ann, of, one), { api_key: 'a\tb' });
    expect([wrong.status, (await wrong.text()).includes('role="alert"')]).toEqual([422, true]);
    await connectByKey(app, ann, { instanceId: of, endUserId: one, key: 'key-of-one' });
    await connectByKey(app, ann, { instanceId: of, endUserId: two, key: 'key-of-two' });
    const sent = async (payload: Json) => {
      const { status } = await execute(of, payload);
      return [status, server.requests.at(-1)!.headers['x-api-key']];
    };
    expect(await sent({})).toEqual([200, 'key-of-the-instance']);
    expect(await sent({ end_user_id: one })).toEqual([200, 'key-of-one']);
    expect(await sent({ end_user_id: two })).toEqual([200, 'key-of-two']);
    const before = server.requests.length;
    expect((await execute(of, { end_user_id: newEndUser() })).status).toBe(404);
    expect(server.requests).toHaveLength(before);
    const proxied = async (headers: Record<string, string>) => {
      const url = `${ann.home}/tool-instances/${of}/proxy/api`;
      const answer = await app.server.inject({ method: 'GET', url, headers: { ...ann.headers, ...headers } });
      const last = server.requests.at(-1)!.headers;
      return [answer.statusCode, answer.headers['x-tool-status'], last['x-api-key'], last['x-tool-end-user']];
    };
    expect(await proxied({})).toEqual([401, '401', 'key-of-the-instance', undefined]);
    expect(await proxied({ 'x-tool-end-user': two })).toEqual([401, '401', 'key-of-two', undefined]);
    const calls = server.requests.length;
    expect((await proxied({ 'x-tool-end-user': newEndUser() })).slice(0, 2)).toEqual([404, undefined]);
    expect((await proxied({ 'x-tool-end-user': 'a b' })).slice(0, 2)).toEqual([400, undefined]);
    expect(server.requests).toHaveLength(calls);
  });

  test('what somebody agrees to for one end user is not done for another', async () => {
    const of = await makeKeyInstance(ann, server);
    const [one, two] = [newEndUser(), newEndUser()];
    await connectByKey(app, ann, { instanceId: of, endUserId: one, key: 'key-of-one' });
    await connectByKey(app, ann, { instanceId: of, endUserId: two, key: 'key-of-two' });
    const asked = async () => {
      const { body } = await execute(of, { action: 'drop', end_user_id: one });
      return { action: 'drop', confirmation: body.confirmation };
    };
    for (const other of [{ end_user_id: two }, {}])
      expect((await execute(of, { ...(await asked()), ...other })).status).toBe(422);
    const before = server.requests.length;
    expect((await execute(of, { ...(await asked()), end_user_id: one })).status).toBe(200);
    expect(server.requests.slice(before)).toMatchObject([{ method: 'DELETE', headers: { 'x-api-key': 'key-of-one' } }]);
  });

  test('a provider that refuses, or fails, connects nothing; the link can be tried again', async () => {
    const browser = newBrowserWithCookies();
    const link = await linkFor(ann, instanceId, newEndUser());
    const refused = new URL(await begin(app, browser, link)).searchParams.get('state')!;
    const denial = `${app.url}/connections/callback?error=access_denied&state=${refused}`;
    expect((await endOf(await browser.send(denial))).href).toBe(`${RETURN_TO}&status=denied`);
    expect((await browser.send(denial)).status).toBe(404);
    server.misbehave.push({ status: 500, body: { error: 'server_error' } });
    const failed = await browser.send(back(app, server, await begin(app, browser, link)));
    expect((await endOf(failed)).href).toBe(`${RETURN_TO}&status=failed`);
    expect((await listed()).connections).toEqual([]);
    const end = await endOf(await browser.send(back(app, server, await begin(app, browser, link))));
    expect(end.searchParams.get('status')).toBe('connected');
    const records = await waitFor(async () => {
      const found = await ann.call<{ activities: Json[] }>('GET', `/v1/orgs/${ann.orgId}/activity?success=false`);
      expect(JSON.stringify(found.body)).toContain('tool_instance');
      return found.body;
    });
    expect(JSON.stringify(records)).not.toContain(link.split('=').at(-1));
  });

  test('without a return address the page says how it ended', async () => {
    const browser = newBrowserWithCookies();
    const link = await linkFor(ann, instanceId, newEndUser(), { return_to: null });
    const answer = await browser.send(back(app, server, await begin(app, browser, link)));
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('is connected')]);
  });
});

describe('whoever means harm', () => {
  test('has nobody finish a link of theirs by its address at the provider', async () => {
    const link = await linkFor(ann, instanceId, newEndUser());
    const attacker = newBrowserWithCookies();
    const at = await begin(app, attacker, link);
    const victim = newBrowserWithCookies();
    await victim.send(await linkFor(ann, instanceId, newEndUser())); // with a cookie of its own
    expect(await gone(await victim.send(back(app, server, at)))).toEqual([
      404,
      expect.stringContaining('cannot be used'),
    ]);
    expect((await newBrowserWithCookies().send(back(app, server, at))).status).toBe(404);
    expect((await listed()).connections).toEqual([]);
  });

  test('has nobody go on with a link of theirs by a form of another page', async () => {
    const link = await linkFor(ann, instanceId, newEndUser());
    const own = formIn(await (await newBrowserWithCookies().send(link)).text());
    const victim = newBrowserWithCookies();
    const form = formIn(await (await victim.send(link)).text());
    const post = (fields: URLSearchParams, headers: Record<string, string> = {}) =>
      submit(app, victim, `${app.url}/connect`, fields, headers);
    expect(await gone(await post(own))).toEqual(await nowhere());
    expect(await gone(await post(form, { 'sec-fetch-site': 'cross-site' }))).toEqual(await nowhere());
    expect(await gone(await post(form, { origin: 'https://evil.example.test' }))).toEqual(await nowhere());
    expect((await post(form, { origin: 'null', 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  });

  test('puts no account of theirs into the link of somebody who has begun', async () => {
    const link = await linkFor(ann, instanceId, newEndUser());
    const victim = newBrowserWithCookies();
    const at = await begin(app, victim, link);
    const attacker = newBrowserWithCookies();
    expect(await gone(await attacker.send(link))).toEqual(await nowhere());
    const theirs = await linkFor(ann, instanceId, newEndUser());
    const code = server.consent(await begin(app, attacker, theirs));
    expect((await attacker.send(back(app, server, at, code))).status).toBe(404);
    expect((await endOf(await victim.send(back(app, server, at)))).searchParams.get('status')).toBe('connected');
  });

  test('uses a state and a link once, also at the same moment', async () => {
    const browser = newBrowserWithCookies();
    const link = await linkFor(ann, instanceId, newEndUser());
    const to = back(app, server, await begin(app, browser, link));
    const answers = await Promise.all([browser.send(to), browser.send(to), browser.send(to)]);
    expect(answers.map(({ status }) => status).sort((one, other) => one - other)).toEqual([200, 404, 404]);
    expect((await listed()).total).toBe(1);
    expect(await gone(await browser.send(link))).toEqual(await nowhere());
  });

  test('learns nothing of why a link does not work', async () => {
    const dead = async (end: (endUserId: string) => Promise<unknown>, maker = ann, of = instanceId) => {
      const endUserId = newEndUser();
      const link = await linkFor(maker, of, endUserId);
      expect((await newBrowserWithCookies().send(link)).status).toBe(200);
      await end(endUserId);
      return gone(await newBrowserWithCookies().send(link));
    };
    const answers = [
      await dead((endUserId) =>
        app.database.pool.query(
          `update connect_links set expires_at = now() - interval '1 second' where end_user_id = $1`,
          [endUserId],
        ),
      ),
      await dead((endUserId) => linkFor(ann, instanceId, endUserId)),
      await dead(() => allow(ann, instanceId, ['https://app.example.test/done'])),
    ];
    await allow(ann, instanceId, [RETURN_TO]);
    const toggle = (is: boolean) => ann.call('POST', `${ann.home}/tool-instances/${instanceId}/toggle?is_active=${is}`);
    answers.push(await dead(() => toggle(false)));
    await toggle(true);
    const bob = await colleague(app, ann, 'editor');
    const ofBob = { ...bob, home: ann.home, orgId: ann.orgId };
    answers.push(
      await dead(
        async () => expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`)).status).toBe(204),
        ofBob,
      ),
    );
    answers.push(await dead(() => ann.call('DELETE', `${ann.home}/tool-instances/${instanceId}`)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify(await nowhere())]),
    );
  });

  test('a link ends with the token that it was made with', async () => {
    const token = await issueToken(app, ann, { scopes: ['connection:create', 'workspace:read'] });
    const url = `${ann.home}/tool-instances/${instanceId}/connect-links`;
    const made = await app.server.inject({
      method: 'POST',
      url,
      headers: token.headers,
      payload: { end_user_id: newEndUser() },
    });
    expect(made.statusCode, made.body).toBe(201);
    const link = made.json<{ url: string }>().url;
    expect((await newBrowserWithCookies().send(link)).status).toBe(200);
    expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/api-tokens/${token.id}`)).status).toBeLessThan(300);
    expect((await newBrowserWithCookies().send(link)).status).toBe(404);
  });

  test('sends nobody to an address that is not allowed, letter for letter', async () => {
    const url = `${ann.home}/tool-instances/${instanceId}/connect-links`;
    for (const return_to of [
      `${RETURN_TO}&x=1`,
      'https://app.example.test.evil.test/done?tab=1',
      'https://APP.example.test/done?tab=1',
    ])
      expect((await ann.call('POST', url, { end_user_id: 'x', return_to })).status).toBe(422);
    const addresses = [
      'http://app.example.test/',
      'javascript:alert(1)',
      'https://a:b@app.example.test/',
      'https://app.example.test/#x',
      'https://app.example.test',
    ];
    const { status, body } = await ann.call<{ detail: { loc: unknown[] }[] }>(
      'PUT',
      `${ann.home}/tool-instances/${instanceId}/return-addresses`,
      { addresses: [...addresses, 'http://127.0.0.1:3000/done'] },
    );
    expect([status, body.detail.map(({ loc }) => loc.at(-1))]).toEqual([422, [0, 1, 2, 3, 4]]);
  });

  test('makes no link without the right to connect the instance', async () => {
    const url = `${ann.home}/tool-instances/${instanceId}/connect-links`;
    const viewer = await colleague(app, ann, 'viewer');
    const member = await colleague(app, ann, 'member');
    for (const person of [viewer, member])
      expect((await person.call('POST', url, { end_user_id: 'x' })).status).toBe(403);
    const user = await issueToken(app, ann, { scopes: ['connection:use', 'tool_instance:execute'] });
    const answer = await app.server.inject({
      method: 'POST',
      url,
      headers: user.headers,
      payload: { end_user_id: 'x' },
    });
    expect(answer.statusCode).toBe(403);
  });

  test('does not have what end users connected sent elsewhere', async () => {
    const { home } = ann;
    const member = { ...(await colleague(app, ann, 'member')), home };
    const of = await makeKeyInstance(member, server, {}, ann);
    const steer = () =>
      member.call('PUT', `${home}/tool-instances/${of}`, {
        custom_actions: [{ name: 'out', method: 'GET', url_template: 'https://evil.example.test/' }],
      });
    const endUserId = newEndUser();
    const link = await linkFor(member, of, endUserId);
    // also while they look at the page
    expect((await steer()).status).toBe(403);
    expect((await goOn(app, newBrowserWithCookies(), link, { api_key: 'key-of-eve' })).status).toBe(200);
    expect((await steer()).status).toBe(403);
  });

  test.each([
    ['an action of the instance', {}, { custom_actions: [{ name: 'out', method: 'GET', url_template: EVIL }] }],
    ['a host of the instance', { url_template: '{{base}}/api' }, { configuration: { base: EVIL } }],
  ])('has nobody connect an instance whose keys go to %s', async (_which, action, given) => {
    const { home } = ann;
    const member = { ...(await colleague(app, ann, 'member')), home };
    const toolId = await newTool(ann, {
      supports_connection: true,
      config_schema: [{ name: 'base', type: 'string', required: false }],
      credential_schema: [KEY],
      action_schemas: [{ name: 'me', method: 'GET', url_template: `${server.url}/api`, ...action }],
    });
    const { instance_id: of } = await newInstance(member, toolId, { configuration: {}, ...given });
    const url = `${home}/tool-instances/${of}/connect-links`;
    const refused = await member.call<Json>('POST', url, { end_user_id: 'x' });
    expect([refused.status, refused.body.details]).toMatchObject([403, { required_permission: 'connection:use' }]);
    const { url: link } = (await ann.call<{ url: string }>('POST', url, { end_user_id: 'x' })).body;
    expect((await newBrowserWithCookies().send(link)).status).toBe(200);
  });
});

describe('a connection of an end user', () => {
  test('is replaced by its next link, and deleted with its tokens and its open links', async () => {
    const endUserId = newEndUser();
    const id = await connectEndUser(app, server, ann, { instanceId, endUserId });
    const first = String((await tokenOf(endUserId)).body.access_token);
    expect(await connectEndUser(app, server, ann, { instanceId, endUserId })).toBe(id);
    const second = String((await tokenOf(endUserId)).body.access_token);
    expect(second).not.toBe(first);
    const link = await linkFor(ann, instanceId, endUserId);
    const member = await colleague(app, ann, 'member');
    const url = `${ann.home}/end-user-connections/${id}`;
    expect((await member.call('DELETE', url)).status).toBe(403);
    expect((await ann.call('DELETE', url)).status).toBe(204);
    expect((await newBrowserWithCookies().send(link)).status).toBe(404);
    expect((await tokenOf(endUserId)).status).toBe(404);
    expect((await ann.call('DELETE', url)).status).toBe(404);
    expect(await eventsOf(app, id)).toEqual(['connection.created', 'connection.updated', 'connection.deleted']);
    await waitFor(() => expect(server.revoked).toContain(second));
  });

  test('is refreshed once for all; the event alone tells that it must be authorized again', async () => {
    const endUserId = newEndUser();
    server.lifetime = 100;
    const id = await connectEndUser(app, server, ann, { instanceId, endUserId });
    server.lifetime = 3_600;
    const before = server.grants.refresh_token ?? 0;
    await Promise.all([tokenOf(endUserId), tokenOf(endUserId)]);
    expect((server.grants.refresh_token ?? 0) - before).toBe(1);
    server.misbehave.push({ status: 400, body: { error: 'invalid_grant' } });
    await app.database.pool.query(
      `update connections set expires_at = now(), refresh_at = now(), last_refreshed_at = null where id = $1`,
      [id],
    );
    const { status, body } = await tokenOf(endUserId);
    expect([status, (body.details as Json).reason]).toEqual([409, 'needs_reauth']);
    expect(await rowOf(app, id)).toMatchObject({
      status: 'needs_reauth',
      lastError: expect.stringContaining('invalid_grant'),
    });
    expect(await eventsOf(app, id)).toContain('connection.needs_reauth');
    expect(JSON.stringify((await listOf(ann)).notifications)).not.toContain(instanceId);
    expect(await shownBy(app, instanceId)).toBe('not_connected');
    expect((await listed('?status=needs_reauth')).connections).toMatchObject([{ connection_id: id }]);
  });

  test('is found by its end user and its status, page by page', async () => {
    const of = await makeKeyInstance(ann, server);
    const ids: string[] = [];
    for (const endUserId of ['a/1', 'b@x.test', 'c'])
      ids.unshift(await connectByKey(app, ann, { instanceId: of, endUserId, key: 'k' }));
    const first = await listed('?limit=2', of);
    const second = await listed(`?limit=2&cursor=${first.next_cursor}`, of);
    const found = [...first.connections, ...second.connections].map(({ connection_id }) => connection_id);
    expect([found, first.total]).toEqual([ids, 3]);
    const one = await listed(`?end_user_id=${encodeURIComponent('b@x.test')}&status=connected`, of);
    expect(one.connections).toMatchObject([{ end_user_id: 'b@x.test' }]);
    expect((await listed('?status=error', of)).connections).toEqual([]);
  });
});

test('an end user who tries too often is told in words, and a program in JSON', async () => {
  // one of its own: the address of all tests would have tried too often
  const other = await startConnectingApp();
  await other.listen();
  const paths = ['/connect?link=nothing', '/connections/callback?state=eu_nothing&code=a'];
  const browser = newBrowserWithCookies();
  const send = (path: string, headers: Record<string, string> = { accept: 'text/html' }) =>
    browser.send(`${other.url}${path}`, { headers });
  for (let tries = 0; tries < 200 && (await send(paths[0]!)).status !== 429; tries++);
  for (const path of paths) {
    const answer = await send(path);
    const text = await answer.text();
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('referrer-policy')]).toEqual([
      429,
      'text/html; charset=utf-8',
      'no-referrer',
    ]);
    expect(text).toContain('Too many tries. Try again in a minute.');
    expect(text).not.toContain('/account"');
  }
  const asJson = await send(paths[0]!, {});
  expect(await asJson.json()).toMatchObject({ error: 'RATE_LIMIT_EXCEEDED' });
  await other.close();
});

describe('an answer that may be of a server that was not asked', () => {
  const asks = () => server.grants.authorization_code ?? 0;
  const ISSUER = 'https://issuer.example.test';
  const began = async (service: Json, given: Json = {}, at = app, maker = ann, origin = app.url) => {
    const toolId = await newTool(maker, {
      name: 'Calendar',
      supports_connection: true,
      config_schema: [],
      credential_schema: [{ ...server.service, ...service }],
    });
    const of = await makeOAuthInstance(maker, server, { tool_id: toolId, ...given });
    const browser = newBrowserWithCookies();
    const link = new URL(await linkFor(maker, of, newEndUser(), { return_to: null }));
    const form = formIn(await (await browser.send(`${at.url}/connect${link.search}`)).text());
    const onward = await submit(at, browser, `${at.url}/connect`, form, { origin });
    return { browser, url: onwardIn(await onward.text()) };
  };

  test.each([
    ['another issuer', '&iss=https://other.example.test'],
    ['two issuers', `&iss=${ISSUER}&iss=https://other.example.test`],
    ['an empty one', '&iss='],
    ['one that is too long', `&iss=${ISSUER}/${'x'.repeat(5_000)}`],
  ])('with %s connects nothing', async (_what, query) => {
    const { browser, url } = await began({ issuer: ISSUER });
    const before = asks();
    const answer = await browser.send(`${back(app, server, url)}${query}`);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('could not be connected')]);
    expect(asks()).toBe(before);
  });

  test('at the address of the client by the own document is of no other client', async () => {
    const { browser, url } = await began({});
    const before = asks();
    const here = back(app, server, url);
    const answer = await browser.send(here.replace('/connections/callback', '/connections/own-callback'));
    expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('does not work')]);
    expect(asks()).toBe(before);
    // nothing of it was used up
    expect(await (await browser.send(here)).text()).toContain('is connected');
  });

  test('for the client by the own document must say who gives it, at the address of that client', async () => {
    const publicUrl = 'https://platform.example.com';
    const secure = await startConnectingApp({ PUBLIC_URL: publicUrl });
    await secure.listen();
    const dora = await register(secure, { name: 'dora' });
    const { clientId } = server;
    server.clientId = `${publicUrl}/connections/client-metadata.json`;
    const given = { connection_credentials: { client_id: server.clientId } };
    const own = (url: string, query: string) =>
      `${back(secure, server, url)}${query}`.replace('/connections/callback', '/connections/own-callback');
    const before = asks();
    for (const [service, query] of [
      [{}, ''],
      [{}, `&iss=${ISSUER}`],
      [{ issuer: ISSUER }, ''],
    ] as const) {
      const { browser, url } = await began(service, given, secure, dora, publicUrl);
      const answer = await browser.send(own(url, query));
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('could not be connected')]);
    }
    const { browser, url } = await began({ issuer: ISSUER }, given, secure, dora, publicUrl);
    expect(new URL(url).searchParams.get('redirect_uri')).toBe(`${publicUrl}/connections/own-callback`);
    const elsewhere = await browser.send(`${back(secure, server, url)}&iss=${ISSUER}`);
    expect(elsewhere.status).toBe(404);
    expect(asks()).toBe(before);
    expect(await (await browser.send(own(url, `&iss=${ISSUER}`))).text()).toContain('is connected');
    expect(asks()).toBe(before + 1);
    server.clientId = clientId;
    await secure.close();
  });
});
