import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { expectUnauthenticated } from '../../support/error-shapes.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';

/** The caller is signed in: a wrong password is invalid input, not a lost session. */
function expectWrongPassword(answer: { statusCode: number; json(): unknown }): void {
  expect(answer.statusCode).toBe(422);
  expect(answer.json()).toMatchObject({
    detail: [
      {
        type: 'value_error',
        loc: ['body', 'current_password'],
        msg: 'Value error, this is not your password',
        input: '[redacted]',
      },
    ],
  });
}

let app: TestApp;
let api: Calls;
let user: Person;
let newEmail: string;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
  await register(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  user = await register(app);
  await app.jobsDone();
  newEmail = `new-${user.email}`;
  await app.database.prisma.user.update({ where: { id: user.userId }, data: { isVerified: true } });
});

/** Answers when the mails of it were handed over. */
async function ask(body: object, { userId } = user, by = user) {
  const answer = await api.put(`/v1/users/${userId}`, body, by.headers);
  await app.jobsDone();
  return answer;
}
const mailsTo = (address: string) => app.mails.filter(({ to }) => to === address);
const subjectsTo = (address: string) => mailsTo(address).map(({ subject }) => subject);
const tokenOf = (address: string, subject: string) =>
  new URL(mailsTo(address).findLast((mail) => mail.subject === subject)!.link!).searchParams.get('token')!;
async function confirm(address = newEmail) {
  await app.jobsDone();
  const answer = await api.post('/v1/auth/verify-email', { token: tokenOf(address, 'Confirm your e-mail address') });
  await app.jobsDone();
  return answer;
}
const me = async () => (await api.get('/v1/auth/me', user.headers)).json();
const minutesSinceSignIn = (minutes: number, { userId } = user) =>
  app.database.prisma.session.updateMany({
    where: { userId },
    data: { createdAt: new Date(Date.now() - minutes * 60_000) },
  });

describe('a new e-mail address', () => {
  it('mails ten notices an hour at most to an address that nobody has proven', async () => {
    const notices = () => subjectsTo(user.email).filter((subject) => subject.includes('about to change')).length;
    const isVerified = (is: boolean) =>
      app.database.prisma.user.update({ where: { id: user.userId }, data: { isVerified: is } });
    await isVerified(false);
    for (let n = 0; n < 12; n++) {
      const answer = await ask({ email: `${n}-${newEmail}`, current_password: user.password });
      expect(answer.statusCode).toBe(200);
      expect(subjectsTo(`${n}-${newEmail}`)).toEqual(['Confirm your e-mail address']);
    }
    expect(notices()).toBe(10);
    await isVerified(true);
    await ask({ email: newEmail, current_password: user.password });
    expect(notices()).toBe(11);
  });

  it('takes the place of the old one when it is confirmed, not before', async () => {
    const answer = await ask({ email: newEmail, full_name: 'Moved' });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toMatchObject({ email: user.email, is_verified: true, full_name: 'Moved' });
    expect((await api.post('/v1/auth/login', { username: newEmail, password: user.password })).statusCode).toBe(401);

    const confirmed = await confirm();
    expect([confirmed.statusCode, confirmed.body]).toEqual([200, 'null']);
    expect(await me()).toMatchObject({ email: newEmail, is_verified: true });
    expect((await api.post('/v1/auth/login', { username: newEmail, password: user.password })).statusCode).toBe(200);
    expect((await api.post('/v1/auth/login', { username: user.email, password: user.password })).statusCode).toBe(401);
    expectUnauthenticated(await confirm());
  });

  it('is mailed the link; the old one is told when it is asked for and when it is done', async () => {
    await ask({ email: newEmail });
    expect(subjectsTo(newEmail)).toEqual(['Confirm your e-mail address']);
    expect(mailsTo(newEmail)[0]!.text).toContain(`the account '${user.username}'`);
    expect(subjectsTo(user.email).slice(1)).toEqual(['Your e-mail address is about to change']);
    await confirm();
    expect(subjectsTo(user.email).slice(2)).toEqual(['Your e-mail address was changed']);
  });

  it('is asked for over GraphQL alike', async () => {
    const { data } = (
      await api.graphql(
        'mutation ($id: ID!, $input: UpdateUserInput!) { updateUser(id: $id, input: $input) { email } }',
        { id: user.userId, input: { email: newEmail, currentPassword: user.password } },
        user.headers,
      )
    ).json();
    expect(data).toEqual({ updateUser: { email: user.email } });
    await confirm();
    expect((await me()).email).toBe(newEmail);
  });

  it('is the newest that was asked for: the link to another is dead', async () => {
    await ask({ email: newEmail });
    await ask({ email: `newer-${user.email}` });
    expectUnauthenticated(await confirm());
    expect((await confirm(`newer-${user.email}`)).statusCode).toBe(200);
    expect((await me()).email).toBe(`newer-${user.email}`);
  });

  it('is 409 when another account has it, at the request and at the confirmation', async () => {
    const other = await register(app);
    expect((await ask({ email: other.email.toUpperCase() })).json()).toMatchObject({
      status_code: 409,
      details: { field: 'email', value: other.email.toUpperCase() },
    });
    await ask({ email: newEmail });
    await register(app, { email: newEmail.toUpperCase() });
    expect((await confirm()).json()).toMatchObject({ status_code: 409, details: { field: 'email', value: newEmail } });
    expect((await me()).email).toBe(user.email);
  });

  it('is not mailed to more than three times an hour, whoever asks', async () => {
    for (let time = 0; time < 3; time++) expect((await ask({ email: newEmail })).statusCode).toBe(200);
    user = await register(app);
    expect((await ask({ email: newEmail })).statusCode).toBe(429);
    expect(mailsTo(newEmail)).toHaveLength(3);
  });

  it('is given up when the password is reset or changed meanwhile', async () => {
    await ask({ email: newEmail });
    const change = { currentPassword: user.password, newPassword: 'changed by its owner' };
    await api.graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input: change },
      user.headers,
    );
    expectUnauthenticated(await confirm());
    await ask({ email: newEmail });
    await api.post('/v1/auth/forgot-password', { email: user.email });
    await app.jobsDone();
    const token = tokenOf(user.email, 'Reset your password');
    await api.post('/v1/auth/reset-password', { token, new_password: 'reset by its owner' });
    expectUnauthenticated(await confirm());
    expect((await app.database.prisma.user.findUniqueOrThrow({ where: { id: user.userId } })).email).toBe(user.email);
  });

  it('changes nothing when it is the one that the account has, and asks for nothing', async () => {
    await minutesSinceSignIn(60);
    expect((await ask({ email: user.email })).statusCode).toBe(200);
    expect(mailsTo(user.email)).toHaveLength(1);
  });
});

describe('who asks for a new e-mail address proves it', () => {
  it('by a sign-in of the last 10 minutes, else by the password', async () => {
    await minutesSinceSignIn(9);
    expect((await ask({ email: newEmail })).statusCode).toBe(200);
    await minutesSinceSignIn(11);
    const refused = await ask({ email: newEmail });
    expect(refused.statusCode).toBe(422);
    expect(refused.json().detail).toMatchObject([
      { type: 'value_error', loc: ['body', 'current_password'], msg: expect.stringContaining('your password') },
    ]);
    expect((await ask({ email: newEmail, current_password: user.password })).statusCode).toBe(200);
    expect(mailsTo(newEmail)).toHaveLength(2);
  });

  it('with the right one: guesses are 422, lock the account, and are never echoed', async () => {
    await minutesSinceSignIn(60);
    for (let guess = 0; guess < 10; guess++)
      expectWrongPassword(await ask({ email: newEmail, current_password: `guess ${guess}` }));
    expect((await ask({ email: newEmail, current_password: user.password })).statusCode).toBe(429);
    expect(mailsTo(newEmail)).toEqual([]);
    const long = await ask({ email: newEmail, current_password: 'x'.repeat(1_025) });
    expect(long.json().detail).toMatchObject([{ loc: ['body', 'current_password'], input: '[redacted]' }]);
  });

  it('a refresh is no sign-in', async () => {
    await minutesSinceSignIn(60);
    const pair = (await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken })).json();
    const headers = { authorization: `Bearer ${pair.access_token}` };
    expect((await api.put(`/v1/users/${user.userId}`, { email: newEmail }, headers)).statusCode).toBe(422);
  });

  it('everything else of the profile takes no password', async () => {
    await minutesSinceSignIn(60);
    expect((await ask({ bio: 'x', email: user.email })).json().bio).toBe('x');
  });

  it('an account without a password proves it by a sign-in alone', async () => {
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { passwordHash: null } });
    expectWrongPassword(await ask({ email: newEmail, current_password: 'anything at all' }));
    expect((await ask({ email: newEmail })).statusCode).toBe(200);
  });

  it('an administrator gives their own password, and the address of the account has to be confirmed too', async () => {
    const member = await createUser(app, user, { username: `member-of-${user.username}` });
    const address = `new-${member.email}`;
    await minutesSinceSignIn(60);
    expect((await ask({ email: address }, member, user)).statusCode).toBe(422);
    expectWrongPassword(await ask({ email: address, current_password: member.password }, member, user));
    const answer = await ask({ email: address, current_password: user.password }, member, user);
    expect(answer.json()).toMatchObject({ user_id: member.userId, email: member.email });
    expect(subjectsTo(member.email)).toContain('Your e-mail address is about to change');
    await confirm(address);
    expect((await api.get('/v1/auth/me', member.headers)).json()).toMatchObject({ email: address, is_verified: true });
  });

  it('an API token cannot, also not for an account that its owner manages', async () => {
    const member = await createUser(app, user, { username: `token-of-${user.username}` });
    const { headers } = await issueToken(app, user, { permissions: ['user:update', 'user:read'] });
    for (const { userId } of [user, member]) {
      const body = { email: newEmail, current_password: user.password };
      const answer = await api.put(`/v1/users/${userId}`, body, headers);
      expect(answer.json()).toMatchObject({ status_code: 403, details: { required_permission: 'user:update' } });
    }
    expect(mailsTo(newEmail)).toEqual([]);
  });

  it('ends API tokens that were made before somebody proved it who is not signed in to the account', async () => {
    const { headers } = await issueToken(app, user);
    await ask({ email: newEmail });
    expect((await confirm()).statusCode).toBe(200);
    expect((await api.get('/v1/auth/me', headers)).statusCode).toBe(401);
  });

  it('is recorded without the password', async () => {
    const traced = { ...user.headers, 'x-trace-id': `moving-${user.username}` };
    await api.put(`/v1/users/${user.userId}`, { email: newEmail, current_password: user.password }, traced);
    const where = { traceId: `moving-${user.username}` };
    expect(await app.database.prisma.activity.findMany({ where })).toMatchObject([{ metadata: { fields: ['email'] } }]);
  });
});
