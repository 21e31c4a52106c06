import { describe, expect, it } from 'vitest';
import type { Changes } from '../../src/data/changes.ts';
import { Notices } from '../../src/data/notices.ts';
import { type EventEntry, eventActor, eventRow, writeEvents } from '../../src/data/outbox.ts';
import { emitChange, recordChange } from '../../src/data/record-change.ts';
import type { Tx } from '../../src/data/tx.ts';
import type { Statement } from '../../src/data/writes.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import type { Principal } from '../../src/kernel/principal.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { TokenGrant } from '../../src/kernel/token-grant.ts';

const { request } = systemCaller('a test');
const known = { userId: 'usr_1', username: 'ann', isPlatformAdmin: false, isVerified: true };
const user: Principal = { ...known, type: 'user', sessionId: 'ses_1', orgId: null, token: null };
const program: Principal = { ...known, type: 'app_token', orgId: 'org_1', token: { id: 'tok_1' } as TokenGrant };
const signedInAs = { userId: 'usr_2', username: 'bob' };

describe('who causes an event', () => {
  it.each<[string, Omit<AnyCaller, 'request'>, object]>([
    ['a user', { principal: user }, { principal_type: 'user', principal_id: 'usr_1', username: 'ann' }],
    ['a token', { principal: program }, { principal_type: 'app_token', principal_id: 'tok_1', username: 'ann' }],
    [
      'who has just signed in',
      { principal: null, signedInAs },
      { principal_type: 'user', principal_id: 'usr_2', username: 'bob' },
    ],
    [
      'who was signed in before',
      { principal: user, signedInAs },
      { principal_type: 'user', principal_id: 'usr_1', username: 'ann' },
    ],
    ['the service', { principal: null }, { principal_type: 'system', principal_id: null, username: null }],
  ])('is %s', (_title, caller, actor) => {
    expect(eventActor({ ...caller, request })).toEqual(actor);
  });
});

describe('an event', () => {
  const event: EventEntry = { type: 'app.updated', orgId: 'org_1', resourceType: 'app', resourceId: 'app_1' };
  const caller: AnyCaller = { principal: user, request };

  it('is stored with its place, and what it says', () => {
    const actor = '{"principal_type":"user","principal_id":"usr_1","username":"ann"}';
    const row = {
      id: expect.stringMatching(/^evt_/),
      org_id: 'org_1',
      type: 'app.updated',
      actor,
      resource_type: 'app',
      resource_id: 'app_1',
      trace_id: request.traceId,
    };
    expect(eventRow(caller, event)).toEqual({
      ...row,
      workspace_id: null,
      namespace_id: null,
      environment_id: null,
      app_id: null,
      recipient_id: null,
      data: '{}',
    });
    const whole: EventEntry = {
      ...event,
      workspaceId: 'ws_1',
      namespaceId: 'ns_1',
      environmentId: 'env_1',
      appId: 'app_1',
      recipientId: 'usr_3',
      data: { a: 1 },
    };
    expect(eventRow(caller, whole)).toEqual({
      ...row,
      workspace_id: 'ws_1',
      namespace_id: 'ns_1',
      environment_id: 'env_1',
      app_id: 'app_1',
      recipient_id: 'usr_3',
      data: '{"a":1}',
    });
  });

  it('is a part of its change', () => {
    const row = eventRow(caller, event);
    const write = writeEvents([row]);
    expect(write.text(1, null)).toMatch(/^insert into events \(id, org_id, /);
    expect([write.values, write.does]).toEqual([Object.values(row), 'record']);
  });
});

describe('the change of a row', () => {
  function told(work: (tx: Pick<Tx, 'audit' | 'emit'>) => void): unknown[] {
    const all: unknown[] = [];
    work({ audit: (entry) => all.push({ record: entry }), emit: (event) => all.push({ event }) });
    return all;
  }
  const row = { id: 'thr_1', orgId: 'org_1', workspaceId: 'ws_1', namespaceId: 'ns_1', title: 'not told' };
  const place = { orgId: 'org_1', workspaceId: 'ws_1', namespaceId: 'ns_1' };
  const about = { resourceType: 'thread', resourceId: 'thr_1' };

  it('is recorded, and an event', () => {
    const facts = { name: 'Thread' };
    expect(told((tx) => recordChange(tx, 'update', 'thread', row, { a: 1 }, facts))).toEqual([
      { record: { action: 'update', ...about, ...place, metadata: { a: 1 } } },
      { event: { type: 'thread.updated', ...about, ...place, facts } },
    ]);
    expect(told((tx) => recordChange(tx, 'create', 'app', { id: 'app_1', orgId: 'org_1' }))).toEqual([
      {
        record: {
          action: 'create',
          resourceType: 'app',
          resourceId: 'app_1',
          orgId: 'org_1',
          appId: 'app_1',
          metadata: {},
        },
      },
      { event: { type: 'app.created', resourceType: 'app', resourceId: 'app_1', orgId: 'org_1', appId: 'app_1' } },
    ]);
  });

  it('says which fields were given, as REST has them, and no value', () => {
    const eventOf = (work: (tx: Pick<Tx, 'audit' | 'emit'>) => void) =>
      (told(work)[1] as { event: { data?: object } }).event.data;
    const fields = { fields: ['title', 'maxCostPer1kTokens'], title: 'not told' };
    expect(eventOf((tx) => recordChange(tx, 'update', 'thread', row, fields))).toEqual({
      fields: ['title', 'max_cost_per_1k_tokens'],
    });
    expect(eventOf((tx) => recordChange(tx, 'create', 'thread', row, fields))).toBeUndefined();
    expect(eventOf((tx) => recordChange(tx, 'update', 'thread', row, { fields: 'title' }))).toBeUndefined();
  });

  it('says the role that a member has now', () => {
    const roleAfter = (verb: 'create' | 'update' | 'delete', metadata: object) =>
      (
        told((tx) => recordChange(tx, verb, 'workspace_member', row, { ...metadata }))[1] as {
          event: { data?: object };
        }
      ).event.data;
    expect(roleAfter('create', { role: 'viewer' })).toEqual({ role: 'viewer' });
    expect(roleAfter('update', { before: { role: 'viewer' }, after: { role: 'admin' } })).toEqual({ role: 'admin' });
    expect(roleAfter('delete', { role: 'admin' })).toBeUndefined();
    const invited = told((tx) => recordChange(tx, 'create', 'invitation', { ...row }, { role: 'owner' }));
    expect(invited[1]).not.toHaveProperty('event.data');
  });

  it('may be an event alone', () => {
    expect(told((tx) => emitChange(tx, 'deleted', 'thread', row))).toEqual([
      { event: { type: 'thread.deleted', ...about, ...place } },
    ]);
    const data = { previous_version: 1 } as never;
    const [only] = told((tx) => emitChange(tx, 'created', 'thread', row, data, { reason: 'why' }));
    expect(only).toEqual({ event: { type: 'thread.created', ...about, ...place, data, facts: { reason: 'why' } } });
    expect(told((tx) => emitChange(tx, 'deleted', 'thread', row))).not.toHaveProperty('0.event.data');
  });
});

describe('notices that are due', () => {
  it('are sent in batches until none is left, each by the service', async () => {
    const left = Array.from({ length: 101 }, (_, n) => ({ id: `thing_${n}`, n }));
    let locked: typeof left = [];
    const asked: Statement[] = [];
    const callers: (string | null)[] = [];
    const sent: number[] = [];
    const tx = {
      query: async (statement: Statement) => {
        asked.push(statement);
        if (statement.values.length > 0)
          return locked.filter(({ id }) => (statement.values[0] as string[]).includes(id));
        locked = left.splice(0, 100);
        return locked;
      },
    };
    const changes = {
      run: async (caller: AnyCaller, work: (tx: Tx) => Promise<unknown>) => {
        callers.push(`${caller.request.method} ${caller.request.path}`);
        return work(tx as unknown as Tx);
      },
    } as unknown as Changes;
    const notices = new Notices<(typeof left)[number]>({
      changes,
      name: 'expiring things',
      everySeconds: 60,
      due: 'select id, n from things t order by n',
      of: 't',
      tell: async (_tx, { n }) => void sent.push(n),
    });
    expect(await notices.send()).toBe(101);
    expect(sent).toEqual(Array.from({ length: 101 }, (_, n) => n));
    expect(callers).toEqual(['TASK expiring things', 'TASK expiring things']);
    expect(asked[0]).toEqual({
      text: 'select id, n from things t order by n limit 100 for update of t skip locked',
      values: [],
    });
    expect(asked[3]).toEqual({
      text: 'select * from (select id, n from things t order by n) due where due.id = any($1)',
      values: [['thing_100']],
    });
    const [task] = notices.tasks;
    expect([notices.tasks.length, task?.name, task?.schedule?.everySeconds]).toEqual([1, 'expiring things', 60]);
    left.push({ id: 'thing_7', n: 7 });
    const attempt = { jobId: '1', number: 1, signal: new AbortController().signal };
    expect([await task?.run({}, attempt), sent.at(-1)]).toEqual([1, 7]);
  });
});
