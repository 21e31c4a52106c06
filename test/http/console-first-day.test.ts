import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInBrowser } from '../support/browser.ts';
import { gate } from '../support/gate.ts';
import { type OAuthServer, startOAuthServer } from '../support/oauth-server.ts';
import { startTarget, type TargetServer } from '../support/target-server.ts';
import { makeClient, makeInstance, makeTool } from '../support/tool-instance.ts';
import { waitFor } from '../support/wait.ts';
import { ConsoleInBrowser, open, part } from './console-browser.ts';

describeInBrowser('the first day with the console', () => {
  const shown = new ConsoleInBrowser();
  let provider: OAuthServer;
  let api: TargetServer;
  beforeAll(async () => {
    provider = await startOAuthServer();
    api = await startTarget((request, response) =>
      request.headers.authorization === 'Bearer k-1' && request.url === '/parcels/7'
        ? response.writeHead(200, { 'content-type': 'application/json' }).end('{"place":"Leipzig"}')
        : response.writeHead(404).end(),
    );
  });
  afterAll(() => Promise.all([provider.close(), api.close()]));

  it('connects a tool at whose provider users sign in, with the application that was registered there', async () => {
    const { app, ann } = shown.cast;
    const made = await ann.call('POST', `/v1/orgs/${ann.orgId}/tools`, {
      name: 'Post office',
      slug: 'post-office',
      description: 'Letters.',
      connection_service_name: 'post',
      supports_connection: true,
      credential_schema: [provider.service],
    });
    expect(made.status).toBe(201);
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/tools`);
    await page.getByRole('button', { name: 'Add tool' }).click();
    await page.getByLabel('Find a tool').fill('post office');
    await page.getByRole('button', { name: /^Post office/ }).click();
    const form = page.getByRole('dialog', { name: 'Add Post office' });
    await form.getByText(`${app.url}/connections/callback`, { exact: true }).waitFor();
    await form.getByRole('button', { name: 'Add tool' }).click();
    await form.waitFor({ state: 'hidden' });
    // without an application, the way leads to where it is entered
    await page.getByRole('button', { name: 'Connect Post office', exact: true }).click();
    const edit = page.getByRole('dialog', { name: 'Edit Post office' });
    await edit.getByLabel('Client id').fill(provider.clientId);
    await edit.getByLabel('Client secret').fill(provider.clientSecret);
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Connect Post office', exact: true }).click();
    await part(page, 'Connections').getByText('connected', { exact: true }).waitFor();
    expect(provider.grants.authorization_code).toBe(1);
    // the secret is in the vault, and the form shows that there is one
    await page.getByRole('button', { name: 'Edit Post office' }).click();
    expect(await edit.getByLabel('Client id').inputValue()).toBe(provider.clientId);
    expect(await edit.getByLabel('Client secret').inputValue()).toBe('');
    expect(await edit.getByLabel('Client secret').getAttribute('placeholder')).toBe('It stays as it is.');
  });

  /** Makes a tool of somebody's workspace, and opens the view that connects it. */
  async function toConnect(name: string): Promise<Page> {
    const { ann } = shown.cast;
    const toolId = await makeTool(ann, provider.service, 'Ferry');
    await makeInstance(ann, { toolId, name, client: await makeClient(ann, provider) });
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/tools`);
    return page;
  }

  const connect = (page: Page, name: string) =>
    page.getByRole('button', { name: `Connect ${name}`, exact: true }).click();

  async function seeConnected(page: Page, name: string): Promise<void> {
    await waitFor(async () => expect(await page.evaluate('sessionStorage.length')).toBe(0));
    await page.context().unrouteAll();
    await open(page, `${shown.homeOf(shown.cast.ann)}/tools`);
    await part(page, 'Connections').getByRole('row', { name }).getByText('connected', { exact: true }).waitFor();
  }

  it('takes the code of an authorization whose page was loaded again meanwhile', async () => {
    const page = await toConnect('Ferry line');
    let reload: Promise<unknown> | undefined;
    await page.context().route(`${provider.url}/authorize**`, async (route) => {
      reload ??= open(page, shown.homeOf(shown.cast.ann));
      await reload;
      await route.continue();
    });
    await connect(page, 'Ferry line');
    await waitFor(() => expect(reload).toBeDefined());
    await reload;
    await seeConnected(page, 'Ferry line');
  });

  it('takes the code that comes while the page is loaded again', async () => {
    const page = await toConnect('Night ferry');
    const scripts = gate();
    await page.context().route(`${provider.url}/authorize**`, async (route) => {
      await page.context().route('**/connecting-*.js', async (script) => {
        await scripts.opened;
        await script.continue();
      });
      await open(page, shown.homeOf(shown.cast.ann));
      await route.continue();
    });
    const opened = page.context().waitForEvent('page');
    await connect(page, 'Night ferry');
    await (await opened).waitForURL(`${shown.cast.app.url}/connections/callback`);
    scripts.open();
    await seeConnected(page, 'Night ferry');
  });

  it('takes the code although the page is left in that moment', async () => {
    const page = await toConnect('Last ferry');
    let leaving: Promise<unknown> | undefined;
    await page.context().route('**/graphql', async (route) => {
      if (!route.request().postData()?.includes('mutation ExchangeConnection')) return route.continue();
      // it has not left the browser yet
      leaving = open(page, shown.homeOf(shown.cast.ann));
      await leaving;
    });
    await connect(page, 'Last ferry');
    await waitFor(() => expect(leaving).toBeDefined());
    await leaving;
    await seeConnected(page, 'Last ferry');
  });

  it('gives an application a new secret beside the one that others use, or takes it from it', async () => {
    const { ann } = shown.cast;
    const toolId = await makeTool(ann, provider.service, 'Tram');
    const client = await makeClient(ann, provider);
    const id = await makeInstance(ann, { toolId, name: 'Tram line', client });
    const shared = client.client_secret_vault_id;
    interface Secrets {
      secrets: { secret_id: string }[];
    }
    const contentOf = async (secret: string) =>
      (await ann.call<{ value: unknown }>('GET', `/v1/orgs/${ann.orgId}/secrets/${secret}?include_value=true`)).body
        .value;
    const secretIds = async () =>
      (await ann.call<Secrets>('GET', `/v1/orgs/${ann.orgId}/secrets`)).body.secrets
        .map((secret) => secret.secret_id)
        .sort();
    const instance = `${ann.home}/tool-instances/${id}`;
    const referred = async () =>
      (
        await ann.call<{ connection_credentials: { client_id: string | null; client_secret_vault_id: string | null } }>(
          'GET',
          instance,
        )
      ).body.connection_credentials;
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/tools`);
    const edit = page.getByRole('dialog', { name: 'Edit Tram line' });
    const [clientId, secret] = [edit.getByLabel('Client id'), edit.getByLabel('Client secret')];
    const save = edit.getByRole('button', { name: 'Save' });
    const begin = () => page.getByRole('button', { name: 'Edit Tram line' }).click();
    await begin();
    await secret.fill('a newer one');
    await clientId.fill('');
    await edit.getByText('A secret needs the id of its application.').waitFor();
    await save.click();
    await edit.locator('input:invalid').waitFor();
    await clientId.fill(provider.clientId);
    // somebody else saves first
    expect((await ann.call('PUT', instance, { configuration: {} })).status).toBe(200);
    const before = await secretIds();
    await save.click();
    await edit.getByRole('alert').waitFor();
    await waitFor(async () => expect(await secretIds()).toEqual(before));
    expect(await contentOf(shared)).toEqual({ client_secret: provider.clientSecret });
    await edit.getByRole('button', { name: 'Cancel' }).click();
    await open(page, `${shown.homeOf(ann)}/tools`);
    await begin();
    await secret.fill('a newer one');
    await save.click();
    await edit.waitFor({ state: 'hidden' });
    const next = (await referred()).client_secret_vault_id!;
    expect(next).not.toBe(shared);
    expect([await contentOf(shared), await contentOf(next)]).toEqual([
      { client_secret: provider.clientSecret },
      { client_secret: 'a newer one' },
    ]);
    await begin();
    await edit.getByLabel('The application has no secret').check();
    await secret.waitFor({ state: 'detached' });
    await save.click();
    await edit.waitFor({ state: 'hidden' });
    expect(await referred()).toMatchObject({ client_id: provider.clientId, client_secret_vault_id: null });
  });

  it('says that a tool has its own key, and counts what was just run', async () => {
    const { ann } = shown.cast;
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/tools`);
    await page.getByRole('button', { name: 'Add tool' }).click();
    await page.getByLabel('Find a tool').fill('http request');
    await page.getByRole('button', { name: /^HTTP request/ }).click();
    const form = page.getByRole('dialog', { name: 'Add HTTP request' });
    await form.getByLabel('Name').fill('Parcels');
    await form.getByLabel('Base URL').fill(`http://127.0.0.1:${api.port}`);
    await form.getByLabel('API key').fill('k-1');
    await form.getByRole('button', { name: 'Add tool' }).click();
    await page.getByText('with its own key').waitFor();
    expect(await page.getByRole('button', { name: 'Connect Parcels' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Test Parcels' }).click();
    const test = page.getByRole('dialog', { name: 'Test Parcels' });
    await test.getByText('It was not called yet.').waitFor();
    await test.getByLabel('Action').selectOption({ label: 'Get' });
    await test.getByLabel('Path').fill('/parcels/7');
    await test.getByRole('button', { name: 'Run' }).click();
    await test.getByText('Leipzig').waitFor();
    await test.getByText('0 of the latest 1 calls failed.').waitFor();
    await test.getByLabel('Path').fill('/parcels/8');
    await test.getByRole('button', { name: 'Run' }).click();
    await test.getByText('1 of the latest 2 calls failed.').waitFor();
  });

  it('shows what was changed, however much was looked at, and what was read to whoever asks for it', async () => {
    const { app, ann } = shown.cast;
    const page = await shown.pageOf(ann);
    await ann.call('POST', `${ann.home}/apps`, { name: 'Newest of all' });
    for (let times = 0; times < 110; times += 1) await ann.call('GET', ann.home);
    await app.services.activity.flush();
    const since: string[] = [];
    page.on('request', (request) => {
      if (!request.url().endsWith('/graphql')) return;
      const { startTime } = (request.postDataJSON() as { variables?: { startTime?: string } }).variables ?? {};
      if (startTime) since.push(startTime);
    });
    await open(page, shown.homeOf(ann));
    await part(page, 'What happened').getByText('created app Newest of all').waitFor();
    // of the last days alone: what is older may be behind a million reads
    expect(since.length).toBeGreaterThan(0);
    expect(since.filter((time) => Date.now() - Date.parse(time) > 8 * 86_400_000)).toEqual([]);
    await page.getByRole('link', { name: 'All activity' }).click();
    const rows = page.locator('main');
    await rows.getByRole('button', { name: 'created app Newest of all' }).waitFor();
    // the newest may be what the console itself has read since
    const reads = page.getByRole('button', { name: /^(?:read|listed|viewed) / });
    expect(await reads.count()).toBe(0);
    await page.getByLabel('With reads').check();
    await reads.first().waitFor();
    expect(page.url()).toContain('reads=shown');
    await page.getByLabel('With reads').uncheck();
    await page.getByRole('combobox', { name: /^Action/ }).selectOption({ label: 'created' });
    await rows.getByRole('button', { name: 'created app Newest of all' }).waitFor();
    await waitFor(async () => expect(await page.getByRole('button', { name: /^changed / }).count()).toBe(0));
  });
});
