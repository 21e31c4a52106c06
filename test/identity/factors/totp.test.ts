import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { codeOf, forgetCodes, letFactorsAge, withPasskey, withTotp } from '../../support/factors.ts';
import { changesOf, type Person, register, registerProven, type SignedIn } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());
// a code ends within a minute, and the next one begins at any moment: in a test there is one
beforeEach(() => stopClock());

interface Refusal {
  message: string;
  details: { reason?: string; challenge: string; methods: string[]; expires_in: number; passkey_options: unknown };
}

const send = async <T = Refusal>(url: string, payload: object, node = app) => {
  const { statusCode: status, body } = await node.server.inject({ method: 'POST', url, payload });
  return { status, body: JSON.parse(body) as T };
};
const login = ({ username, password }: Pick<Person, 'username' | 'password'>) =>
  send('/v1/auth/login', { username, password });
/** The challenge of a sign-in whose password was right. */
const challengeOf = async (person: Person) => (await login(person)).body.details.challenge;
const complete = (challenge: string, code: string, node = app) =>
  send<SignedIn>('/v1/auth/login/complete', { challenge, code }, node);

async function annWithTotp(name = 'ann') {
  const ann = await register(app, { name });
  return { ann, ...(await withTotp(app, ann)) };
}

describe('an app for one-time codes', () => {
  test('is enrolled, confirmed, and asked for at the next sign-in', async () => {
    const ann = await register(app, { name: 'ann' });
    const enrolled = await ann.call<{ secret: string; uri: string }>('POST', '/v1/auth/factors/totp', {
      current_password: ann.password,
    });
    expect(enrolled).toEqual({
      status: 200,
      body: { secret: expect.stringMatching(/^[A-Z2-7]{32}$/), uri: expect.stringMatching(/^otpauth:\/\/totp\//) },
    });
    const { secret, uri } = enrolled.body;
    expect(new URL(uri).searchParams.get('secret')).toBe(secret);
    // until a code has shown that it works, nothing changes
    expect((await login(ann)).status).toBe(200);
    const code = codeOf(secret);
    const confirmed = await ann.call<{ recovery_codes: string[] }>('POST', '/v1/auth/factors/totp/confirm', { code });
    expect([confirmed.status, new Set(confirmed.body.recovery_codes).size]).toEqual([200, 10]);
    expect(confirmed.body.recovery_codes[0]).toMatch(/^(?:[a-z0-9]{4}-){3}[a-z0-9]{4}$/);
    const refused = await login(ann);
    expect(refused).toEqual({
      status: 401,
      body: {
        error: 'AUTHENTICATION_FAILED',
        message: 'The password is right. Prove a second factor to go on.',
        details: {
          reason: 'factor_required',
          challenge: expect.stringMatching(/^[\w-]{100,1024}$/),
          methods: ['totp', 'recovery_code'],
          expires_in: 300,
          passkey_options: null,
        },
        status_code: 401,
        timestamp: expect.any(String),
      },
    });
    const done = await complete(refused.body.details.challenge, codeOf(secret, 1));
    expect([done.status, done.body.user.user_id]).toEqual([200, ann.userId]);
    const factors = await ann.call('GET', '/v1/auth/factors');
    expect(factors.body).toEqual({
      methods: ['totp', 'recovery_code'],
      totp: { created_at: expect.any(String), last_used_at: expect.any(String) },
      passkeys: [],
      recovery_codes_left: 10,
      proven_at: expect.any(String),
    });
    expect((await changesOf(app, ann.userId)).map(({ action, metadata }) => [action, metadata]).slice(-4)).toEqual([
      ['update', { factor: 'totp_begun' }],
      ['login', {}],
      ['update', { factor: 'totp_added' }],
      ['login', { factor: 'totp' }],
    ]);
    await waitFor(() =>
      expect(app.mails).toContainEqual(
        expect.objectContaining({ to: ann.email, subject: 'A second factor of your account has changed' }),
      ),
    );
  });

  test('GraphQL says and does the same', async () => {
    const { ann, secret } = await annWithTotp();
    const { username, password } = ann;
    const asked = await app.server.inject(
      graphqlRequest('mutation($input: LoginInput!) { login(input: $input) { accessToken } }', {
        input: { username, password },
      }),
    );
    type Asked = { data: null; errors: { extensions: { code: string; details: Refusal['details'] } }[] };
    const { extensions } = asked.json<Asked>().errors[0]!;
    expect([extensions.code, extensions.details.reason]).toEqual(['AUTHENTICATION_FAILED', 'factor_required']);
    const input = { challenge: extensions.details.challenge, code: codeOf(secret) };
    const done = await app.server.inject(
      graphqlRequest('mutation($input: CompleteSignInInput!) { completeSignIn(input: $input) { user { id } } }', {
        input,
      }),
    );
    expect(done.json()).toEqual({ data: { completeSignIn: { user: { id: ann.userId } } } });
  });

  test('a recovery code takes its place, once, in whatever form it is typed', async () => {
    const { ann, recoveryCodes } = await annWithTotp();
    const [first = ''] = recoveryCodes;
    const typed = ` ${first.toUpperCase().replaceAll('-', ' ')}`;
    expect((await complete(await challengeOf(ann), typed)).status).toBe(200);
    expect((await complete(await challengeOf(ann), first)).status).toBe(401);
    expect((await ann.call('GET', '/v1/auth/factors')).body).toMatchObject({ recovery_codes_left: 9 });
  });

  test('is removed by whoever has just proven a factor; a password is enough again, and codes have ended', async () => {
    const { ann, secret, recoveryCodes } = await annWithTotp();
    const removed = await ann.call('DELETE', '/v1/auth/factors/totp');
    expect([removed.status, removed.body]).toMatchObject([200, { methods: [], totp: null, recovery_codes_left: 0 }]);
    expect((await login(ann)).status).toBe(200);
    expect((await ann.call('DELETE', '/v1/auth/factors/totp')).status).toBe(404);
    const again = await withTotp(app, ann);
    for (const code of [codeOf(secret), recoveryCodes[1]!])
      expect((await complete(await challengeOf(ann), code)).status).toBe(401);
    expect((await complete(await challengeOf(ann), codeOf(again.secret))).status).toBe(200);
  });

  test('new recovery codes end the earlier ones', async () => {
    const { ann, recoveryCodes } = await annWithTotp();
    const renewed = await ann.call<{ recovery_codes: string[] }>('POST', '/v1/auth/factors/recovery-codes');
    expect([renewed.status, renewed.body.recovery_codes.length]).toEqual([200, 10]);
    expect((await complete(await challengeOf(ann), recoveryCodes[0]!)).status).toBe(401);
    expect((await complete(await challengeOf(ann), renewed.body.recovery_codes[0]!)).status).toBe(200);
  });

  test('nobody gets recovery codes without a factor', async () => {
    const ann = await register(app, { name: 'ann' });
    expect((await ann.call('POST', '/v1/auth/factors/recovery-codes')).body).toMatchObject({
      details: { reason: 'no_factor' },
    });
  });
});

describe('nobody gets in', () => {
  test('with a code that was used: to sign in, to confirm, or to prove a factor', async () => {
    const ann = await register(app, { name: 'ann' });
    const { body } = await ann.call<{ secret: string }>('POST', '/v1/auth/factors/totp', {
      current_password: ann.password,
    });
    const code = codeOf(body.secret);
    await ann.call('POST', '/v1/auth/factors/totp/confirm', { code });
    expect((await complete(await challengeOf(ann), code)).status).toBe(401);
    const next = codeOf(body.secret, 1);
    expect((await complete(await challengeOf(ann), next)).status).toBe(200);
    expect((await complete(await challengeOf(ann), next)).status).toBe(401);
    expect((await ann.call('POST', '/v1/auth/factors/proof', { code: next })).status).toBe(422);
    // neither with one of before
    expect((await complete(await challengeOf(ann), code)).status).toBe(401);
  });

  test('with a code of an hour ago, or of another account, or with none', async () => {
    const { ann, secret } = await annWithTotp();
    const other = await annWithTotp('bob');
    const wrong = [codeOf(secret, -120), codeOf(secret, 120), codeOf(other.secret), other.recoveryCodes[0]!, '      '];
    const challenge = await challengeOf(ann);
    for (const code of wrong) expect((await complete(challenge, code)).status).toBe(401);
    expect((await send('/v1/auth/login/complete', { challenge })).status).toBe(401);
    // the challenge is still good for the right one
    expect((await complete(challenge, codeOf(secret))).status).toBe(200);
  });

  test('with a challenge of another account, an altered one, one that was used, or something else', async () => {
    const { ann, secret } = await annWithTotp();
    const other = await annWithTotp('bob');
    const [own, foreign] = [await challengeOf(ann), await challengeOf(other.ann)];
    expect((await complete(foreign, codeOf(secret))).status).toBe(401);
    const flipped = `${own.slice(0, 40)}${own[40] === 'A' ? 'B' : 'A'}${own.slice(41)}`;
    const { body } = await send<{ challenge: string }>('/v1/auth/passkeys/sign-in/begin', {});
    for (const altered of [flipped, `${own}A`, own.slice(0, -1), `${own}=`, 'A', ann.accessToken, body.challenge])
      expect((await complete(altered, codeOf(secret))).status).toBe(401);
    expect((await complete(own, codeOf(secret))).status).toBe(200);
    await forgetCodes(app, ann);
    expect((await complete(own, codeOf(secret))).status).toBe(401);
  });

  test('with a challenge from before a new password, a reset, or the end of the account', async () => {
    const { ann, secret } = await annWithTotp();
    const before = await challengeOf(ann);
    const change = { current_password: ann.password, new_password: 'another horse battery staple' };
    const changed = await ann.ask('mutation($i: ChangePasswordInput!) { changePassword(input: $i) { user { id } } }', {
      i: { currentPassword: change.current_password, newPassword: change.new_password },
    });
    expect(changed.errors).toBeUndefined();
    expect((await complete(before, codeOf(secret))).status).toBe(401);
    const after = (await login({ ...ann, password: change.new_password })).body.details.challenge;
    await app.database.pool.query('update users set is_active = false where id = $1', [ann.userId]);
    expect((await complete(after, codeOf(secret))).status).toBe(401);
  });

  test('twice with one code or one challenge at the same moment', async () => {
    const { ann, secret } = await annWithTotp();
    const challenges = await Promise.all([1, 2, 3, 4].map(() => challengeOf(ann)));
    const oneCode = await Promise.all(challenges.map((challenge) => complete(challenge, codeOf(secret))));
    expect(oneCode.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 401, 401, 401]);
    const { ann: bob, recoveryCodes } = await annWithTotp('bob');
    const challenge = await challengeOf(bob);
    const oneChallenge = await Promise.all(recoveryCodes.slice(0, 4).map((code) => complete(challenge, code)));
    expect(oneChallenge.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 401, 401, 401]);
    // what was refused has used no code up
    expect((await bob.call('GET', '/v1/auth/factors')).body).toMatchObject({ recovery_codes_left: 9 });
  });

  test('by guessing at two nodes at once: ten tries are looked at, and the right one comes too late', async () => {
    const { ann, secret } = await annWithTotp();
    const node = await app.another();
    const challenge = await challengeOf(ann);
    const guesses = Array.from({ length: 14 }, (_, at) => complete(challenge, '000000', at % 2 ? app : node));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(10);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect((await complete(challenge, codeOf(secret))).status).toBe(429);
    // the right password does not begin the count anew
    expect((await complete(await challengeOf(ann), codeOf(secret))).status).toBe(429);
    expect((await ann.call('POST', '/v1/auth/factors/proof', { code: codeOf(secret) })).status).toBe(429);
  });

  test('learns who has a second factor without the password', async () => {
    const { ann } = await annWithTotp();
    const plain = await register(app, { name: 'plain' });
    const answers = await Promise.all(
      [ann.username, ann.email, plain.username, 'nobody'].map((username) => login({ username, password: 'wrong one' })),
    );
    const bodies = answers.map(({ status, body: { message, details } }) => ({ status, message, details }));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
  });
});

describe('a stolen session', () => {
  test('adds no factor without the password', async () => {
    const ann = await register(app, { name: 'ann' });
    // also right after the sign-in: a session is stolen at any time
    for (const payload of [{}, { current_password: 'wrong one' }])
      for (const url of ['/v1/auth/factors/totp', '/v1/auth/passkeys/begin'])
        expect((await ann.call('POST', url, payload)).status).toBe(422);
  });

  test('of an account without a password adds a factor only after a recent sign-in', async () => {
    const ann = await register(app, { name: 'ann' });
    await app.database.pool.query('update users set password_hash = null where id = $1', [ann.userId]);
    expect((await ann.call('POST', '/v1/auth/factors/totp', {})).status).toBe(200);
    await letFactorsAge(app, ann);
    expect((await ann.call('POST', '/v1/auth/factors/totp', {})).status).toBe(422);
  });

  test('has asked for another address: the link ends with a new factor', async () => {
    const ann = await registerProven(app, { name: 'ann' });
    const email = `thief-of-${ann.email}`;
    const change = { email, current_password: ann.password };
    expect((await ann.call('PUT', `/v1/users/${ann.userId}`, change)).status).toBe(200);
    const token = await waitFor(() => {
      const mail = app.mails.find(({ to, link }) => to === email && link);
      return /token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? expect.fail('no mail yet');
    });
    await withTotp(app, ann);
    const answer = await app.server.inject({ method: 'POST', url: '/v1/auth/verify-email', payload: { token } });
    expect(answer.statusCode).toBe(401);
  });

  test('removes, renews and adds nothing, and changes no address, until a factor is proven again', async () => {
    const { ann, secret } = await annWithTotp();
    const { passkeyId } = await withPasskey(app, ann);
    await letFactorsAge(app, ann);
    const stale = [
      ['DELETE', '/v1/auth/factors/totp'],
      ['DELETE', `/v1/auth/passkeys/${passkeyId}`],
      ['POST', '/v1/auth/factors/recovery-codes'],
      ['POST', '/v1/auth/factors/totp', { current_password: ann.password }],
      ['POST', '/v1/auth/passkeys/begin', { current_password: ann.password }],
      ['PUT', `/v1/users/${ann.userId}`, { email: 'thief@example.test', current_password: ann.password }],
    ] as const;
    for (const [method, url, payload] of stale)
      expect((await ann.call(method, url, payload)).body, url).toMatchObject({
        error: 'FORBIDDEN',
        details: { required_permission: 'user:update', reason: 'fresh_factor', minutes: 10 },
      });
    expect((await ann.call('POST', '/v1/auth/factors/proof', { code: '000000' })).status).toBe(422);
    expect((await ann.call('POST', '/v1/auth/factors/proof', { code: codeOf(secret) })).status).toBe(200);
    const address = { email: `new-${ann.email}`, current_password: ann.password };
    expect((await ann.call('PUT', `/v1/users/${ann.userId}`, address)).status).toBe(200);
    expect((await ann.call('DELETE', '/v1/auth/factors/totp')).status).toBe(200);
  });

  test('another session of the same user has to prove it for itself', async () => {
    const { ann, secret } = await annWithTotp();
    const { body } = await complete(await challengeOf(ann), codeOf(secret));
    await letFactorsAge(app, ann);
    expect((await ann.call('POST', '/v1/auth/factors/proof', { code: codeOf(secret, 1) })).status).toBe(200);
    const headers = { authorization: `Bearer ${body.access_token}` };
    const answer = await app.server.inject({ method: 'DELETE', url: '/v1/auth/factors/totp', headers });
    expect(answer.json()).toMatchObject({ details: { reason: 'fresh_factor' } });
  });

  test('confirms no app that it has begun before there was a factor, and none that was begun long ago', async () => {
    const begun = async (person: Person) =>
      (await person.call<{ secret: string }>('POST', '/v1/auth/factors/totp', { current_password: person.password }))
        .body.secret;
    const ann = await register(app, { name: 'ann' });
    const secret = await begun(ann);
    const { authenticator } = await withPasskey(app, ann);
    expect(authenticator.credentialId).not.toBe('');
    await letFactorsAge(app, ann);
    const url = '/v1/auth/factors/totp/confirm';
    expect((await ann.call('POST', url, { code: codeOf(secret) })).body).toMatchObject({
      details: { reason: 'fresh_factor' },
    });
    const bob = await register(app, { name: 'bob' });
    const late = await begun(bob);
    const age = `update totp_factors set created_at = created_at - interval '16 minutes' where user_id = $1`;
    await app.database.pool.query(age, [bob.userId]);
    expect((await bob.call('POST', url, { code: codeOf(late) })).status).toBe(422);
  });

  test('replaces no app that is there', async () => {
    const { ann } = await annWithTotp();
    expect((await ann.call('POST', '/v1/auth/factors/totp', {})).body).toMatchObject({
      details: { reason: 'factor_exists' },
    });
  });
});

describe('an account that is taken back', () => {
  const resetOf = async (person: Person) => {
    const mailed = app.mails.length;
    const asked = { method: 'POST', url: '/v1/auth/forgot-password', payload: { email: person.email } } as const;
    expect((await app.server.inject(asked)).statusCode).toBe(200);
    const token = await waitFor(() => {
      const link = app.mails
        .slice(mailed)
        .find(({ to, subject }) => to === person.email && subject.startsWith('Reset'));
      return /token=([\w-]+)/.exec(link?.text ?? '')?.[1] ?? expect.fail('no mail yet');
    });
    const password = 'a password that only its owner knows';
    const payload = { token, new_password: password };
    expect((await app.server.inject({ method: 'POST', url: '/v1/auth/reset-password', payload })).statusCode).toBe(200);
    return password;
  };

  /** All factors were added longer than a week ago. */
  const aWeekAgo = async ({ userId }: Person) => {
    for (const table of ['totp_factors', 'passkeys'])
      await app.database.pool.query(
        `update ${table} set created_at = created_at - interval '8 days' where user_id = $1`,
        [userId],
      );
  };
  const confirmAddress = async (person: Person) => {
    const token = await waitFor(() => {
      const mail = app.mails.find(({ to, subject }) => to === person.email && subject.startsWith('Confirm'));
      return /token=([\w-]+)/.exec(mail?.text ?? '')?.[1] ?? expect.fail('no mail yet');
    });
    const request = { method: 'POST', url: '/v1/auth/verify-email', payload: { token } } as const;
    expect((await app.server.inject(request)).statusCode).toBe(200);
  };

  test('a reset keeps the second factor of whoever has proven the address, and has had one for a week', async () => {
    const ann = await registerProven(app, { name: 'ann' });
    const { secret } = await withTotp(app, ann);
    await aWeekAgo(ann);
    // a new one beside it took a proof of the old one
    await withPasskey(app, ann);
    const password = await resetOf(ann);
    const { status, body } = await login({ ...ann, password });
    expect([status, body.details.reason]).toEqual([401, 'factor_required']);
    expect((await complete(body.details.challenge, codeOf(secret))).status).toBe(200);
  });

  test.each<[string, () => Promise<Person>]>([
    ['the password has leaked', () => registerProven(app, { name: 'ann' })],
    [
      'somebody else had registered the address, and its owner has followed the link',
      async () => {
        const ann = await register(app, { name: 'ann' });
        await confirmAddress(ann);
        return ann;
      },
    ],
  ])('a reset ends factors that are new: %s', async (_what, account) => {
    const ann = await account();
    await withTotp(app, ann);
    await withPasskey(app, ann);
    const password = await resetOf(ann);
    expect((await login({ ...ann, password })).status).toBe(200);
    const { rows } = await app.database.pool.query(
      'select from passkeys where user_id = $1 union all select from recovery_codes where user_id = $1',
      [ann.userId],
    );
    expect(rows).toEqual([]);
  });

  test('a reset ends the factors of somebody who had registered with the address of another person', async () => {
    const squatter = await register(app, { name: 'squatter' });
    await withTotp(app, squatter);
    await withPasskey(app, squatter);
    const password = await resetOf(squatter);
    expect((await login({ ...squatter, password })).status).toBe(200);
    const { rows } = await app.database.pool.query('select from passkeys where user_id = $1', [squatter.userId]);
    expect(rows).toEqual([]);
  });

  test('also when a link alone has proven the address before', async () => {
    const squatter = await register(app, { name: 'squatter' });
    await withTotp(app, squatter);
    await aWeekAgo(squatter);
    await confirmAddress(squatter);
    expect((await login(squatter)).status).toBe(401);
    const password = await resetOf(squatter);
    expect((await login({ ...squatter, password })).status).toBe(200);
  });
});

test('what the codes are made of is sealed, and recovery codes are stored as hashes', async () => {
  const { ann, secret, recoveryCodes } = await annWithTotp();
  const { rows } = await app.database.pool.query(
    `select u::text as row from user_credentials u where user_id = $1
      union all select r::text from recovery_codes r where user_id = $1`,
    [ann.userId],
  );
  const stored = rows.map(({ row }) => String(row)).join('\n');
  expect(rows).toHaveLength(11);
  expect(stored).not.toContain(Buffer.from(secret).toString('hex'));
  for (const code of recoveryCodes) expect(stored).not.toContain(code.replaceAll('-', ''));
});

test('tokens prove no factor and change none', async () => {
  const { ann } = await annWithTotp();
  const { headers } = await issueToken(app, ann, { scopes: ['admin'] });
  for (const [method, url] of [
    ['GET', '/v1/auth/factors'],
    ['POST', '/v1/auth/factors/recovery-codes'],
    ['DELETE', '/v1/auth/factors/totp'],
    ['POST', '/v1/auth/factors/proof/begin'],
  ] as const)
    expect((await app.server.inject({ method, url, headers })).statusCode).toBe(403);
});
