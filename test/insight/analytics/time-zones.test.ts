import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPipeline } from '../../pipelines/augmentations/pipeline.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { stopClock } from '../../support/stopped-clock.ts';

let app: TestApp;
let who: Person;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Series {
  data: { timestamp: string; value: number }[];
}

const HOUR_MS = 3_600_000;

/** Somebody with a way to report runs that began at some time. */
async function runner() {
  const pipeline = await createPipeline(app);
  const { augmentation_id } = await pipeline.augmentation();
  const { who: person, appId: app_id } = pipeline;
  const url = `${person.home}/executions`;
  return {
    ...pipeline,
    series: async (path: string) =>
      (await person.call<Series>('GET', `${person.home}/analytics/executions/${path}`)).body.data,
    run: async (execution_id: string, more: object) => {
      const { status } = await person.call('POST', url, { execution_id, app_id, augmentation_id, ...more });
      expect(status).toBe(200);
    },
  };
}

/** The local time of the start of each point, as a clock of the zone shows it. */
const clock = (zone: string, points: Series['data']) =>
  points.map(({ timestamp }) =>
    new Intl.DateTimeFormat('sv', { timeZone: zone, timeStyle: 'short' }).format(new Date(timestamp)),
  );

test('days are those of the zone, also where they have 23 or 25 hours, and as many as asked for', async () => {
  const { run, series } = await runner();
  const now = Date.now();
  const zone = 'Pacific/Auckland';
  for (const [id, hours] of [
    ['a', 0.1],
    ['b', 30],
    ['c', 31],
    ['d', 24 * 70],
  ] as const)
    await run(id, { started_at: new Date(now - hours * HOUR_MS).toISOString() });
  const days = await series(`daily?days=90&tz=${zone}`);
  expect(days).toHaveLength(90);
  expect(new Set(clock(zone, days))).toEqual(new Set(['00:00']));
  expect(days.reduce((sum, { value }) => sum + value, 0)).toBe(4);
  const last = days.at(-1)!;
  expect(new Date(last.timestamp).getTime()).toBeLessThanOrEqual(Date.now());
  for (const [at, { timestamp, value }] of days.entries()) {
    const until = days[at + 1]?.timestamp ?? new Date(now + 48 * HOUR_MS).toISOString();
    const inside = [0.1, 30, 31, 24 * 70].filter((hours) => {
      const time = new Date(now - hours * HOUR_MS).toISOString();
      return timestamp <= time && time < until;
    });
    expect(value, timestamp).toBe(inside.length);
  }
});

test.each(['Asia/Kolkata', 'Asia/Kathmandu', 'Europe/Berlin'])('hours of %s begin at its full hours', async (zone) => {
  const { run, series } = await runner();
  const points = await series(`hourly?hours=3&tz=${zone}`);
  expect(clock(zone, points).map((time) => time.slice(3))).toEqual(['00', '00', '00']);
  // just before the last hour began, and just then
  const border = new Date(points[2]!.timestamp).getTime();
  await run('before', { started_at: new Date(border - 1).toISOString() });
  await run('then', { started_at: new Date(border).toISOString() });
  await run('also', { started_at: new Date(border).toISOString() });
  const again = await series(`hourly?hours=3&tz=${zone}`);
  // unless an hour has passed meanwhile
  const values = new Map(again.map(({ timestamp, value }) => [timestamp, value]));
  expect([points[1]!, points[2]!].map(({ timestamp }) => values.get(timestamp))).toEqual([1, 2]);
});

test('UTC is the default, and what is no time zone is refused with its place', async () => {
  who = await register(app);
  const url = `${who.home}/analytics/executions`;
  // an hour may end between two questions
  stopClock();
  for (const path of ['hourly', 'daily']) {
    const [plain, utc] = await Promise.all([
      who.call('GET', `${url}/${path}`),
      who.call('GET', `${url}/${path}?tz=UTC`),
    ]);
    expect(plain.body).toEqual(utc.body);
    for (const tz of ['Mars/Olympus', '%2B05:30', 'a'.repeat(65), '']) {
      const { status, body } = await who.call<{ detail: { loc: string[] }[] }>('GET', `${url}/${path}?tz=${tz}`);
      expect([status, body.detail.map(({ loc }) => loc)], tz).toEqual([422, [['query', 'tz']]]);
    }
  }
});

const SERIES = `query ($org: ID!, $m: SeriesMetric!, $step: SeriesStep!, $from: DateTime, $to: DateTime, $tz: String!) {
  series(orgId: $org, metric: $m, step: $step, from: $from, to: $to, tz: $tz) { from to points { timestamp value } } }`;

test('a series of GraphQL has the days of its zone, and its range is widened to them', async () => {
  who = await register(app);
  const asked = { org: who.orgId, m: 'REQUESTS', step: 'DAY', tz: 'Europe/Berlin' };
  const range = { from: '2026-10-24T12:00:00Z', to: '2026-10-26T12:00:00Z' };
  const { data } = await who.ask(SERIES, { ...asked, ...range });
  expect(data).toEqual({
    series: {
      from: '2026-10-23T22:00:00.000Z',
      to: '2026-10-26T23:00:00.000Z',
      points: ['2026-10-23T22', '2026-10-24T22', '2026-10-25T23'].map((hour) => ({
        timestamp: `${hour}:00:00.000Z`,
        value: 0,
      })),
    },
  });
  await app.services.activity.flush();
  for (const tz of ['UTC', 'Europe/Berlin', 'Asia/Kathmandu'])
    for (const step of ['HOUR', 'DAY']) {
      const { data: recent } = await who.ask<{ series: { points: { value: number }[] } }>(SERIES, {
        ...asked,
        step,
        tz,
      });
      expect(recent!.series.points, `${tz} ${step}`).toHaveLength(24);
      expect(recent!.series.points.some(({ value }) => value > 0)).toBe(true);
    }
  const { errors } = await who.ask(SERIES, { ...asked, tz: 'Mars/Olympus' });
  expect(JSON.stringify(errors)).toContain('"tz"');
  // such hours are read by the minute
  const hours = { ...asked, step: 'HOUR', from: '2026-11-01T00:00:00Z', to: '2026-11-16T00:00:00Z' };
  expect(JSON.stringify((await who.ask(SERIES, { ...hours, tz: 'Asia/Kolkata' })).errors)).toContain('"from"');
  expect((await who.ask(SERIES, { ...hours, tz: 'Asia/Kolkata', m: 'TOKENS' })).errors).toBeUndefined();
  expect((await who.ask(SERIES, hours)).errors).toBeUndefined();
  // days do not exist twice, however far the range is
  const many = await who.ask<{ series: { points: unknown[] } }>(SERIES, {
    ...asked,
    from: '2000-01-01T00:00:00Z',
    to: '2005-06-22T00:00:00Z',
  });
  expect(many.data!.series.points).toHaveLength(2_000);
});

test('tokens are those of the time when their run began, also if it is reported again later', async () => {
  const { who: ann, run } = await runner();
  const now = Date.now();
  const dayAgo = (days: number) => new Date(now - days * 24 * HOUR_MS);
  await run('a', { started_at: dayAgo(3).toISOString(), token_usage: { total: 100 } });
  await run('b', { started_at: dayAgo(3).toISOString(), token_usage: { total: 10 }, status: 'completed' });
  await run('c', { started_at: dayAgo(1).toISOString(), status: 'failed', token_usage: { input: 5, output: 2 } });
  await run('a', { token_usage: { total: 140 } });
  await run('a', { status: 'completed', token_usage: { total: 150 } });
  await run('a', { status: 'completed', token_usage: { total: 150 } });
  for (const tz of ['UTC', 'Asia/Kolkata']) {
    const { data } = await ann.ask<{ series: { points: { timestamp: string; value: number }[] } }>(SERIES, {
      org: ann.orgId,
      m: 'TOKENS',
      step: 'DAY',
      tz,
    });
    const { points } = data!.series;
    const at = (time: Date) => points.findLast(({ timestamp }) => timestamp <= time.toISOString())?.value;
    expect([at(dayAgo(3)), at(dayAgo(1)), at(dayAgo(0))], tz).toEqual([160, 7, 0]);
  }
});
