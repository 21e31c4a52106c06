import { expect, it } from 'vitest';
import { ConsoleInBrowser, open, part } from '../http/console-browser.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import type { Person } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

/** The account that serves the model of the story. */
async function accountOf(person: Person): Promise<string> {
  const url = `/v1/orgs/${person.orgId}/model-catalog/large`;
  const { body } = await person.call<{ targets: { provider_account_id: string }[] }>('GET', url);
  return body.targets[0]!.provider_account_id;
}

describeInBrowser('accounts at providers in the console', () => {
  const shown = new ConsoleInBrowser();

  it('are changed by their form, with the limits of a month, and refused at the field', async () => {
    const { ann } = shown.cast;
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/models`);
    const accounts = part(page, 'Accounts at providers');
    await accounts.getByRole('button', { name: 'Edit the account Models EU' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('Credentials', { exact: true }).inputValue()).toBe('secret://model-key');
    const address = dialog.getByLabel('Address of its API');
    await address.fill('nowhere');
    const most = dialog.getByLabel('Most tokens a month');
    await most.fill('0');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    for (const field of [address, most])
      await waitFor(async () => expect(await field.getAttribute('aria-invalid')).toBe('true'));
    expect(await barriersOf(page)).toEqual([]);
    await address.fill('https://models.example.test/v1');
    await most.fill('5000');
    // somebody else is faster
    const id = await accountOf(ann);
    const one = `/v1/orgs/${ann.orgId}/provider-accounts/${id}`;
    expect((await ann.call('PATCH', one, { region: 'eu-1' })).status).toBe(200);
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await dialog.getByRole('row', { name: /Region/ }).waitFor();
    await dialog.getByLabel('Region').fill('eu-2');
    await dialog.getByRole('button', { name: 'Save mine over theirs' }).click();
    await accounts.getByText('requests: 0, tokens: 0 of 5,000').waitFor();
    const saved = await ann.ask(
      `query ($orgId: ID!, $id: ID!) { providerAccount(orgId: $orgId, id: $id) {
        region baseUrl quotaPolicy { maxTokensPerMonth maxRequestsPerMonth } } }`,
      { orgId: ann.orgId, id },
    );
    expect(saved.data).toEqual({
      providerAccount: {
        region: 'eu-2',
        baseUrl: 'https://models.example.test/v1',
        quotaPolicy: { maxTokensPerMonth: 5_000, maxRequestsPerMonth: null },
      },
    });
  });

  it('show with a target what its answers cost and how long they took, as it was reported', async () => {
    const { ann } = shown.cast;
    const page = await shown.pageOf(ann);
    const granted = await ann.call('POST', `${ann.home}/model-entitlements`, { logical_model_id: 'large' });
    expect(granted.status).toBe(201);
    await open(page, `${shown.homeOf(ann)}/models`);
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    const row = page.getByRole('dialog').getByRole('row', { name: /large-1/ });
    expect(await row.getByRole('cell', { name: '–' }).count()).toBe(2);
    await page.keyboard.press('Escape');
    const report = {
      provider_account_id: await accountOf(ann),
      model_name: 'large-1',
      outcome: 'success',
      input_tokens: 1_000,
      output_tokens: 1_000,
      latency_ms: 840,
      cost: '0.025',
    };
    const { status } = await ann.call('POST', `${ann.home}/models/large/usage`, report);
    expect(status).toBe(200);
    await open(page, `${shown.homeOf(ann)}/models`);
    await part(page, 'Accounts at providers')
      .getByText(/requests: 1, tokens: 2,000/)
      .waitFor();
    await page.getByRole('button', { name: 'Large', exact: true }).click();
    await row.getByRole('cell', { name: '840', exact: true }).waitFor();
    await row.getByRole('cell', { name: '0.0125', exact: true }).waitFor();
    await page.getByText('The service itself knows no prices.').waitFor();
    expect(await barriersOf(page)).toEqual([]);
  });
});
