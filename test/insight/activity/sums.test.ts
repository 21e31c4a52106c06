import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sql } from '../../../src/data/sql.ts';
import {
  type ActivityScope,
  isSummed,
  type ScopeKind,
  scopeColumns,
  scopeKinds,
} from '../../../src/insight/activity/activity-scope.ts';
import {
  countOfScope,
  readSeries,
  readSeriesOfParts,
  readSums,
  type SumFilters,
} from '../../../src/insight/activity/activity-sums.ts';
import {
  addSpans,
  type Between,
  type PartOfSpan,
  type Span,
  spans,
  spansOf,
  startOf,
} from '../../../src/insight/activity/time-spans.ts';
import { calendarOf, endOf, partsOf, spansBetween } from '../../../src/insight/analytics/points.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { waitFor } from '../../support/wait.ts';

const WRITERS = 6;
const ROUNDS = 40;
const HOUR = 3_600_000;

let database: TestDatabase;
let pool: pg.Pool;
/** A single connection. */
let snapshot: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: WRITERS + 4 });
  snapshot = new pg.Pool({ connectionString: database.url, max: 1 });
  for (const one of [pool, snapshot]) one.on('error', () => undefined);
});
afterAll(async () => {
  await Promise.all([pool.end(), snapshot.end()]);
  await database.drop();
});

/** Resolves when all records can be summed: no transaction of the server that began before them runs any more. */
const canBeSummed = () =>
  waitFor(async () => {
    const text = 'select from activity where xid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1';
    expect((await pool.query(text)).rowCount).toBe(0);
  });

const pick = <T>(of: readonly T[]): T => of[Math.floor(Math.random() * of.length)]!;
/** The beginning of a month, with days and hours on both sides: `now` is as good as any other time. */
const turn = startOf('month', new Date());

/** A time around the turn of a month, often exactly at the border of an hour, a day or a month; or far away. */
function time(): Date {
  const around = new Date(turn.getTime() + Math.floor((Math.random() - 0.5) * 80 * 24) * HOUR);
  return pick([
    around,
    new Date(around.getTime() - 1),
    new Date(around.getTime() + Math.floor(Math.random() * HOUR)),
    turn,
    new Date(turn.getTime() - 1),
    addSpans('month', turn, pick([-1, 1])),
    addSpans('day', turn, pick([-1, 0, 1])),
    new Date('2001-02-03T04:05:06Z'),
    new Date('2099-12-31T23:59:59.999Z'),
  ]);
}

const values = {
  workspace: [null, 'ws_1', 'ws_2'],
  app: [null, null, 'app_1'],
  namespace: [null, 'ns_1'],
  environment: [null, 'env_1'],
  token: [null, null, 'tok_1'],
  resource: [null, 'sec_1', 'ws_1'],
} as const;
const users = ['usr_1', 'usr_2', null];
let number = 0;

const COLUMNS = `id, timestamp, org_id, user_id, workspace_id, app_id, namespace_id, environment_id, token_id,
  resource_id, action, resource_type, success, status_code, duration_ms, execution_id, token_usage, principal_type`;

const record = (): unknown[] => {
  const success = Math.random() < 0.7;
  return [
    `act_${++number}`,
    time(),
    pick(['org_1', 'org_1', 'org_2', null]),
    pick(users),
    pick(values.workspace),
    pick(values.app),
    pick(values.namespace),
    pick(values.environment),
    pick(values.token),
    pick(values.resource),
    pick(['read', 'update', 'execute']),
    pick(['secret', 'workspace', null]),
    success,
    success ? 200 : 403,
    Math.floor(Math.random() * 100),
    pick([null, null, 'exe_1']),
    pick(['{}', '{"total": 7}', '{"total": "many"}', '{"total": null, "input": 3}']),
    'user',
  ];
};

async function write(writer: number): Promise<void> {
  const client = await pool.connect();
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await client.query('begin');
      for (let i = 0; i < 1 + Math.random() * 3; i++) {
        const row = record();
        const places = row.map((_, index) => `$${index + 1}`).join(', ');
        await client.query(`insert into activity (${COLUMNS}) values (${places})`, row);
        if (Math.random() < 0.2) await delay(Math.random() * 3);
      }
      if (writer % 2 === 0) await delay(Math.random() * 5);
      await client.query(Math.random() < 0.15 ? 'rollback' : 'commit');
    }
  } finally {
    client.release();
  }
}

const idOf = (kind: ScopeKind): string =>
  kind === 'organization' ? 'org_1' : pick(values[kind].filter((id) => id !== null));

function scope(): ActivityScope {
  const kind = pick(scopeKinds);
  const made = { orgId: 'org_1', kind, id: idOf(kind), userId: pick(users) };
  return isSummed(made) ? made : { ...made, userId: null };
}

function filters(): SumFilters {
  const [a, b] = [time(), time()].toSorted((x, y) => x.getTime() - y.getTime());
  return {
    since: pick([null, a!]),
    until: pick([null, b!]),
    action: pick([null, null, 'read']),
    resourceType: pick([null, null, 'secret']),
    success: pick([null, null, true, false]),
  };
}

const condition = ({ kind, userId }: ActivityScope): string =>
  [
    't.org_id = $1',
    kind === 'organization' ? '$2 = $1' : `${scopeColumns[kind]} = $2`,
    ...(userId ? ['t.user_id = $3'] : ['$3::text is null']),
  ].join(' and ');

const SUMS = `count(*)::float8 as requests, coalesce(sum(t.duration_ms), 0)::float8 as "durationMs",
  coalesce(sum(case when t.token_usage ->> 'total' = '7' then 7 else 0 end), 0)::float8 as tokens`;

/** What the records themselves add up to. */
async function naive(client: pg.Pool, of: ActivityScope, by: SumFilters): Promise<typeof none> {
  const { rows } = await client.query<typeof none>(
    `select ${SUMS} from activity t where ${condition(of)}
      and ($4::timestamptz is null or t.timestamp >= $4) and ($5::timestamptz is null or t.timestamp < $5)
      and ($6::text is null or t.action = $6) and ($7::text is null or t.resource_type = $7)
      and ($8::bool is null or t.success = $8)`,
    [of.orgId, of.id, of.userId, by.since, by.until, by.action, by.resourceType, by.success],
  );
  return rows[0]!;
}

const none = { requests: 0, durationMs: 0, tokens: 0 };
const filterNames = ['action', 'resourceType', 'success'] as const;
const sumNames = ['requests', 'durationMs', 'tokens'] as const;

/** Compares in one snapshot. @returns how many records it was about */
async function compare(): Promise<number> {
  await snapshot.query('begin isolation level repeatable read');
  try {
    const of = scope();
    const by = filters();
    const sql = new Sql(snapshot);
    const kinds = await readSums(sql, 'kind', [of], by);
    const sums = { ...none };
    for (const kind of kinds) if (!kind.isMargin) for (const name of sumNames) sums[name] += kind[name];
    expect(sums, JSON.stringify([of, by])).toEqual(await naive(snapshot, of, by));
    const margins = [
      ['action', 'read'],
      ['resourceType', 'secret'],
    ] as const;
    for (const [name, value] of filterNames.every((filter) => by[filter] === null) ? margins : []) {
      const requests = kinds.reduce((sum, kind) => sum + (kind[name] === value ? kind.requests : 0), 0);
      const found = await naive(snapshot, of, { ...by, [name]: value });
      expect(requests, JSON.stringify([of, by, name])).toBe(found.requests);
    }
    expect(await readSums(sql, 'count', [of], by)).toEqual([{ at: 0, requests: sums.requests }]);
    if (by.since === null && by.until === null) {
      const { text, values } = countOfScope(of, by, 1);
      expect(await sql.read(`select (${text}) as n`, values), text).toEqual([{ n: sums.requests }]);
    }
    return sums.requests;
  } finally {
    await snapshot.query('commit');
  }
}

/** Two nodes that sum as fast as they can, a few records at a time. */
async function fold(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await pool.query('select fold_activity(7, 3)');
    await delay(Math.random() * 10);
  }
}

describe('the sums of activity records', () => {
  it('are at every moment what the records add up to', async () => {
    let isOver = false;
    const folding = Promise.all([fold(() => isOver), fold(() => isOver)]);
    const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer))).finally(() => {
      isOver = true;
    });
    let records = 0;
    try {
      while (!isOver) records += await compare();
    } finally {
      await Promise.all([writing, folding]);
    }
    for (let i = 0; i < 300; i++) records += await compare();
    expect(records).toBeGreaterThan(1_000);
    // reading the records that are not summed yet would hide a wrong sum
    await waitFor(async () => {
      await pool.query('select fold_activity(1000, 3)');
      expect((await pool.query('select 1 from activity where xid >= (select xid from activity_fold)')).rowCount).toBe(
        0,
      );
    });
    for (let i = 0; i < 300; i++) await compare();
    const divided = await pool.query<{ span: Span }>('select distinct span from activity_divided order by 1');
    expect(divided.rows.map(({ span }) => span)).toEqual(['day', 'hour', 'month']);
  });

  it('need no record of a whole minute of an hour that has many of all kinds; all of one that has few', async () => {
    const hour = new Date('2031-05-06T07:00:00Z');
    const write = (org: string, count: number) =>
      pool.query(
        `insert into activity (id, timestamp, org_id, user_id, workspace_id, principal_type, action, status_code,
           success)
         select 'act_' || $1 || i, $2::timestamptz + i * interval '1 hour' / $3, $1, 'usr_1', 'ws_1', 'user',
           'action' || i % 8, 200, true
         from generate_series(0, $3 - 1) i`,
        [org, hour, count],
      );
    await write('org_few', 60);
    await write('org_many', 3600);
    await canBeSummed();
    await waitFor(async () =>
      expect((await pool.query<{ more: boolean }>('select fold_activity(1000) as more')).rows[0]!.more).toBe(false),
    );
    await pool.query(`delete from activity where org_id in ('org_few', 'org_many')`);
    const range = { since: new Date('2031-05-06T07:10:30Z'), until: new Date('2031-05-06T07:20:15Z') };
    const read = async (orgId: string, kind: ScopeKind, id: string, userId: string | null) =>
      (await readSums(new Sql(pool), 'count', [{ orgId, kind, id, userId }], range))[0]?.requests ?? 0;
    for (const userId of [null, 'usr_1']) {
      expect(await read('org_many', 'organization', 'org_many', userId)).toBe(9 * 60);
      expect(await read('org_many', 'workspace', 'ws_1', userId)).toBe(9 * 60);
      expect(await read('org_few', 'organization', 'org_few', userId)).toBe(0);
    }
  });

  it('are right of a kind with as many records in the range as are taken from a longer span behind it', async () => {
    const org = 'org_even';
    const write = (id: string, timestamp: string, action: string, duration: number, tokens: number) =>
      pool.query(
        `insert into activity (id, timestamp, org_id, principal_type, action, status_code, success, duration_ms,
           token_usage)
         values ('act_even' || $1, $2, $3, 'user', $4, 200, true, $5, jsonb_build_object('total', $6::int))`,
        [id, timestamp, org, action, duration, tokens],
      );
    for (let day = 12; day < 31; day++)
      for (let n = 0; n < 5; n++) await write(`${day}-${n}`, `2026-08-${day}T0${n}:00:00Z`, 'read', 1, 0);
    // of the last hour, all but its last millisecond is asked for: its sums less those of its last minute
    for (let n = 0; n < 5; n++) await write(`last-${n}`, `2026-08-31T23:0${n}:00Z`, 'read', 1, 0);
    await write('behind', '2026-08-31T23:59:59.999Z', 'update', 50, 700);
    await write('first', '2026-08-11T18:00:00Z', 'update', 9, 30);
    await canBeSummed();
    await waitFor(async () =>
      expect((await pool.query<{ more: boolean }>('select fold_activity(1000, 3) as more')).rows[0]!.more).toBe(false),
    );
    const range = { since: new Date('2026-08-11T04:00:00Z'), until: new Date('2026-08-31T23:59:59.999Z') };
    const scope: ActivityScope = { orgId: org, kind: 'organization', id: org, userId: null };
    const sums = { ...none };
    for (const kind of await readSums(new Sql(pool), 'kind', [scope], range))
      if (!kind.isMargin) for (const name of sumNames) sums[name] += kind[name];
    expect(sums).toEqual({ requests: 101, durationMs: 109, tokens: 30 });
  });

  it('are made in steps, however many records a transaction has', async () => {
    const org = 'org_steps';
    await pool.query(
      `insert into activity (id, timestamp, org_id, principal_type, action, status_code, success)
       select 'act_step' || i, '2031-05-06T07:00:00Z', $1, 'user', 'read', 200, true from generate_series(1, 2500) i`,
      [org],
    );
    await canBeSummed();
    const steps: number[] = [];
    let isMore = true;
    while (isMore) {
      isMore = (await pool.query<{ more: boolean }>('select fold_activity(1000) as more')).rows[0]!.more;
      const { rows } = await pool.query<{ n: number }>(
        `select requests::int as n from activity_sums where org_id = $1 and span = 'month'`,
        [org],
      );
      steps.push(rows[0]?.n ?? 0);
      const [sums] = await readSums(
        new Sql(pool),
        'count',
        [{ orgId: org, kind: 'organization', id: org, userId: null }],
        {
          since: null,
          until: null,
        },
      );
      expect(sums).toMatchObject({ requests: 2500 });
    }
    expect(steps).toEqual([1000, 2000, 2500]);
  });

  it('are given by hour, day and month', async () => {
    const sql = new Sql(pool);
    for (const span of spans) {
      for (const of of [scope(), { orgId: 'org_1', kind: 'organization', id: 'org_1', userId: null } as const]) {
        const range =
          span === 'minute'
            ? { since: addSpans('hour', turn, -50), until: addSpans('hour', turn, 50) }
            : { since: addSpans('month', turn, -2), until: addSpans('month', turn, 2) };
        const points = await readSeries(sql, of, span, range);
        const { rows } = await pool.query(
          `select date_trunc('${span}', t.timestamp, 'UTC') as start, ${SUMS},
            count(*) filter (where not t.success)::float8 as errors
          from activity t where ${condition(of)} and t.timestamp >= $4 and t.timestamp < $5 group by 1 order by 1`,
          [of.orgId, of.id, of.userId, range.since, range.until],
        );
        expect(
          points.toSorted((a, b) => a.start.getTime() - b.start.getTime()),
          span,
        ).toEqual(rows);
      }
    }
  });

  it('are those of the hours and days of any time zone', async () => {
    const sql = new Sql(pool);
    const half = { since: addSpans('hour', turn, -50), until: addSpans('hour', turn, 50) };
    const long = { since: addSpans('month', turn, -2), until: addSpans('month', turn, 2) };
    for (const zone of ['Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu', 'Pacific/Auckland'])
      for (const [step, { since, until }] of [
        ['hour', half],
        ['day', long],
      ] as const)
        for (const of of [scope(), { orgId: 'org_1', kind: 'organization', id: 'org_1', userId: null } as const]) {
          const calendar = calendarOf(zone);
          const borders = spansBetween(calendar, step, { since: calendar.startOf(step, since), until }, 10_000)!;
          const points = await readSeriesOfParts(sql, of, partsOf(step, borders, 'minute'));
          const { rows } = await pool.query(
            `select date_trunc('${step}', t.timestamp, '${zone}') as start, ${SUMS},
              count(*) filter (where not t.success)::float8 as errors
            from activity t where ${condition(of)} and t.timestamp >= $4 and t.timestamp < $5 group by 1 order by 1`,
            [of.orgId, of.id, of.userId, borders[0], endOf(borders)],
          );
          expect(
            points.toSorted((a, b) => a.start.getTime() - b.start.getTime()),
            `${zone} ${step}`,
          ).toEqual(rows);
        }
  });

  it('are made again in a cluster that has not seen as many transactions', async () => {
    await pool.query(`update activity_fold set xid = '1000000000000'`);
    await pool.query(`update activity set xid = '999999999999' where id < 'act_5'`);
    await pool.query('select fold_activity(1000000)');
    for (let i = 0; i < 100; i++) await compare();
  });
});

describe('a range', () => {
  const ranges = Array.from({ length: 2_000 }, () => {
    const [since, until] = [time(), time()].toSorted((a, b) => a.getTime() - b.getTime()) as [Date, Date];
    return { since, until };
  });

  /** What is left of some spans: what is taken away is at one end of them. */
  const without = ({ since, until, less }: NonNullable<PartOfSpan['whole']>): Between[] =>
    less
      ? [
          { since, until: less.since },
          { since: less.until, until },
        ].filter((left) => left.since < left.until)
      : [{ since, until }];

  /** What is read if spans of these lengths are divided. */
  const readOf = (range: Between, divided: readonly Span[]): Between[] => {
    const { months, parts } = spansOf(range);
    return [
      ...(months ? [months as Between] : []),
      ...parts.flatMap((part) => {
        if (divided.includes(part.of.span)) return part.whole ? without(part.whole) : [];
        return part.within === null || divided.includes(part.within.span) ? [part.range] : [];
      }),
    ];
  };

  it('is divided into disjoint parts that cover it, however far it is divided', () => {
    for (const range of ranges) {
      for (const divided of [[], ['month'], ['month', 'day'], ['month', 'day', 'hour']] as const) {
        const borders = readOf(range, divided)
          .toSorted((a, b) => a.since.getTime() - b.since.getTime())
          .flatMap(({ since, until }) => [since.getTime(), until.getTime()]);
        if (range.since.getTime() === range.until.getTime()) expect(borders).toEqual([]);
        else expect([borders[0], borders.at(-1)]).toEqual([range.since.getTime(), range.until.getTime()]);
        for (let at = 1; at + 1 < borders.length; at += 2) expect(borders[at]).toBe(borders[at + 1]);
      }
    }
  });

  it('has each part in its span, and its whole spans between their borders', () => {
    for (const range of ranges) {
      for (const { of, within, range: part, whole } of spansOf(range).parts) {
        expect(startOf(of.span, part.since)).toEqual(of.start);
        expect(part.until.getTime()).toBeLessThanOrEqual(addSpans(of.span, of.start, 1).getTime());
        if (within) expect(startOf(within.span, of.start)).toEqual(within.start);
        for (const some of [whole, whole?.less])
          if (some) for (const end of [some.since, some.until]) expect(startOf(some.span, end)).toEqual(end);
        if (whole?.less) expect([whole.span, without(whole).length]).toEqual([of.span, 1]);
      }
    }
  });

  it('is read as a span less some of its parts, if these are fewer', () => {
    const at = (text: string) => new Date(`2026-01-${text}:00Z`);
    const days = (since: string, until: string) =>
      spansOf({ since: at(since), until: at(until) }).parts.flatMap(({ of, whole }) =>
        of.span === 'day' ? [[whole?.span, whole?.less?.since, whole?.less?.until]] : [],
      );
    expect(days('05T02:30', '09T21:00')).toEqual([
      ['day', at('05T00:00'), at('05T03:00')],
      ['day', at('09T21:00'), at('10T00:00')],
    ]);
    expect(days('05T14:30', '09T09:00')).toEqual([['hour'], ['hour']].map(([span]) => [span, undefined, undefined]));
    expect(days('05T02:00', '05T22:00')).toEqual([['hour', undefined, undefined]]);
  });

  it('has few parts, however long it is', () => {
    for (const range of ranges) expect(spansOf(range).parts.length).toBeLessThanOrEqual(8);
  });
});
