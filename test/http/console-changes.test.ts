import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { beforeAll, expect, it } from 'vitest';
import { SAML_ENTITY } from '../identity/sso/companies.ts';
import { startOpenIdServer } from '../identity/sso/openid-server.ts';
import { newIdpKey } from '../identity/sso/saml-idp.ts';
import { metadataXml } from '../identity/sso/saml-metadata.ts';
import type { TestApp } from '../support/app.ts';
import { makeGrant } from '../support/application-grant.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import { newBrowserWithCookies } from '../support/browser-with-cookies.ts';
import { letFactorsAge, withTotp } from '../support/factors.ts';
import { startOAuthServer } from '../support/oauth-server.ts';
import { colleague, type Person, registerProven } from '../support/person.ts';
import { receive } from '../support/receivers.ts';
import { waitFor } from '../support/wait.ts';
import {
  connectByKey,
  endOf,
  goOn,
  makeKeyInstance,
  newEndUser,
  RETURN_TO,
} from '../tools/connect-links/connecting-end-users.ts';
import { ConsoleInBrowser, open, part } from './console-browser.ts';
import type { Story } from './console-story.ts';

describeInBrowser('what the console changes', () => {
  const shown = new ConsoleInBrowser();
  const pageOf = (...given: Parameters<ConsoleInBrowser['pageOf']>) => shown.pageOf(...given);
  const homeOf = (place: Pick<Person, 'orgId' | 'workspaceId'>) => shown.homeOf(place);
  let app: TestApp;
  let ann: Person;
  let vic: Person;
  let story: Story;
  beforeAll(() => {
    ({ app, ann, vic, story } = shown.cast);
  });

  it('creates a webhook, shows its secret once, and what was sent and answered', async () => {
    const receiver = await receive((_request, response) => response.end('thanks a lot'));
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/webhooks`);
    await page.getByRole('button', { name: 'New webhook' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('To our chat');
    await page.getByRole('textbox', { name: 'Address' }).fill('http://10.0.0.1/');
    await page.getByLabel('thread.*', { exact: true }).check();
    await page.getByRole('button', { name: 'Create' }).click();
    // what the service refuses is said at its field
    await waitFor(async () =>
      expect(await page.getByRole('textbox', { name: 'Address' }).getAttribute('aria-invalid')).toBe('true'),
    );
    await page.getByRole('textbox', { name: 'Address' }).fill(receiver.url);
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Secret of To our chat' });
    const secret = (await once.locator('code').textContent())!;
    expect(secret).toMatch(/^whsec_/);
    await once.getByRole('button', { name: 'Done' }).click();
    await once.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(secret);
    await page.getByRole('button', { name: 'To our chat', exact: true }).click();
    const log = page.getByRole('dialog', { name: 'Deliveries of To our chat' });
    await log.getByText('Nothing was sent in the last seven days.').waitFor();
    await log.getByRole('button', { name: 'Send a test' }).click();
    await log.getByText('delivered').waitFor();
    await log.getByText('webhook.test').first().click();
    await log.getByText('thanks a lot').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const [first] = await receiver.has(1);
    new Verifier(secret).verify(first!.body, first!.headers);
    await log.getByRole('button', { name: 'Send again' }).click();
    expect((await receiver.has(2))[1]!.body).toBe(first!.body);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'New secret for To our chat' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click();
    expect(await once.locator('code').textContent()).not.toBe(secret);
    await once.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Turn off To our chat' }).click();
    await page.getByRole('button', { name: 'Turn on To our chat' }).waitFor();
    await receiver.close();
  });

  it('makes an API token with few rights, shows it once, and revokes it', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/tokens`);
    await page.getByRole('button', { name: 'New API token' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('ci');
    await page.getByLabel('Find in Scopes').fill('read');
    await page.getByRole('group', { name: 'Scopes' }).getByLabel('read', { exact: true }).check();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Token ci' });
    const token = (await once.locator('code').first().textContent())!;
    await once.getByRole('button', { name: 'Done' }).click();
    const asked = async (method: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const body = method === 'GET' ? {} : { body: '{"description":"x"}' };
      return (await fetch(`${app.url}${ann.home}`, { method, headers, ...body })).status;
    };
    expect([await asked('GET'), await asked('PUT')]).toEqual([200, 403]);
    await part(page, 'My API tokens').getByRole('button', { name: 'Revoke ci' }).click();
    await page.getByLabel('Type “ci” to confirm').fill('ci');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await part(page, 'All API tokens').getByText('revoked').waitFor();
    expect(await asked('GET')).toBe(401);
  });

  it('makes a link for an end user, shows who has connected, and takes a connection back', async () => {
    const server = await startOAuthServer();
    const id = await makeKeyInstance(ann, server);
    const endUserId = newEndUser();
    await connectByKey(app, ann, { instanceId: id, endUserId, key: 'k-1' });
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/tools`);
    const list = part(page, 'Connections of end users');
    await page.locator(`main a[href$="/tools/${id}"]`).click();
    await list.getByText(endUserId, { exact: true }).waitFor();
    await list.getByRole('combobox', { name: 'Status' }).selectOption('needs_reauth');
    await list.getByText('Nothing found').waitFor();
    expect(new URL(page.url()).search).toBe('?status=needs_reauth');
    await list.getByRole('combobox', { name: 'Status' }).selectOption('');
    await list.getByText(endUserId, { exact: true }).waitFor();

    const other = newEndUser();
    await page.getByRole('button', { name: 'New link to connect' }).click();
    const dialog = page.getByRole('dialog');
    const field = dialog.getByLabel('End user');
    await field.fill('größer');
    await dialog.getByLabel('Name').fill('Eve End');
    await dialog.getByLabel('Goes back to').selectOption(RETURN_TO);
    expect(await barriersOf(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Create' }).click();
    await waitFor(async () => expect(await field.getAttribute('aria-invalid')).toBe('true'));
    await field.fill(other);
    await dialog.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: `Link for ${other}` });
    const link = (await once.locator('code').textContent())!;
    await once.getByRole('button', { name: 'Copy: Link' }).waitFor();
    await once.getByRole('button', { name: 'Done' }).click();
    await once.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(link);
    // an end user is seen as soon as they have connected
    const end = await endOf(await goOn(app, newBrowserWithCookies(), link, { api_key: 'k-2' }));
    expect([end.origin, end.searchParams.get('status')]).toEqual([new URL(RETURN_TO).origin, 'connected']);
    await list.getByText(other, { exact: true }).waitFor();

    const back = part(page, 'Return addresses');
    await back.getByRole('button', { name: 'Edit return addresses' }).click();
    const addresses = dialog.getByLabel('Return addresses');
    await addresses.fill(`${RETURN_TO}\nhttp://elsewhere.example.test/`);
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await waitFor(async () => expect(await addresses.getAttribute('aria-invalid')).toBe('true'));
    await addresses.fill('https://app.example.test/new');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await back.getByRole('listitem').getByText('https://app.example.test/new').waitFor();
    await back.getByText(RETURN_TO).waitFor({ state: 'detached' });

    await list.getByRole('button', { name: `Delete the connection of ${endUserId}` }).click();
    await dialog.getByText('Your app can no longer act for this end user.').waitFor();
    await dialog.getByLabel(`Type “${endUserId}” to confirm`).fill(endUserId);
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await list.getByText(endUserId, { exact: true }).waitFor({ state: 'detached' });
    const left = await ann.call<{ connections: { end_user_id: string }[] }>(
      'GET',
      `${ann.home}/tool-instances/${id}/end-user-connections`,
    );
    expect(left.body.connections.map(({ end_user_id }) => end_user_id)).toEqual([other]);

    // a viewer sees them, and no button; narrow and dark
    const theirs = await pageOf(vic, { width: 360, height: 800 });
    await theirs.emulateMedia({ colorScheme: 'dark' });
    await open(theirs, `${homeOf(ann)}/tools/${id}`);
    await part(theirs, 'Connections of end users').getByText(other, { exact: true }).waitFor();
    expect(await theirs.locator('main button').allTextContents()).toEqual([]);
    expect(await barriersOf(theirs)).toEqual([]);
    expect(await theirs.evaluate('document.documentElement.scrollWidth')).toBe(360);
    await server.close();
  });

  it('draws the deployments of an environment as a line that arrow keys walk along', async () => {
    const page = await pageOf(ann, { width: 360, height: 800 });
    await open(page, `${homeOf(ann)}/environments?environment=${story.staging}`);
    await page.getByRole('button', { name: 'Deploy or roll back: Support desk in Staging, 1.1.0' }).click();
    await page.getByRole('button', { name: 'Roll back to 1.0.0' }).click();
    const line = page.getByRole('group', { name: 'Deployments over time' });
    const facts = page.locator('.timeline .facts');
    const newest = line.getByRole('radio', { name: `rolled back, 1.1.0 → 1.0.0, ${ann.username}` });
    await newest.waitFor();
    await facts.getByText('rolled back').waitFor();
    await newest.focus();
    await page.keyboard.press('ArrowLeft');
    await facts.getByText('1.0.0 → 1.1.0').waitFor();
    await page.keyboard.press('ArrowLeft');
    await facts.getByText('1.0.0', { exact: true }).waitFor();
    expect(await line.getByRole('radio').count()).toBe(3);
    await page.getByRole('table', { name: 'History' }).getByText('1.1.0 → 1.0.0').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('registers an application, and takes back what somebody has granted to one', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/tokens`);
    await page.getByRole('button', { name: 'New application' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Planner');
    await page.getByLabel('Addresses for answers').fill('https://planner.example.test/done');
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'Credentials of Planner' });
    const id = (await once.locator('code').first().textContent())!;
    await once.getByRole('button', { name: 'Done' }).click();
    const { rows } = await app.database.pool.query<{ id: string }>('select id from applications');
    expect(rows).toEqual([{ id }]);
    await makeGrant(app, { orgId: ann.orgId, applicationId: id, userId: vic.userId });
    await page.reload();
    await page.getByRole('button', { name: `Disconnect Planner from ${vic.username}` }).click();
    await page.getByLabel(`Type “${vic.username}” to confirm`).fill(vic.username);
    await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
    await page.getByText('No member has connected an application.').waitFor();
  });

  it('tests an identity provider, proves its domain, and turns it off', async () => {
    const openId = await startOpenIdServer();
    const secret = { name: 'sso-client', secret_type: 'oauth2', value: { client_secret: openId.clientSecret } };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/secrets`, secret)).status).toBe(201);
    const provider = {
      client_id: openId.clientId,
      client_secret_ref: 'secret://sso-client',
      discovery_url: openId.discoveryUrl,
    };
    const idps = `/v1/orgs/${ann.orgId}/identity-providers`;
    const fields = { name: 'Company', protocol: 'oidc', verified_domains: ['company.example'], oidc_config: provider };
    expect((await ann.call('POST', idps, fields)).status).toBe(201);
    openId.account = { sub: 'ann', email: 'ann@company.example', email_verified: true };
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'Test sign-in at Company' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Test sign-in' }).click();
    await page.getByRole('dialog').getByText('A real sign-in would create an account.').waitFor();
    await page.getByRole('dialog').getByText('ann@company.example').first().waitFor();
    expect(await barriersOf(page)).toEqual([]);
    for (const other of page.context().pages()) if (other !== page) await other.close();
    await page.bringToFront();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Prove company.example' }).click();
    const listed = page.waitForResponse(
      (answer) => answer.url().endsWith('/graphql') && answer.request().postData()!.includes('IdentityProviders'),
    );
    await page.getByRole('button', { name: 'Ask for a record' }).click();
    // the provider is another version of itself from now on
    await listed;
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Turn off Company' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click();
    await page.getByRole('button', { name: 'Turn on Company' }).waitFor();
    await part(page, 'Single sign-on').getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('Owners may break the glass').uncheck();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await part(page, 'Single sign-on')
      .locator('div', { hasText: 'Owners may break the glass' })
      .getByText('no', { exact: true })
      .waitFor();
    await openId.close();
  });

  it('adds an identity provider by a form, and tests a sign-in there', async () => {
    const openId = await startOpenIdServer();
    openId.account = { sub: 'ida', email: 'ida@forms.example', email_verified: true };
    const secret = { name: 'form-client', secret_type: 'oauth2', value: { client_secret: openId.clientSecret } };
    expect((await ann.call('POST', `/v1/orgs/${ann.orgId}/secrets`, secret)).status).toBe(201);
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'New identity provider' }).click();
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: /^OpenID Connect/ }).click();
    const dialog = page.getByRole('dialog', { name: 'New identity provider' });
    await dialog.getByText(`${app.url}/v1/auth/sso/callback/oidc`, { exact: true }).waitFor();
    await dialog.getByLabel('Name').fill('By form');
    await dialog.getByLabel('Client ID').fill(openId.clientId);
    const [issuer, reference] = [dialog.getByLabel('Issuer'), dialog.getByLabel('Client secret')];
    const create = dialog.getByRole('button', { name: 'Create', exact: true });
    const isRefused = (field: typeof issuer) =>
      waitFor(async () => expect(await field.getAttribute('aria-invalid')).toBe('true'));
    await issuer.fill('http://login.forms.example');
    await reference.fill('secret://form-client');
    await create.click();
    await isRefused(issuer);
    await issuer.fill(openId.discoveryUrl);
    await reference.fill('secret://unknown');
    await create.click();
    await isRefused(reference);
    expect(await barriersOf(page)).toEqual([]);
    await reference.fill('secret://form-client');
    await dialog.getByLabel('Domains').fill('forms.example');
    await create.click();
    const test = page.getByRole('dialog', { name: 'Test sign-in at By form' });
    await test.getByRole('button', { name: 'Test sign-in' }).click();
    await test.getByText('A real sign-in would create an account.').waitFor();
    for (const other of page.context().pages()) if (other !== page) await other.close();
    await page.bringToFront();
    await test.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Turn off By form' }).waitFor();
    await openId.close();
  });

  it('adds a SAML provider by pasted metadata, or by the address of it', async () => {
    const key = newIdpKey();
    const server = await receive((_request, response) => response.end(metadataXml({ keys: [key] })));
    const page = await pageOf(ann, { width: 360, height: 800 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await open(page, `${homeOf(ann)}/sign-in`);
    const dialog = page.getByRole('dialog', { name: 'New identity provider' });
    const create = dialog.getByRole('button', { name: 'Create', exact: true });
    await page.getByRole('button', { name: 'New identity provider' }).click();
    await page.getByRole('button', { name: /^SAML, by pasted metadata/ }).click();
    await dialog.getByLabel('Name').fill('Pasted');
    const xml = dialog.getByLabel('Metadata (XML)');
    const said = async (text: string, fault: string) => {
      await xml.fill(text);
      await create.click();
      await dialog.getByText(fault).waitFor();
      expect(await xml.getAttribute('aria-invalid')).toBe('true');
    };
    await said('<a', 'This is not the metadata of one SAML identity provider.');
    await said(metadataXml({ keys: [key], ssoUrl: 'http://idp.example.test/sso' }), 'ssoUrl: ');
    await said(metadataXml({ keys: [key], root: 'validUntil="2020-01-01T00:00:00Z"' }), 'This metadata has expired.');
    expect(await barriersOf(page)).toEqual([]);
    await xml.fill(metadataXml({ keys: [key, key], sloUrl: 'https://idp.test/slo' }));
    await create.click();
    await page.getByRole('dialog', { name: 'Test sign-in at Pasted' }).getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'New identity provider' }).click();
    await page.getByRole('button', { name: /^SAML, by the address/ }).click();
    await dialog.getByLabel('Name').fill('Read');
    await dialog.getByLabel('Address of the metadata').fill(server.url);
    await dialog.getByLabel('Turned on').uncheck();
    await create.click();
    await page.getByRole('dialog', { name: 'Test sign-in at Read' }).getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Turn on Read' }).waitFor();
    const { rows } = await app.database.pool.query(
      `select name, is_active, saml_entity_id, saml_sso_url, saml_slo_url, saml_metadata_url,
        replace(saml_certificate, chr(10), '') as certificate
        from identity_providers where name in ('Pasted', 'Read') order by name`,
    );
    const certificate = key.certificate.replaceAll('\n', '');
    const usual = { saml_entity_id: SAML_ENTITY, saml_sso_url: 'https://idp.test/sso', certificate };
    expect(rows).toEqual([
      { ...usual, name: 'Pasted', is_active: true, saml_slo_url: 'https://idp.test/slo', saml_metadata_url: null },
      { ...usual, name: 'Read', is_active: false, saml_slo_url: null, saml_metadata_url: server.url },
    ]);
    await server.close();
  });

  it('shows why the metadata of a provider was not read, and when it last was', async () => {
    const eve = await registerProven(app, { name: 'eve' });
    const saml_config = {
      entity_id: 'https://idp.test/entity',
      sso_url: 'https://idp.test/sso',
      certificate: newIdpKey().certificate,
    };
    const fields = { name: 'Broken', protocol: 'saml', saml_config };
    expect((await eve.call('POST', `/v1/orgs/${eve.orgId}/identity-providers`, fields)).status).toBe(201);
    await app.database.pool.query(
      `update identity_providers set saml_metadata_url = 'https://idp.test/metadata', saml_metadata_failures = 1,
        saml_metadata_error = 'the address answered with status 503',
        saml_metadata_fetched_at = now() - interval '2 days', saml_metadata_refresh_at = now() + interval '1 hour'
        where org_id = $1`,
      [eve.orgId],
    );
    const page = await pageOf(eve);
    await open(page, `${homeOf(eve)}/sign-in`);
    const row = page.getByRole('row', { name: 'Broken' });
    await row.getByText('metadata not read').waitFor();
    await row.getByText('the address answered with status 503').waitFor();
    await row.locator('time').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });

  it('demands a second factor, says who lacks one, and what takes a fresh one', async () => {
    const eve = await registerProven(app, { name: 'eve' });
    const dan = await colleague(app, eve, 'viewer');
    const page = await pageOf(eve);
    await open(page, `${homeOf(eve)}/sign-in`);
    const rules = part(page, 'Second factors');
    const lacking = rules.getByRole('table', { name: 'Members without a second factor' });
    await lacking.getByText(dan.username).waitFor();
    await lacking.getByText('not demanded').first().waitFor();
    const change = async () => {
      await rules.getByRole('button', { name: 'Change the rules for second factors' }).click();
      const dialog = page.getByRole('dialog', { name: 'Second factors' });
      await dialog.getByLabel('All members need a second factor').check();
      await dialog.getByLabel('Days without one').fill('3');
      await dialog.getByLabel('Members and their roles').check();
      await dialog.getByRole('button', { name: 'Save', exact: true }).click();
      return dialog;
    };
    const refused = await change();
    await refused.getByRole('alert').getByText('Add a second factor to your own account first.').waitFor();
    await refused.getByRole('link', { name: 'Add one in another window' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await withTotp(app, eve);
    await letFactorsAge(app, eve);
    app.services.authentication.sessionsChanged();
    const stale = await change();
    const link = stale.getByRole('alert').getByRole('link', { name: 'Prove it in another window' });
    expect(await link.getAttribute('href')).toBe(`${app.url}/account/factors`);
    await app.database.pool.query('update sessions set factor_at = now() where user_id = $1', [eve.userId]);
    app.services.authentication.sessionsChanged();
    await stale.getByRole('button', { name: 'Save', exact: true }).click();
    await stale.waitFor({ state: 'detached' });
    await rules.locator('dd', { hasText: 'Members and their roles' }).waitFor();
    await lacking.getByText('not demanded').first().waitFor({ state: 'detached' });
    const { body } = await eve.call('GET', `/v1/orgs/${eve.orgId}/sign-in-policy`);
    expect(body).toMatchObject({ require_factor: true, factor_grace_days: 3, step_up: ['member_changes'] });
    // the own account has one now
    await lacking.getByText(eve.username).waitFor({ state: 'detached' });
    expect(await barriersOf(page)).toEqual([]);
  });

  it('gives a directory a token, and takes it back', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/sign-in`);
    await page.getByRole('button', { name: 'New SCIM token' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Okta');
    await page.getByRole('button', { name: 'Create' }).click();
    const once = page.getByRole('dialog', { name: 'SCIM token Okta' });
    const [url, token] = [
      (await once.locator('code').nth(0).textContent())!,
      (await once.locator('code').nth(1).textContent())!,
    ];
    expect([new URL(url).pathname, token.length > 20]).toEqual([`/scim/v2/${ann.orgId}`, true]);
    await once.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Revoke Okta' }).click();
    await page.getByLabel('Type “Okta” to confirm').fill('Okta');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('No directory keeps the members of this organization.').waitFor();
  });

  it('grants a model to a workspace, and says where a request would go', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/models`);
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    await page.getByRole('dialog').getByRole('cell', { name: 'Models EU' }).waitFor();
    const ask = page.getByRole('button', { name: 'Where would a request go now?' });
    await ask.click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Grant a model' }).click();
    await page.getByLabel('Most requests a day').fill('1000');
    await page.getByRole('dialog').getByRole('button', { name: 'Grant a model' }).click();
    await part(page, 'What this workspace may use').getByText('1,000 requests a day').waitFor();
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    await ask.click();
    await page.getByRole('dialog').getByRole('listitem').getByText('large-1').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });

  it('draws what was used of models over time, of all or one target, with tables and files', async () => {
    const url = `/v1/orgs/${ann.orgId}`;
    const { body: accounts } = await ann.call<{ accounts: { provider_account_id: string }[] }>(
      'GET',
      `${url}/provider-accounts`,
    );
    const account = accounts.accounts[0]!.provider_account_id;
    const targets = ['tiny-1', 'tiny-2'].map((name) => ({ provider_account_id: account, model_name: name }));
    const sent = async (at: string, payload: object) =>
      expect((await ann.call('POST', at, payload)).status).toBeLessThan(300);
    await sent(`${url}/model-catalog`, { logical_model_id: 'tiny', name: 'Tiny', targets });
    await sent(`${ann.home}/model-entitlements`, { logical_model_id: 'tiny' });
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/models?model=tiny`);
    const usage = part(page, 'Usage over time');
    await usage.getByText('Nothing was reported in this span.').waitFor();
    const report = (name: string, outcome: string, more: object = {}) =>
      sent(`${ann.home}/models/tiny/usage`, { provider_account_id: account, model_name: name, outcome, ...more });
    await report('tiny-1', 'success', { input_tokens: 1_200, output_tokens: 300, cost: '0.1' });
    await report('tiny-1', 'timeout');
    await report('tiny-2', 'success', { input_tokens: 5, cost: '0.2' });
    // something that happens has the numbers read again
    const again = await ann.call('PATCH', `${ann.home}/model-entitlements/tiny`, { enabled: true });
    expect(again.status).toBe(200);
    const figures = async () => (await usage.locator('dl').textContent())?.replace(/\s+/g, ' ');
    await waitFor(async () => expect(await figures()).toBe('Requests3Failed1Tokens in1,205Tokens out300Cost0.3'));
    await part(page, 'Requests and failures').locator('canvas').waitFor();
    expect(await barriersOf(page)).toEqual([]);

    // what is kept is told, and nothing is offered beyond it
    const span = usage.getByRole('combobox', { name: 'Span' });
    expect(await span.locator('option').allTextContents()).not.toContain('12 months');
    await span.selectOption('quarter');
    const requests = part(page, 'Requests and failures');
    await requests.getByText('Numbers as a table').click();
    await waitFor(async () => expect(await requests.locator('tbody tr').count()).toBe(90));
    await span.selectOption('month');
    await usage.getByRole('combobox', { name: 'Target' }).selectOption('tiny-1 (Models EU)');
    await waitFor(async () => expect(await figures()).toBe('Requests2Failed1Tokens in1,200Tokens out300Cost0.1'));
    expect(new URL(page.url()).searchParams.get('target')).toBe(`${account} tiny-1`);
    const tokens = part(page, 'Tokens');
    await tokens.getByText('Numbers as a table').click();
    await tokens.getByRole('cell', { name: '1,200', exact: true }).waitFor();
    const href = await tokens.getByRole('link', { name: 'Tokens as CSV' }).getAttribute('href');
    const [head, ...rows] = decodeURIComponent(href!.split(',').slice(1).join(',')).split('\r\n');
    expect(head).toBe('time,Tokens in,Tokens out');
    expect(rows.length).toBe(await tokens.locator('tbody tr').count());
    expect(rows.filter((row) => !row.endsWith(',0,0'))).toEqual([expect.stringMatching(/Z,1200,300$/)]);
    // what the address has is what somebody else sees
    const other = await pageOf(vic, { width: 360, height: 740 });
    await other.emulateMedia({ colorScheme: 'dark' });
    await open(other, page.url().replace('tiny-1', 'tiny-2'));
    await part(other, 'Usage over time').locator('dl').getByText('0.2', { exact: true }).waitFor();
    expect(await barriersOf(other)).toEqual([]);
    expect(await other.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('adds an account at a provider, a model that it serves, and takes both away', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/models`);
    await page.getByRole('button', { name: 'New account' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Spare');
    await page.getByLabel('Provider', { exact: true }).selectOption('anthropic');
    const credentials = page.getByLabel('Credentials', { exact: true });
    await credentials.fill('secret://');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await waitFor(async () => expect(await credentials.getAttribute('aria-invalid')).toBe('true'));
    await credentials.fill('secret://model-key');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const accounts = part(page, 'Accounts at providers');
    await accounts.getByRole('button', { name: 'Turn off the account Spare' }).waitFor();

    await page.getByRole('button', { name: 'New model' }).click();
    await page.getByLabel('Identifier').fill('small');
    await page.getByLabel('Name', { exact: true }).fill('Small');
    await page
      .getByRole('dialog')
      .getByRole('combobox', { name: 'Account', exact: true })
      .selectOption({ label: 'Spare' });
    await page.getByLabel('Its name at the provider').fill('small-1');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('button', { name: 'Small', exact: true }).click();
    await page.getByRole('button', { name: 'Add a target' }).click();
    await page
      .getByRole('dialog')
      .getByRole('combobox', { name: 'Account', exact: true })
      .selectOption({ label: 'Models EU' });
    await page.getByLabel('Its name at the provider').fill('small-2');
    await page.getByLabel('Priority').fill('2');
    await page.getByRole('dialog').getByRole('button', { name: 'Add a target' }).click();
    await page.getByRole('button', { name: 'Remove the target small-2' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    const targets = async () => {
      const { body } = await ann.call<{ targets: object[] }>('GET', `/v1/orgs/${ann.orgId}/model-catalog/small`);
      return body.targets;
    };
    expect(await targets()).toMatchObject([
      { model_name: 'small-1', priority: 1, weight: 100, enabled: true },
      { model_name: 'small-2', priority: 2, weight: 100, enabled: true },
    ]);
    await page.getByRole('button', { name: 'Remove the target small-1' }).click();
    await page.getByRole('button', { name: 'Remove the target small-1' }).waitFor({ state: 'detached' });
    expect(await targets()).toMatchObject([{ model_name: 'small-2' }]);
    await page.getByRole('button', { name: 'Delete Small' }).click();
    await page.getByLabel('Type “Small” to confirm').fill('Small');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Small', exact: true }).waitFor({ state: 'detached' });

    // the other one serves a model
    await accounts.getByRole('button', { name: 'Delete the account Models EU' }).click();
    await page.getByLabel('Type “Models EU” to confirm').fill('Models EU');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await accounts.getByRole('button', { name: 'Delete the account Spare' }).click();
    await page.getByLabel('Type “Spare” to confirm').fill('Spare');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await accounts.getByRole('button', { name: 'Turn off the account Spare' }).waitFor({ state: 'detached' });
    await accounts.getByRole('button', { name: 'Turn off the account Models EU' }).click();
    await accounts.getByRole('button', { name: 'Turn on the account Models EU' }).waitFor();
    await accounts.getByRole('button', { name: 'Turn on the account Models EU' }).click();
    await accounts.getByRole('button', { name: 'Turn off the account Models EU' }).waitFor();
  });

  it('makes an app from a recipe, with what takes the place of what is missing', async () => {
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/apps`);
    await page.getByRole('button', { name: 'New app from a recipe' }).click();
    await page.getByRole('button', { name: /An assistant that answers one message/ }).click();
    await page.getByLabel('Name', { exact: true }).fill('Our assistant');
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByLabel('Instead of default-chat').selectOption({ label: 'Large' });
    expect(await barriersOf(page)).toEqual([]);
    expect((await ann.call<{ apps: unknown[] }>('GET', `${ann.home}/apps`)).body.apps).toHaveLength(1);
    await page.getByRole('button', { name: 'Create the app' }).click();
    await page.getByRole('link', { name: 'Open the app' }).click();
    await page.getByRole('heading', { level: 1, name: 'Our assistant' }).waitFor();
    const { rows } = await app.database.pool.query<{ model: string }>(
      'select distinct logical_model_id as model from augmentation_steps where logical_model_id is not null',
    );
    expect(rows).toEqual([{ model: 'large' }]);
  });

  it('shows what differs between versions of a text, and goes back to one', async () => {
    const { body } = await ann.call<{ namespace_id: string }>('GET', `${ann.home}/namespaces/default`);
    const page = await pageOf(ann);
    await open(page, `${homeOf(ann)}/artifacts?namespace=${body.namespace_id}`);
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('button', { name: 'Compare' }).click();
    const lines = page.getByRole('list', { name: 'Differences from version 1 to version 2' }).locator('li');
    await lines.first().waitFor();
    expect(await lines.allTextContents()).toEqual([
      ' # Plan',
      ' ',
      '−RemovedBuy milk.',
      '+AddedBuy tea.',
      ' Call Ann.',
    ]);
    expect(await barriersOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Restore version 1' }).click();
    await page.getByRole('button', { name: 'Restore version 2' }).waitFor();
    await page.getByText('Version 3').first().waitFor();
  });

  it('mutes a category everywhere, and another one in one workspace', async () => {
    const page = await pageOf(ann);
    await open(page, `${app.url}/console/notifications`);
    await page.getByRole('button', { name: 'Settings' }).click();
    const muted = page.getByRole('checkbox', { name: 'Deployments' });
    await muted.click();
    await waitFor(async () => expect(await muted.isChecked()).toBe(true));
    await page.getByRole('combobox', { name: 'Category' }).selectOption('secret');
    await page.getByRole('combobox', { name: 'For', exact: true }).selectOption(`${ann.orgId} ${ann.workspaceId}`);
    await page.getByRole('button', { name: 'Mute', exact: true }).click();
    await page.getByRole('button', { name: /^Unmute Secrets by mail/ }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await page.reload();
    await page.getByRole('button', { name: 'Settings' }).click();
    await waitFor(async () => expect(await muted.isChecked()).toBe(true));
    await page.getByRole('button', { name: /^Unmute Secrets by mail/ }).click();
    await page.getByText('Nothing is muted in one place alone.').waitFor();
  });

  it('works, and lives, where browsers may send registered documents only', async () => {
    const only = await app.another({ PERSISTED_ONLY: 'true' });
    await only.listen();
    const page = await pageOf(ann);
    const asked: unknown[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/graphql')) asked.push(request.postDataJSON());
    });
    await page.goto(`${only.url}/console/o/${ann.orgId}/w/${ann.workspaceId}/environments`);
    await page.getByRole('button', { name: 'Deploy or roll back: Support desk in Production, 1.0.0' }).waitFor();
    expect((await ann.call('PUT', ann.home, { name: 'Persisted' })).status).toBe(200);
    await page.locator('.where', { hasText: 'Persisted' }).waitFor();
    // the first request tells how the service wants to be asked
    expect(shown.faults.splice(0)).toEqual([expect.stringContaining('403')]);
    expect(asked.filter((body) => 'query' in (body as object))).toHaveLength(1);
  });

  it('works below any path of a proxy', async () => {
    const proxy = createServer((request, response) => {
      const { method, url = '', headers } = request;
      const target = {
        host: '127.0.0.1',
        port: new URL(app.url).port,
        path: url.replace(/^\/base/, ''),
        method,
        headers,
      };
      const sent = ask(target, (answer) => answer.pipe(response.writeHead(answer.statusCode!, answer.headers)));
      request.pipe(sent.on('error', () => response.destroy()));
    });
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
    const base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/base`;
    const page = await shown.cast.browser.newPage();
    await page.goto(`${base}/console/o/org_1/w/ws_1/activity?action=create`);
    await page.waitForURL(/\/base\/account\/sign-in/);
    const to = new URL(page.url()).searchParams.get('return_to');
    expect(to).toBe('/console/o/org_1/w/ws_1/activity?action=create');
    await page.close();
    proxy.closeAllConnections();
    await new Promise((closed) => proxy.close(closed));
  });
});
