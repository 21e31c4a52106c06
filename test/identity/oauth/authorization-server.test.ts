import { randomBytes } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Budgets } from '../../../src/access/budgets.ts';
import { oauthKeys } from '../../../src/access/oauth-keys.ts';
import { OAuthTokens } from '../../../src/access/oauth-tokens.ts';
import { Sql } from '../../../src/data/sql.ts';
import { AuthorizationServer } from '../../../src/identity/oauth/authorization-server.ts';
import { Seal } from '../../../src/platform/keys/seal.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { startTarget } from '../../support/target-server.ts';
import {
  allow,
  ask,
  callWith,
  formIn,
  newApplication,
  openConsent,
  peerOf,
  signedInBrowser,
  submit,
  tokensOf,
} from './oauth-browser.ts';

let app: TestApp;
let ann: Person;
let browser: BrowserWithCookies;
let peer: client.Configuration;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
  peer = await peerOf(app, await newApplication(ann));
});
afterAll(() => app.close());

const workspaces = () => `/v1/orgs/${ann.orgId}/workspaces`;

describe('the code flow with PKCE', () => {
  test('gives tokens that REST and GraphQL accept, as far as they were granted', async () => {
    const tokens = await tokensOf(app, browser, peer, { scope: 'openid email workspace:read' });
    expect(decodeProtectedHeader(tokens.access_token)).toMatchObject({ alg: 'EdDSA', typ: 'at+jwt' });
    expect(decodeJwt(tokens.access_token)).toMatchObject({
      iss: `${app.url}/oauth`,
      aud: app.url,
      sub: ann.userId,
      scope: 'workspace:read',
    });
    expect(tokens.claims()).toMatchObject({ sub: ann.userId, email: ann.email });
    expect((await callWith(app, tokens.access_token, 'GET', workspaces())).status).toBe(200);
    const query = `{ workspaces(orgId: "${ann.orgId}") { totalCount } }`;
    expect((await callWith(app, tokens.access_token, 'POST', '/graphql', { query })).body).toMatchObject({
      data: { workspaces: { totalCount: 1 } },
    });
    const refused = await callWith(app, tokens.access_token, 'POST', workspaces(), {
      organization_id: ann.orgId,
      name: 'Mine',
    });
    expect([refused.status, refused.body]).toMatchObject([403, { error: 'FORBIDDEN' }]);
  });

  test('refreshes: the same successor for a minute, and a token that comes back later ends the grant', async () => {
    const first = await tokensOf(app, browser, peer);
    const second = await client.refreshTokenGrant(peer, first.refresh_token!);
    const again = await client.refreshTokenGrant(peer, first.refresh_token!);
    expect(again.refresh_token).toBe(second.refresh_token);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect((await callWith(app, second.access_token, 'GET', workspaces())).status).toBe(200);
    await app.database.pool.query(
      `update oauth_records set consumed_at = now() - interval '61 s' where consumed_at is not null`,
    );
    await expect(client.refreshTokenGrant(peer, first.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    await expect(client.refreshTokenGrant(peer, second.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
    expect((await callWith(app, second.access_token, 'GET', workspaces())).status).toBe(401);
  });

  test('a code that is used twice ends what its first use gave', async () => {
    const { url, verifier, state } = await ask(peer);
    const back = await allow(app, browser, url);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const tokens = await client.authorizationCodeGrant(peer, back, checks);
    expect((await callWith(app, tokens.access_token, 'GET', workspaces())).status).toBe(200);
    await expect(client.authorizationCodeGrant(peer, back, checks)).rejects.toMatchObject({ error: 'invalid_grant' });
    expect((await callWith(app, tokens.access_token, 'GET', workspaces())).status).toBe(401);
  });
});

test('the page of the consent says who asks for what, and the user may grant less', async () => {
  const { url, verifier, state } = await ask(peer, { scope: 'workspace:read secret:reveal' });
  const { text } = await openConsent(app, browser, url);
  for (const part of [
    'Notes',
    'app.example.test',
    ann.username,
    'See the values of secrets',
    '(sensitive)',
    'See workspaces',
  ])
    expect(text).toContain(part);
  const back = await allow(app, browser, url, (form) => {
    form.delete('scope');
    form.append('scope', 'workspace:read');
    form.append('workspace', ann.workspaceId);
  });
  const tokens = await client.authorizationCodeGrant(peer, back, { pkceCodeVerifier: verifier, expectedState: state });
  expect(tokens.scope).toBe('workspace:read');
  expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
});

test('is there again after it could not be loaded', async () => {
  const secret = randomBytes(32);
  const keys = oauthKeys(secret, { formerAppSecrets: [] });
  const publicUrl = () => 'https://platform.example.test';
  let loads = 0;
  const server = new AuthorizationServer({
    sql: new Sql(app.database.pool),
    access: app.services.access,
    budgets: new Budgets(null),
    config: {
      accessTokenTtlSeconds: 900,
      refreshTokenIdleDays: 1,
      refreshTokenAbsoluteDays: 1,
      oauthClientHosts: ['none'],
    },
    outbound: new Outbound({ config: { outboundAllow: [], outboundDns: [] }, logger: quietLogger }),
    keys,
    rsaKeys: async () => {
      loads++;
      if (loads === 1) throw new Error('not yet');
      return Promise.resolve([]);
    },
    tokens: new OAuthTokens(keys, publicUrl),
    grants: app.services.applicationGrants,
    secret,
    seal: new Seal(secret, 'a test'),
    publicUrl,
    onFault: () => undefined,
  });
  const target = await startTarget(async (request, response) => {
    const from = { at: '/jwks', caller: null, address: '127.0.0.1' };
    const answer = await server.answerTo(request, response, from).catch(() => null);
    await (answer ? answer() : response.writeHead(500).end());
  });
  const jwks = () => fetch(`http://127.0.0.1:${target.port}/jwks`);
  expect([(await jwks()).status, (await jwks()).status, (await jwks()).status, loads]).toEqual([500, 200, 200, 2]);
  await target.close();
});

test('who refuses grants nothing', async () => {
  const { url } = await ask(peer);
  const { at, text } = await openConsent(app, browser, url);
  const form = formIn(text);
  form.set('decision', 'refuse');
  const answer = await (await submit(app, browser, at, form)).text();
  expect(answer).toContain('http-equiv="refresh"');
});

test('a colleague who leaves takes along what they granted', async () => {
  const bob = await colleague(app, ann, 'member');
  const his = await signedInBrowser(app, bob);
  const tokens = await tokensOf(app, his, peer);
  expect((await callWith(app, tokens.access_token, 'GET', workspaces())).status).toBe(200);
  expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`)).status).toBe(204);
  expect((await callWith(app, tokens.access_token, 'GET', workspaces())).status).toBe(401);
});
