import { expect, it } from 'vitest';
import { ConsoleInBrowser, open, part } from '../http/console-browser.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import { waitFor } from '../support/wait.ts';

/** What a page of the console asks for, by the name of the query. */
interface Asked {
  query: string;
  variables?: { metric?: string; from?: string; to?: string; step?: string; startTime?: string; endTime?: string };
}

describeInBrowser('two dates in the console', () => {
  const shown = new ConsoleInBrowser();
  const pageWithZone = async () => {
    const { ann } = shown.cast;
    expect((await ann.call('PUT', `/v1/users/${ann.userId}`, { timezone: 'Asia/Tokyo' })).status).toBe(200);
    const page = await shown.pageOf(ann);
    const asked: NonNullable<Asked['variables']>[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/graphql')) asked.push((request.postDataJSON() as Asked).variables ?? {});
    });
    return { page, asked, home: shown.homeOf(ann) };
  };

  it('are chosen in analytics, in the time zone of the reader, kept in the address, and compared', async () => {
    const { page, asked, home } = await pageWithZone();
    await open(page, `${home}/analytics`);
    await page.getByText('Times are in Asia/Tokyo.').waitFor();
    const span = page.getByRole('combobox', { name: /^Span/ });
    await span.selectOption('dates');
    const [from, to] = [page.getByLabel('From', { exact: true }), page.getByLabel('To', { exact: true })];
    await to.fill('2026-11-20');
    await from.fill('2026-11-11');
    await page.getByLabel('Compare with').selectOption('yes');
    const isAsked = (since: string, until: string) =>
      waitFor(() =>
        expect(asked.filter(({ metric }) => metric === 'REQUESTS')).toContainEqual(
          expect.objectContaining({ from: since, to: until, step: 'DAY', tz: 'Asia/Tokyo' }),
        ),
      );
    await isAsked('2026-11-10T15:00:00.000Z', '2026-11-20T15:00:00.000Z');
    await isAsked('2026-10-31T15:00:00.000Z', '2026-11-10T15:00:00.000Z');
    const requests = part(page, 'Requests');
    await requests.getByText('Numbers as a table').click();
    await waitFor(async () => expect(await requests.locator('tbody tr').count()).toBe(10));
    expect(await barriersOf(page)).toEqual([]);
    const address = new URL(page.url());
    expect(Object.fromEntries(address.searchParams)).toEqual({
      span: 'dates',
      from: '2026-11-11',
      to: '2026-11-20',
      compare: 'yes',
    });
    await open(page, address.href);
    expect([await from.inputValue(), await to.inputValue()]).toEqual(['2026-11-11', '2026-11-20']);
    // the wrong way round: nothing is asked, and it says why
    await from.fill('2026-11-21');
    await page.getByRole('alert').getByText('Choose a first day').waitFor();
    await requests.waitFor({ state: 'detached' });
    await span.selectOption('day');
    await requests.waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ span: 'day', compare: 'yes' });
  });

  it('are those of the reader in activity, too', async () => {
    const { page, asked, home } = await pageWithZone();
    await open(page, `${home}/activity?from=2026-11-26T09:00&to=2026-11-26T10:00`);
    await page.getByText('Times are in Asia/Tokyo.').waitFor();
    await waitFor(() =>
      expect(asked).toContainEqual(
        expect.objectContaining({ startTime: '2026-11-26T00:00:00.000Z', endTime: '2026-11-26T01:00:00.000Z' }),
      ),
    );
  });
});
