import { hash, verify } from '@node-rs/argon2';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Passwords } from '../../../src/access/passwords.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf, sameness } from '../../support/calls.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

/** Counts what is hashed and compared. */
const argon2 = { hash: vi.fn(hash), verify: vi.fn(verify) };

let app: TestApp;
let api: Calls;

beforeAll(async () => {
  app = await startTestApp({ passwords: new Passwords(undefined, argon2) });
  api = callsOf(app);
});
afterAll(() => app.close());
beforeEach(() => {
  argon2.verify.mockClear();
  argon2.hash.mockClear();
});

const login = (username: string, password: string, headers?: Record<string, string>) =>
  api.post('/v1/auth/login', { username, password }, headers);
const times = async (count: number, work: () => Promise<{ statusCode: number }>) => {
  const statuses: number[] = [];
  for (let done = 0; done < count; done++) statuses.push((await work()).statusCode);
  return statuses;
};

/** Lets so many seconds pass for the counters of failed sign-ins. */
const pass = (seconds: number) =>
  app.database.prisma
    .$executeRaw`update login_failures set window_start = window_start - make_interval(secs => ${seconds}),
    locked_until = locked_until - make_interval(secs => ${seconds})`;

describe('signing in', () => {
  let anna: Person;
  beforeAll(async () => {
    anna = await register(app, { username: 'Anna', email: 'Anna@example.test' });
  });

  it.each(['Anna', 'anna', 'anna@EXAMPLE.test'])(
    'takes the user name or the e-mail address in any case: %s',
    async (name) => {
      const answer = await login(name, anna.password);
      expect(answer.statusCode).toBe(200);
      expect(Object.keys(answer.json())).toEqual(['access_token', 'refresh_token', 'token_type', 'expires_in', 'user']);
      expect(answer.json().user).toMatchObject({
        user_id: anna.userId,
        roles: expect.arrayContaining(['owner']),
        settings: { current_org_id: anna.orgId },
      });
    },
  );

  it('notes when it was, without touching when the account was changed', async () => {
    const before = await app.database.prisma.user.findUniqueOrThrow({ where: { id: anna.userId } });
    const { user } = (await login('anna', anna.password)).json();
    expect(Date.parse(user.last_login)).toBeGreaterThanOrEqual(before.lastLogin?.getTime() ?? 0);
    expect(user.updated_at).toBe(before.updatedAt.toISOString());
  });

  it('works in the organization of the default workspace', async () => {
    const owner = await register(app);
    const guest = await register(app);
    await api.post(
      `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/members`,
      { user_id: guest.userId },
      owner.headers,
    );
    await api.put(`/v1/users/${guest.userId}`, { default_workspace_id: owner.workspaceId }, guest.headers);
    expect((await login(guest.username, guest.password)).json().user.settings.current_org_id).toBe(owner.orgId);
  });

  it('makes the hash anew when it was made with weaker parameters', async () => {
    const user = await register(app);
    const weak = await hash(user.password, { memoryCost: 8_192, timeCost: 1 });
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { passwordHash: weak } });
    expect((await login(user.username, user.password)).statusCode).toBe(200);
    const { passwordHash } = await app.database.prisma.user.findUniqueOrThrow({ where: { id: user.userId } });
    expect(passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect((await login(user.username, user.password)).statusCode).toBe(200);
  });

  it('is not disturbed by somebody whose user name is that e-mail address', async () => {
    const victim = await register(app, { username: 'victim', email: 'victim@example.test' });
    await register(app, { username: 'victim@example.test', email: 'squatter@example.test' });
    expect((await login('victim@example.test', victim.password)).json().user?.user_id).toBe(victim.userId);
  });

  it('ends when the password is reset while it is verified', async () => {
    const user = await register(app);
    const changed = await hash('a new password');
    argon2.verify.mockImplementationOnce(async (hashed, password) => {
      const matches = await verify(hashed, password);
      await app.database.prisma.user.update({ where: { id: user.userId }, data: { passwordHash: changed } });
      return matches;
    });
    expect((await login(user.username, user.password)).statusCode).toBe(401);
    expect(await app.database.prisma.session.count({ where: { userId: user.userId } })).toBe(1);
  });
});

describe('a refused sign-in', () => {
  let known: Person;
  let suspended: Person;
  beforeAll(async () => {
    known = await register(app);
    suspended = await createUser(app, known, { username: 'suspended' });
    await api.put(`/v1/users/${suspended.userId}`, { is_active: false }, known.headers);
    const elsewhere = await createUser(app, known, { username: 'elsewhere' });
    await app.database.prisma.user.update({
      where: { id: elsewhere.userId },
      data: { passwordHash: null, authProvider: 'saml' },
    });
  });

  const paths: [string, () => [string, string]][] = [
    ['an unknown name', () => ['nobody', 'whatever it is']],
    ['an unknown address', () => ['nobody@example.test', 'whatever it is']],
    ['a wrong password', () => [known.username, 'whatever it is']],
    ['a suspended account with its right password', () => [suspended.username, suspended.password]],
    ['a suspended account with a wrong password', () => [suspended.username, 'whatever it is']],
    ['an account without a password', () => ['elsewhere', 'the password of elsewhere']],
  ];

  it('says what is wrong, in REST and in GraphQL', async () => {
    expect((await login(known.username, 'whatever it is')).json()).toMatchObject({
      error: 'AUTHENTICATION_FAILED',
      message: 'E-mail or password is wrong.',
      details: {},
      status_code: 401,
    });
    const input = `{ username: "${known.username}", password: "whatever it is" }`;
    const query = `mutation { login(input: ${input}) { tokenType } }`;
    const { errors } = (await app.server.inject({ method: 'POST', url: '/graphql', payload: { query } })).json<{
      errors: object[];
    }>();
    expect(errors).toMatchObject([
      { message: 'E-mail or password is wrong.', extensions: { code: 'AUTHENTICATION_FAILED', details: {} } },
    ]);
  });

  it.each(paths)('is the same answer after the same work for %s', async (_what, credentials) => {
    const reference = await login('somebody-unknown', 'whatever it is');
    argon2.verify.mockClear();
    argon2.hash.mockClear();
    const answer = await login(...credentials());
    expect(answer.statusCode).toBe(401);
    expect(sameness(answer)).toEqual(sameness(reference));
    expect(argon2.verify).toHaveBeenCalledTimes(1);
    expect(argon2.hash).not.toHaveBeenCalled();
  });

  it('costs as many verifications as one that succeeds: one, with the same parameters', async () => {
    await login(known.username, known.password);
    await login('nobody', known.password);
    const parameters = argon2.verify.mock.calls.map(([hashed]) => String(hashed).split('$').slice(0, 4).join('$'));
    expect(parameters).toEqual(['$argon2id$v=19$m=19456,t=2,p=1', '$argon2id$v=19$m=19456,t=2,p=1']);
    const sizes = argon2.verify.mock.calls.map(([hashed]) => String(hashed).length);
    expect(sizes[0]).toBe(sizes[1]);
  });

  it('is recorded as of nobody, with the account that was meant, in the organization of its user', async () => {
    await login(known.username, 'wrong password', { 'x-trace-id': 'failed-login', ...known.headers });
    await app.services.activity.flush();
    const records = await app.database.prisma.activity.findMany({ where: { traceId: 'failed-login' } });
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      action: 'login',
      resourceType: 'user',
      resourceId: known.userId,
      principalType: 'anonymous',
      principalId: null,
      userId: known.userId,
      orgId: known.orgId,
      statusCode: 401,
      success: false,
      errorCode: 'AUTHENTICATION_FAILED',
      path: '/v1/auth/login',
    });
  });

  it('writes the password nowhere', async () => {
    const marker = 'the marker of a password';
    await login(known.username, marker);
    await app.services.activity.flush();
    const [row] = await app.database.prisma.$queryRaw<
      { n: number }[]
    >`select count(*)::int as n from activity a where a::text like ${`%${marker}%`}`;
    expect(row?.n).toBe(0);
  });
});

describe('the lock of an account', () => {
  it('comes with the tenth failure and refuses the right password too, with Retry-After', async () => {
    const user = await register(app);
    expect(await times(10, () => login(user.username, 'wrong password'))).toEqual(Array(10).fill(401));
    const answer = await login(user.username, user.password);
    expect(answer.statusCode).toBe(429);
    const { error, details } = answer.json();
    expect(error).toBe('RATE_LIMIT_EXCEEDED');
    expect(details.retry_after).toBeGreaterThan(14 * 60);
    expect(details.retry_after).toBeLessThanOrEqual(15 * 60);
    expect(answer.headers['retry-after']).toBe(String(details.retry_after));
  });

  it('counts the user name and the e-mail address of one account together', async () => {
    const user = await register(app);
    await times(5, () => login(user.username, 'wrong password'));
    await times(5, () => login(user.email, 'wrong password'));
    expect((await login(user.username, user.password)).statusCode).toBe(429);
  });

  it('falls on names that nobody has just the same', async () => {
    const user = await register(app);
    await times(10, () => login(user.username, 'wrong password'));
    await times(10, () => login('a-name-that-nobody-has', 'wrong password'));
    const [real, made] = [
      await login(user.username, 'wrong password'),
      await login('a-name-that-nobody-has', 'wrong password'),
    ];
    expect(made.statusCode).toBe(429);
    const shape = (answer: typeof real) => ({
      ...answer.json(),
      timestamp: '',
      details: Object.keys(answer.json().details),
    });
    expect(shape(made)).toEqual(shape(real));
  });

  it('verifies no password while it lasts', async () => {
    const user = await register(app);
    await times(10, () => login(user.username, 'wrong password'));
    argon2.verify.mockClear();
    await login(user.username, user.password);
    expect(argon2.verify).not.toHaveBeenCalled();
  });

  it('ends after 15 minutes, and doubles each time that it comes back', async () => {
    const user = await register(app);
    for (const minutes of [15, 30, 60, 120, 240, 240]) {
      expect(await times(10, () => login(user.username, 'wrong password'))).toEqual(Array(10).fill(401));
      const seconds = (await login(user.username, user.password)).json().details.retry_after;
      expect(seconds).toBeGreaterThan(minutes * 60 - 30);
      expect(seconds).toBeLessThanOrEqual(minutes * 60);
      await pass(minutes * 60);
    }
    expect((await login(user.username, user.password)).statusCode).toBe(200);
  });

  it('never overflows, however often it came back', async () => {
    const user = await register(app);
    await times(9, () => login(user.username, 'wrong password'));
    await app.database.prisma.loginFailure.update({ where: { key: user.userId }, data: { lockCount: 5_000 } });
    expect((await login(user.username, 'wrong password')).statusCode).toBe(401);
    expect((await login(user.username, user.password)).statusCode).toBe(429);
  });

  it('starts counting anew after 15 minutes and after a right password', async () => {
    const user = await register(app);
    await times(9, () => login(user.username, 'wrong password'));
    await pass(15 * 60 + 1);
    expect(await times(9, () => login(user.username, 'wrong password'))).toEqual(Array(9).fill(401));
    expect((await login(user.username, user.password)).statusCode).toBe(200);
    expect(await times(9, () => login(user.username, 'wrong password'))).toEqual(Array(9).fill(401));
    expect((await login(user.username, user.password)).statusCode).toBe(200);
  });

  it('answers ten of 40 guesses at once, and the right one among them learns no more than the others', async () => {
    const user = await register(app);
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => login(user.username, index === 39 ? user.password : `guess ${index}`)),
    );
    expect(answers.filter((answer) => answer.statusCode === 401)).toHaveLength(10);
    expect(answers.filter((answer) => answer.statusCode === 429)).toHaveLength(30);
    expect(answers[39]?.statusCode).toBe(429);
    expect(await app.database.prisma.session.count({ where: { userId: user.userId } })).toBe(1);
  });

  it('is lifted by resetting the password', async () => {
    const user = await register(app);
    await times(10, () => login(user.username, 'wrong password'));
    await api.post('/v1/auth/forgot-password', { email: user.email });
    await app.jobsDone();
    const link = await waitFor(() => {
      const mail = app.mails.findLast(({ to, subject }) => to === user.email && subject === 'Reset your password');
      return new URL(mail!.link!);
    });
    const token = link.searchParams.get('token');
    expect((await api.post('/v1/auth/reset-password', { token, new_password: 'a fresh password' })).statusCode).toBe(
      200,
    );
    expect((await login(user.username, 'a fresh password')).statusCode).toBe(200);
  });
});

describe('failures per client address', () => {
  it('are 429 beyond the limit, whatever names were tried, and do not touch other addresses', async () => {
    const limited = await startTestApp({
      env: { LOGIN_FAILURES_PER_MINUTE: '3', TRUSTED_PROXIES: '127.0.0.1', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
    try {
      const user = await register(limited);
      const from = (address: string, username: string, password: string) =>
        callsOf(limited).post('/v1/auth/login', { username, password }, { 'x-forwarded-for': address });
      const statuses = [];
      for (const name of ['a', 'b', 'c', 'd'])
        statuses.push((await from('198.51.100.7', name, 'wrong password')).statusCode);
      expect(statuses).toEqual([401, 401, 401, 429]);
      const refused = await from('198.51.100.7', user.username, user.password);
      expect(refused.statusCode).toBe(429);
      expect(refused.headers['retry-after']).toBe(String(refused.json().details.retry_after));
      expect((await from('198.51.100.8', user.username, user.password)).statusCode).toBe(200);
    } finally {
      await limited.close();
    }
  });
});

describe('where e-mail addresses must be verified', () => {
  let strict: TestApp;
  beforeAll(async () => {
    const env = { REQUIRE_VERIFIED_EMAIL: 'true', DATA_DIR: app.dataDir }; // nodes have the same keys
    strict = await startTestApp({ env, databaseUrl: app.database.url, mails: app.mails });
  });
  afterAll(() => strict.close());

  it('refuses an unverified account with 403 account:verified, but only after the right password', async () => {
    const user = await register(strict);
    const wrong = await callsOf(strict).post('/v1/auth/login', { username: user.username, password: 'wrong password' });
    expect(wrong.statusCode).toBe(401);
    const right = await callsOf(strict).post('/v1/auth/login', { username: user.username, password: user.password });
    expect(right.statusCode).toBe(403);
    expect(right.json().details).toEqual({ required_permission: 'account:verified' });
  });

  it('lets the session of a registration see itself, but no organization, until the address is verified', async () => {
    const user = await register(strict);
    const { get } = callsOf(strict);
    expect((await get('/v1/auth/me', user.headers)).statusCode).toBe(200);
    const workspaces = `/v1/orgs/${user.orgId}/workspaces`;
    for (const url of [workspaces, `${workspaces}/${user.workspaceId}`, `/v1/users?workspace_id=${user.workspaceId}`]) {
      const answer = await get(url, user.headers);
      expect([url, answer.statusCode, answer.json().details]).toEqual([
        url,
        403,
        { required_permission: 'account:verified' },
      ]);
    }
    await strict.jobsDone();
    const token = new URL(app.mails.findLast(({ to }) => to === user.email)!.link!).searchParams.get('token');
    await callsOf(strict).post('/v1/auth/verify-email', { token });
    expect((await get(workspaces, user.headers)).statusCode).toBe(200);
  });
});
