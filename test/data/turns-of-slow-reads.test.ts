// own process: it stops the timers that an app of other files would set
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SlowReads } from '../../src/data/slow-reads.ts';
import { Sql } from '../../src/data/sql.ts';
import type { Query, Transaction } from '../../src/platform/postgres/transaction.ts';

/** The reads that run, by their text; each ends with what it is answered. */
let running: Map<string, () => void>;
/** What was committed as one transaction. */
let committed: (string | undefined)[][];

const query = (asked: { text: string }) =>
  new Promise((resolve) => {
    running.set(asked.text, () => {
      running.delete(asked.text);
      resolve({ rows: [{ read: asked.text }], marks: [] });
    });
  });
const transaction = {
  commit: async (queries: readonly Query[]) => {
    committed.push(queries.map(({ text }) => text));
    return queries.map(({ text, values }) => ({ rows: [{ text, values }] }));
  },
} as unknown as Transaction;

const slowReads = (poolSize: number): SlowReads =>
  new SlowReads({
    sql: new Sql({ query } as unknown as pg.Pool),
    database: { transaction: (work) => work(transaction) },
    poolSize,
    searchTimeoutMs: 2_000,
  });

const busy = expect.objectContaining({
  code: 'SERVICE_UNAVAILABLE',
  details: { retry_after: 1, reason: 'too_many_at_once' },
  message: 'Too many searches, traversals, exports or sums of the organization run at once. Try again later.',
});

/** Begins reads of an organization; the reasons of those that failed are in the list. */
function begin(reads: SlowReads, orgId: string, count: number): { done: Promise<unknown>[]; failed: unknown[] } {
  const failed: unknown[] = [];
  const done = Array.from({ length: count }, (_, n) =>
    reads
      .of(orgId)
      .read(`${orgId} ${n}`, [])
      .catch((error: unknown) => void failed.push(error)),
  );
  return { done, failed };
}
const texts = () => [...running.keys()];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  running = new Map();
  committed = [];
});
afterEach(() => void vi.useRealTimers());

describe('slow reads', () => {
  it('hold two fifths of the pool, and those of one organization half of that', async () => {
    const reads = slowReads(10);
    const ann = begin(reads, 'ann', 4);
    await vi.advanceTimersByTimeAsync(0);
    expect(texts()).toEqual(['ann 0', 'ann 1']);
    const others = [begin(reads, 'bob', 1), begin(reads, 'cleo', 2)];
    await vi.advanceTimersByTimeAsync(0);
    expect(texts()).toEqual(['ann 0', 'ann 1', 'bob 0', 'cleo 0']);
    running.get('ann 0')?.();
    await vi.advanceTimersByTimeAsync(0);
    expect(texts()).toEqual(['ann 1', 'bob 0', 'cleo 0', 'ann 2']);
    while (running.size > 0) {
      for (const end of running.values()) end();
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(await Promise.all(ann.done)).toEqual([0, 1, 2, 3].map((n) => [{ read: `ann ${n}` }]));
    expect([ann, ...others].flatMap(({ failed }) => failed)).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    [1, 1, 1],
    [7, 1, 2],
    [12, 2, 4],
  ])('of a pool of %i are at least one: %i of one organization, %i in all', async (size, each, all) => {
    const reads = slowReads(size);
    begin(reads, 'ann', 5);
    await vi.advanceTimersByTimeAsync(0);
    expect(texts()).toHaveLength(each);
    for (const other of ['bob', 'cleo', 'dan']) begin(reads, other, 5);
    await vi.advanceTimersByTimeAsync(0);
    expect(texts()).toHaveLength(all);
  });

  it('wait three seconds for their turn', async () => {
    const { failed } = begin(slowReads(5), 'ann', 3);
    await vi.advanceTimersByTimeAsync(2_999);
    expect(failed).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(failed).toEqual([busy, busy]);
    expect(texts()).toEqual(['ann 0']);
  });

  it('wait in no queue of more than fifty', async () => {
    const { failed } = begin(slowReads(5), 'ann', 52);
    await vi.advanceTimersByTimeAsync(0);
    expect(failed).toEqual([busy]);
  });

  it('leave their turn when they fail', async () => {
    const failing = new SlowReads({
      sql: new Sql({ query: () => Promise.reject(new Error('of the database')) } as unknown as pg.Pool),
      database: { transaction: (work) => work(transaction) },
      poolSize: 1,
      searchTimeoutMs: 2_000,
    });
    for (let n = 0; n < 3; n++) await expect(failing.of('ann').read('x', [])).rejects.toThrow('of the database');
  });

  it('may have a limit of their own', async () => {
    const rows = await slowReads(1).of('ann', { limitMs: 250 }).read('select $1 as n', [7]);
    expect(committed).toEqual([
      [expect.stringContaining(`set_config('statement_timeout', '250', true)`), 'select $1 as n'],
    ]);
    expect(rows).toEqual([{ text: 'select $1 as n', values: [7] }]);
  });

  it('that search have the limit of searches, and wait for the same turns', async () => {
    const reads = slowReads(1);
    await reads.searchesOf('ann').read('select 1', []);
    expect(committed).toEqual([[expect.stringContaining(`set_config('statement_timeout', '2000', true)`), 'select 1']]);
    begin(reads, 'ann', 1);
    const refused = expect(reads.searchesOf('ann').read('select 2', [])).rejects.toEqual(busy);
    await vi.advanceTimersByTimeAsync(3_000);
    await refused;
  });
});
