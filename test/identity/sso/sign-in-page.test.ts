import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor } from '../../support/wait.ts';
import { openIdCompany, SAML_ENTITY, samlCompany } from './companies.ts';
import { type OpenIdServer, startOpenIdServer } from './openid-server.ts';
import { base64, inflated, newIdpKey, responseXml, signXml } from './saml-idp.ts';

let app: TestApp;
let openId: OpenIdServer;
let saml: TargetServer;
let front: TargetServer;
const key = newIdpKey();
beforeAll(async () => {
  const html = { 'content-type': 'text/html' };
  front = await startTarget((_request, response) =>
    response.writeHead(200, html).end('<!doctype html><title>Front</title>'),
  );
  saml = await startTarget(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://localhost');
    if (url.pathname !== '/sso') return response.writeHead(404).end();
    const xml = await inflated(url.href);
    const found = (pattern: RegExp) => pattern.exec(xml)?.[1] ?? '';
    const acsUrl = found(/AssertionConsumerServiceURL="([^"]+)"/);
    const facts = {
      issuer: SAML_ENTITY,
      acsUrl,
      audience: found(/:Issuer[^>]*>([^<]+)</),
      requestId: found(/ ID="([^"]+)"/),
      nameId: `sam@${samlDomain}`,
    };
    const message = base64(signXml(responseXml(facts), 'assertion', key));
    const relayState = url.searchParams.get('RelayState') ?? '';
    return response
      .writeHead(200, html)
      .end(
        `<!doctype html><form method="post" action="${acsUrl}"><input name="SAMLResponse" value="${message}">` +
          `<input name="RelayState" value="${relayState}"></form><script>document.forms[0].submit()</script>`,
      );
  });
  openId = await startOpenIdServer();
  app = await startTestApp({
    env: { OUTBOUND_ALLOW: '127.0.0.1', SSO_REDIRECT_URIS: `http://127.0.0.1:${front.port}` },
  });
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(async () => {
  await app.close();
  await Promise.all([openId.close(), saml.close(), front.close()]);
});
let samlDomain = '';

test('the page is the same for every address, and runs only its own script', async () => {
  const pages = await Promise.all(
    ['', '?code=a', '?tested=b'].map((query) => app.server.inject({ url: `/account/sign-in${query}` })),
  );
  // but for the token of its form, which is the browser's own
  const bodies = pages.map(({ body }) => body.replace(/(name="form_token" value=")[0-9a-f]{64}"/, '$1"'));
  expect(new Set(bodies).size).toBe(1);
  expect(pages[0]!.headers).toMatchObject({
    'content-security-policy': expect.stringContaining("script-src 'self'") as string,
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
  });
});

describeInBrowser('in a browser', () => {
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];
  beforeAll(async () => {
    browser = await launchBrowser();
    page = await browser.newPage();
    page.on('console', (message) => problems.push(message.text()));
  });
  afterAll(() => browser.close());

  const enter = async (email: string, query = '') => {
    await page.goto(`${app.url}/account/sign-in${query}`);
    await page.fill('#email', email);
    await page.click('#ask button');
  };
  const status = () => page.textContent('#status');

  test('an address of an OpenID provider goes there and comes back, with a session of the cookie', async () => {
    const { domain } = await openIdCompany(app, openId);
    openId.account = { sub: 'ann', email: `ann@${domain}`, email_verified: true };
    await enter(`ann@${domain}`);
    await waitFor(async () => expect(await status()).toContain(`You are signed in as ann@${domain}.`));
    await page.waitForURL(`${app.url}/account/sign-in`);
    const user = await app.database.prisma.user.findFirstOrThrow({ where: { email: `ann@${domain}` } });
    await waitFor(async () =>
      expect(
        await app.database.prisma.session.count({
          where: { userId: user.id, revokedAt: null, refreshTokens: { none: {} } },
        }),
      ).toBe(1),
    );
    expect(problems).toEqual([]);
  });

  test('an address of a SAML provider on another site, whose page posts the answer', async () => {
    const { domain } = await samlCompany(app, key, { sso_url: `http://localhost:${saml.port}/sso` });
    samlDomain = domain;
    await enter(`sam@${domain}`);
    await waitFor(async () => expect(await status()).toContain(`You are signed in as sam@${domain}.`));
    expect(problems).toEqual([]);
  });

  test('what is no address of a page is never opened', async () => {
    const { domain } = await samlCompany(app, key, { sso_url: `http://localhost:${saml.port}/sso` });
    await page.route('**/v1/auth/sso/initiate', (route) =>
      route.fulfill({ json: { redirect_url: 'javascript://localhost/%0adocument.title="taken"', protocol: 'saml' } }),
    );
    await enter(`sam@${domain}`);
    await waitFor(async () => expect(await status()).toContain('Its address cannot be opened.'));
    await page.unroute('**/v1/auth/sso/initiate');
    expect([problems, (await page.title()).includes('taken')]).toEqual([[], false]);
  });

  test('with redirect_uri the front end gets the code', async () => {
    const { domain } = await openIdCompany(app, openId);
    openId.account = { sub: 'bea', email: `bea@${domain}`, email_verified: true };
    const to = `http://127.0.0.1:${front.port}/in`;
    await enter(`bea@${domain}`, `?redirect_uri=${encodeURIComponent(to)}`);
    await page.waitForURL(/\/in\?code=[\w-]{43}$/);
  });

  test('so it does after a password, and no session stays in the browser', async () => {
    const person = await register(app, { name: 'pat' });
    const to = `http://127.0.0.1:${front.port}/in`;
    await page.context().clearCookies();
    await enter(person.email, `?redirect_uri=${encodeURIComponent(to)}`);
    await page.fill('#password', person.password);
    await page.click('#password-form button');
    await page.waitForURL(/\/in\?code=[\w-]{43}$/);
    expect((await page.context().cookies(app.url)).map(({ name }) => name)).not.toContain('session');
    await enter(person.email, `?redirect_uri=${encodeURIComponent('https://evil.example/in')}`);
    await page.fill('#password', person.password);
    await page.click('#password-form button');
    await waitFor(async () => expect(await status()).toContain('is not one of this service'));
    problems.length = 0; // the browser tells of the refusal
  });

  test('what was refused is told in the page, which asks again; so is the end of a sign-out', async () => {
    await page.goto(`${app.url}/v1/auth/sso/callback/oidc?error=access_denied&state=unknown`);
    await waitFor(async () =>
      expect(await status()).toBe('You were not signed in. Try again, or ask an administrator of your organization.'),
    );
    await page.waitForSelector('#email');
    await page.waitForURL(`${app.url}/account/sign-in`);
    await page.goto(`${app.url}/account/sign-in?signed_out=everywhere`);
    await waitFor(async () => expect(await status()).toBe('You are signed out, here and at your identity provider.'));
    expect(problems).toEqual([]);
  });

  test('any other address is asked for a password', async () => {
    const person = await register(app, { name: 'pat' });
    await enter(person.email);
    await page.fill('#password', 'wrong password');
    await page.click('#password-form button');
    await waitFor(async () => expect(await status()).toBe('The password is wrong.'));
    await page.fill('#password', person.password);
    await page.click('#password-form button');
    await waitFor(async () => expect(await status()).toContain(`You are signed in as ${person.email}.`));
  });
});
