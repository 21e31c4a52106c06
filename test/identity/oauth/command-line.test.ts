// The command line of the service, which is a program of all organizations without being registered.
import * as client from 'openid-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { callWith, formIn, onwardIn, openConsent, peerOf, signedInBrowser, submit } from './oauth-browser.ts';

const COMMAND_LINE = 'urn:platform-management:command-line';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const SCOPE = 'read secret:reveal offline_access';

let app: TestApp;
let ann: Person;
/** Of two organizations: his, and that of Ann. */
let bob: Person;
let peer: client.Configuration;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
  bob = await colleague(app, ann, 'editor');
  peer = await peerOf(app, { id: COMMAND_LINE, secret: null });
});
afterAll(() => app.close());

/** The user enters the code and says that it is their device. */
async function entered(browser: BrowserWithCookies, code: string): Promise<{ confirm: string; next: URL }> {
  const at = `${app.url}/oauth/device`;
  const entry = formIn(await (await browser.send(at)).text());
  entry.set('user_code', code);
  const confirm = await (await submit(app, browser, at, entry)).text();
  const form = formIn(confirm);
  form.set('confirm', 'yes');
  const confirmed = await submit(app, browser, at, form);
  return { confirm, next: new URL(confirmed.headers.get('location')!, app.url) };
}

const answerTo = (begun: client.DeviceAuthorizationResponse) =>
  client.genericGrantRequest(peer, DEVICE_GRANT, { device_code: begun.device_code });

async function allowed(browser: BrowserWithCookies, at: string, text: string): Promise<void> {
  const form = formIn(text);
  form.set('decision', 'allow');
  await browser.send(new URL(onwardIn(await (await submit(app, browser, at, form)).text()), app.url).href);
}

test('a user lets it in, by its name, and administrators see it, take it back, and cannot change it', async () => {
  const browser = await signedInBrowser(app, ann);
  const begun = await client.initiateDeviceAuthorization(peer, { scope: SCOPE });
  const { confirm, next } = await entered(browser, begun.user_code);
  expect(confirm).toContain('<strong>Command line of this service</strong> asks from the address');
  const consent = await openConsent(app, browser, next);
  expect(consent.text).toContain('The <strong>Command line of this service</strong> wants to act for you in the');
  expect(consent.text).not.toContain('does not belong to this service');
  await allowed(browser, consent.at, consent.text);
  const { access_token: token } = await answerTo(begun);
  expect((await callWith(app, token, 'GET', ann.home)).status).toBe(200);
  expect((await callWith(app, token, 'PUT', ann.home, { name: 'No' })).status).toBe(403);

  const applications = `/v1/orgs/${ann.orgId}/applications`;
  type List = { applications: { application_id: string; name: string; metadata_url: string | null }[] };
  const [known] = (await ann.call<List>('GET', applications)).body.applications;
  expect(known).toMatchObject({ name: 'Command line of this service', metadata_url: COMMAND_LINE });
  const one = `${applications}/${known!.application_id}`;
  const changed = await ann.call('PATCH', one, { redirect_uris: ['https://elsewhere.example/'] });
  expect([changed.status, changed.body]).toMatchObject([409, { details: { reason: 'invalid_status' } }]);
  expect((await ann.call('DELETE', one)).status).toBe(204);
  expect((await callWith(app, token, 'GET', ann.home)).status).toBe(401);
});

test('a user of two organizations says for which one, and it reaches no other', async () => {
  // he was put into Ann's organization by her: what he uses is his, too
  expect((await bob.call('GET', ann.home)).status).toBe(200);
  const browser = await signedInBrowser(app, bob);
  const begun = await client.initiateDeviceAuthorization(peer, { scope: SCOPE });
  const choice = await openConsent(app, browser, (await entered(browser, begun.user_code)).next);
  expect(choice.text).toContain('For which organization?');
  expect(choice.text).toContain('The <strong>Command line of this service</strong> wants to act for you.');
  const at = `${choice.at}?organization=${ann.orgId}`;
  await allowed(browser, at, await (await browser.send(at)).text());
  const { access_token: token } = await answerTo(begun);
  expect((await callWith(app, token, 'GET', ann.home)).status).toBe(200);
  expect((await callWith(app, token, 'GET', bob.home)).status).toBe(403);
});

test.each([
  ['for an address', { response_type: 'code', redirect_uri: 'http://127.0.0.1:9/' }],
  ['without one', { response_type: 'code' }],
])('nobody begins a sign-in in a browser in its name, %s', async (_which, more) => {
  const query = new URLSearchParams({
    client_id: COMMAND_LINE,
    scope: 'read',
    code_challenge: 'a'.repeat(43),
    code_challenge_method: 'S256',
    ...more,
  });
  const answer = await fetch(`${app.url}/oauth/auth?${query.toString()}`, { redirect: 'manual' });
  expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
});

test('another identifier that looks like it is nobody', async () => {
  const body = new URLSearchParams({ client_id: `${COMMAND_LINE}s`, scope: 'read' });
  const answer = await fetch(`${app.url}/oauth/device/auth`, { method: 'POST', body });
  expect([answer.status, await answer.json()]).toMatchObject([401, { error: 'invalid_client' }]);
});
