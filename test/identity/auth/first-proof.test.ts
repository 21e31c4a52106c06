import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { expectUnauthenticated } from '../../support/error-shapes.ts';
import { type Person, register } from '../../support/person.ts';
import { issueToken, type TestToken } from '../../support/tokens.ts';

let app: TestApp;
let api: Calls;
let user: Person;
let token: TestToken;
let appToken: TestToken;

beforeAll(async () => {
  app = await startTestApp({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
  api = callsOf(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  user = await register(app);
  token = await issueToken(app, user, { name: 'ci' });
  const url = `/v1/orgs/${user.orgId}/workspaces/${user.workspaceId}/apps`;
  const { app_id } = (await api.post(url, { name: 'Shop' }, user.headers)).json();
  appToken = await issueToken(app, user, { app_id, name: 'shop' });
  await app.jobsDone();
});

const mailTo = (subject: string) => app.mails.findLast((mail) => mail.to === user.email && mail.subject === subject)!;
const linkToken = (subject: string) => new URL(mailTo(subject).link!).searchParams.get('token')!;
const verified = () => app.database.prisma.user.update({ where: { id: user.userId }, data: { isVerified: true } });
const works = async (headers: { authorization: string }) =>
  (await api.get(`/v1/orgs/${user.orgId}/workspaces/${user.workspaceId}`, headers)).statusCode === 200;
const living = async () => [await works(token.headers), await works(appToken.headers)];

let client = 0;
async function askForReset(): Promise<void> {
  client += 1;
  const from = { 'x-forwarded-for': `198.51.100.${client}` };
  await api.post('/v1/auth/forgot-password', { email: user.email }, from);
  await app.jobsDone();
}
async function reset(more: object = {}): Promise<string> {
  await askForReset();
  const body = { token: linkToken('Reset your password'), new_password: 'a whole new password', ...more };
  const answer = await api.post('/v1/auth/reset-password', body);
  expect([answer.statusCode, answer.body]).toEqual([200, 'null']);
  await app.jobsDone();
  return mailTo('Your password was changed').text;
}

describe('the first proof of an address', () => {
  it('by a reset ends all sessions and tokens: an address registered by another returns to its owner', async () => {
    expect(await living()).toEqual([true, true]);
    await reset();
    expectUnauthenticated(await api.get('/v1/auth/me', user.headers));
    expectUnauthenticated(await api.post('/v1/auth/refresh', { refresh_token: user.refreshToken }));
    expect(await living()).toEqual([false, false]);
    const refresh = { refresh_token: token.refresh_token_plaintext };
    expectUnauthenticated(await api.post(`/v1/orgs/${user.orgId}/api-tokens/refresh`, refresh));
    expect((await api.post('/v1/auth/login', { username: user.username, password: user.password })).statusCode).toBe(
      401,
    );
    const rows = await app.database.prisma.apiToken.findMany({ where: { createdByUserId: user.userId } });
    expect(rows.map(({ revokedReason }) => revokedReason)).toEqual(['password_reset', 'password_reset']);
  });

  it('by the mailed link ends the tokens that were made before it; who is signed in stays so', async () => {
    const answer = await api.post('/v1/auth/verify-email', { token: linkToken('Confirm your e-mail address') });
    expect(answer.statusCode).toBe(200);
    expect(await living()).toEqual([false, false]);
    expect((await api.get('/v1/auth/me', user.headers)).json().is_verified).toBe(true);
    expect(await works((await issueToken(app, user)).headers)).toBe(true);
  });

  it('from a session of the account keeps them: it is one person who has both', async () => {
    const body = { token: linkToken('Confirm your e-mail address') };
    expect((await api.post('/v1/auth/verify-email', body, user.headers)).statusCode).toBe(200);
    expect(await living()).toEqual([true, true]);
  });

  it('is not made harmless by the session of somebody else, nor by a token of the account', async () => {
    const other = await register(app);
    const body = { token: linkToken('Confirm your e-mail address') };
    await api.post('/v1/auth/verify-email', body, other.headers);
    expect(await living()).toEqual([false, false]);
    user = await register(app);
    token = await issueToken(app, user);
    await app.jobsDone();
    const next = { token: linkToken('Confirm your e-mail address') };
    await api.post('/v1/auth/verify-email', next, token.headers);
    expect(await works(token.headers)).toBe(false);
  });

  it('is told in the mail with the link, which names the account', () => {
    const { text } = mailTo('Confirm your e-mail address');
    expect(text).toContain(`the account '${user.username}'`);
    expect(text).toContain('API tokens that were created before stop working');
  });
});

describe('a later proof', () => {
  it('keeps tokens: a reset names them, in the mail with the link and after it, without anything secret', async () => {
    await verified();
    await works(token.headers);
    await app.services.tokenUses.flush();
    await askForReset();
    const before = mailTo('Reset your password').text;
    const after = await reset();
    expect(await living()).toEqual([true, true]);
    for (const text of [before, after]) {
      expect(text).toMatch(
        /- 'ci' \(pat_\w{8}…\) of .*: last used on 2\d{3}-[\d-]+ [\d:]+ UTC, expires on 2\d{3}-[\d-]+ [\d:]+ UTC/,
      );
      expect(text).toMatch(/- 'shop' \(app_\w{8}…\) of .*: never used, expires on/);
      expect(text).not.toContain(token.plaintext_token);
      expect(text).not.toContain(token.plaintext_token.slice(13));
    }
  });

  it('names no token that is revoked, and those alone of organizations that one is still in', async () => {
    await verified();
    await api.delete(`/v1/orgs/${user.orgId}/api-tokens/${token.id}`, user.headers);
    const text = await reset();
    expect(text).not.toContain("'ci'");
    expect(text).toContain("'shop'");
  });

  it('cannot be shaped by the names of tokens', async () => {
    await verified();
    await issueToken(app, user, { name: 'x\nOpen http://evil.test' });
    expect(await reset()).not.toMatch(/^Open http/m);
  });

  it('ends them with `revoke_tokens`, and says so', async () => {
    await verified();
    const text = await reset({ revoke_tokens: true });
    expect(await living()).toEqual([false, false]);
    expect(text).toContain('Your API tokens were revoked.');
    expect(text).not.toContain("'ci'");
  });
});

describe('a changed password', () => {
  const change = async (more: object = {}) => {
    const input = { currentPassword: user.password, newPassword: 'changed by hand', ...more };
    const answer = await api.graphql(
      'mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }',
      { input },
      user.headers,
    );
    expect(answer.json()).toEqual({ data: { changePassword: { user: { id: user.userId } } } });
    await app.jobsDone();
    return mailTo('Your password was changed').text;
  };

  it('keeps tokens and names them', async () => {
    expect(await change()).toContain("'ci'");
    expect(await living()).toEqual([true, true]);
  });

  it('ends them with `revokeTokens`', async () => {
    expect(await change({ revokeTokens: true })).not.toContain("'ci'");
    expect(await living()).toEqual([false, false]);
  });
});
