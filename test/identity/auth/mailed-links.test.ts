import { hash, verify } from '@node-rs/argon2';
import pg from 'pg';
import type { Email } from 'postal-mime';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Passwords } from '../../../src/access/passwords.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf, sameness } from '../../support/calls.ts';
import { dated } from '../../support/dated.ts';
import { type MailServer, startMailServer } from '../../support/mail-server.ts';
import { type Person, register, registerProven } from '../../support/person.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

const PUBLIC_URL = 'https://platform.example.test/base';

/** Counts what is hashed and compared. */
const argon2 = { hash: vi.fn(hash), verify: vi.fn(verify) };

let smtp: MailServer;
let app: TestApp;
let api: Calls;
let client = 0;

beforeAll(async () => {
  smtp = await startMailServer();
  app = await startTestApp({
    env: { SMTP_URL: smtp.url, PUBLIC_URL, TRUSTED_PROXIES: '127.0.0.1' },
    passwords: new Passwords(undefined, argon2),
  });
  api = callsOf(app);
});
afterAll(async () => {
  await app.close();
  await smtp.stop();
});
beforeEach(() => {
  client += 1;
});

/** Each test is a client of its own: some limits are per client address. */
const from = () => ({ 'x-forwarded-for': `198.51.100.${client}` });
const ask = (what: 'forgot-password' | 'resend-verification', email: string, headers = from()) =>
  api.post(`/v1/auth/${what}`, { email }, headers);

/** Follows the link of a mail as a browser behind the public URL does, and takes its token. */
async function follow(mail: Email): Promise<{ page: string; token: string }> {
  const link = /https:\/\/\S+/.exec(mail.text ?? '')?.[0] ?? '';
  expect(link.startsWith(`${PUBLIC_URL}/account/`)).toBe(true);
  const url = new URL(link);
  const answer = await api.get(url.pathname.replace('/base', '') + url.search);
  expect(answer.statusCode).toBe(200);
  return { page: url.pathname.replace('/base', ''), token: url.searchParams.get('token') ?? '' };
}

const mailWith = (address: string, subject: string) =>
  waitUntil(() => mailsTo(address).findLast((mail) => mail.subject === subject), {
    what: `a mail '${subject}' to ${address}`,
  });

const mailsTo = (address: string) => smtp.received.filter((mail) => mail.to?.some((to) => to.address === address));

/** Resolves when everything that was to be mailed has arrived. */
async function delivered(): Promise<void> {
  await app.jobsDone();
  await waitFor(() => expect(smtp.received.length).toBe(app.mails.length));
}

async function resetToken(user: Person): Promise<string> {
  await ask('forgot-password', user.email);
  return (await follow(await mailWith(user.email, 'Reset your password'))).token;
}

describe('verifying an e-mail address', () => {
  it('takes the token of the mailed link, once', async () => {
    const user = await register(app);
    const { page, token } = await follow(await smtp.mailTo(user.email));
    expect(page).toBe('/account/verify-email');
    expect((await api.get('/v1/auth/me', user.headers)).json().is_verified).toBe(false);

    const answer = await api.post('/v1/auth/verify-email', { token });
    expect([answer.statusCode, answer.body]).toEqual([200, 'null']);
    expect((await api.get('/v1/auth/me', user.headers)).json().is_verified).toBe(true);

    const again = await api.post('/v1/auth/verify-email', { token });
    expect(again.statusCode).toBe(401);
    expect(again.json()).toMatchObject({ error: 'AUTHENTICATION_FAILED', details: {} });
  });

  it('takes a token once, however many use it at once', async () => {
    const user = await register(app);
    const { token } = await follow(await smtp.mailTo(user.email));
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post('/v1/auth/verify-email', { token })));
    expect(answers.filter((answer) => answer.statusCode === 200)).toHaveLength(1);
  });

  it('ends after 24 hours', async () => {
    const { result: user, expectAfter } = await dated(() => register(app));
    const { token } = await follow(await smtp.mailTo(user.email));
    const [row] = await app.database.prisma.emailToken.findMany({ where: { userId: user.userId } });
    expectAfter(24 * 3_600_000, row!.expiresAt);
    await app.database.prisma.emailToken.updateMany({
      where: { userId: user.userId },
      data: { expiresAt: new Date(Date.now() - 1_000) },
    });
    expect((await api.post('/v1/auth/verify-email', { token })).statusCode).toBe(401);
  });

  it('does not take a token that was sent to an earlier address', async () => {
    const user = await register(app);
    const { token } = await follow(await smtp.mailTo(user.email));
    await api.put(`/v1/users/${user.userId}`, { email: `new-${user.email}` }, user.headers);
    const { token: next } = await follow(await mailWith(`new-${user.email}`, 'Confirm your e-mail address'));
    expect((await api.post('/v1/auth/verify-email', { token: next })).statusCode).toBe(200);
    expect((await api.post('/v1/auth/verify-email', { token })).statusCode).toBe(401);
  });

  it('does not take a reset token, a refresh token or a made-up one', async () => {
    const user = await register(app);
    for (const token of [await resetToken(user), user.refreshToken, 'made-up']) {
      expect((await api.post('/v1/auth/verify-email', { token })).statusCode).toBe(401);
    }
  });

  it('takes the newest link alone', async () => {
    const user = await register(app);
    const { token: first } = await follow(await smtp.mailTo(user.email));
    await ask('resend-verification', user.email);
    await waitFor(() => expect(mailsTo(user.email)).toHaveLength(2));
    const { token: second } = await follow(mailsTo(user.email)[1]!);
    expect((await api.post('/v1/auth/verify-email', { token: first })).statusCode).toBe(401);
    expect((await api.post('/v1/auth/verify-email', { token: second })).statusCode).toBe(200);
  });

  it('keeps tokens as hashes only', async () => {
    const user = await register(app);
    const { token } = await follow(await smtp.mailTo(user.email));
    const [row] = await app.database.prisma.$queryRaw<
      { n: number }[]
    >`select count(*)::int as n from email_tokens t where t::text like ${`%${token}%`}`;
    expect(row?.n).toBe(0);
  });
});

describe('resetting a password', () => {
  it('sets the new one, ends every session at once and mails a notice', async () => {
    const user = await register(app);
    const second = (await api.post('/v1/auth/login', { username: user.username, password: user.password })).json();
    await ask('forgot-password', user.email);
    const { page, token } = await follow(await mailWith(user.email, 'Reset your password'));
    expect(page).toBe('/account/reset-password');

    const answer = await api.post('/v1/auth/reset-password', { token, new_password: 'a whole new password' });
    expect([answer.statusCode, answer.body]).toEqual([200, 'null']);
    for (const accessToken of [user.accessToken, second.access_token]) {
      expect((await api.get('/v1/auth/me', { authorization: `Bearer ${accessToken}` })).statusCode).toBe(401);
    }
    for (const refresh_token of [user.refreshToken, second.refresh_token]) {
      expect((await api.post('/v1/auth/refresh', { refresh_token })).statusCode).toBe(401);
    }
    expect((await api.post('/v1/auth/login', { username: user.username, password: user.password })).statusCode).toBe(
      401,
    );
    expect(
      (await api.post('/v1/auth/login', { username: user.username, password: 'a whole new password' })).statusCode,
    ).toBe(200);
    const notice = await mailWith(user.email, 'Your password was changed');
    expect(notice.text).not.toContain('http');
  });

  it('takes a token once, however many use it at once', async () => {
    const user = await register(app);
    const token = await resetToken(user);
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        api.post('/v1/auth/reset-password', { token, new_password: `new password ${index}` }),
      ),
    );
    expect(answers.map((answer) => answer.statusCode).sort((a, b) => a - b)).toEqual([200, 401, 401, 401, 401]);
    expect((await api.post('/v1/auth/reset-password', { token, new_password: 'another password' })).statusCode).toBe(
      401,
    );
  });

  it('proves the address that the link was sent to', async () => {
    const user = await register(app);
    await api.post('/v1/auth/reset-password', { token: await resetToken(user), new_password: 'a whole new password' });
    expect((await app.database.prisma.user.findUniqueOrThrow({ where: { id: user.userId } })).isVerified).toBe(true);
  });

  it('ends after one hour', async () => {
    const user = await register(app);
    const { result: token, expectAfter } = await dated(() => resetToken(user));
    const row = await app.database.prisma.emailToken.findFirstOrThrow({
      where: { userId: user.userId, purpose: 'reset_password' },
    });
    expectAfter(3_600_000, row.expiresAt);
    await app.database.prisma.emailToken.update({
      where: { hash: row.hash },
      data: { expiresAt: new Date(Date.now() - 1_000) },
    });
    expect(
      (await api.post('/v1/auth/reset-password', { token, new_password: 'a whole new password' })).statusCode,
    ).toBe(401);
  });

  it('does not take a verification token, and hashes nothing for a token that is no good', async () => {
    const user = await register(app);
    const { token } = await follow(await smtp.mailTo(user.email));
    expect(argon2.hash).toHaveBeenCalled();
    argon2.hash.mockClear();
    for (const bad of [token, 'made-up']) {
      expect(
        (await api.post('/v1/auth/reset-password', { token: bad, new_password: 'a whole new password' })).statusCode,
      ).toBe(401);
    }
    expect(argon2.hash).not.toHaveBeenCalled();
  });

  it('holds the new password to the policy, and keeps the token usable', async () => {
    const user = await register(app);
    const token = await resetToken(user);
    const answer = await api.post('/v1/auth/reset-password', { token, new_password: user.email });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail[0]).toMatchObject({ loc: ['body', 'new_password'], input: '[redacted]' });
    expect(
      (await api.post('/v1/auth/reset-password', { token, new_password: 'a whole new password' })).statusCode,
    ).toBe(200);
  });

  it('does not take the token of an account that was suspended since', async () => {
    const user = await register(app);
    const token = await resetToken(user);
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { isActive: false } });
    expect(
      (await api.post('/v1/auth/reset-password', { token, new_password: 'a whole new password' })).statusCode,
    ).toBe(401);
  });

  it('is undone for links that are under way when the password is changed', async () => {
    const user = await register(app);
    const token = await resetToken(user);
    const changed = await api.graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input: { currentPassword: user.password, newPassword: 'changed by hand' } },
      user.headers,
    );
    expect(changed.json()).toEqual({ data: { changePassword: { user: { id: user.userId } } } });
    expect(
      (await api.post('/v1/auth/reset-password', { token, new_password: 'a whole new password' })).statusCode,
    ).toBe(401);
  });
});

describe('an invitation', () => {
  it('is mailed with a link that lets a newcomer register into the organization, verified', async () => {
    const host = await registerProven(app);
    const email = `invited-by-${host.username}@example.test`;
    const invited = await api.post(`/v1/orgs/${host.orgId}/invitations`, { email, role: 'editor' }, host.headers);
    expect(invited.statusCode).toBe(201);
    const { page, token } = await follow(await smtp.mailTo(email));
    expect(page).toBe('/account/accept-invitation');
    expect((await api.get(`/v1/auth/invite-info?token=${token}`)).json()).toEqual({ email, valid: true });
    const { user } = (
      await api.post('/v1/auth/register', {
        email,
        username: `guest-of-${host.username}`,
        password: 'correct horse',
        invite_token: token,
      })
    ).json();
    expect(user).toMatchObject({ is_verified: true, roles: ['editor'], settings: { current_org_id: host.orgId } });
    expect((await api.get(`/v1/auth/invite-info?token=${token}`)).json()).toEqual({ email: '', valid: false });
  });

  it('lets the owner of an account join with it', async () => {
    const [host, user] = [await registerProven(app), await register(app)];
    await delivered();
    await api.post(`/v1/orgs/${host.orgId}/invitations`, { email: user.email }, host.headers);
    await waitFor(() => expect(mailsTo(user.email)).toHaveLength(2));
    const { token } = await follow(mailsTo(user.email)[1]!);
    expect((await api.post('/v1/invitations/accept', { token }, user.headers)).statusCode).toBe(200);
    const { settings } = (await api.get('/v1/auth/me', user.headers)).json();
    expect(settings.organizations.map((organization: { org_id: string }) => organization.org_id)).toContain(host.orgId);
  });

  it('cannot shape its mail by the names of the organization and the inviter', async () => {
    const host = await registerProven(app);
    await api.put(`/v1/users/${host.userId}`, { full_name: 'Mallory\n\nOpen http://evil.test' }, host.headers);
    await app.database.prisma.organization.update({
      where: { id: host.orgId },
      data: {
        name: `Evil\r\nBcc: all@example.test\u202e, go to http://evil.example/x or evil.example NOW ${'!'.repeat(99)}`,
      },
    });
    const email = `shaped-by-${host.username}@example.test`;
    await api.post(`/v1/orgs/${host.orgId}/invitations`, { email }, host.headers);
    const mail = await smtp.mailTo(email);
    expect(mail.to).toHaveLength(1);
    expect(mail.bcc ?? []).toEqual([]);
    expect(mail.subject).toBe(`You are invited to the organization 'Evil Bcc: … , go to … or … NOW ${'!'.repeat(29)}'`);
    expect(mail.text).not.toMatch(/evil\.|all@/);
  });
});

describe('changing the own password', () => {
  const change = (user: Person, currentPassword: string, newPassword: string) =>
    api.graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input: { currentPassword, newPassword } },
      user.headers,
    );

  it('ends the other sessions, keeps the own one and mails a notice', async () => {
    const user = await register(app);
    const other = (await api.post('/v1/auth/login', { username: user.username, password: user.password })).json();
    expect((await change(user, user.password, 'changed by hand')).json()).toEqual({
      data: { changePassword: { user: { id: user.userId } } },
    });
    expect((await api.get('/v1/auth/me', user.headers)).statusCode).toBe(200);
    expect((await api.get('/v1/auth/me', { authorization: other.access_token })).statusCode).toBe(401);
    await mailWith(user.email, 'Your password was changed');
  });

  it('needs the current one, and guesses lock the account', async () => {
    const user = await register(app);
    const codes = [];
    for (let guess = 0; guess < 11; guess++)
      codes.push((await change(user, `guess ${guess}`, 'changed by hand')).json().errors[0].extensions.code);
    expect(codes).toEqual([...Array<string>(10).fill('AUTHENTICATION_FAILED'), 'RATE_LIMIT_EXCEEDED']);
    expect((await change(user, user.password, 'changed by hand')).json().errors[0].extensions.code).toBe(
      'RATE_LIMIT_EXCEEDED',
    );
  });
});

describe.each(['forgot-password', 'resend-verification'] as const)('%s', (operation) => {
  it('answers 200 null alike for an account and for nobody, and hashes nothing', async () => {
    const user = await register(app);
    expect(argon2.hash).toHaveBeenCalled();
    argon2.hash.mockClear();
    argon2.verify.mockClear();
    const [known, unknown] = [await ask(operation, user.email), await ask(operation, `nobody-${user.email}`)];
    expect([known.statusCode, known.body]).toEqual([200, 'null']);
    expect(sameness(known)).toEqual(sameness(unknown));
    expect(argon2.hash).not.toHaveBeenCalled();
    expect(argon2.verify).not.toHaveBeenCalled();
    await delivered();
    expect(mailsTo(user.email)).toHaveLength(2);
    expect(mailsTo(`nobody-${user.email}`)).toHaveLength(0);
  });

  it('answers before it knows whether there is an account', async () => {
    const user = await register(app);
    await delivered();
    const other = new pg.Client({ connectionString: app.database.url });
    await other.connect();
    try {
      await other.query('begin; lock table users in access exclusive mode');
      expect((await ask(operation, user.email)).statusCode).toBe(200);
      expect(mailsTo(user.email)).toHaveLength(1);
      await other.query('commit');
      await waitFor(() => expect(mailsTo(user.email)).toHaveLength(2));
    } finally {
      await other.end();
    }
  });

  it('mails the address of the account, not the one that was typed', async () => {
    const user = await register(app, { email: `Mixed-${operation}@example.test` });
    await ask(operation, `mixed-${operation}@EXAMPLE.test`);
    await delivered();
    expect(smtp.received.at(-1)?.to?.[0]?.address).toBe(user.email);
  });

  it('silently sends no fourth mail within an hour', async () => {
    const user = await register(app);
    const answers = [];
    for (let time = 0; time < 4; time++)
      answers.push(await ask(operation, time % 2 ? user.email : user.email.toUpperCase()));
    expect(answers.map((answer) => [answer.statusCode, answer.body])).toEqual(Array(4).fill([200, 'null']));
    await delivered();
    expect(mailsTo(user.email)).toHaveLength(1 + 3);
  });

  it('is 429 with Retry-After for a client that asks more than ten times an hour', async () => {
    const answers = [];
    for (let time = 0; time < 11; time++)
      answers.push(await ask(operation, `nobody-${operation}-${time}@example.test`));
    expect(answers.map((answer) => answer.statusCode)).toEqual([...Array<number>(10).fill(200), 429]);
    expect(answers[10]?.headers['retry-after']).toBe(String(answers[10]?.json().details.retry_after));
  });

  it('mails nothing to a suspended account', async () => {
    const user = await register(app);
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { isActive: false } });
    expect((await ask(operation, user.email)).body).toBe('null');
    await delivered();
    expect(mailsTo(user.email)).toHaveLength(1);
  });
});

describe('resend-verification', () => {
  it('mails nothing to an account that is verified', async () => {
    const user = await register(app);
    await app.database.prisma.user.update({ where: { id: user.userId }, data: { isVerified: true } });
    expect((await ask('resend-verification', user.email)).body).toBe('null');
    await delivered();
    expect(mailsTo(user.email)).toHaveLength(1);
  });
});
