import { beforeAll, expect, it } from 'vitest';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import type { Person } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { ConsoleInBrowser, cookieOf, open, part } from './console-browser.ts';

describeInBrowser('pictures in the console', () => {
  const shown = new ConsoleInBrowser();
  let ann: Person;
  let vic: Person;
  /** Where the entities of two apps are: many of one, three of the other. */
  let many: string;
  let few: string;
  let graphOf: (appId: string) => string;
  let [manyApp, fewApp, augmentationId] = ['', '', ''];
  beforeAll(async () => {
    ({ ann, vic } = shown.cast);
    ({ appId: manyApp, augmentationId } = shown.cast.story);
    const made = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'Small' });
    fewApp = made.body.app_id;
    [many, few] = [manyApp, fewApp].map((app) => `${ann.home}/apps/${app}/namespaces/default/entities`) as [
      string,
      string,
    ];
    graphOf = (app) => `${shown.homeOf(ann)}/graph?app=${app}`;
    const named = (name: string, entity_type: string, importance: number) => ({ name, entity_type, importance });
    const relation = (source: string, relation_type: string, target: string) => ({
      source: { name: source },
      target: { name: target },
      relation_type,
    });
    const core = {
      entities: [named('Ada', 'person', 0.9), named('Acme', 'organization', 0.7), named('Anvil', 'product', 0.5)],
      relations: [relation('Ada', 'works_at', 'Acme'), relation('Acme', 'makes', 'Anvil')],
    };
    const customers = Array.from({ length: 497 }, (_, at) => ({
      entity: named(`Customer ${at}`, 'person', (at % 10) / 20),
      relation: relation(`Customer ${at}`, 'knows', at % 7 === 0 ? 'Anvil' : `Customer ${Math.floor(at / 7)}`),
    }));
    const all = {
      entities: [...core.entities, ...customers.map(({ entity }) => entity)],
      relations: [...core.relations, ...customers.map(({ relation: one }) => one)],
    };
    for (const [place, body] of [
      [few, core],
      [many, all],
    ] as const)
      expect((await ann.call('POST', `${place}/import`, body)).status).toBe(200);
  });

  it('draws 500 entities, which are walked by clicks and by keys', async () => {
    const page = await shown.pageOf(ann);
    await open(page, graphOf(manyApp));
    const drawing = page.getByRole('application', { name: /^Graph of 500 entities/ });
    await drawing.and(page.locator('[data-state=still]')).waitFor();
    const panel = (name: string) => page.getByRole('heading', { level: 2, name });
    await part(page, 'All that is drawn').getByLabel('Find an entity').fill('Ada');
    await page.getByRole('button', { name: 'Ada', exact: true }).click();
    await panel('Ada person').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    // along a relation, whose other end is then in the middle of the drawing
    await part(page, 'Ada person').getByRole('button', { name: 'Acme', exact: true }).click();
    await panel('Acme organization').waitFor();
    await page.getByRole('status').filter({ hasText: 'Acme, organization, 2 relations' }).waitFor();
    await drawing.and(page.locator('[data-state=still]')).waitFor();
    await drawing.focus();
    await page.keyboard.press('Escape');
    await panel('Acme organization').waitFor({ state: 'detached' });
    await drawing.click();
    await panel('Acme organization').waitFor();
    expect(new URL(page.url()).searchParams.get('entity')).toMatch(/^ent_/);
    // without a chosen entity, keys begin at the most important one
    await drawing.focus();
    await page.keyboard.press('Escape');
    await panel('Acme organization').waitFor({ state: 'detached' });
    await page.keyboard.press('ArrowRight');
    await panel('Ada person').waitFor();
  });

  it('draws in the colours of the theme, on narrow screens too', async () => {
    const page = await shown.pageOf(ann, { width: 360, height: 800 });
    await open(page, graphOf(fewApp));
    const drawing = page.getByRole('application');
    await part(page, 'All that is drawn').getByLabel('Find an entity').fill('Acme');
    await page.getByRole('button', { name: 'Acme', exact: true }).click();
    await page.locator('#entity').waitFor();
    await drawing.and(page.locator('[data-state=still]')).waitFor();
    /** The colour in the middle of the drawing, where the chosen entity is, and that of its type in the legend. */
    const colours = () =>
      page.evaluate(`(() => {
        const canvas = document.querySelector('canvas');
        const { data } = canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1);
        const kinds = [...document.querySelectorAll('.legend li')];
        const kind = kinds.find(({ textContent }) => textContent.includes('organization'));
        return ['rgb(' + [...data.slice(0, 3)].join(', ') + ')', getComputedStyle(kind.firstChild).backgroundColor];
      })()`) as Promise<string[]>;
    const seen: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await waitFor(async () => {
        const [drawn, named] = await colours();
        expect(seen).not.toContain(drawn);
        expect(drawn).toBe(named);
      });
      seen.push((await colours())[0]!);
      expect(await barriersOf(page)).toEqual([]);
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  });

  it('creates, connects and changes entities, and says at the field what the service refuses', async () => {
    const page = await shown.pageOf(ann);
    await open(page, graphOf(fewApp));
    await page.getByRole('button', { name: 'New entity' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Bolt');
    await page.getByLabel('Type', { exact: true }).fill('product');
    await page.getByLabel('Importance').fill('2');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('[aria-invalid=true][name=importance]').waitFor();
    await page.getByLabel('Importance').fill('0.25');
    await page.getByRole('button', { name: 'Create' }).click();
    const panel = part(page, 'Bolt product');
    await panel.getByText('It has no relations yet.').waitFor();
    await panel.getByRole('button', { name: 'New relation' }).click();
    await page.getByLabel('What it is to the other').fill('part_of');
    await page.getByLabel('The other entity').selectOption('Anvil (product)');
    await page.getByRole('dialog').getByRole('button', { name: 'New relation' }).click();
    await panel.getByRole('button', { name: 'Edit the relation part_of Anvil' }).click();
    await page.getByLabel('What it is to the other').fill('goes_with');
    await page.getByRole('button', { name: 'Save' }).click();
    await panel.getByRole('button', { name: 'Remove the relation goes_with Anvil' }).waitFor();
    const bolt = async () => {
      const { body } = await ann.call<{ entities: Record<string, unknown>[] }>('GET', `${few}?name=Bolt`);
      return body.entities[0];
    };
    expect(await bolt()).toMatchObject({ importance: 0.25, relations: [{ relation_type: 'goes_with' }] });
    await panel.getByRole('button', { name: 'Remove the relation goes_with Anvil' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await panel.getByText('It has no relations yet.').waitFor();
    // somebody else is faster
    await panel.getByRole('button', { name: 'Edit Bolt' }).click();
    await page.getByLabel('Description').fill('Mine');
    const { entity_id: id } = (await bolt()) as { entity_id: string };
    expect((await ann.call('PUT', `${few}/${id}`, { description: 'Theirs' })).status).toBe(200);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('cell', { name: 'Theirs' }).waitFor();
    expect(await bolt()).toMatchObject({ description: 'Theirs' });
    await page.getByRole('button', { name: 'Save mine over theirs' }).click();
    // not what is still written in the form
    await panel
      .getByRole('paragraph')
      .filter({ hasText: /^Mine$/ })
      .waitFor();
    await panel.getByRole('button', { name: 'Delete Bolt' }).click();
    await page.getByLabel('Type “Bolt” to confirm').fill('Bolt');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await panel.waitFor({ state: 'detached' });
    expect(await bolt()).toBeUndefined();
  });

  it('shows a viewer what others change, and nothing to change it with', async () => {
    const page = await shown.pageOf(vic);
    await open(page, graphOf(fewApp));
    await page.getByLabel('Find an entity').fill('Anvil');
    await page.getByRole('button', { name: 'Anvil', exact: true }).click();
    const panel = page.locator('section', { has: page.locator('#entity') });
    await panel.getByRole('button', { name: 'Acme', exact: true }).waitFor();
    for (const name of [/^Edit/, /^New/, /^Delete/, /^Remove/])
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    const found = await ann.call<{ entities: { entity_id: string }[] }>('GET', `${few}?name=Anvil`);
    const anvil = `${few}/${found.body.entities[0]!.entity_id}`;
    expect((await ann.call('PUT', anvil, { description: 'Heavy.' })).status).toBe(200);
    await panel.getByText('Heavy.').waitFor();
  });

  it('shows a run as a waterfall of its stages, live', async () => {
    const page = await shown.pageOf(ann);
    await open(page, shown.homeOf(ann));
    await page.getByRole('link', { name: /Answer a ticket/ }).click();
    const failed = page.getByRole('dialog', { name: 'Run run-2' });
    await failed.getByText('The model did not answer in time.').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    await failed.getByRole('row', { name: /^Read Fetch the ticket done/ }).waitFor();
    await failed.getByRole('row', { name: /^Think Search the manual · Ask the model failed/ }).waitFor();
    await failed.getByRole('row', { name: /^Answer Send the answer not run – –/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Status' }).selectOption('running');
    await page.getByRole('link', { name: /Run run-3$/ }).click();
    const running = page.getByRole('dialog', { name: 'Run run-3' });
    await running.getByRole('row', { name: /^Answer .* running/ }).waitFor();
    await running.getByText('2 stages, reported together').first().waitFor();
    const report = { app_id: manyApp, augmentation_id: augmentationId, execution_id: 'run-3' };
    const done = await ann.call('POST', `${ann.home}/executions`, {
      ...report,
      status: 'completed',
      stages_completed: 3,
    });
    expect(done.status).toBe(200);
    await running.getByRole('row', { name: /^Answer .* done/ }).waitFor();
  });

  it('draws the forms of a tool and its actions from what describes them', async () => {
    const field = (name: string, more: object) => ({ name, display_name: name.toUpperCase(), ...more });
    const tool = await ann.call('POST', `/v1/orgs/${ann.orgId}/tools`, {
      name: 'Shop',
      slug: 'shop',
      description: 'Takes orders.',
      category: 'developer',
      config_schema: [
        field('base_url', { type: 'string', required: true, validation: { pattern: '^https?://' } }),
        field('region', { type: 'string', options: [{ value: 'eu', label: 'Europe' }] }),
        field('retries', { type: 'integer', default: 2 }),
      ],
      credential_schema: [field('api_key', { type: 'secret', placement: { in: 'header', name: 'x-api-key' } })],
      action_schemas: [
        {
          name: 'order',
          method: 'POST',
          url_template: '{{base_url}}/orders',
          body_template: '{"lines": {{lines}}, "gift": {{gift}}}',
          parameters: [
            {
              name: 'lines',
              display_name: 'Lines',
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  article: { type: 'string', display_name: 'Article', required: true },
                  amount: { type: 'integer', display_name: 'Amount', max_value: 5 },
                },
              },
            },
            { name: 'gift', display_name: 'Gift', type: 'boolean' },
          ],
        },
      ],
    });
    expect(tool.status).toBe(201);
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/tools`);
    await page.getByRole('button', { name: 'Add tool' }).click();
    await page.getByLabel('Find a tool').fill('Shop');
    await page.getByRole('button', { name: /^Shop developer/ }).click();
    const form = page.getByRole('dialog', { name: 'Add Shop' });
    await form.getByLabel('BASE_URL').fill('shop.example');
    await form.getByLabel('REGION').selectOption('Europe');
    await form.getByLabel('API_KEY').fill('k-1');
    expect(await form.getByLabel('API_KEY').getAttribute('type')).toBe('password');
    expect(await barriersOf(page)).toEqual([]);
    await form.getByRole('button', { name: 'Add tool' }).click();
    await form.locator('[aria-invalid=true][name=base_url]').waitFor();
    await form.getByLabel('BASE_URL').fill('https://shop.example');
    await form.getByRole('button', { name: 'Add tool' }).click();
    await page.getByRole('button', { name: 'Edit Shop' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit Shop' });
    await edit.getByPlaceholder('It stays as it is.').waitFor();
    await edit.getByLabel('RETRIES').fill('4');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    const { body } = await ann.call<{ instances: object[] }>('GET', `${ann.home}/tool-instances`);
    expect(body.instances[0]).toMatchObject({
      configuration: { base_url: 'https://shop.example', region: 'eu', retries: 4 },
      has_credentials: true,
    });
    await page.getByRole('button', { name: 'Test Shop' }).click();
    const test = page.getByRole('dialog', { name: 'Test Shop' });
    await test.getByLabel('Action').selectOption('order');
    await test.getByRole('button', { name: 'Add to Lines' }).click();
    const line = test.getByRole('group', { name: 'Lines 1' });
    await line.getByLabel('Article').fill('Anvil');
    await line.getByLabel('Amount').fill('9');
    await test.getByLabel('Gift').check();
    await test.getByRole('button', { name: 'Try without effect' }).click();
    await line.locator('[aria-invalid=true][name=amount]').waitFor();
    await line.getByLabel('Amount').fill('3');
    await test.getByRole('button', { name: 'Try without effect' }).click();
    await test.getByRole('heading', { name: 'Request' }).waitFor();
    await test.locator('pre', { hasText: 'https://shop.example/orders' }).waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(await test.locator('pre').textContent()).not.toContain('k-1');
  });

  it('speaks the language of the browser, or the one that is chosen', async () => {
    const { app, browser, bob } = shown.cast;
    const context = await browser.newContext({ locale: 'de-AT' });
    const value = await cookieOf(app, bob);
    await context.addCookies([{ name: 'session', value, url: app.url, httpOnly: true }]);
    const page = await context.newPage();
    await open(page, `${shown.homeOf(ann)}/environments`);
    await page.getByRole('heading', { level: 1, name: 'Umgebungen' }).waitFor();
    await page.getByRole('button', { name: 'Ausliefern oder zurücksetzen: Support desk in Staging, 1.1.0' }).waitFor();
    expect(await page.evaluate('document.documentElement.lang')).toBe('de');
    expect(await barriersOf(page)).toEqual([]);
    await page.locator('summary', { hasText: bob.username }).click();
    await page.getByRole('button', { name: 'English' }).click();
    await page.getByRole('heading', { level: 1, name: 'Environments' }).waitFor();
    expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    await context.close();
  });
});
