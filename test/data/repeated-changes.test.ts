import type pg from 'pg';
import { describe, expect, it } from 'vitest';
import { brokenUnique, Changes, TryAgain } from '../../src/data/changes.ts';
import { JobQueue } from '../../src/data/job-queue.ts';
import { Sql } from '../../src/data/sql.ts';
import { ApiError, invalidInput } from '../../src/kernel/errors.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';

const coded = (code: unknown, message = 'of the database'): Error => Object.assign(new Error(message), { code });

/** Tries a change while attempts fail with these errors. */
async function tried(errors: readonly unknown[], isStatement = false): Promise<{ tries: number; result: unknown }> {
  let tries = 0;
  const attempt = async (): Promise<void> => {
    const error = errors[tries++];
    if (error !== undefined) await Promise.reject(error);
  };
  const query = async () => {
    await attempt();
    return { rows: [{ id: 'a' }] };
  };
  const changes = new Changes({
    database: {
      transaction: async (work) => {
        await attempt();
        return work({ hasBegun: false } as Parameters<typeof work>[0]);
      },
    },
    sql: new Sql({ query } as unknown as pg.Pool),
    jobs: new JobQueue(),
    notify: () => null,
    assertsLockOrder: false,
    onCommit: () => undefined,
  });
  const audit = { action: 'update', resourceType: 'app', resourceId: 'a', orgId: null } as const;
  const run = isStatement
    ? changes.runStatement(systemCaller('a test'), { text: 'update …', values: [], audit, metadata: `'{}'` })
    : changes.run(systemCaller('a test'), async () => 'done');
  const result = await run.catch((error: unknown) => error);
  return { tries, result };
}

describe('a change that PostgreSQL ended for the sake of another', () => {
  it.each<[string, Error]>([
    ['a conflict with another', coded('40001')],
    ['a deadlock', coded('40P01')],
    ['what Prisma calls both', coded('P2034')],
    ['a change that took too few locks', new TryAgain('more locks')],
    ['a deadlock that only its message names', new Error('ERROR: 40P01: deadlock detected')],
    ['a conflict with unknown extensions', Object.assign(coded('40001'), { extensions: { code: 'UNKNOWN' } })],
    ['a conflict with empty extensions', Object.assign(coded('40001'), { extensions: {} })],
  ])('is tried again: %s', async (_title, error) => {
    expect(await tried([error])).toEqual({ tries: 2, result: 'done' });
  });

  it('is tried four times at most', async () => {
    const error = coded('40P01');
    expect(await tried([error, error, error])).toEqual({ tries: 4, result: 'done' });
    expect(await tried([error, error, error, error])).toEqual({ tries: 4, result: error });
    expect(await tried([error, error], true)).toEqual({ tries: 3, result: { id: 'a' } });
  });

  it.each<[string, unknown]>([
    ['another error of the database', coded('23505')],
    ['an error without a code', coded(undefined)],
    ['any error', new Error('anything')],
    ['a text', 'a text with 40001'],
    ['an object', { code: '40001' }],
    ['an error of the catalogue', new ApiError('RESOURCE_CONFLICT', { reason: 'x' }, 'Number 40001 is taken.')],
    ['invalid input', invalidInput(['n'], '40001 is too large')],
  ])('is not one that fails for good: %s', async (_title, error) => {
    const { tries, result } = await tried([error]);
    expect(tries).toBe(1);
    expect(result).toBe(error);
  });
});

describe('a value that must be unique and is not', () => {
  it('is told by the database, or by Prisma', () => {
    expect([coded('23505'), coded('P2002')].map(brokenUnique)).toEqual([true, true]);
    const others = [coded('23503'), coded(undefined), new Error('23505'), { code: '23505' }, '23505', null];
    expect(others.map(brokenUnique)).toEqual(others.map(() => false));
  });
});
