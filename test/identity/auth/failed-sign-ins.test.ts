import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemCaller } from '../../../src/kernel/system-caller.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, createUser, type Person, register } from '../../support/person.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp({ env: { LOGIN_FAILURES_PER_MINUTE: '0' } });
});
afterAll(() => app.close());
beforeEach(async () => {
  ann = await register(app, { name: 'ann' });
});

interface Row {
  user_id: string;
  resource_id: string;
  success: boolean;
  metadata: object;
}

const tryPassword = (username: string, password = 'not the password') =>
  app.server.inject({ method: 'POST', url: '/v1/auth/login', payload: { username, password } });

test('the network of an IPv6 address is shown as people write it', async () => {
  const member = await createUser(app, ann, { role: 'member' });
  const payload = { username: member.username, password: 'not the password' };
  await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload, remoteAddress: '2001:db8:1:2::5' });
  expect((await failures(ann)).map(({ metadata }) => metadata)).toEqual([{ client_address: '2001:db8:1:2::/64' }]);
});

/** The failed sign-ins that somebody reads. */
async function failuresAt(reader: Person, place: string): Promise<Row[]> {
  await app.services.activity.flush();
  const { status, body } = await reader.call<{ activities: Row[]; total: number }>(
    'GET',
    `${place}/activity?action=login&success=false&limit=200`,
  );
  expect([status, body.total], JSON.stringify(body)).toEqual([200, body.activities.length]);
  return body.activities;
}
const org = ({ orgId }: Person) => `/v1/orgs/${orgId}`;
const failures = (reader: Person, of = reader) => failuresAt(reader, org(of));

test('administrators and the user read whose sign-in failed, when and why, and nothing that was typed', async () => {
  const member = await createUser(app, ann, { role: 'member' });
  const other = await createUser(app, ann, { role: 'member' });
  expect((await tryPassword(member.username, 'a typed secret')).statusCode).toBe(401);
  const record = {
    id: expect.stringMatching(/^act_[0-9A-HJKMNP-TV-Z]{26}$/) as string,
    timestamp: expect.any(String) as string,
    trace_id: expect.any(String) as string,
    user_id: member.userId,
    workspace_id: null,
    app_id: null,
    principal_type: 'anonymous',
    principal_id: null,
    token_id: null,
    token_type: null,
    method: 'POST',
    path: '/v1/auth/login',
    resource_type: 'user',
    resource_id: member.userId,
    action: 'login',
    status_code: 401,
    success: false,
    error_code: 'AUTHENTICATION_FAILED',
    duration_ms: expect.any(Number) as number,
    execution_id: null,
    augmentation_id: null,
    stages_completed: null,
    total_stages: null,
    token_usage: {},
    metadata: { client_address: '127.0.0.1' },
  };
  expect(await failures(ann)).toEqual([record]);
  expect(await failuresAt(ann, `${org(ann)}/users/${member.userId}`)).toEqual([record]);
  expect(await failuresAt(member, `${org(ann)}/users/${member.userId}`)).toEqual([record]);
  expect(await failures(other, ann)).toEqual([]);
  const { data } = await member.ask<{ userActivity: { nodes: object[] } }>(
    `query ($o: ID!, $u: ID!) { userActivity(orgId: $o, userId: $u, success: false) {
      nodes { action errorCode userId principalType } } }`,
    { o: ann.orgId, u: member.userId },
  );
  expect(data!.userActivity.nodes).toEqual([
    { action: 'login', errorCode: 'AUTHENTICATION_FAILED', userId: member.userId, principalType: 'anonymous' },
  ]);
  const { body } = await ann.call<{ failed_requests: number }>(
    'GET',
    `${org(ann)}/users/${member.userId}/activity/summary`,
  );
  expect(body.failed_requests).toBe(1);
});

test('an organization that somebody was only added to learns nothing, until they have been in it', async () => {
  const guest = await colleague(app, ann, 'member');
  await tryPassword(guest.username);
  expect(await failures(ann)).toEqual([]);
  expect(await failures(guest)).toHaveLength(1);
  await guest.call('GET', org(ann));
  await app.services.activity.flush();
  await tryPassword(guest.username);
  // each organization has a record of its own, and knows nothing of the other one
  const [ofAnn, ofGuest] = [await failures(ann), await failures(guest)];
  expect([ofAnn.length, ofGuest.length]).toEqual([1, 2]);
  expect(JSON.stringify(ofAnn)).not.toContain(guest.orgId);
  expect(await failuresAt(guest, `${org(ann)}/users/${guest.userId}`)).toEqual(ofAnn);
  const stranger = await register(app);
  expect(await failures(stranger)).toEqual([]);
});

test('an organization learns of an account that it made, also before it is used', async () => {
  const username = `new-${ann.userId.toLowerCase()}`;
  const { body } = await ann.call<{ user_id: string }>('POST', '/v1/users', {
    username,
    email: `${username}@example.test`,
    password: ann.password,
    role: 'viewer',
  });
  await tryPassword(username);
  expect(await failures(ann)).toMatchObject([{ user_id: body.user_id, resource_id: body.user_id }]);
});

test('of a name that nobody has there is no record, and the same answer', async () => {
  const [known, unknown] = await Promise.all([tryPassword(ann.username), tryPassword('nobody-has-this-name')]);
  const shown = ({ statusCode, body }: typeof known) => [statusCode, body.replace(/"timestamp":"[^"]*"/, '')];
  expect(shown(unknown)).toEqual(shown(known));
  expect(await failures(ann)).toHaveLength(1);
  await app.services.activity.flush();
  const [record] = await app.database.prisma.activity.findMany({
    where: { action: 'login', resourceId: null, principalType: 'anonymous' },
  });
  expect(JSON.stringify(record)).not.toContain('nobody-has-this-name');
});

test('attempts on a locked account are one record at once, and then one a minute with their number', async () => {
  for (let attempt = 0; attempt < 10; attempt++) expect((await tryPassword(ann.username)).statusCode).toBe(401);
  for (let attempt = 0; attempt < 30; attempt++) expect((await tryPassword(ann.username)).statusCode).toBe(429);
  // the right password is refused as well
  expect((await tryPassword(ann.username, ann.password)).statusCode).toBe(429);
  const locked = async () =>
    (await failures(ann))
      .filter((record) => 'attempts' in record.metadata)
      .map((record) => [record.metadata, (record as unknown as { status_code: number }).status_code]);
  expect(await locked()).toEqual([[{ attempts: 1, client_address: '127.0.0.1' }, 429]]);
  app.services.auth.recordFailures();
  expect(await locked()).toEqual([
    [{ attempts: 30, client_address: '127.0.0.1' }, 429],
    [{ attempts: 1, client_address: '127.0.0.1' }, 429],
  ]);
  expect(await failures(ann)).toHaveLength(12);
});

test('a sign-in that is refused because the address is not proven is one of the account', async () => {
  const strict = await app.another({ REQUIRE_VERIFIED_EMAIL: 'true' });
  const payload = { username: ann.username, password: ann.password };
  const { statusCode } = await strict.server.inject({ method: 'POST', url: '/v1/auth/login', payload });
  expect(statusCode).toBe(403);
  const { activity } = strict.services;
  await activity.flush();
  // an empty list would not say whether the record was written
  expect([activity.depth, activity.lost]).toEqual([0, 0]);
  expect(await failures(ann)).toMatchObject([{ user_id: ann.userId, error_code: 'FORBIDDEN', status_code: 403 }]);
});

describe('many of them', () => {
  interface Shown extends Row {
    user_id: string;
    trace_id: string;
    status_code: number;
  }
  const shown = async (reader: Person) => (await failures(reader)) as unknown as Shown[];

  /** Attempts at an account, without the work that a password takes. */
  function attempt(count: number, accountId: string, metadata = {}): void {
    const entry = { action: 'login', resourceType: 'user', resourceId: accountId, orgId: null, accountId } as const;
    const outcome = { statusCode: 401, errorCode: 'AUTHENTICATION_FAILED' } as const;
    for (let at = 0; at < count; at++)
      app.services.activity.record({ ...systemCaller('a test'), request: ofStranger }, { ...entry, metadata }, outcome);
  }
  const ofStranger = { ...systemCaller('a test').request, method: 'POST', path: '/v1/auth/login', isRest: true };

  test('are so many records in a minute and organization, and then a number: none is lost', async () => {
    const [loud, quiet] = [await createUser(app, ann), await createUser(app, ann)];
    const eve = await register(app, { name: 'eve' });
    attempt(70, loud.userId);
    await app.services.activity.flush();
    expect(await shown(ann)).toHaveLength(60);
    attempt(5, loud.userId);
    // one attempt at another account does not drown in them, and one record may stand for many attempts
    attempt(2, quiet.userId, { attempts: 7 });
    attempt(1, eve.userId);
    await app.services.activity.end();
    const all = await shown(ann);
    expect(all).toHaveLength(62);
    expect(all.filter(({ user_id }) => user_id === quiet.userId)).toHaveLength(1);
    expect(all.filter(({ metadata }) => 'reason' in metadata)).toEqual([
      {
        ...all.find(({ user_id }) => user_id === quiet.userId),
        id: expect.any(String) as string,
        timestamp: expect.any(String) as string,
        user_id: null,
        resource_id: null,
        duration_ms: expect.any(Number) as number,
        metadata: { reason: 'too_many', attempts: 15 + 7, accounts: 2 },
      },
    ]);
    expect(await failures(eve)).toHaveLength(1);
    // the next minute begins anew
    attempt(1, loud.userId);
    expect(await shown(ann)).toHaveLength(63);
  });

  test('of nobody known are so many records, and then a number that is in no list', async () => {
    const count = async () =>
      (await app.database.prisma.activity.findMany({ where: { action: 'login', orgId: null, path: '/of-nobody' } }))
        .length;
    const request = { ...ofStranger, path: '/of-nobody' };
    const entry = { action: 'login', resourceType: 'user', resourceId: null, orgId: null } as const;
    for (let at = 0; at < 400; at++)
      app.services.activity.record({ ...systemCaller('a test'), request }, entry, { statusCode: 401 });
    await app.services.activity.flush();
    expect(await count()).toBeLessThanOrEqual(300);
    await app.services.activity.end();
    const rows = await app.database.prisma.activity.findMany({ where: { orgId: null, path: '/of-nobody' } });
    const attempts = rows.map(({ metadata }) => (metadata as { attempts?: number }).attempts ?? 1);
    expect(attempts.reduce((sum, one) => sum + one, 0)).toBe(400);
  });

  test('a stranger has no words in them: the trace is cut, and nothing else is theirs', async () => {
    const member = await createUser(app, ann, { role: 'member' });
    const words = `call-0900-and-say-your-password.${'x'.repeat(90)}`;
    await app.server.inject({
      method: 'POST',
      url: `/v1/auth/login?note=${words}`,
      payload: { username: member.username, password: '=cmd|calc' },
      headers: { 'x-trace-id': words, 'user-agent': words, referer: words, 'x-forwarded-for': words },
    });
    const [record] = await shown(ann);
    expect(record!.trace_id).toBe(words.slice(0, 64));
    expect(JSON.stringify({ ...record, trace_id: '' })).not.toMatch(/call-|0900-and|calc/);
  });
});
