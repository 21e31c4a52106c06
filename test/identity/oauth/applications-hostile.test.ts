import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { BrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import {
  ask,
  CALLBACK,
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
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

let number = 0;
const somebody = async (): Promise<{ who: Person; browser: BrowserWithCookies }> => {
  number += 1;
  const who = await register(app, { name: `person${number}` });
  return { who, browser: await signedInBrowser(app, who) };
};
const rows = async <Row>(text: string, values: unknown[]): Promise<Row[]> =>
  (await app.database.pool.query(text, values)).rows as Row[];
const statusOf = async (token: string, who: Person) => (await callWith(app, token, 'GET', who.home)).status;

describe('what an application may not be granted', () => {
  test('is the making and changing of applications, which would get it tokens without asking', async () => {
    const { who, browser } = await somebody();
    const made = await newApplication(who);
    const { access_token: token, scope } = await tokensOf(app, browser, await peerOf(app, made), {
      scope: 'workspace:read application:create application:update admin',
    });
    expect(scope).toBe('workspace:read admin');
    const url = `/v1/orgs/${who.orgId}/applications`;
    const input = { name: 'Evil', application_type: 'public', redirect_uris: [CALLBACK], is_first_party: true };
    const refused = (permission: string) => [403, { details: { required_permission: permission } }];
    const created = await callWith(app, token, 'POST', url, input);
    expect([created.status, created.body]).toMatchObject(refused('application:create'));
    const rotated = await callWith(app, token, 'POST', `${url}/${made.id}/rotate-secret`);
    expect([rotated.status, rotated.body]).toMatchObject(refused('application:update'));
  });

  test('an API token must name it: `admin` does not grant it', async () => {
    const { who } = await somebody();
    const url = `/v1/orgs/${who.orgId}/applications`;
    const input = { name: 'Tool', application_type: 'public', redirect_uris: [] };
    const statusWith = async (scopes: string[]) =>
      (await callsOf(app).post(url, input, (await issueToken(app, who, { scopes })).headers)).statusCode;
    expect(await statusWith(['admin'])).toBe(403);
    expect(await statusWith(['admin', 'application:create'])).toBe(201);
  });
});

describe('grants that pile up', () => {
  const online = { scope: 'workspace:read', prompt: 'consent' };
  const LIVING = `select id from oauth_grants where application_id = $1 and revoked_at is null order by id`;

  test('are at most twenty of a kind: the one that was unused for longest ends, and no other', async () => {
    const { who, browser } = await somebody();
    const made = await newApplication(who);
    const peer = await peerOf(app, made);
    const offline = await tokensOf(app, browser, peer, { scope: 'workspace:read offline_access', prompt: 'consent' });
    const first = await tokensOf(app, browser, peer, online);
    await rows(
      `insert into oauth_grants (id, org_id, application_id, user_id, session_id, scopes, created_at)
        select g.id || n, org_id, application_id, user_id, session_id, scopes, now() + make_interval(secs => n)
        from oauth_grants g, generate_series(1, 19) n where application_id = $1 and session_id is not null`,
      [made.id],
    );
    expect(await rows(LIVING, [made.id])).toHaveLength(21);
    const next = await tokensOf(app, browser, peer, online);
    expect(await rows(LIVING, [made.id])).toHaveLength(21);
    expect(await statusOf(first.access_token, who)).toBe(401);
    expect([await statusOf(next.access_token, who), await statusOf(offline.access_token, who)]).toEqual([200, 200]);
  });

  test('beyond what the page of the account shows, each can still be ended; the page says that', async () => {
    const { who, browser } = await somebody();
    const made = await newApplication(who);
    const old = await tokensOf(app, browser, await peerOf(app, made), { scope: 'workspace:read' });
    const [grant] = await rows<{ id: string; sessionId: string }>(
      'select id, session_id as "sessionId" from oauth_grants where application_id = $1',
      [made.id],
    );
    const token = await issueToken(app, who);
    const open = async () => (await browser.send(`${app.url}/account`)).text();
    expect(await open()).not.toContain('There are more than these');
    await rows(
      `insert into oauth_grants (id, org_id, application_id, user_id, scopes)
        select 'gnt_zzz' || n || md5(g.id), org_id, application_id, user_id, scopes
        from oauth_grants g, generate_series(1, 200) n where id = $1`,
      [grant!.id],
    );
    await rows(
      `insert into sessions (id, user_id, org_id, expires_at, method)
        select 'ses_zzz' || n || md5(s.id), user_id, org_id, expires_at, method
        from sessions s, generate_series(1, 200) n where id = $1`,
      [grant!.sessionId],
    );
    const text = await open();
    expect(text.split('There are more than these 200')).toHaveLength(3);
    for (const id of [grant!.id, token.id]) expect(text.includes(id)).toBe(id === token.id);
    const end = async (what: string) => {
      const form = new URLSearchParams({ form_token: formIn(text).get('form_token')!, end: what });
      return (await submit(app, browser, `${app.url}/account`, form)).status;
    };
    expect(await end(`application ${grant!.id}`)).toBe(303);
    expect(await statusOf(old.access_token, who)).toBe(401);
    const [other] = await rows<{ id: string }>(
      `select id from sessions where user_id = $1 and id <> $2 and revoked_at is null order by id limit 1`,
      [who.userId, grant!.sessionId],
    );
    expect(text).not.toContain(other!.id);
    expect(await end(`session ${other!.id}`)).toBe(303);
    expect(await rows('select revoked_reason from sessions where id = $1', [other!.id])).toEqual([
      { revoked_reason: 'logout' },
    ]);
    expect(await end(`token ${token.id}`)).toBe(303);
  });

  test('are ended by nobody else', async () => {
    const { who, browser } = await somebody();
    const made = await newApplication(who);
    const tokens = await tokensOf(app, browser, await peerOf(app, made), { scope: 'workspace:read' });
    const [grant] = await rows<{ id: string; session_id: string }>(
      'select id, session_id from oauth_grants where application_id = $1',
      [made.id],
    );
    const token = await issueToken(app, who);
    const { browser: foreign } = await somebody();
    const form_token = formIn(await (await foreign.send(`${app.url}/account`)).text()).get('form_token')!;
    for (const end of [`application ${grant!.id}`, `session ${grant!.session_id}`, `token ${token.id}`]) {
      const form = new URLSearchParams({ form_token, end });
      const answer = await submit(app, foreign, `${app.url}/account`, form);
      expect([end, answer.status]).toEqual([end, 404]);
    }
    expect(await statusOf(tokens.access_token, who)).toBe(200);
  });
});

describe('a new password', () => {
  const offline = { scope: 'workspace:read offline_access', prompt: 'consent' };

  test('by a mailed link ends all that was granted, also of an account whose address is proven', async () => {
    const { who, browser } = await somebody();
    await rows('update users set is_verified = true where id = $1', [who.userId]);
    const tokens = await tokensOf(app, browser, await peerOf(app, await newApplication(who)), offline);
    const api = callsOf(app);
    await api.post('/v1/auth/forgot-password', { email: who.email });
    await app.jobsDone();
    const mail = app.mails.findLast(({ to, subject }) => to === who.email && subject === 'Reset your password');
    const token = new URL(mail!.link!).searchParams.get('token');
    const reset = await api.post('/v1/auth/reset-password', { token, new_password: 'a fresh long password' });
    expect(reset.statusCode).toBe(200);
    expect(await statusOf(tokens.access_token, who)).toBe(401);
    await app.jobsDone();
    const told = app.mails.findLast(({ to, subject }) => to === who.email && subject === 'Your password was changed');
    expect(told!.text).not.toContain('applications');
  });

  test('by its owner names the applications that go on, once each, in the mail and the notification', async () => {
    const { who, browser } = await somebody();
    const peer = await peerOf(app, await newApplication(who, { name: 'Calendar' }));
    const tokens = await tokensOf(app, browser, peer, offline);
    await tokensOf(app, browser, peer, offline);
    const changed = await who.ask(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input: { currentPassword: who.password, newPassword: 'a fresh long password' } },
    );
    expect(changed.errors).toBeUndefined();
    expect(await statusOf(tokens.access_token, who)).toBe(200);
    await app.jobsDone();
    const told = app.mails.findLast(({ to, subject }) => to === who.email && subject === 'Your password was changed');
    const lines = told!.text.split('These applications still act for you; disconnect those that you do not know:\n');
    expect(lines[1]!.trim().split('\n')).toEqual([
      expect.stringMatching(/^- 'Calendar' of .*: (last used|never used)/),
    ]);
    const { body } = await who.call<{ notifications: object[] }>('GET', '/v1/notifications');
    expect(body.notifications).toContainEqual(
      expect.objectContaining({
        message: expect.stringContaining(" These applications still act for you: 'Calendar'.") as string,
        metadata: expect.objectContaining({ applications: ['Calendar'], applications_total: 1 }) as object,
      }),
    );
  });
});

describe('where answers go', () => {
  test.each([
    ['com.evil.app://accounts.google.com/cb'],
    ['com.evil.app:cb'],
    ['javascript.x:/alert(1)'],
    ['data.x:/text'],
    ['data:text/html,x'],
    ['https:evil.com'],
    ['https://EVIL.com/'],
    ['https://evil.com'],
    ['https://evil.com:443/'],
    ['https://evil.com/a/../b'],
    ['https://@x.com/'],
    ['https://localhost/cb'],
    ['http://2130706433/cb'],
    ['http://127.1/cb'],
    ['https://evil.com/\u202Emoc.elgoog'],
    ['https://\u0430pple.com/'],
  ])('%j cannot be registered', async (uri) => {
    const who = await register(app, { name: `uri${(number += 1)}` });
    const input = { name: 'Bad', application_type: 'public', redirect_uris: [CALLBACK, uri] };
    const { status, body } = await who.call('POST', `/v1/orgs/${who.orgId}/applications`, input);
    expect([status, body]).toMatchObject([422, { detail: [{ loc: ['body', 'redirect_uris', 1] }] }]);
  });

  test('the page that asks names the app, and no host that its address seems to have', async () => {
    const { who, browser } = await somebody();
    const made = await newApplication(who, { redirect_uris: ['com.example.app:/done'] });
    const uri = 'com.evil.app://accounts.google.com/cb';
    await rows('update applications set redirect_uris = $2 where id = $1', [made.id, [uri, 'com.example.app:/done']]);
    const peer = await peerOf(app, made);
    for (const [to, shown] of [
      [uri, 'the app com.evil.app:'],
      ['com.example.app:/done', 'the app com.example.app:'],
    ] as const) {
      const { url } = await ask(peer, { scope: 'workspace:read', redirect_uri: to });
      const { text } = await openConsent(app, browser, url);
      expect(text).toContain(`<strong>${shown}</strong>`);
      expect(text).not.toContain('<strong>accounts.google.com</strong>');
    }
  });

  test('the port of the own machine is free, also beside addresses of the web and of an app', async () => {
    const { who, browser } = await somebody();
    const redirect_uris = [CALLBACK, 'http://127.0.0.1/callback', 'com.example.app:/done'];
    const peer = await peerOf(app, await newApplication(who, { redirect_uris }));
    const { url } = await ask(peer, { scope: 'workspace:read', redirect_uri: 'http://127.0.0.1:49152/callback' });
    expect((await openConsent(app, browser, url)).text).toContain('<strong>127.0.0.1:49152</strong>');
    const { url: other } = await ask(peer, { redirect_uri: 'https://app.example.test:8443/callback' });
    expect((await openConsent(app, browser, other)).text).toContain('invalid_redirect_uri');
  });
});
