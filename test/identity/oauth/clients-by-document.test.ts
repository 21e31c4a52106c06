import { decodeJwt } from 'jose';
import * as client from 'openid-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { changesOf, colleague, type Person, register } from '../../support/person.ts';
import { waitUntil } from '../../support/wait.ts';
import { answering, type DocumentHost, documentOf, startDocumentHost } from './document-host.ts';
import {
  allow,
  ask,
  CALLBACK,
  callWith,
  formIn,
  openConsent,
  peerOf,
  signedInBrowser,
  submit,
  tokensOf,
} from './oauth-browser.ts';

let host: DocumentHost;
let app: TestApp;
let ann: Person;
let browser: BrowserWithCookies;
beforeAll(async () => {
  host = await startDocumentHost();
  ({ app } = host);
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
});
afterAll(() => host.close());

const peerAt = (clientId: string, at = app) => peerOf(at, { id: clientId, secret: null });
const hostOf = (clientId: string) => new URL(clientId).host;
const rows = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
  (await app.database.pool.query(text, values)).rows as Row[];

/** An authorization request of any client, sent from a network of its own. */
async function begin(clientId: string, more: Record<string, string> = {}, at = app) {
  const url = new URL(`${at.url}/oauth/auth`);
  url.search = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'workspace:read',
    state: 'state',
    code_challenge: 'c'.repeat(43),
    code_challenge_method: 'S256',
    ...more,
  }).toString();
  const answer = await fetch(url, { redirect: 'manual', headers: host.from() });
  return { status: answer.status, to: answer.headers.get('location') ?? '', text: await answer.text() };
}

describe('a program that a document describes', () => {
  test('is let in, named by its host wherever it is shown, and sent away by an administrator', async () => {
    const clientId = host.publish({ client_name: 'Helper (accounts.google.com)', client_uri: 'https://google.com/' });
    const shown = `Helper accounts.google.com (${hostOf(clientId)})`;
    const peer = await peerAt(clientId);
    const { text } = await openConsent(app, browser, (await ask(peer)).url);
    for (const part of [hostOf(clientId), 'app.example.test', 'does not belong to this service'])
      expect(text).toContain(part);
    expect(text).toContain(`<h1>Allow ${hostOf(clientId)}?</h1>`);
    const tokens = await tokensOf(app, browser, peer, { scope: 'openid workspace:read' });
    expect(decodeJwt(tokens.access_token)).toMatchObject({ client_id: clientId, aud: app.url, sub: ann.userId });
    expect(tokens.claims()).toMatchObject({ aud: clientId, sub: ann.userId });
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
    const refreshed = await client.refreshTokenGrant(peer, tokens.refresh_token!);

    const url = `/v1/orgs/${ann.orgId}/applications`;
    const { body } = await ann.call<{ applications: Record<string, unknown>[] }>('GET', url);
    const [row] = body.applications.filter(({ metadata_url }) => metadata_url === clientId);
    expect(row).toMatchObject({
      name: shown,
      application_type: 'public',
      redirect_uris: [CALLBACK],
      is_first_party: false,
    });
    const id = String(row!.application_id);
    const grants = `/v1/orgs/${ann.orgId}/application-grants?application_id=${id}`;
    const { body: granted } = await ann.call<{ application_grants: Record<string, unknown>[] }>('GET', grants);
    expect(granted.application_grants).toMatchObject([{ user_id: ann.userId, scopes: ['workspace:read'] }]);
    expect(await (await browser.send(`${app.url}/account`)).text()).toContain(shown);
    const changes = await changesOf(app, String(granted.application_grants[0]!.application_grant_id));
    expect(changes.map(({ metadata }) => metadata)).toMatchObject([{ client_id: clientId, application_id: id }]);

    for (const input of [{ redirect_uris: ['https://evil.example/'] }, { is_first_party: true }, { name: 'Mine' }]) {
      const refused = await ann.call('PATCH', `${url}/${id}`, input);
      expect([refused.status, refused.body]).toMatchObject([409, { details: { reason: 'invalid_status' } }]);
    }
    expect((await begin(id)).text).toContain('invalid_client');
    expect((await ann.call('DELETE', `${url}/${id}`)).status).toBe(204);
    expect((await callWith(app, refreshed.access_token, 'GET', ann.home)).status).toBe(401);
    await expect(client.refreshTokenGrant(peer, refreshed.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });

  test('is let in for the organization that the user chooses, and for no other', async () => {
    const bob = await colleague(app, ann, 'member');
    expect((await bob.call('GET', ann.home)).status).toBe(200);
    const his = await signedInBrowser(app, bob);
    const peer = await peerAt(host.publish());
    const { url, verifier, state } = await ask(peer, { scope: 'workspace:read' });
    const choice = await openConsent(app, his, url);
    expect(choice.text).toContain('For which organization?');
    for (const org of [ann.orgId, bob.orgId]) expect(choice.text).toContain(`value="${org}"`);
    const eve = await register(app, { name: 'eve' });
    // another organization is none of his, whatever the address or the form says
    expect(await (await his.send(`${choice.at}?organization=${eve.orgId}`)).text()).toContain(
      'For which organization?',
    );
    const consent = await (await his.send(`${choice.at}?organization=${ann.orgId}`)).text();
    expect(consent).toContain('Choose another organization');
    const form = formIn(consent);
    form.set('decision', 'allow');
    const forged = new URLSearchParams(form);
    forged.set('organization', eve.orgId);
    expect((await submit(app, his, choice.at, forged)).status).toBe(403);
    expect(await rows('select from oauth_grants where user_id = $1', [bob.userId])).toEqual([]);
    const page = await (await submit(app, his, choice.at, form)).text();
    const back = await his.follow(/url=([^"]+)"/.exec(page)![1]!.replaceAll('&amp;', '&'), CALLBACK);
    const tokens = await client.authorizationCodeGrant(peer, back, {
      pkceCodeVerifier: verifier,
      expectedState: state,
    });
    expect((await callWith(app, tokens.access_token, 'GET', ann.home)).status).toBe(200);
    expect((await callWith(app, tokens.access_token, 'GET', bob.home)).status).toBe(403);
  });

  test('is never let in for an organization that others have put the user in, unasked', async () => {
    const [bob, eve] = [await register(app, { name: 'bob' }), await register(app, { name: 'eve' })];
    await rows(`update organizations set name = 'One name' where id = any($1)`, [[bob.orgId, eve.orgId]]);
    const add = { user_id: bob.userId, role: 'member' };
    expect((await eve.call('POST', `/v1/orgs/${eve.orgId}/members`, add)).status).toBe(201);
    const hisBrowser = await signedInBrowser(app, bob);
    const clientId = host.publish();
    const { url } = await ask(await peerAt(clientId), { scope: 'workspace:read' });
    const consent = await openConsent(app, hisBrowser, url);
    expect(consent.text).not.toContain(eve.orgId);
    expect(consent.text).toContain(`name="organization" value="${bob.orgId}"`);
    expect(consent.text).toContain('name="decision"');
    expect(consent.text).toContain(clientId);
    // once he works there, it is offered, and told apart
    expect((await bob.call('GET', `/v1/orgs/${eve.orgId}/members`)).status).toBe(200);
    const choice = await openConsent(app, hisBrowser, (await ask(await peerAt(clientId))).url);
    for (const { orgId } of [bob, eve]) expect(choice.text).toContain(`One name (${orgId})`);
  });

  test('leaves no trace where the user allows it again and its document says the same', async () => {
    const clientId = host.publish();
    const peer = await peerAt(clientId);
    const known = async () => {
      const [row] = await rows<{ id: string; version: number; at: Date }>(
        'select id, resource_version as version, updated_at as at from applications where metadata_url = $1',
        [clientId],
      );
      const text = 'select type from events where resource_id = $1 order by seq';
      return { ...row!, events: (await rows<{ type: string }>(text, [row!.id])).map(({ type }) => type) };
    };
    await tokensOf(app, browser, peer, { scope: 'workspace:read' });
    const before = await known();
    expect(before.events).toEqual(['application.created']);
    await tokensOf(app, browser, peer, { scope: 'workspace:read' });
    expect(await known()).toEqual(before);
    await rows(`update applications set name = 'Former' where id = $1`, [before.id]);
    await tokensOf(app, browser, peer, { scope: 'workspace:read' });
    expect((await known()).events).toEqual(['application.created', 'application.updated']);
  });

  test('is asked about each time: a document can change where answers go', async () => {
    const peer = await peerAt(host.publish());
    await tokensOf(app, browser, peer, { scope: 'openid workspace:read' });
    const again = await ask(peer, { scope: 'openid workspace:read' });
    expect((await openConsent(app, browser, again.url)).text).toContain('name="decision"');
    const { url } = await ask(peer, { scope: 'openid workspace:read', prompt: 'none' });
    const silent = await openConsent(app, browser, url);
    expect(new URL(silent.at).searchParams.get('error')).toMatch(/^(?:consent|interaction)_required$/);
    const bare = await ask(peer, { scope: '' });
    expect((await openConsent(app, browser, bare.url)).text).toContain('name="decision"');
  });

  test('listens on the own machine at any port, and nowhere else', async () => {
    const clientId = host.publish({ redirect_uris: ['http://127.0.0.1/done', 'cursor://not/ours', CALLBACK] });
    const peer = await peerAt(clientId);
    const { url } = await ask(peer, { redirect_uri: 'http://127.0.0.1:49152/done' });
    expect((await openConsent(app, browser, url)).text).toContain('<strong>127.0.0.1:49152</strong>');
    for (const uri of [
      'http://127.0.0.1:1/other',
      'http://localhost:1/done',
      'cursor://not/ours',
      'https://evil.example/',
    ])
      expect([uri, (await begin(clientId, { redirect_uri: uri })).text]).toEqual([
        uri,
        expect.stringContaining('invalid_redirect_uri'),
      ]);
  });

  test('gets ID tokens in RS256 when it says so, and without a key no device', async () => {
    const grant_types = ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'];
    const clientId = host.publish({ id_token_signed_response_alg: 'RS256', grant_types });
    const tokens = await tokensOf(app, browser, await peerAt(clientId), { scope: 'openid' });
    expect(JSON.parse(Buffer.from(tokens.id_token!.split('.')[0]!, 'base64url').toString())).toMatchObject({
      alg: 'RS256',
    });
    const answer = await fetch(`${app.url}/oauth/device/auth`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, scope: 'workspace:read' }),
    });
    const error_description = expect.stringContaining('device_code is not allowed') as string;
    expect([answer.status, await answer.json()]).toMatchObject([400, { error_description }]);
  });
});

describe('what is no address of a document', () => {
  const port = () => host.target.port;
  test.each<[string, (at: string) => string]>([
    ['a fragment', (at) => `${at}#other`],
    ['an empty fragment', (at) => `${at}#`],
    ['a user name', (at) => at.replace('https://', 'https://app.example.test@')],
    ['a user name and a password', (at) => at.replace('https://', 'https://a:b@')],
    ['an empty user name', (at) => at.replace('https://', 'https://@')],
    ['a query', (at) => `${at}?a=1`],
    ['dots', (at) => at.replace('/client', '/a/../client')],
    ['escaped dots', (at) => at.replace('/client', '/a/%2e%2e/client')],
    ['one dot', (at) => at.replace('/client', '/./client')],
    ['a host in capitals', (at) => at.replace('good', 'GOOD')],
    ['a dot after the host', (at) => at.replace('.test:', '.test.:')],
    ['the usual port, written out', () => 'https://good.test:443/client.json'],
    ['a port with a zero before it', (at) => at.replace(`:${port()}`, `:0${port()}`)],
    ['another port', (at) => at.replace(`:${port()}`, ':1')],
    ['a backslash', (at) => at.replace('/client', '\\client')],
    ['a blank', (at) => `${at} `],
    ['a line feed', (at) => `${at}\n`],
    ['no path', (at) => new URL(at).origin],
    ['an empty path', (at) => `${new URL(at).origin}/`],
    ['http', (at) => at.replace('https:', 'http:')],
    ['a scheme in capitals', (at) => at.replace('https:', 'HTTPS:')],
    ['one slash', (at) => at.replace('https://', 'https:/')],
    ['an address of the own machine', () => `https://127.0.0.1:${port()}/client.json`],
    ['the same as a number', () => `https://2130706433:${port()}/client.json`],
    ['the same in IPv6', () => `https://[::1]:${port()}/client.json`],
    ['the own machine by name', () => `https://localhost:${port()}/client.json`],
    ['a name that leads to the own machine', () => 'https://good.test/client.json'],
    ['a name that leads inside', () => 'https://inside.good.test/client.json'],
    ['a metadata service', () => 'https://metadata.google.internal/client.json'],
    ['the address of a metadata service', () => 'https://169.254.169.254/latest'],
    ['letters that look like others', (at) => at.replace('good', 'g\u043Eod')],
    ['a data address', () => 'data:application/json,{}'],
    ['a file', () => 'file:///etc/passwd'],
    ['too much', (at) => `${at}${'x'.repeat(200)}`],
  ])('%s: nobody is called, and nothing is asked', async (_title, spoil) => {
    const clientId = host.publish();
    const before = host.target.connections;
    const { status, to, text } = await begin(spoil(clientId));
    expect([status, to, host.target.connections]).toEqual([400, '', before]);
    expect(text).toContain('invalid_client');
  });
});

describe('a document that describes no client', () => {
  const redirecting = (status: number, location: string) =>
    host.serve((response) => response.writeHead(status, { location }).end());
  const spoilt = (change: Record<string, unknown>) => () => host.publish(change);
  test.each<[string, () => string]>([
    ['of another client', spoilt({ client_id: 'https://other.example/client.json' })],
    ['of no client', spoilt({ client_id: undefined })],
    ['of the same host, but another path', () => host.publish({ client_id: 'https://h0.good.test/client.json' })],
    ['with a secret', spoilt({ client_secret: 'x' })],
    ['with a secret that expires', spoilt({ client_secret_expires_at: 0 })],
    ['that would use a secret', spoilt({ token_endpoint_auth_method: 'client_secret_basic' })],
    ['that would post a secret', spoilt({ token_endpoint_auth_method: 'client_secret_post' })],
    ['that would sign with a secret', spoilt({ token_endpoint_auth_method: 'client_secret_jwt' })],
    ['without addresses for answers', spoilt({ redirect_uris: undefined })],
    ['with none', spoilt({ redirect_uris: [] })],
    ['with one that is no list', spoilt({ redirect_uris: CALLBACK })],
    ['with numbers', spoilt({ redirect_uris: [1] })],
    ['with a script', spoilt({ redirect_uris: ['javascript:alert(1)'] })],
    ['with http', spoilt({ redirect_uris: ['http://app.example.test/callback'] })],
    ['with a joker', spoilt({ redirect_uris: ['https://*.example.test/callback'] })],
    ['with a fragment', spoilt({ redirect_uris: [`${CALLBACK}#x`] })],
    ['with many', spoilt({ redirect_uris: Array.from({ length: 21 }, (_, n) => `${CALLBACK}/${n}`) })],
    ['for another grant', spoilt({ grant_types: ['client_credentials'] })],
    ['for the implicit grant', spoilt({ response_types: ['token'] })],
    ['that wants unsigned ID tokens', spoilt({ id_token_signed_response_alg: 'none' })],
    ['that wants ID tokens by a secret', spoilt({ id_token_signed_response_alg: 'HS256' })],
    ['that is a list', () => host.serve(answering('[]'))],
    ['that is null', () => host.serve(answering('null'))],
    ['that is broken', () => host.serve(answering('{"client_id":'))],
    ['that is a page', () => host.serve((response) => response.setHeader('content-type', 'text/html').end('<p>'))],
    ['that is not there', () => host.serve(answering('{}', {}, 404))],
    ['of a host that fails', () => host.serve(answering('{}', {}, 500))],
    ['that was only created', () => host.serve(answering('{}', {}, 201))],
    ['that redirects', () => redirecting(302, host.publish())],
    ['that redirects for good', () => redirecting(308, host.publish())],
    ['that redirects inside', () => redirecting(302, 'http://169.254.169.254/latest/meta-data')],
    ['of 5 MB', () => host.publish({ padding: 'x'.repeat(5 * 1024 * 1024) })],
    ['of 6 KB', () => host.publish({ padding: 'x'.repeat(6 * 1024) })],
    ['of a host that ends the connection', () => host.serve((response) => response.destroy())],
    ['of a host that never answers', () => host.serve(() => undefined)],
  ])('%s', async (_title, make) => {
    const clientId = make();
    const { status, to, text } = await begin(clientId);
    expect([status, to, host.asked(clientId)]).toEqual([400, '', 1]);
    expect(text).toContain('invalid_client');
    // and is not asked for again at once
    expect((await begin(clientId)).status).toBe(400);
    expect(host.asked(clientId)).toBe(1);
  });

  test('that a redirect leads to is not fetched', async () => {
    const other = host.publish();
    await begin(redirecting(302, other));
    expect(host.asked(other)).toBe(0);
  });

  test('cannot make itself more than a stranger', async () => {
    const jwks = host.serve(answering('{"keys":[]}'));
    const clientId = host.publish({
      is_first_party: true,
      org_id: ann.orgId,
      jwks_uri: jwks,
      sector_identifier_uri: jwks,
      subject_type: 'pairwise',
      backchannel_logout_uri: jwks,
      request_uris: [jwks],
      client_name: '\u202Elive<script>alert(1)</script>',
    });
    const { text } = await openConsent(app, browser, (await ask(await peerAt(clientId), { scope: 'openid' })).url);
    expect(text).toContain('name="decision"');
    expect(text).not.toMatch(/<script>|\u202E/);
    expect(host.asked(jwks)).toBe(0);
    const answer = await fetch(`${app.url}/oauth/token/introspection`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, token: 'any' }),
    });
    expect(answer.ok ? await answer.json() : { active: false }).toEqual({ active: false });
  });
});

describe('documents are kept', () => {
  let other: TestApp;
  beforeAll(async () => {
    // another node of the same service
    other = await app.another({ ...host.env, PUBLIC_URL: app.url });
    await other.listen();
  });

  test('once for many requests at once, and for all nodes', async () => {
    const clientId = host.publish({}, { 'cache-control': 'max-age=3600' });
    const answers = await Promise.all(Array.from({ length: 8 }, () => begin(clientId)));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(303));
    expect((await begin(clientId, {}, other)).status).toBe(303);
    expect(host.asked(clientId)).toBe(1);
  });

  test('as what is granted: a code of one node is redeemed at another, and what it gave ends at both', async () => {
    const clientId = host.publish();
    const { url, verifier } = await ask(await peerAt(clientId), { scope: 'workspace:read' });
    const back = await allow(app, browser, url);
    const redeem = async (form: Record<string, string>) => {
      const body = new URLSearchParams({ client_id: clientId, ...form });
      const response = await fetch(`${other.url}/oauth/token`, { method: 'POST', body });
      return (await response.json()) as { access_token: string; refresh_token: string; error?: string };
    };
    const code = back.searchParams.get('code')!;
    const form = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK };
    const answer = await redeem(form);
    expect((await callWith(other, answer.access_token, 'GET', ann.home)).status).toBe(200);
    const [grant] = await rows<{ id: string }>(
      'select g.id from oauth_grants g join applications a on a.id = g.application_id where a.metadata_url = $1',
      [clientId],
    );
    expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/application-grants/${grant!.id}`)).status).toBe(204);
    await waitUntil(async () => (await callWith(other, answer.access_token, 'GET', ann.home)).status === 401);
    const late = await redeem({ grant_type: 'refresh_token', refresh_token: answer.refresh_token });
    expect(late).toMatchObject({ error: 'invalid_grant' });
  });

  test('and a node that reads a changed one takes no answer to the former address', async () => {
    const clientId = host.publish();
    await tokensOf(app, browser, await peerAt(clientId), { scope: 'workspace:read' });
    host.change(clientId, answering(documentOf(clientId, { redirect_uris: ['https://evil.example/callback'] })));
    await rows(`delete from oauth_records where kind = 'ClientDocument'`);
    expect((await begin(clientId, {}, other)).text).toContain('invalid_redirect_uri');
    // to the new address goes nothing without the user, who sees where it would go
    const { url } = await ask(await peerAt(clientId), {
      scope: 'workspace:read',
      redirect_uri: 'https://evil.example/callback',
    });
    url.port = new URL(other.url).port;
    const text = await (await browser.send((await browser.send(url.href)).headers.get('location')!)).text();
    expect(text).toContain('name="decision"');
    expect(text).toContain('<strong>evil.example</strong>');
  });

  test('strangers cannot have many fetched: neither one of them, nor many from one host', async () => {
    const clientId = host.publish();
    const at = (n: number) => clientId.replace('client.json', `${n}.json`);
    const count = () => host.target.requests.filter(({ headers }) => headers.host === hostOf(clientId)).length;
    for (let n = 0; n < 30; n++) expect((await begin(at(n))).status).toBe(400);
    expect(count()).toBe(20);
    expect((await begin(clientId)).status).toBe(400);
    const one = host.from();
    const others = Array.from({ length: 12 }, () => host.publish());
    const before = host.target.requests.length;
    for (const other of others)
      await fetch(`${app.url}/oauth/auth?client_id=${encodeURIComponent(other)}`, { headers: one });
    expect(host.target.requests.length - before).toBe(10);
  });

  test('by no node that has switched it off', async () => {
    const known = await (await fetch(`${app.url}/.well-known/oauth-authorization-server/oauth`)).json();
    expect(known).toMatchObject({ client_id_metadata_document_supported: true });
    const off = await app.another({ ...host.env, OAUTH_CLIENT_HOSTS: 'none' });
    await off.listen();
    const metadata = await (await fetch(`${off.url}/.well-known/oauth-authorization-server/oauth`)).json();
    expect(metadata).not.toHaveProperty('client_id_metadata_document_supported');
    const clientId = host.publish();
    expect((await begin(clientId, {}, off)).status).toBe(400);
    expect(host.asked(clientId)).toBe(0);
  });
});
