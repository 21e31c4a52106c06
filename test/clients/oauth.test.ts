import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  ApiError,
  beginSignIn,
  Client,
  type DeviceRequest,
  finishSignIn,
  Grant,
  type GrantTokens,
  signInWithDevice,
} from 'platform-management-client';
import { MeDocument } from 'platform-management-client/documents';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import {
  allow,
  CALLBACK,
  formIn,
  newApplication,
  onwardIn,
  openConsent,
  signedInBrowser,
  submit,
} from '../identity/oauth/oauth-browser.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import type { BrowserWithCookies } from '../support/browser-with-cookies.ts';
import { type Person, register } from '../support/person.ts';

const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';

let app: TestApp;
let url: string;
let ann: Person;
let browser: BrowserWithCookies;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
  browser = await signedInBrowser(app, ann);
});
afterAll(() => app.close());

const applicationOf = async (more: Record<string, unknown> = {}) => ({
  url,
  clientId: (await newApplication(ann, more)).id,
});

/** What the user does in the browser with a code. */
async function answer(code: string, decision: 'allow' | 'deny'): Promise<void> {
  const device = `${url}/oauth/device`;
  const entry = formIn(await (await browser.send(device)).text());
  entry.set('user_code', code);
  const confirm = formIn(await (await submit(app, browser, device, entry)).text());
  confirm.set('confirm', 'yes');
  const confirmed = await submit(app, browser, device, confirm);
  const consent = await openConsent(app, browser, new URL(confirmed.headers.get('location')!, url));
  const form = formIn(consent.text);
  form.set('decision', decision);
  const next = onwardIn(await (await submit(app, browser, consent.at, form)).text());
  await browser.send(new URL(next, url).href);
}

/** Polls at once: a user of a test is fast. */
const hurried: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (!response.url.endsWith('/device/auth')) return response;
  const body = (await response.json()) as object;
  return Response.json({ ...body, interval: 0.05 }, { status: response.status });
};

test('a user lets a device in, and its grant works in REST and GraphQL', async () => {
  const application = await applicationOf({ name: 'Shell', redirect_uris: [] });
  let shown: DeviceRequest | undefined;
  const tokens = await signInWithDevice({
    ...application,
    fetch: hurried,
    scope: 'read',
    onCode: (request) => {
      shown = request;
      void answer(request.user_code, 'allow');
    },
  });
  expect(shown).toMatchObject({ verification_uri: `${url}/oauth/device` });
  const client = new Client({ url, credentials: new Grant({ ...application, tokens }) });
  const params = { path: { org_id: ann.orgId, workspace_id: ann.workspaceId } };
  expect((await client.rest.GET(WORKSPACE, { params })).data.workspace_id).toBe(ann.workspaceId);
  expect((await client.query(MeDocument, {})).me.email).toBe(ann.email);
  await expect(client.rest.PUT(WORKSPACE, { params, body: { name: 'No' } })).rejects.toMatchObject({ status: 403 });
});

test('a user who refuses a device ends its sign-in', async () => {
  const application = await applicationOf({ name: 'Shell', redirect_uris: [] });
  const asked = signInWithDevice({
    ...application,
    fetch: hurried,
    scope: 'read',
    onCode: ({ user_code }) => void answer(user_code, 'deny'),
  });
  await expect(asked).rejects.toMatchObject({ code: 'access_denied' });
  await expect(asked).rejects.toBeInstanceOf(ApiError);
});

test('a sign-in in a browser gives a grant, which is refreshed once for all who wait', async () => {
  const application = await applicationOf();
  const begun = await beginSignIn(application, { redirectUri: CALLBACK, scope: 'read offline_access' });
  const back = await allow(app, browser, new URL(begun.url));
  await expect(finishSignIn(application, { ...begun, state: 'other' }, back)).rejects.toMatchObject({
    code: 'state_mismatch',
  });
  const forged = new URL(back);
  forged.searchParams.set('iss', 'https://evil.example/oauth');
  await expect(finishSignIn(application, begun, forged)).rejects.toMatchObject({ code: 'issuer_mismatch' });
  const tokens = await finishSignIn(application, begun, back);
  expect(tokens.refresh_token).toEqual(expect.any(String));

  const kept: GrantTokens[] = [];
  const grant = new Grant({
    ...application,
    tokens: { ...tokens, access_token: 'worn.out.token' },
    onTokens: (next) => void kept.push(next),
  });
  const client = new Client({ url, credentials: grant });
  const asked = await Promise.all(Array.from({ length: 5 }, () => client.query(MeDocument, {})));
  expect([asked.map(({ me }) => me.email), kept.length]).toEqual([Array(5).fill(ann.email), 1]);

  await expect(finishSignIn(application, begun, back)).rejects.toMatchObject({ name: 'AuthenticationFailedError' });
});

/** The command line, with a home of its own, and a user who allows what it shows. */
async function withCommandLine(
  work: (run: (args: string[]) => Promise<{ code: number | null; out: string }>) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(path.join(tmpdir(), 'cli-'));
  const program = path.join(projectRoot, 'clients', 'cli', 'dist', 'index.js');
  const run = (args: string[]) =>
    new Promise<{ code: number | null; out: string }>((resolve) => {
      const child = spawn(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, HOME: home } });
      let [out, err, isAnswered] = ['', '', false];
      child.stdout.on('data', (part: Buffer) => (out += part.toString()));
      child.stderr.on('data', (part: Buffer) => {
        const code = /enter the code (\S+)\n/.exec((err += part.toString()))?.[1];
        if (code && !isAnswered) void answer(code, 'allow');
        isAnswered ||= code !== undefined;
      });
      child.once('close', (code) => resolve({ code, out }));
    });
  try {
    await work(run);
  } finally {
    rmSync(home, { recursive: true });
  }
}

test('the command line signs in with a code that is entered in a browser, and gives the grant back', () =>
  withCommandLine(async (run) => {
    expect(await run(['login', '--url', url, '--browser'])).toEqual({
      code: 0,
      out: `Signed in as ${ann.username} at ${url}.\n`,
    });
    const who = await run(['whoami', '--json']);
    expect(JSON.parse(who.out)).toMatchObject({ username: ann.username, credentials: 'profile', org: ann.orgId });
    // what the user allowed is enough for what the help begins with
    expect(await run(['workspace', 'use', ann.workspaceId])).toMatchObject({ code: 0 });
    const secret = { name: 'key', secret_type: 'api_key', value: { api_key: 'v-1' } };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/secrets`, secret)).status).toBe(201);
    expect(await run(['secrets', 'get', 'key'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('v-1') as string,
    });
    const live = () => liveGrants('Command line of this service');
    expect(await live()).toBe(1);
    expect((await run(['logout'])).code).toBe(0);
    expect(await live()).toBe(0);
  }));

test('it signs in for an application of the organization, with what is asked for', async () => {
  const { clientId } = await applicationOf({ name: 'Shell of ours', redirect_uris: [] });
  await withCommandLine(async (run) => {
    const login = ['login', '--url', url, '--client-id', clientId, '--scope', 'read offline_access'];
    expect((await run(login)).code).toBe(0);
    expect(await liveGrants('Shell of ours')).toBe(1);
    expect((await run(['workspace', 'create', 'No', '--org', ann.orgId])).code).toBe(4);
  });
});

/** How many grants of an application are good. */
async function liveGrants(name: string): Promise<number> {
  const text = `select count(*)::int as live from oauth_grants g join applications a on a.id = g.application_id
    where a.name = $1 and g.revoked_at is null`;
  return (await app.database.pool.query<{ live: number }>(text, [name])).rows[0]!.live;
}
