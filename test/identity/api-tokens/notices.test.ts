import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

let here: TestApp;
let there: TestApp;
let owner: Person;

beforeAll(async () => {
  here = await startTestApp();
  there = await here.another();
});
afterAll(() => here.close());
beforeEach(async () => {
  owner = await register(here);
  await here.jobsDone();
  here.mails.length = 0;
});

/**
 * As if the token, which lives so long, had so much left, less a second: steps are not to hang on the precision of a
 * column.
 */
const leave = (id: string, left: string) =>
  here.database.pool.query(
    `update api_tokens set issued_at = now() + $2::interval - interval '1 s' - (expires_at - issued_at),
       expires_at = now() + $2::interval - interval '1 s'
     where id = $1`,
    [id, left],
  );
const send = async (node = here) => {
  const count = await node.services.apiTokenNotices.send();
  await node.jobsDone();
  return count;
};
const eventsOf = async (id: string) =>
  (
    await here.database.pool.query(
      `select type, data->'days_left' as days, actor->>'principal_type' as by from events
       where resource_id = $1 and type like '%expiring' order by seq`,
      [id],
    )
  ).rows;

describe('before a token expires its maker is told', () => {
  it('14 days, 3 days and at the end, each once, by mail and event', async () => {
    const { id, token } = await issueToken(here, owner, { name: 'nightly build' });
    expect(await send()).toBe(0);
    for (const [left, days] of [
      ['14 days', 14],
      ['13 days', null],
      ['3 days', 3],
      ['1 day', null],
      ['-1 minute', 0],
      ['-1 hour', null],
    ] as const) {
      await leave(id, left);
      expect([left, await send()]).toEqual([left, days === null ? 0 : 1]);
    }
    const event = { type: 'api_token.expiring', by: 'system' };
    expect(await eventsOf(id)).toEqual([14, 3, 0].map((days) => ({ ...event, days })));
    // either node sends them
    const mails = here.mails.toSorted((a, b) => a.subject.localeCompare(b.subject));
    expect(mails.map(({ to, subject }) => [to, subject])).toEqual([
      [owner.email, 'A token expires in 14 days'],
      [owner.email, 'A token expires in 3 days'],
      [owner.email, 'A token has expired'],
    ]);
    expect(mails[0]!.text).toContain(`'nightly build' (${token.prefix}…)`);
  });

  it('gives the most urgent step alone when several have come', async () => {
    const { id } = await issueToken(here, owner);
    await leave(id, '2 days');
    expect(await send()).toBe(1);
    expect((await eventsOf(id)).map(({ days }) => days)).toEqual([3]);
  });

  it.each([
    [10, '9 days', []],
    [10, '3 days', [3]],
    [14, '14 days', []],
    [2, '1 day', []],
    [2, '-1 second', [0]],
  ])('a token that lives %i days gets only the steps that apply: %s left', async (days, left, told) => {
    const { id } = await issueToken(here, owner, { expires_in_days: days });
    await leave(id, left);
    await send();
    expect((await eventsOf(id)).map((event) => event.days)).toEqual(told);
  });

  it('says nothing of tokens that are revoked, were refreshed or expired long ago', async () => {
    const [revoked, refreshed, old] = [
      await issueToken(here, owner),
      await issueToken(here, owner),
      await issueToken(here, owner),
    ];
    await callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/${revoked.id}`, owner.headers);
    await callsOf(here).post(`/v1/orgs/${owner.orgId}/api-tokens/refresh`, {
      refresh_token: refreshed.refresh_token_plaintext,
    });
    await leave(revoked.id, '1 day');
    await leave(refreshed.id, '1 day');
    await leave(old.id, '-25 hours');
    expect(await send()).toBe(0);
  });

  it('is told of an app’s token as such', async () => {
    const url = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/apps`;
    const { app_id } = (await callsOf(here).post(url, { name: 'an app' }, owner.headers)).json();
    const { id } = await issueToken(here, owner, { app_id });
    await leave(id, '3 days');
    expect(await send()).toBe(1);
    expect(await eventsOf(id)).toEqual([{ type: 'app_token.expiring', days: 3, by: 'system' }]);
  });

  it('once, when both of two nodes look at the same moment', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 8; i++) ids.push((await issueToken(here, owner)).id);
    for (const id of ids) await leave(id, '3 days');
    const counts = await Promise.all([send(here), send(there), send(here), send(there)]);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(8);
    expect(here.mails).toHaveLength(8);
    for (const id of ids) expect(await eventsOf(id)).toHaveLength(1);
  });
});
