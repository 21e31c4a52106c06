import { afterAll, beforeAll, expect, test } from 'vitest';
import { ActivityExports } from '../../../src/insight/activity/activity-export.ts';
import { cell } from '../../../src/insight/activity/exported-activity.ts';
import { ApiError } from '../../../src/kernel/errors.ts';
import type { Grant } from '../../../src/kernel/roles.ts';
import { actorOf } from '../../support/actors.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';

const MANY = 2_300;

let app: TestApp;
let ann: Person;
let address: string;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
  await ann.call('PUT', ann.home, { name: 'Renamed' });
  await app.services.activity.flush();
  await app.database.pool.query(
    `insert into activity select (jsonb_populate_record(null::activity, to_jsonb(a) || jsonb_build_object(
        'id', 'act_copy' || lpad(n::text, 6, '0'),
        'timestamp', a.timestamp - (n / 3) * interval '1 second', 'action', 'rotate', 'path', '=cmd|"' || n))).*
      from (select * from activity a where a.org_id = $1 and action = 'update' limit 1) a, generate_series(1, $2) n`,
    [ann.orgId, MANY],
  );
  address = await app.listen();
});
afterAll(() => app.close());

interface Exported {
  id: string;
  timestamp: string;
  action: string;
  user_id: string;
  path: string;
  [field: string]: unknown;
}

const urlOf = (query = '', person = ann) => `/v1/orgs/${person.orgId}/activity/export?${query}`;
const got = (query = '', { headers = ann.headers, person = ann, accept = '*/*' } = {}) =>
  app.server.inject({ url: urlOf(query, person), headers: { ...headers, accept } });
const linesOf = (body: string): Exported[] =>
  body
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Exported);
const lines = async (query = '', options = {}): Promise<Exported[]> => {
  await app.services.activity.flush();
  const answer = await got(query, options);
  expect(answer.statusCode, answer.body).toBe(200);
  return linesOf(answer.body);
};

test('has all records of the list, as the list has them, and is recorded itself', async () => {
  const exported = await lines('action=rotate');
  expect(exported).toHaveLength(MANY);
  const listed: Exported[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const url: string = `/v1/orgs/${ann.orgId}/activity?action=rotate&limit=200&cursor=${cursor}`;
    const page = await ann.call<{ activities: Exported[]; next_cursor: string | null }>('GET', url);
    listed.push(...page.body.activities);
    cursor = page.body.next_cursor;
  }
  expect(exported).toEqual(listed);
  const [record] = await lines('action=export');
  expect(record).toMatchObject({
    action: 'export',
    resource_type: 'activity',
    user_id: ann.userId,
    status_code: 200,
    success: true,
    metadata: { format: 'ndjson' },
  });
});

test('goes on after the last record that arrived', async () => {
  const all = await lines('action=rotate');
  const { timestamp, id } = all[1_234]!;
  expect(await lines(`action=rotate&after=${timestamp},${id}`)).toEqual(all.slice(1_235));
  const last = all.at(-1)!;
  expect(await lines(`action=rotate&after=${last.timestamp},${last.id}`)).toEqual([]);
});

test('is a table for those who accept one, in which no cell is a formula', async () => {
  const answer = await got('action=rotate', { accept: 'text/csv' });
  expect(answer.headers).toMatchObject({
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': 'attachment; filename="activity.csv"',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  });
  const rows = answer.body.split('\r\n');
  expect(rows).toHaveLength(MANY + 2);
  const names = rows[0]!.split(',');
  expect(names).toEqual(Object.keys((await lines('action=rotate'))[0]!));
  expect(rows[1]).toContain(`,"'=cmd|""`);
  expect((await got('action=nothing&format=csv')).body).toBe(`${rows[0]}\r\n`);
  expect((await got('format=ndjson&action=nothing', { accept: 'text/csv' })).body).toBe('');
  for (const begin of ['=', '+', '-', '@', '\t', '\r']) expect(cell(`${begin}1`)).toMatch(/^"?'/);
  expect([cell(-1), cell(true), cell(null), cell('a"b,c'), cell({ a: '=1' })]).toEqual([
    '-1',
    'true',
    '',
    '"a""b,c"',
    '"{""a"":""=1""}"',
  ]);
});

test('takes the filters of the list', async () => {
  const all = await lines();
  const { timestamp } = all.find(({ action }) => action === 'update')!;
  const matching: [string, (record: Exported) => boolean][] = [
    ['action=update', ({ action }) => action === 'update'],
    ['resource_type=workspace', ({ resource_type }) => resource_type === 'workspace'],
    [`resource_id=${ann.workspaceId}`, ({ resource_id }) => resource_id === ann.workspaceId],
    [`user_id=${ann.userId}&action=rotate`, ({ action }) => action === 'rotate'],
    ['token_id=tok_0', () => false],
    ['success=false&action=rotate', () => false],
    [`end_time=${timestamp}`, (record) => record.timestamp < timestamp],
    [`start_time=${timestamp}&action=rotate`, (record) => record.action === 'rotate' && record.timestamp >= timestamp],
  ];
  for (const [query, matches] of matching) expect(await lines(query), query).toEqual(all.filter(matches));
});

test('refuses what it does not understand, at the place', async () => {
  const answer = await got(
    'format=xml&success=yes&start_time=soon&end_time=2020-01-01&after=x&action=a&action=b&user_id=%00',
  );
  expect(answer.statusCode).toBe(422);
  const { detail } = answer.json<{ detail: { loc: string[]; type: string }[] }>();
  expect(detail.map(({ loc }) => loc.join('.')).sort()).toEqual(
    ['success', 'action', 'user_id', 'start_time', 'after', 'format'].map((name) => `query.${name}`).sort(),
  );
  const order = await got('start_time=2026-01-02&end_time=2026-01-01');
  expect(order.json<{ detail: object[] }>().detail).toEqual([expect.objectContaining({ loc: ['query', 'end_time'] })]);
});

test('shows the caller what the list would: nothing of other tenants, and to a viewer their own', async () => {
  expect((await got('', { headers: {} as Person['headers'] })).statusCode).toBe(401);
  const stranger = await register(app, { name: 'stranger' });
  const refused = await got('', { headers: stranger.headers });
  expect(refused.statusCode).toBe(403);
  const { body } = await stranger.call<object>('GET', `/v1/orgs/${ann.orgId}/activity`);
  expect(refused.json()).toEqual({ ...body, timestamp: expect.any(String) });
  expect((await lines('', { headers: stranger.headers, person: stranger })).map(({ user_id }) => user_id)).toContain(
    stranger.userId,
  );
  const viewer = await colleague(app, ann, 'viewer');
  await viewer.call('GET', ann.home);
  const own = await lines('', { headers: viewer.headers });
  expect(own.length).toBeGreaterThan(0);
  expect(new Set(own.map(({ user_id }) => user_id))).toEqual(new Set([viewer.userId]));
  const token = await issueToken(app, ann, { scopes: ['workspace:read'] });
  expect((await got('', { headers: token.headers as Person['headers'] })).statusCode).toBe(403);
  await app.services.activity.flush();
  const failures = await lines('action=export&success=false');
  expect(failures[0]).toMatchObject({ status_code: 403, error_code: 'FORBIDDEN' });
});

test('ends with its client, and an organization has two at once', async () => {
  const leaving = new AbortController();
  const begin = () => fetch(address + urlOf('format=csv'), { headers: ann.headers, signal: leaving.signal });
  const opened = await Promise.all([app.services.activityExports.enter(ann.orgId, 'usr_other'), begin()]);
  expect(opened[1].status).toBe(200);
  await opened[1].body!.getReader().read();
  leaving.abort();
  const second = await waitUntil(() => app.services.activityExports.enter(ann.orgId, 'usr_third').catch(() => null));
  const busy = await got();
  expect([busy.statusCode, busy.json().details]).toEqual([503, { retry_after: 5, reason: 'too_many_at_once' }]);
  opened[0]();
  second();
  expect((await got()).statusCode).toBe(200);
});

test('ends in the middle when its time is over, or the session of its caller', async () => {
  const { activityLog } = app.services;
  const pagesOf = (lives: boolean, limitMs: number, grants: Grant[]) =>
    new ActivityExports({
      activityLog,
      authentication: { lives: () => lives },
      limitMs,
    }).pages({
      caller: actorOf(ann.userId),
      orgId: ann.orgId,
      filters: { action: 'rotate' },
      after: null,
      demand: async () => {
        const grant = grants.shift();
        if (!grant) throw new ApiError('FORBIDDEN');
        return grant;
      },
    });
  const ends: [AsyncGenerator<unknown[], void>, string][] = [
    [pagesOf(true, 0, ['all', 'all']), 'SERVICE_UNAVAILABLE'],
    [pagesOf(false, 60_000, ['all', 'all']), 'AUTHENTICATION_FAILED'],
    [pagesOf(true, 60_000, ['all']), 'FORBIDDEN'],
  ];
  for (const [pages, code] of ends) {
    expect((await pages.next()).value).toHaveLength(500);
    await expect(pages.next(), code).rejects.toMatchObject({ code });
  }
});
