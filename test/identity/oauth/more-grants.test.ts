import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grantableScopes } from '../../../src/identity/oauth/granted-scopes.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { type Person, register } from '../../support/person.ts';
import {
  allow,
  ask,
  CALLBACK,
  callWith,
  formIn,
  newApplication,
  onwardIn,
  openConsent,
  peerOf,
  type RegisteredApplication,
  signedInBrowser,
  submit,
  tokensOf,
} from './oauth-browser.ts';

let app: TestApp;
let ann: Person;
let browser: BrowserWithCookies;
let server: RegisteredApplication;
let confidential: client.Configuration;
let device: client.Configuration;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
  server = await newApplication(ann, { name: 'Server', application_type: 'confidential' });
  confidential = await peerOf(app, server);
  device = await peerOf(app, await newApplication(ann, { name: 'Shell', redirect_uris: [] }));
});
afterAll(() => app.close());

const home = (token: string) => callWith(app, token, 'GET', ann.home);

describe('a confidential application', () => {
  test('pushes its request (RFC 9126), and the browser carries only a reference', async () => {
    const verifier = client.randomPKCECodeVerifier();
    const state = client.randomState();
    const url = await client.buildAuthorizationUrlWithPAR(confidential, {
      redirect_uri: CALLBACK,
      scope: 'workspace:read',
      state,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    expect([...url.searchParams.keys()].sort()).toEqual(['client_id', 'request_uri']);
    const back = await allow(app, browser, url);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const tokens = await client.authorizationCodeGrant(confidential, back, checks);
    expect((await home(tokens.access_token)).status).toBe(200);
  });

  test('asks what a token is worth, and is told of those of its organization only (RFC 7662)', async () => {
    const tokens = await tokensOf(app, browser, confidential, { scope: 'workspace:read' });
    expect(await client.tokenIntrospection(confidential, tokens.access_token)).toMatchObject({
      active: true,
      sub: ann.userId,
      client_id: server.id,
      aud: app.url,
      scope: 'workspace:read',
    });
    const other = await register(app, { name: 'other' });
    const foreign = await peerOf(app, await newApplication(other, { application_type: 'confidential' }));
    expect(await client.tokenIntrospection(foreign, tokens.access_token)).toEqual({ active: false });
    expect(await client.tokenIntrospection(confidential, 'no-token')).toEqual({ active: false });
  });

  test.each(['access_token', 'refresh_token'] as const)('gives back its %s: all of the grant ends', async (kind) => {
    const tokens = await tokensOf(app, browser, confidential, { scope: 'workspace:read' });
    expect((await home(tokens.access_token)).status).toBe(200);
    await client.tokenRevocation(confidential, tokens[kind]!);
    expect((await home(tokens.access_token)).status).toBe(401);
    expect(await client.tokenIntrospection(confidential, tokens.access_token)).toEqual({ active: false });
    await expect(client.refreshTokenGrant(confidential, tokens.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });

  test('is refused with a wrong secret, and with the former one after a rotation', async () => {
    const made = await newApplication(ann, { application_type: 'confidential' });
    const { body } = await ann.call<{ secret: string }>(
      'POST',
      `/v1/orgs/${ann.orgId}/applications/${made.id}/rotate-secret`,
    );
    expect(body.secret).not.toBe(made.secret);
    const [former, wrong, right] = await Promise.all([
      peerOf(app, made),
      peerOf(app, { id: made.id, secret: 'aps_wrong' }),
      peerOf(app, { id: made.id, secret: body.secret }),
    ]);
    const refused = { cause: [{ parameters: { error: 'invalid_client' } }] };
    await expect(client.tokenIntrospection(former, 'x')).rejects.toMatchObject(refused);
    await expect(client.tokenIntrospection(wrong, 'x')).rejects.toMatchObject(refused);
    expect(await client.tokenIntrospection(right, 'x')).toEqual({ active: false });
  });

  test('ends with the application', async () => {
    const made = await newApplication(ann, { application_type: 'confidential' });
    const tokens = await tokensOf(app, browser, await peerOf(app, made), { scope: 'workspace:read' });
    expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/applications/${made.id}`)).status).toBe(204);
    expect((await home(tokens.access_token)).status).toBe(401);
  });
});

describe('the device grant (RFC 8628)', () => {
  const openDevice = async (at = `${app.url}/oauth/device`) => {
    const answer = await browser.send(at);
    return { status: answer.status, text: await answer.text() };
  };
  const enter = async (code: string) => {
    const form = formIn((await openDevice()).text);
    form.set('user_code', code);
    return (await submit(app, browser, `${app.url}/oauth/device`, form)).text();
  };

  test('is asked for, confirmed, allowed, and then gives tokens', async () => {
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'workspace:read' });
    expect(begun.user_code).toMatch(/^[A-Z]{4}-[A-Z]{4}$/);
    await expect(
      client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
        device_code: begun.device_code,
      }),
    ).rejects.toMatchObject({ error: 'authorization_pending' });
    const confirm = await enter(begun.user_code);
    expect(confirm).toContain('Shell');
    expect(confirm).toContain('127.0.0.1');
    const form = formIn(confirm);
    form.set('confirm', 'yes');
    const confirmed = await submit(app, browser, `${app.url}/oauth/device`, form);
    const consent = await openConsent(app, browser, new URL(confirmed.headers.get('location')!, app.url));
    expect(consent.text).toContain('your device');
    const allowed = formIn(consent.text);
    allowed.set('decision', 'allow');
    const next = onwardIn(await (await submit(app, browser, consent.at, allowed)).text());
    expect((await openDevice(next)).text).toContain('The device is connected');
    const tokens = await client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
      device_code: begun.device_code,
    });
    expect((await home(tokens.access_token)).status).toBe(200);
  });

  test('opening the link of a code approves nothing, and fills in nothing', async () => {
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'read' });
    const { status, text } = await openDevice(`${begun.verification_uri}?user_code=${begun.user_code}`);
    expect(status).toBe(200);
    expect(text).toContain('Connect a device');
    expect(text).not.toContain(begun.user_code);
    expect(text).not.toContain('<script');
    await expect(
      client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
        device_code: begun.device_code,
      }),
    ).rejects.toMatchObject({ error: 'authorization_pending' });
  });

  test('who refuses ends it', async () => {
    const begun = await client.initiateDeviceAuthorization(device, { scope: 'read' });
    const form = formIn(await enter(begun.user_code));
    form.set('abort', 'yes');
    expect(await (await submit(app, browser, `${app.url}/oauth/device`, form)).text()).toContain('You have refused it');
    await expect(
      client.genericGrantRequest(device, 'urn:ietf:params:oauth:grant-type:device_code', {
        device_code: begun.device_code,
      }),
    ).rejects.toMatchObject({ error: 'access_denied' });
  });

  test('a stranger is asked to sign in first', async () => {
    const answer = await newBrowserWithCookies().send(`${app.url}/oauth/device`);
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      '/account/sign-in?return_to=%2Foauth%2Fdevice',
    ]);
  });

  test('five wrong codes end it', async () => {
    const eve = await register(app, { name: 'eve' });
    browser = await signedInBrowser(app, eve);
    for (let tries = 0; tries < 5; tries++) expect(await enter('BBBB-CCCC')).toContain('This code is wrong');
    expect((await openDevice()).status).toBe(429);
    browser = await signedInBrowser(app, ann);
  });
});

test('a grant without offline_access ends with the session of the browser; one with it goes on', async () => {
  const bob = await register(app, { name: 'bob' });
  const his = await signedInBrowser(app, bob);
  const peer = await peerOf(app, await newApplication(bob));
  const online = await tokensOf(app, his, peer, { scope: 'workspace:read' });
  const offline = await tokensOf(app, his, peer, { scope: 'workspace:read offline_access', prompt: 'consent' });
  const account = await (await his.send(`${app.url}/account`)).text();
  const form = new URLSearchParams([...formIn(account)].slice(0, 1));
  form.set('end', 'sign_out');
  expect((await submit(app, his, `${app.url}/account`, form)).status).toBe(200);
  const statusOf = async (token: string) => (await callWith(app, token, 'GET', bob.home)).status;
  expect([await statusOf(online.access_token), await statusOf(offline.access_token)]).toEqual([401, 200]);
  await expect(client.refreshTokenGrant(peer, online.refresh_token!)).rejects.toMatchObject({ error: 'invalid_grant' });
  expect(await client.refreshTokenGrant(peer, offline.refresh_token!)).toMatchObject({ token_type: 'bearer' });
});

test('a first-party application of the organization asks for no consent', async () => {
  const peer = await peerOf(app, await newApplication(ann, { is_first_party: true }));
  const { url } = await ask(peer, { scope: 'workspace:read' });
  const { at } = await openConsent(app, browser, url);
  expect(at.startsWith(`${CALLBACK}?code=`)).toBe(true);
});

test('the record of what an application does names it', async () => {
  const made = await newApplication(ann);
  const tokens = await tokensOf(app, browser, await peerOf(app, made), { scope: 'write' });
  expect((await callWith(app, tokens.access_token, 'PUT', ann.home, { name: 'Renamed' })).status).toBe(200);
  const { rows } = await app.database.pool.query(
    `select metadata, principal_type, token_id, user_id from activity
      where action = 'update' and metadata->>'application_id' = $1`,
    [made.id],
  );
  expect(rows).toMatchObject([
    { principal_type: 'api_token', token_id: expect.stringMatching(/^gnt_/), user_id: ann.userId },
  ]);
});

test('the page of the account disconnects an application', async () => {
  const tokens = await tokensOf(app, browser, confidential, { scope: 'workspace:read' });
  const text = await (await browser.send(`${app.url}/account`)).text();
  const [, end = ''] = /value="(application gnt_\w+)" aria-label="Disconnect Server"/.exec(text) ?? [];
  const form = new URLSearchParams({ form_token: formIn(text).get('form_token')!, end });
  expect((await submit(app, browser, `${app.url}/account`, form)).status).toBe(303);
  expect((await home(tokens.access_token)).status).toBe(401);
});

test('administrators list what was granted in their organization, and take it back', async () => {
  const [made, other] = [await newApplication(ann), await newApplication(ann)];
  const tokens = await tokensOf(app, browser, await peerOf(app, made), { scope: 'workspace:read' });
  await tokensOf(app, browser, await peerOf(app, other), { scope: 'workspace:read' });
  const url = `/v1/orgs/${ann.orgId}/application-grants`;
  const listed = async (query = `application_id=${made.id}`) =>
    (await ann.call<{ application_grants: { application_grant_id: string }[] }>('GET', `${url}?${query}`)).body;
  const list = await listed();
  expect(list).toMatchObject({
    total: 1,
    application_grants: [
      {
        application_grant_id: expect.stringMatching(/^gnt_/),
        org_id: ann.orgId,
        application_id: made.id,
        user_id: ann.userId,
        scopes: ['workspace:read'],
        workspace_ids: [],
        ends_with_session: true,
        last_used_at: null,
      },
    ],
  });
  const id = list.application_grants[0]!.application_grant_id;
  const foreign = await register(app, { name: 'foreign' });
  expect((await foreign.call('GET', url)).status).toBe(403);
  expect((await foreign.call('DELETE', `/v1/orgs/${foreign.orgId}/application-grants/${id}`)).status).toBe(404);
  expect((await callWith(app, tokens.access_token, 'GET', url)).status).toBe(403);
  expect((await home(tokens.access_token)).status).toBe(200);

  expect((await ann.call('DELETE', `${url}/${id}`)).status).toBe(204);
  expect((await home(tokens.access_token)).status).toBe(401);
  expect(await listed()).toMatchObject({ total: 0, application_grants: [] });
  expect((await listed(`user_id=${ann.userId}&application_id=${other.id}`)).application_grants).toHaveLength(1);
  expect((await ann.call('GET', `${url}/${id}`)).status).toBe(404);
  expect((await ann.call('DELETE', `${url}/${id}`)).status).toBe(404);
  const { rows } = await app.database.pool.query('select action, metadata from activity where resource_id = $1', [id]);
  expect(rows).toContainEqual({
    action: 'revoke',
    metadata: expect.objectContaining({ application_id: made.id, reason: 'administrator' }),
  });
});

test('a request may name as many scopes as fit, and the user may allow all of them', async () => {
  const many = grantableScopes.slice(0, 100).join(' ');
  const tokens = await tokensOf(app, browser, await peerOf(app, await newApplication(ann)), { scope: many });
  expect(tokens.scope?.split(' ').toSorted()).toEqual(many.split(' ').toSorted());
});
