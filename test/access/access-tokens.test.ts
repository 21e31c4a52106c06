import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expectUnauthenticated } from '../support/error-shapes.ts';
import { forgeries, RealToken } from '../support/forged-tokens.ts';
import { type Person, register } from '../support/person.ts';
import { stopClock } from '../support/stopped-clock.ts';

let app: TestApp;
let user: Person;
let real: RealToken;

beforeAll(async () => {
  app = await startTestApp();
  user = await register(app);
  const [{ jwk }] = JSON.parse(readFileSync(path.join(app.keysDir, 'jwt.json'), 'utf8'));
  real = new RealToken(user.accessToken, jwk);
});
afterAll(() => app.close());

const me = (authorization: string) => app.server.inject({ url: '/v1/auth/me', headers: { authorization } });

describe('an authorization header', () => {
  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('may write the scheme as %s', async (scheme) => {
    expect((await me(`${scheme} ${user.accessToken}`)).statusCode).toBe(200);
  });

  it('may be the bare token', async () => {
    expect((await me(user.accessToken)).statusCode).toBe(200);
  });

  it.each([
    '',
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'Bearer a b',
    'Bearer null',
    'Bearer é',
    `Token ${'x'.repeat(40)}`,
    'a.b.c',
    '..',
    'Bearer {}',
  ])('that is %j is no credential', async (value) => {
    expectUnauthenticated(await me(value));
  });

  it('with two tokens is no credential', async () => {
    expectUnauthenticated(await me(`Bearer ${user.accessToken} ${user.accessToken}`));
    expectUnauthenticated(await me(`Bearer ${user.accessToken}, Bearer ${user.accessToken}`));
  });

  it('is the only place for a token: neither query nor body nor cookie', async () => {
    expectUnauthenticated(
      await app.server.inject({
        url: `/v1/auth/me?access_token=${user.accessToken}&authorization=${user.accessToken}`,
      }),
    );
    expectUnauthenticated(
      await app.server.inject({ url: '/v1/auth/me', headers: { cookie: `access_token=${user.accessToken}` } }),
    );
  });
});

describe('a token made as the service makes them', () => {
  it('passes: the forgeries below differ from it in one thing each', async () => {
    expect((await me(await real.signed({}))).statusCode).toBe(200);
  });
});

describe('a forged token is refused with the one 401 body', () => {
  it.each(forgeries)('%s', async (_what, forge) => {
    expectUnauthenticated(await me(await forge(real)));
  });

  it.each([{ sub: 'usr_00000000000000000000000000' }, { sid: 'ses_00000000000000000000000000' }])(
    'of somebody else: %j',
    async (changes) => expectUnauthenticated(await me(await real.signed(changes))),
  );

  it('another spelling of the same signature', async () => {
    expectUnauthenticated(await me(real.twin));
  });
});

describe('a token that expires', () => {
  it('is refused from then on, although it was verified before', async () => {
    const token = await real.signed({ exp: Math.floor(Date.now() / 1_000) + 60 });
    stopClock();
    expect((await me(token)).statusCode).toBe(200);
    vi.setSystemTime(Date.now() + 60_000);
    expect((await me(token)).statusCode).toBe(401);
  });
});

describe('a token of one organization', () => {
  it('opens no other, whatever it claims', async () => {
    const other = await register(app);
    const token = await real.signed({ org_id: other.orgId });
    const answer = await app.server.inject({
      url: `/v1/orgs/${other.orgId}/workspaces`,
      headers: { authorization: token },
    });
    expect(answer.statusCode).toBe(403);
    expect(answer.json().details).toEqual({ required_permission: 'organization:access' });
  });
});
