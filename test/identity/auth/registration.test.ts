import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';

let app: TestApp;
let api: Calls;
let first: Person;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
  first = await register(app);
});
afterAll(() => app.close());

const account = (name: string) => ({ email: `${name}@example.test`, username: name, password: 'correct horse' });

/** An invitation as the organization's service writes it. */
async function invite(
  email: string,
  more: { expiresAt?: Date; status?: string; role?: string; workspaceId?: string } = {},
): Promise<string> {
  const token = `invitation-${newId('invitation')}`;
  await app.database.prisma.invitation.create({
    data: {
      id: newId('invitation'),
      orgId: first.orgId,
      email,
      emailKey: email.toLowerCase(),
      tokenHash: createHash('sha256').update(token).digest('hex'),
      invitedBy: first.userId,
      expiresAt: new Date(Date.now() + 3_600_000),
      ...more,
    },
  });
  return token;
}

describe('the answer of a registration', () => {
  it('is 201 with the token pair and the user, keys in the order of the spec', async () => {
    const answer = await api.post('/v1/auth/register', { ...account('Nora'), email: 'Nora@Example.TEST' });
    expect(answer.statusCode).toBe(201);
    const body = answer.json();
    expect(Object.keys(body)).toEqual(['access_token', 'refresh_token', 'token_type', 'expires_in', 'user']);
    expect(Object.keys(body.user).join(' ')).toBe(
      'user_id email username full_name auth_provider avatar_url bio timezone locale default_workspace_id is_active ' +
        'is_verified roles preferences settings created_at updated_at last_login',
    );
    expect(body).toMatchObject({ token_type: 'bearer', expires_in: 1800 });
    expect(body.user).toMatchObject({
      email: 'Nora@Example.TEST',
      username: 'Nora',
      full_name: null,
      auth_provider: 'local',
      is_active: true,
      is_verified: false,
      roles: ['owner'],
      preferences: {},
      last_login: null,
    });
  });

  it('leads to an organization with a default workspace, in the token and in the settings', async () => {
    const { access_token, user } = (await api.post('/v1/auth/register', account('otto'))).json();
    const claims = JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString());
    const { current_org_id, organizations } = user.settings;
    expect(claims.org_id).toBe(current_org_id);
    expect(organizations).toEqual([{ org_id: current_org_id, name: "otto's organization", role: 'owner' }]);
    const workspace = await api.get(`/v1/orgs/${current_org_id}/workspaces/${user.default_workspace_id}`, {
      authorization: access_token,
    });
    expect(workspace.json()).toMatchObject({ workspace_id: user.default_workspace_id, owner_id: user.user_id });
  });

  it('carries no role in the access token', async () => {
    const { access_token } = (await api.post('/v1/auth/register', account('paul'))).json();
    const claims = JSON.parse(Buffer.from(access_token.split('.')[1], 'base64url').toString());
    expect(Object.keys(claims).sort()).toEqual(['aud', 'exp', 'iat', 'iss', 'jti', 'org_id', 'sid', 'sub', 'typ']);
    expect(claims.exp - claims.iat).toBe(1800);
  });

  it('never tells the password or its hash', async () => {
    const { body } = await api.post('/v1/auth/register', account('quentin'));
    expect(body).not.toMatch(/correct horse|argon2|password/);
  });

  it('writes the account, its activity record and its events in one transaction', async () => {
    const { user } = (
      await api.post('/v1/auth/register', account('rita'), { 'x-trace-id': 'registering-rita' })
    ).json();
    const records = await app.database.prisma.activity.findMany({ where: { traceId: 'registering-rita' } });
    expect(records).toMatchObject([
      { action: 'create', resourceType: 'user', resourceId: user.user_id, userId: user.user_id, statusCode: 201 },
    ]);
    const [orgId, workspaceId] = [user.settings.current_org_id, user.default_workspace_id];
    expect(records[0]).toMatchObject({ orgId, principalType: 'user' });
    // one record for one request: what was made on the way is listed in it
    expect(records[0]!.metadata).toEqual({
      also: [
        { action: 'create', resource_type: 'organization_member', resource_id: user.user_id, role: 'owner' },
        { action: 'create', resource_type: 'workspace', resource_id: workspaceId },
        { action: 'create', resource_type: 'organization', resource_id: orgId },
      ],
    });
    const resourceId = { in: [user.user_id, orgId, workspaceId] };
    expect(await app.database.prisma.activity.count({ where: { resourceId } })).toBe(1);
    const events = await app.database.prisma.event.findMany({
      where: { traceId: 'registering-rita' },
      select: { type: true },
    });
    expect(events.map((event) => event.type)).toContain('workspace.created');
  });

  it('is recorded under the new account, whatever token the request carries', async () => {
    const { user } = (
      await api.post('/v1/auth/register', account('sven'), { ...first.headers, 'x-trace-id': 'registering-sven' })
    ).json();
    const records = await app.database.prisma.activity.findMany({ where: { traceId: 'registering-sven' } });
    expect(new Set(records.map((record) => record.userId))).toEqual(new Set([user.user_id]));
  });
});

describe('what is taken', () => {
  it('is 409 for an e-mail address, ignoring case', async () => {
    await api.post('/v1/auth/register', account('taken'));
    const answer = await api.post('/v1/auth/register', { ...account('other'), email: 'TAKEN@example.test' });
    expect(answer.statusCode).toBe(409);
    expect(answer.json()).toMatchObject({
      error: 'RESOURCE_ALREADY_EXISTS',
      message: "A user with the email 'TAKEN@example.test' already exists.",
      details: { resource_type: 'user', field: 'email', value: 'TAKEN@example.test', resource_id: null },
      status_code: 409,
    });
  });

  it('is 409 for a user name, ignoring case', async () => {
    await api.post('/v1/auth/register', account('claimed'));
    const answer = await api.post('/v1/auth/register', { ...account('CLAIMED'), email: 'free@example.test' });
    expect(answer.statusCode).toBe(409);
    expect(answer.json().details).toEqual({
      resource_type: 'user',
      field: 'username',
      value: 'CLAIMED',
      resource_id: null,
    });
  });

  it('gives one of 200 parallel registrations of one e-mail address the account, and the other 199 a 409', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        api.post('/v1/auth/register', { ...account(`racer-${index}`), email: 'race@example.test' }),
      ),
    );
    expect(answers.map((answer) => answer.statusCode).sort((a, b) => a - b)).toEqual([
      201,
      ...Array<number>(199).fill(409),
    ]);
    expect(
      new Set(answers.filter((answer) => answer.statusCode === 409).map((answer) => answer.json().details.field)),
    ).toEqual(new Set(['email']));
    expect(await app.database.prisma.user.count({ where: { emailKey: 'race@example.test' } })).toBe(1);
  });

  it('leaves no organization behind when a registration is refused', async () => {
    const before = await app.database.prisma.organization.count();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.post('/v1/auth/register', account('only-one'))),
    );
    expect(answers.filter((answer) => answer.statusCode === 201)).toHaveLength(1);
    expect(await app.database.prisma.organization.count()).toBe(before + 1);
  });
});

describe('the password policy', () => {
  it.each([
    ['the user name', 'Magdalena', 'magdalena'],
    ['the e-mail address', 'magdalena1', 'MAGDALENA1@example.test'],
  ])('refuses %s as password, ignoring case', async (_what, username, password) => {
    const answer = await api.post('/v1/auth/register', { ...account(username), password });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toEqual([
      {
        type: 'value_error',
        loc: ['body', 'password'],
        msg: 'Value error, the password must not be the user name or the e-mail address',
        input: '[redacted]',
        ctx: { error: 'the password must not be the user name or the e-mail address' },
      },
    ]);
  });

  it.each([
    ['7 characters', 'x'.repeat(7), 422],
    ['8 characters', 'x'.repeat(8), 201],
    ['128 characters', 'x'.repeat(128), 201],
    ['129 characters', 'x'.repeat(129), 422],
  ])('answers a password of %s with the right status', async (what, password, status) => {
    expect(
      (await api.post('/v1/auth/register', { ...account(`length-${what.replaceAll(' ', '-')}`), password })).statusCode,
    ).toBe(status);
  });

  it('has no list of common passwords outside production', async () => {
    expect((await api.post('/v1/auth/register', { ...account('careless'), password: 'password1' })).statusCode).toBe(
      201,
    );
  });

  it('refuses common passwords where the list is on, ignoring case', async () => {
    const strict = await startTestApp({ env: { PASSWORD_BLOCKLIST: 'true' } });
    try {
      const answer = await callsOf(strict).post('/v1/auth/register', { ...account('careless'), password: 'Password1' });
      expect(answer.statusCode).toBe(422);
      expect(answer.json().detail[0]).toMatchObject({
        loc: ['body', 'password'],
        input: '[redacted]',
        msg: 'Value error, this password is too common: choose another',
      });
    } finally {
      await strict.close();
    }
  });

  it('accepts a password in any Unicode form of the same text', async () => {
    await api.post('/v1/auth/register', { ...account('unicode'), password: '\u00c5ngstr\u00f6m 1234' });
    const answer = await api.post('/v1/auth/login', { username: 'unicode', password: 'A\u030angstro\u0308m 1234' });
    expect(answer.statusCode).toBe(200);
  });
});

describe('a closed instance', () => {
  let closed: TestApp;
  beforeAll(async () => {
    closed = await startTestApp({
      env: { ALLOW_REGISTRATION: 'false', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
  });
  afterAll(() => closed.close());

  it('says so in the public configuration', async () => {
    expect((await callsOf(closed).get('/v1/auth/config')).body).toBe('{"allow_registration":false}');
    expect((await api.get('/v1/auth/config')).body).toBe('{"allow_registration":true}');
  });

  it('refuses strangers with 403 user:create', async () => {
    const answer = await callsOf(closed).post('/v1/auth/register', account('stranger'));
    expect(answer.statusCode).toBe(403);
    expect(answer.json()).toMatchObject({ error: 'FORBIDDEN', details: { required_permission: 'user:create' } });
  });

  it.each(['made-up', 'expired', 'used'])('refuses an invitation that is %s with the same 403', async (state) => {
    const email = `${state}-guest@example.test`;
    const more = { expired: { expiresAt: new Date(Date.now() - 1_000) }, used: { status: 'accepted' } }[state];
    const invite_token = more ? await invite(email, more) : state;
    const body = { ...account(`${state}-guest`), email, invite_token };
    const answer = await callsOf(closed).post('/v1/auth/register', body);
    expect(answer.statusCode).toBe(403);
    expect(answer.json()).toMatchObject({ error: 'FORBIDDEN', details: { required_permission: 'user:create' } });
  });

  it('lets one of two in who use an invitation at once, and refuses the other with 403', async () => {
    const invite_token = await invite('raced@example.test');
    const answers = await Promise.all(
      ['raced-a', 'raced-b'].map((username) =>
        callsOf(closed).post('/v1/auth/register', { ...account(username), email: 'raced@example.test', invite_token }),
      ),
    );
    const statuses = answers.map(({ statusCode }) => statusCode);
    expect(statuses).toContain(201);
    // the loser finds the address taken, or the invitation used
    expect([403, 409]).toContain(statuses.find((status) => status !== 201));
  });

  it('lets in who is invited', async () => {
    const invite_token = await invite('welcome@example.test');
    const answer = await callsOf(closed).post('/v1/auth/register', { ...account('welcome'), invite_token });
    expect(answer.statusCode).toBe(201);
  });
});

describe('an invitation', () => {
  it('makes a verified member of the inviting organization and workspace, with no own organization', async () => {
    const invite_token = await invite('guest@example.test', { role: 'editor', workspaceId: first.workspaceId });
    const { user } = (await api.post('/v1/auth/register', { ...account('guest'), invite_token })).json();
    expect(user).toMatchObject({ is_verified: true, roles: ['editor'], default_workspace_id: first.workspaceId });
    expect(user.settings.organizations.map((organization: { org_id: string }) => organization.org_id)).toEqual([
      first.orgId,
    ]);
  });

  it('works once', async () => {
    const invite_token = await invite('once@example.test');
    const [a, b] = await Promise.all([
      api.post('/v1/auth/register', { ...account('once-a'), email: 'once@example.test', invite_token }),
      api.post('/v1/auth/register', { ...account('once-b'), email: 'once@example.test', invite_token }),
    ]);
    expect([a.statusCode, b.statusCode].filter((status) => status === 201)).toHaveLength(1);
    const third = await api.post('/v1/auth/register', { ...account('once-c'), invite_token });
    expect(third.statusCode).toBe(422);
    expect(third.json().detail[0].loc).toEqual(['body', 'invite_token']);
  });

  it('is for the invited address alone', async () => {
    const invite_token = await invite('somebody@example.test');
    const answer = await api.post('/v1/auth/register', { ...account('somebody-else'), invite_token });
    expect(answer.json().detail[0].loc).toEqual(['body', 'email']);
  });

  it.each([
    ['expired', { expiresAt: new Date(Date.now() - 1_000) }],
    ['revoked', { status: 'revoked' }],
    ['accepted', { status: 'accepted' }],
  ])('that is %s is not valid', async (_state, more) => {
    const token = await invite('late@example.test', more);
    expect((await api.get(`/v1/auth/invite-info?token=${token}`)).body).toBe('{"email":"","valid":false}');
    expect((await api.post('/v1/auth/register', { ...account('late'), invite_token: token })).statusCode).toBe(422);
  });

  it('tells whom it is for, to whoever has its token', async () => {
    const token = await invite('Info@example.test');
    expect((await api.get(`/v1/auth/invite-info?token=${token}`)).body).toBe(
      '{"email":"Info@example.test","valid":true}',
    );
  });

  it('that nobody made is 200 and not valid', async () => {
    const answer = await api.get('/v1/auth/invite-info?token=made-up');
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('{"email":"","valid":false}');
  });
});

describe('the first account of an empty instance', () => {
  it('administers the platform, and exactly one does when 20 register at once', async () => {
    const empty = await startTestApp();
    try {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => callsOf(empty).post('/v1/auth/register', account(`founder-${index}`))),
      );
      expect(answers.map((answer) => answer.statusCode)).toEqual(Array(20).fill(201));
      const roles: string[] = answers.map((answer) => answer.json().user.roles.join());
      expect(roles.filter((role) => role === 'owner')).toHaveLength(19);
      expect(roles.filter((role) => role === 'owner,platform_admin')).toHaveLength(1);
      expect((await callsOf(empty).post('/v1/auth/register', account('later'))).json().user.roles).toEqual(['owner']);
    } finally {
      await empty.close();
    }
  });
});

describe('registrations per client address', () => {
  it('are 429 with Retry-After beyond the limit', async () => {
    const limited = await startTestApp({
      env: { REGISTRATIONS_PER_MINUTE: '2', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
    try {
      const answers = [];
      for (const name of ['limit-a', 'limit-b', 'limit-c'])
        answers.push(await callsOf(limited).post('/v1/auth/register', account(name)));
      expect(answers.map((answer) => answer.statusCode)).toEqual([201, 201, 429]);
      const refused = answers[2]!;
      expect(Number(refused.headers['retry-after'])).toBe(refused.json().details.retry_after);
      expect(refused.json().details.retry_after).toBeGreaterThanOrEqual(1);
    } finally {
      await limited.close();
    }
  });
});
