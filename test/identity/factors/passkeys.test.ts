import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { Authenticator, type Faults } from '../../support/authenticator.ts';
import { type Beginning, codeOf, letFactorsAge, originOf, withPasskey, withTotp } from '../../support/factors.ts';
import { changesOf, type Person, register, type SignedIn } from '../../support/person.ts';
import { startTarget } from '../../support/target-server.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
});
afterAll(() => app.close());

const send = async <T>(url: string, payload: object = {}) => {
  const { statusCode: status, body } = await app.server.inject({ method: 'POST', url, payload });
  return { status, body: JSON.parse(body) as T };
};
const begin = async () => (await send<Beginning>('/v1/auth/passkeys/sign-in/begin')).body;
const finish = (challenge: string, credential: object) =>
  send<SignedIn>('/v1/auth/passkeys/sign-in', { challenge, credential });
/** A sign-in with a passkey alone, with what its authenticator does wrong. */
const signInWith = async (authenticator: Authenticator, faults: Faults = {}) => {
  const { challenge, options } = await begin();
  return finish(challenge, authenticator.get(options, faults));
};
const passwordOf = async ({ username, password }: Person) => {
  type Asked = { details: { challenge: string; methods: string[]; passkey_options: Beginning['options'] } };
  return (await send<Asked>('/v1/auth/login', { username, password })).body.details;
};

async function annWithPasskey(name = 'ann', options = {}) {
  const ann = await register(app, { name });
  return { ann, ...(await withPasskey(app, ann, new Authenticator(originOf(app), options))) };
}

describe('a passkey', () => {
  test('is added with a name and recovery codes, listed, renamed and removed', async () => {
    const { ann, passkeyId, recoveryCodes } = await annWithPasskey();
    expect(recoveryCodes).toHaveLength(10);
    const second = await withPasskey(app, ann);
    // there are some already
    expect(second.recoveryCodes).toEqual([]);
    const url = `/v1/auth/passkeys/${passkeyId}`;
    const renamed = await ann.call('PATCH', url, { name: 'Phone' });
    const own = { passkey_id: passkeyId, name: 'Phone', is_synced: false, last_used_at: null };
    expect(renamed).toEqual({ status: 200, body: { ...own, created_at: expect.any(String) } });
    const { body } = await ann.call<{ passkeys: object[] }>('GET', '/v1/auth/factors');
    expect(body).toMatchObject({ methods: ['passkey', 'recovery_code'], totp: null, recovery_codes_left: 10 });
    expect(body.passkeys).toMatchObject([own, { passkey_id: second.passkeyId, name: 'Key' }]);
    expect((await ann.call('DELETE', url)).status).toBe(204);
    expect((await ann.call('DELETE', url)).status).toBe(404);
    expect((await ann.call('DELETE', `/v1/auth/passkeys/${second.passkeyId}`)).status).toBe(204);
    // the last factor takes the recovery codes along
    expect((await ann.call('GET', '/v1/auth/factors')).body).toMatchObject({ methods: [], recovery_codes_left: 0 });
    expect((await changesOf(app, ann.userId)).map(({ metadata }) => metadata)).toContainEqual({
      factor: 'passkey_added',
    });
    expect((await changesOf(app, passkeyId)).map(({ action, metadata }) => [action, metadata])).toEqual([
      ['update', { factor: 'passkey_renamed' }],
      ['delete', { factor: 'passkey_removed' }],
    ]);
  });

  test.each([true, false])('signs in without a name and a password, counter or not: %j', async (counts) => {
    const { ann, authenticator } = await annWithPasskey('ann', { counts });
    for (let times = 0; times < 2; times++) {
      const { status, body } = await signInWith(authenticator);
      expect([status, body.user.user_id]).toEqual([200, ann.userId]);
      const headers = { authorization: `Bearer ${body.access_token}` };
      const factors = await app.server.inject({ url: '/v1/auth/factors', headers });
      // it counts as a factor that was just proven
      expect(factors.json()).toMatchObject({ proven_at: expect.any(String) });
    }
  });

  test('is a second factor after a password, of one of its user alone', async () => {
    const { ann, authenticator } = await annWithPasskey();
    const asked = await passwordOf(ann);
    expect(asked.methods).toEqual(['passkey', 'recovery_code']);
    expect(asked.passkey_options.allowCredentials).toMatchObject([{ id: authenticator.credentialId }]);
    const complete = (given: object) => send('/v1/auth/login/complete', { challenge: asked.challenge, ...given });
    const other = await annWithPasskey('bob');
    expect((await complete({ credential: other.authenticator.get(asked.passkey_options) })).status).toBe(401);
    // without a check of the user it is still something that they have
    expect((await complete({ credential: authenticator.get(asked.passkey_options, { flags: 1 }) })).status).toBe(200);
  });

  test('is proven again in a session, for what asks for a fresh factor', async () => {
    const { ann, authenticator, passkeyId } = await annWithPasskey();
    await letFactorsAge(app, ann);
    expect((await ann.call('DELETE', `/v1/auth/passkeys/${passkeyId}`)).status).toBe(403);
    const { body } = await ann.call<Beginning>('POST', '/v1/auth/factors/proof/begin');
    const proof = { challenge: body.challenge, credential: authenticator.get(body.options) };
    expect((await ann.call('POST', '/v1/auth/factors/proof', proof)).status).toBe(200);
    expect((await ann.call('POST', '/v1/auth/factors/proof', proof)).status).toBe(422);
    expect((await ann.call('DELETE', `/v1/auth/passkeys/${passkeyId}`)).status).toBe(204);
    expect((await signInWith(authenticator)).status).toBe(401);
  });
});

describe('nobody gets in', () => {
  const wrong: [string, Faults][] = [
    ['of another origin', { origin: 'https://evil.example' }],
    ['of another port', { origin: 'http://127.0.0.1:1' }],
    ['of another host', { rpId: 'evil.example' }],
    ['for another challenge', { nonce: 'A'.repeat(43) }],
    ['that was made, not used', { type: 'webauthn.create' }],
    ['without the presence of anybody', { flags: 0 }],
    ['that does not know its user', { flags: 1 }],
    ['that says it is of somebody else', { userHandle: Buffer.from('usr_somebody').toString('base64url') }],
    ['that counts down', { count: 1 }],
    ['that counts nothing any more', { count: 0 }],
  ];
  test.each(wrong)('with a passkey %s', async (_name, faults) => {
    const { authenticator } = await annWithPasskey();
    expect((await signInWith(authenticator)).status).toBe(200);
    const refused = await signInWith(authenticator, faults);
    expect(refused).toMatchObject({ status: 401, body: { error: 'AUTHENTICATION_FAILED', details: {} } });
    expect((await signInWith(authenticator)).status).toBe(200);
  });

  test('with the passkey of another account under the id of this one', async () => {
    const [ann, bob] = [await annWithPasskey(), await annWithPasskey('bob')];
    expect((await signInWith(ann.authenticator, { signWith: bob.authenticator })).status).toBe(401);
    const userHandle = Buffer.from(ann.ann.userId).toString('base64url');
    expect((await signInWith(bob.authenticator, { userHandle })).status).toBe(401);
  });

  test('with a passkey that nobody added, or something that is none', async () => {
    const { challenge, options } = await begin();
    const unknown = new Authenticator(originOf(app));
    unknown.create(options);
    const odd = [unknown.get(options), {}, { id: 'x' }, { id: 'x', response: 'x' }, { id: 1, response: {} }];
    const { authenticator } = await annWithPasskey();
    const huge = { ...authenticator.get(options), rawId: 'A'.repeat(20_000) };
    const bare = { id: authenticator.credentialId, type: 'public-key', response: {} };
    for (const credential of [...odd, huge, bare]) expect((await finish(challenge, credential)).status).toBe(401);
  });

  test('with an answer that was used, at once or later, or with the challenge of somebody else', async () => {
    const { ann, authenticator } = await annWithPasskey('ann', { counts: false });
    const { challenge, options } = await begin();
    const credential = authenticator.get(options);
    const statuses = await Promise.all([1, 2, 3].map(async () => (await finish(challenge, credential)).status));
    expect(statuses.sort((a, b) => a - b)).toEqual([200, 401, 401]);
    expect((await finish(challenge, credential)).status).toBe(401);
    // a challenge for one thing is none for another
    const asked = await passwordOf(ann);
    expect((await finish(asked.challenge, authenticator.get(asked.passkey_options))).status).toBe(401);
    const { body: proof } = await ann.call<Beginning>('POST', '/v1/auth/factors/proof/begin');
    expect((await finish(proof.challenge, authenticator.get(proof.options))).status).toBe(401);
    const fresh = await begin();
    const crossed = { challenge: fresh.challenge, credential: authenticator.get(fresh.options) };
    expect((await send('/v1/auth/login/complete', crossed)).status).toBe(401);
    expect((await ann.call('POST', '/v1/auth/factors/proof', crossed)).status).toBe(422);
  });

  test('after the passkey was removed, the account deactivated, or a code taken for it', async () => {
    const { ann, authenticator } = await annWithPasskey();
    await withTotp(app, ann);
    await app.database.pool.query('update users set is_active = false where id = $1', [ann.userId]);
    expect((await signInWith(authenticator)).status).toBe(401);
    await app.database.pool.query('update users set is_active = true where id = $1', [ann.userId]);
    expect((await signInWith(authenticator)).status).toBe(200);
  });
});

describe('no passkey is added', () => {
  const attempt = async (person: Person, spoil: (begun: Beginning) => object) => {
    const begun = await person.call<Beginning>('POST', '/v1/auth/passkeys/begin', {
      current_password: person.password,
    });
    return person.call('POST', '/v1/auth/passkeys', {
      challenge: begun.body.challenge,
      name: 'x',
      ...spoil(begun.body),
    });
  };
  const made = (faults: Faults) => (begun: Beginning) => ({
    credential: new Authenticator(originOf(app)).create(begun.options, faults),
  });

  test.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['another host', { rpId: 'evil.example' }],
    ['another challenge', { nonce: 'A'.repeat(43) }],
    ['a use', { type: 'webauthn.get' }],
    ['nobody there', { flags: 64 }],
  ] as [string, Faults][])('for %s', async (_name, faults) => {
    expect((await attempt(await register(app, { name: 'ann' }), made(faults))).status).toBe(422);
  });

  test('for the challenge of another user or session, or one that was used', async () => {
    const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
    const begun = await bob.call<Beginning>('POST', '/v1/auth/passkeys/begin', { current_password: bob.password });
    const credential = new Authenticator(originOf(app)).create(begun.body.options);
    const payload = { challenge: begun.body.challenge, credential, name: 'x' };
    expect((await ann.call('POST', '/v1/auth/passkeys', payload)).status).toBe(422);
    expect((await bob.call('POST', '/v1/auth/passkeys', payload)).status).toBe(201);
    expect((await bob.call('POST', '/v1/auth/passkeys', payload)).status).toBe(422);
  });

  test('that another account has', async () => {
    const { authenticator } = await annWithPasskey();
    const bob = await register(app, { name: 'bob' });
    const again = (begun: Beginning) => ({ credential: authenticator.create(begun.options) });
    expect((await attempt(bob, again)).status).toBe(422);
  });

  test('by certificates, whose addresses nobody asks', async () => {
    const asked: string[] = [];
    const target = await startTarget((request, response) => {
      asked.push(request.url ?? '');
      response.end();
    });
    const statement = new Map<string, unknown>([
      ['alg', -7],
      ['sig', new Uint8Array(70)],
      ['x5c', [new Uint8Array(Buffer.from(`http://127.0.0.1:${target.port}/crl`))]],
    ]);
    const ann = await register(app, { name: 'ann' });
    for (const format of ['packed', 'fido-u2f', 'apple', 'tpm', 'android-key', 'android-safetynet'])
      expect((await attempt(ann, made({ attestation: [format, statement] }))).status).toBe(422);
    await target.close();
    expect(asked).toEqual([]);
  });

  test('by nobody else than its user: another finds, renames and removes nothing', async () => {
    const { passkeyId } = await annWithPasskey();
    const bob = await register(app, { name: 'bob' });
    expect((await bob.call('PATCH', `/v1/auth/passkeys/${passkeyId}`, { name: 'mine' })).status).toBe(404);
    expect((await bob.call('DELETE', `/v1/auth/passkeys/${passkeyId}`)).status).toBe(404);
  });

  test('beyond twenty of one account', async () => {
    const { ann, passkeyId } = await annWithPasskey();
    await app.database.pool.query(
      `insert into passkeys (id, user_id, name, credential_id, public_key, sign_count, is_synced)
        select id || n, user_id, name, credential_id || n, public_key, 0, false
        from passkeys, generate_series(1, 19) n where id = $1`,
      [passkeyId],
    );
    expect((await attempt(ann, made({}))).body).toMatchObject({ details: { reason: 'limit_reached' } });
  });
});

test('a password and a code are still enough for who has both', async () => {
  const { ann } = await annWithPasskey();
  const { secret } = await withTotp(app, ann);
  const { challenge, methods } = await passwordOf(ann);
  expect(methods).toEqual(['totp', 'passkey', 'recovery_code']);
  expect((await send('/v1/auth/login/complete', { challenge, code: codeOf(secret) })).status).toBe(200);
});
