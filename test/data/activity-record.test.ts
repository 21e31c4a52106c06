// own process: it stops the timers that an app of other files would set
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ActivityEntry,
  ActivityRecorder,
  activityRow,
  namedColumns,
  outcomeOf,
  recordable,
  recordOfChanged,
} from '../../src/data/activity.ts';
import { Sql } from '../../src/data/sql.ts';
import type { AnyCaller, RequestInfo } from '../../src/kernel/caller.ts';
import { ApiError } from '../../src/kernel/errors.ts';
import type { Principal } from '../../src/kernel/principal.ts';
import { activeSpan, type TraceSpan, within } from '../../src/kernel/spans.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { TokenGrant } from '../../src/kernel/token-grant.ts';
import { gate } from '../support/gate.ts';

const token: TokenGrant = {
  id: 'tok_1',
  type: 'pat',
  familyId: 'tok_1',
  hash: 'h',
  orgId: 'org_1',
  appId: null,
  permissions: new Set(),
  workspaceIds: [],
  namespaceIds: [],
  environmentIds: [],
  impliedWorkspaceIds: null,
  endpoints: null,
  rateLimitRps: null,
  rateLimitBurst: null,
  root: null,
};
const known = { userId: 'usr_1', username: 'ann', isPlatformAdmin: false, isVerified: true };
const user: Principal = { ...known, type: 'user', sessionId: 'ses_1', orgId: null, token: null };
const program: Principal = { ...known, type: 'api_token', orgId: 'org_1', token };

const callerOf = (principal: Principal | null, request: Partial<RequestInfo> = {}): AnyCaller => ({
  principal,
  request: {
    traceId: 'trace',
    method: 'GET',
    path: '/v1/apps',
    ip: '::1',
    successStatus: 201,
    startedAt: performance.now(),
    recorded: false,
    isRest: true,
    ...request,
  },
});
const entry: ActivityEntry = { action: 'read', resourceType: 'app', resourceId: 'app_1', orgId: 'org_1' };

describe('the record of an operation', () => {
  it('says who did what, where and how it ended', () => {
    const whole: ActivityEntry = {
      ...entry,
      workspaceId: 'ws_1',
      namespaceId: 'ns_1',
      environmentId: 'env_1',
      appId: 'app_2',
      executionId: 'exec_1',
      augmentationId: 'aug_1',
      stagesCompleted: 2,
      totalStages: 3,
      tokenUsage: { total: 5 },
      metadata: { a: 1 },
    };
    const startedAt = performance.now() - 50_000;
    const row = activityRow(callerOf(program, { startedAt }), whole, {
      statusCode: 404,
      errorCode: 'RESOURCE_NOT_FOUND',
    });
    expect(row).toEqual({
      id: expect.stringMatching(/^act_/),
      timestamp: expect.any(Date),
      trace_id: 'trace',
      org_id: 'org_1',
      user_id: 'usr_1',
      workspace_id: 'ws_1',
      namespace_id: 'ns_1',
      environment_id: 'env_1',
      app_id: 'app_2',
      principal_type: 'api_token',
      principal_id: 'tok_1',
      token_id: 'tok_1',
      token_type: 'pat',
      method: 'GET',
      path: '/v1/apps',
      resource_type: 'app',
      resource_id: 'app_1',
      action: 'read',
      status_code: 404,
      success: false,
      error_code: 'RESOURCE_NOT_FOUND',
      duration_ms: expect.any(Number),
      execution_id: 'exec_1',
      augmentation_id: 'aug_1',
      stages_completed: 2,
      total_stages: 3,
      token_usage: '{"total":5}',
      metadata: '{"a":1}',
    });
    expect(Number.isInteger(row.duration_ms)).toBe(true);
    expect(row.duration_ms).toBeGreaterThanOrEqual(50_000);
    expect(row.duration_ms).toBeLessThan(80_000);
  });

  it('has nothing where there is nothing to say, and the status of success where it did not fail', () => {
    const nothing = { action: 'list', resourceType: 'app', resourceId: null, orgId: null } as const;
    expect(activityRow(callerOf(null), nothing)).toMatchObject({
      org_id: null,
      user_id: null,
      workspace_id: null,
      namespace_id: null,
      environment_id: null,
      app_id: null,
      principal_type: 'anonymous',
      principal_id: null,
      token_id: null,
      token_type: null,
      resource_id: null,
      status_code: 201,
      success: true,
      error_code: null,
      execution_id: null,
      augmentation_id: null,
      stages_completed: null,
      total_stages: null,
      token_usage: '{}',
      metadata: '{}',
    });
  });

  it('is a failure from 400 on, unless it is said otherwise', () => {
    const successOf = (statusCode: number, success?: boolean) =>
      activityRow(callerOf(null), entry, { statusCode, ...(success !== undefined && { success }) }).success;
    expect([399, 400, 401].map((status) => successOf(status))).toEqual([true, false, false]);
    expect([successOf(200, false), successOf(500, true)]).toEqual([false, true]);
  });

  it('is that of the user who is signed in, has just signed in, or proved an account', () => {
    const whoOf = (caller: AnyCaller, given: Partial<ActivityEntry> = {}) => {
      const row = activityRow(caller, { ...entry, ...given });
      return [row.principal_type, row.principal_id, row.user_id, row.token_id];
    };
    const signedIn: AnyCaller = { ...callerOf(null), signedInAs: { userId: 'usr_2', username: 'bob' } };
    expect(whoOf(callerOf(user), { userId: 'usr_3' })).toEqual(['user', 'usr_1', 'usr_1', null]);
    expect(whoOf({ ...callerOf(user), ...signedIn, principal: user })).toEqual(['user', 'usr_1', 'usr_1', null]);
    expect(whoOf(signedIn, { userId: 'usr_3' })).toEqual(['user', 'usr_2', 'usr_2', null]);
    expect(whoOf(callerOf(null), { userId: 'usr_3' })).toEqual(['user', 'usr_3', 'usr_3', null]);
    expect(whoOf(callerOf(null), { accountId: 'usr_4' })).toEqual(['anonymous', null, 'usr_4', null]);
    expect(whoOf(callerOf(null), { userId: 'usr_3', accountId: 'usr_4' })).toEqual(['user', 'usr_3', 'usr_3', null]);
    expect(whoOf(systemCaller('a task'))).toEqual(['system', null, null, null]);
  });

  it('names the root field of GraphQL, and in REST none', () => {
    const metadataOf = (request: Partial<RequestInfo>, given: Partial<ActivityEntry> = {}) =>
      JSON.parse(String(activityRow(callerOf(null, request), { ...entry, ...given }).metadata));
    const metadata = { a: 1 };
    const graphql = { isRest: false, rootField: 'createApp' };
    expect(metadataOf(graphql, { metadata })).toEqual({ a: 1, graphql_field: 'createApp' });
    expect(metadataOf(graphql, { field: 'apps' })).toEqual({ graphql_field: 'apps' });
    expect(metadataOf({ isRest: false }, { metadata })).toEqual(metadata);
    expect(metadataOf({ isRest: false })).toEqual({});
    expect(metadataOf({ isRest: true, rootField: 'createApp' }, { metadata, field: 'apps' })).toEqual(metadata);
  });

  it('keeps of an id what can be stored', () => {
    expect(recordable('x'.repeat(128))).toBe('x'.repeat(128));
    expect(recordable('x'.repeat(129))).toBe('x'.repeat(128));
    expect(recordable('a\0b\0\ud800c')).toBe('a\uFFFDb\uFFFD\uFFFDc');
    expect([recordable(null), recordable(undefined), recordable('')]).toEqual([null, null, '']);
  });

  it('of a failure has its status and its code', () => {
    const error = new ApiError('RESOURCE_CONFLICT', {}, 'taken');
    expect(outcomeOf(error)).toEqual({ statusCode: 409, errorCode: 'RESOURCE_CONFLICT' });
    expect(outcomeOf(new Error('anything'))).toEqual({ statusCode: 500, errorCode: 'INTERNAL_SERVER_ERROR' });
  });

  it('is a part of the statement that changes what it is about', () => {
    const record = recordOfChanged(3, 'c.more');
    const row = activityRow(callerOf(user), entry);
    const columns = Object.keys(row);
    const typed = /^insert into activity \((?<into>[^)]*)\) select (?<values>.*) from changed c$/.exec(
      record.text,
    )?.groups;
    expect(typed?.into).toBe(columns.join(', '));
    expect(typed?.values?.replaceAll(/::\w+/g, '')).toBe(
      columns.map((name, at) => `$${at + 3}${name === 'metadata' ? ' || c.more' : ''}`).join(', '),
    );
    expect(record.parameters(row)).toEqual(Object.values(row));
  });

  it('may name what is not there in other columns than those of its kind', () => {
    expect(namedColumns).toEqual([
      'org_id',
      'user_id',
      'token_id',
      'workspace_id',
      'app_id',
      'namespace_id',
      'environment_id',
      'resource_id',
    ]);
  });
});

describe('the recorder', () => {
  /** What the database was asked to insert: the paths of the records of each statement. */
  let inserted: string[][];
  /** What it does with a statement: it throws for records that it refuses. */
  let database: (paths: readonly string[]) => Promise<void> | void;
  let faults: [error: unknown, lost: number][];
  let recorder: ActivityRecorder;

  const columns = Object.keys(activityRow(systemCaller('a test'), entry));
  const query = async ({ values }: { values: unknown[][] }) => {
    const paths = values[columns.indexOf('path')] as string[];
    await database(paths);
    inserted.push(paths);
    return { rows: [], rowCount: paths.length };
  };
  const sql = new Sql({ query } as unknown as pg.Pool);
  const recorderOf = (maxKept?: number) =>
    new ActivityRecorder(sql, (error, lost) => faults.push([error, lost]), maxKept);
  const away = Object.assign(new Error('the database is away'), { code: '57P01' });
  const refusal = new Error('it cannot be stored');

  function record(...paths: string[]): void {
    for (const path of paths) recorder.record(callerOf(user, { path }), entry, { statusCode: 200 });
  }
  const some = (count: number, word = 'p') => Array.from({ length: count }, (_, at) => `${word}${at}`);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    inserted = [];
    faults = [];
    database = () => undefined;
    recorder = recorderOf();
  });
  afterEach(() => void vi.useRealTimers());

  it('writes together what is recorded within a tenth of a second', async () => {
    record('a');
    await vi.advanceTimersByTimeAsync(60);
    record('b');
    await vi.advanceTimersByTimeAsync(39);
    expect([inserted, recorder.depth]).toEqual([[], 2]);
    await vi.advanceTimersByTimeAsync(1);
    expect([inserted, recorder.depth]).toEqual([[['a', 'b']], 0]);
    record('c');
    await vi.advanceTimersByTimeAsync(100);
    expect(inserted).toEqual([['a', 'b'], ['c']]);
    expect([vi.getTimerCount(), faults, recorder.lost]).toEqual([0, [], 0]);
  });

  it('waits no longer where there are many, and writes five hundred at a time', async () => {
    record(...some(499));
    await vi.advanceTimersByTimeAsync(0);
    expect(inserted).toEqual([]);
    record('last');
    await vi.advanceTimersByTimeAsync(0);
    expect(inserted.map((paths) => paths.length)).toEqual([500]);
    expect(vi.getTimerCount()).toBe(0);
    record(...some(501));
    await recorder.flush();
    expect(inserted.map((paths) => paths.length)).toEqual([500, 500, 1]);
  });

  it('writes them as part of no request: there are records of others', async () => {
    const spans: unknown[] = [];
    database = () => void spans.push(activeSpan());
    const request = { isEnded: false, parent: null } as TraceSpan;
    within(request, () => record(...some(500)));
    await vi.advanceTimersByTimeAsync(0);
    expect(spans).toEqual([undefined]);
  });

  it('keeps what cannot be written while the database is away, and tries again each second', async () => {
    database = () => Promise.reject(away);
    record('a', 'b');
    await vi.advanceTimersByTimeAsync(100);
    expect([recorder.depth, recorder.lost, faults]).toEqual([2, 0, [[away, 0]]]);
    record('c');
    await vi.advanceTimersByTimeAsync(999);
    expect(faults).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect([recorder.depth, faults.length]).toEqual([3, 2]);
    database = () => undefined;
    await vi.advanceTimersByTimeAsync(1_000);
    expect([inserted, recorder.depth, recorder.lost]).toEqual([[['a', 'b', 'c']], 0, 0]);
    record('d');
    await vi.advanceTimersByTimeAsync(100);
    expect(inserted.at(-1)).toEqual(['d']);
  });

  it('leaves the database alone until then, however much is recorded', async () => {
    let tries = 0;
    database = () => {
      tries++;
      throw away;
    };
    record(...some(500));
    await vi.advanceTimersByTimeAsync(0);
    expect(tries).toBe(1);
    record(...some(20, 'q'));
    await vi.advanceTimersByTimeAsync(999);
    expect([tries, recorder.depth]).toEqual([1, 520]);
    database = () => undefined;
    await vi.advanceTimersByTimeAsync(1);
    expect(inserted.flat()).toEqual([...some(500), ...some(20, 'q')]);
    record(...some(500));
    await vi.advanceTimersByTimeAsync(0);
    expect(inserted).toHaveLength(3);
  });

  it('waits a second for what is recorded after a try by hand, too', async () => {
    database = () => Promise.reject(away);
    record('a');
    await recorder.flush();
    database = () => undefined;
    await recorder.flush();
    database = () => Promise.reject(away);
    record('b');
    await recorder.flush();
    expect(vi.getTimerCount()).toBe(1);
    record('c');
    await vi.advanceTimersByTimeAsync(500);
    expect([inserted, recorder.depth]).toEqual([[['a']], 2]);
  });

  it('drops what is too much to keep, and says how many', async () => {
    recorder = recorderOf(3);
    record('a', 'b', 'c', 'd');
    expect([recorder.depth, recorder.lost]).toEqual([3, 1]);
    database = () => {
      record('e', 'f');
      return Promise.reject(away);
    };
    await recorder.flush();
    expect([recorder.depth, recorder.lost, faults]).toEqual([3, 3, [[away, 3]]]);
    database = () => undefined;
    await recorder.flush();
    expect([inserted, recorder.depth]).toEqual([[['a', 'e', 'f']], 0]);
    database = () => Promise.reject(away);
    record('g');
    await recorder.flush();
    expect(faults.at(-1)).toEqual([away, 0]);
  });

  it('writes each of them where one is refused, and says how many were', async () => {
    database = (paths) => {
      if (paths.some((path) => path.startsWith('bad'))) throw refusal;
    };
    record('a', 'bad 1', 'b', 'bad 2');
    await recorder.flush();
    expect([inserted, recorder.depth, recorder.lost]).toEqual([[['a'], ['b']], 0, 2]);
    expect(faults).toEqual([[refusal, 2]]);
    let isFirst = true;
    database = () => {
      if (!isFirst) return;
      isFirst = false;
      throw refusal;
    };
    record('c', 'd');
    await recorder.flush();
    expect([inserted.slice(2), recorder.lost, faults.length]).toEqual([[['c'], ['d']], 2, 1]);
  });

  it('keeps those that could not be written because the database went away meanwhile', async () => {
    let isFirst = true;
    database = (paths) => {
      if (paths.length > 1) throw refusal;
      if (paths[0] === 'b' && isFirst) {
        isFirst = false;
        throw away;
      }
    };
    record('a', 'b', 'c');
    await recorder.flush();
    expect([inserted, recorder.depth, recorder.lost, faults]).toEqual([[['a'], ['c'], ['b']], 0, 0, []]);
  });

  it('has written all when a flush ends, and needs no timer any more', async () => {
    const { opened: answered, open: answer } = gate();
    database = () => answered;
    const order: string[] = [];
    record('a');
    const first = recorder.flush().then(() => order.push('first'));
    await vi.advanceTimersByTimeAsync(0);
    record('b');
    const second = recorder.flush().then(() => order.push('second'));
    await vi.advanceTimersByTimeAsync(0);
    expect([order, vi.getTimerCount()]).toEqual([[], 0]);
    answer();
    await Promise.all([first, second]);
    expect([order, inserted]).toEqual([
      ['first', 'second'],
      [['a'], ['b']],
    ]);
  });

  it('records some operations before they are answered, and these not again', async () => {
    const [result, other] = [{}, {}];
    await recorder.recordNow(callerOf(user, { path: 'now' }), entry, result);
    expect(inserted).toEqual([['now']]);
    expect(recorder.hasRecorded(result)).toBe(true);
    expect([other, null, undefined, 'text', 1].map((one) => recorder.hasRecorded(one))).toEqual(
      [1, 2, 3, 4, 5].map(() => false),
    );
    database = () => Promise.reject(refusal);
    await expect(recorder.recordNow(callerOf(user), entry, other)).rejects.toBe(refusal);
    expect(recorder.hasRecorded(other)).toBe(false);
  });
});
