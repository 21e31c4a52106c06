import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import type { TestApp } from '../support/app.ts';
import { describeInBrowser } from '../support/browser.ts';
import type { Person } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { ConsoleInBrowser, open } from './console-browser.ts';
import type { Story } from './console-story.ts';

describeInBrowser('the console in German', () => {
  const shown = new ConsoleInBrowser();
  let app: TestApp;
  let ann: Person;
  let story: Story;
  beforeAll(() => {
    ({ app, ann, story } = shown.cast);
  });

  async function germanPage(): Promise<Page> {
    const page = await shown.pageOf(ann);
    await page.addInitScript("localStorage.setItem('console-language', 'de')");
    return page;
  }

  /** What a view says, without what is written for programs. */
  const saidIn = (page: Page) =>
    page.evaluate<string>(`(() => {
      const copy = document.querySelector('main').cloneNode(true);
      for (const one of copy.querySelectorAll('code, pre')) one.remove();
      const hidden = [...copy.querySelectorAll('[aria-label], [title]')];
      const labels = hidden.flatMap((one) => [one.getAttribute('aria-label'), one.getAttribute('title')]);
      return [copy.textContent, ...labels].join(' ');
    })()`);

  it('has no word of the service in any view that is not for programs', async () => {
    await ann.call('POST', `/v1/orgs/${ann.orgId}/webhooks`, {
      name: 'Alles',
      url: 'https://hooks.example.test/',
      event_types: ['tool_instance.*', 'execution.failed'],
      workspace_id: ann.workspaceId,
    });
    await app.services.activity.flush();
    const page = await germanPage();
    const home = shown.homeOf(ann);
    const views = ['', 'activity', 'activity?reads=shown', 'analytics', 'secrets', 'environments', 'apps', 'tools'];
    const others = ['artifacts', 'graph', 'models', 'people', 'tokens', 'sign-in', 'webhooks', 'runs'];
    for (const url of [
      ...[...views, ...others].map((view) => `${home}/${view}`),
      `${home}/apps/${story.appId}`,
      `${home}/runs?run=run-2`,
      `${app.url}/console/`,
      `${app.url}/console/notifications`,
    ]) {
      await open(page, url);
      // it comes after the heading
      if (url === `${home}/` || url.endsWith('run=run-2')) await page.getByText('Lauf run-2').first().waitFor();
      const said = await saidIn(page);
      expect([url, said.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []]).toEqual([url, []]);
      expect([url, said.match(/\b(?:secret|execution|deployment|environment|augmentation)\b/g) ?? []]).toEqual([
        url,
        [],
      ]);
    }
  });

  it('tells in German what happened, to what, and what did not', async () => {
    expect((await ann.call('DELETE', `${ann.home}/environments/env_01ARZ3NDEKTSV4RRFFQ69G5FAV`)).status).toBe(404);
    await app.services.activity.flush();
    const page = await germanPage();
    await open(page, `${shown.homeOf(ann)}/activity`);
    const said = (text: string) => page.locator('main').getByRole('button', { name: text, exact: true });
    await said('Geheimnis SENTRY_DSN angelegt').waitFor();
    await said('Lauf run-2 als gescheitert gemeldet').waitFor();
    await said('App Support desk angelegt').waitFor();
    await page.getByLabel('Ergebnis').selectOption('gescheitert');
    await page
      .getByRole('button', { name: /^Umgebung (env_\w+ )?nicht gelöscht$/ })
      .first()
      .waitFor();
    const options = await page.getByLabel('Gegenstand').getByRole('option').allTextContents();
    expect(options).toContain('Identitätsanbieter');
    expect(options).toEqual([options[0], ...options.slice(1).sort((a, b) => a.localeCompare(b, 'de'))]);
  });

  it('names kinds, steps and events in German, and events as programs know them, too', async () => {
    const page = await germanPage();
    await open(page, `${shown.homeOf(ann)}/apps/${story.appId}`);
    await page.getByText('Sprachmodell', { exact: true }).waitFor();
    await open(page, `${shown.homeOf(ann)}/secrets?do=create`);
    const types = page.getByRole('dialog').getByLabel('Art').getByRole('option');
    await waitFor(async () => expect(await types.allTextContents()).toContain('API-Schlüssel'));
    await open(page, `${shown.homeOf(ann)}/webhooks?do=create`);
    await page.getByLabel('secret.created (Geheimnis: angelegt)').check();
    await open(page, `${shown.homeOf(ann)}/tools?do=create&find=slack`);
    await page.getByRole('button', { name: /^Slack Kommunikation/ }).waitFor();
    await open(page, `${shown.homeOf(ann)}/models`);
    await page.getByRole('cell', { name: 'Chat', exact: true }).waitFor();
  });
});
