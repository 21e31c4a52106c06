import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { startTestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { runScript } from '../support/command.ts';
import { register } from '../support/person.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'signing-keys-'));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(dir, { recursive: true });
});

const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid as string;

describe('a rotation', () => {
  it('goes unnoticed: old tokens stay valid, the new key signs new ones, the key set shows both', async () => {
    const app = await startTestApp({ env: { KEYS_DIR: dir } });
    try {
      const { get, post } = callsOf(app);
      const user = await register(app);
      const oldKid = kidOf(user.accessToken);
      const newKid = await SigningKeys.rotate(dir);
      expect(newKid).not.toBe(oldKid);
      expect((await get('/v1/auth/me', user.headers)).statusCode).toBe(200);

      // after this time a running node looks at its keys by itself
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 6_000 });
      const { access_token } = (
        await post('/v1/auth/login', { username: user.username, password: user.password })
      ).json();
      expect(kidOf(access_token)).toBe(newKid);
      for (const token of [user.accessToken, access_token]) {
        expect((await get('/v1/auth/me', { authorization: `Bearer ${token}` })).statusCode).toBe(200);
      }
      const { keys } = (await get('/.well-known/jwks.json')).json();
      expect(keys.map((key: { kid: string }) => key.kid)).toEqual([newKid, oldKid]);
    } finally {
      await app.close();
    }
  });

  it('is made by `npm run keys:rotate`', async () => {
    const first = await new AccessTokens(await SigningKeys.open(dir), 1800).issue({
      userId: 'usr_1',
      orgId: null,
      sessionId: 'ses_1',
    });
    const { code, output } = await runScript('keys:rotate', [], { KEYS_DIR: dir });
    expect(code).toBe(0);
    const keys = JSON.parse(readFileSync(path.join(dir, 'jwt.json'), 'utf8')) as { jwk: { kid: string } }[];
    expect(keys).toHaveLength(2);
    expect(output).toContain(keys[0]!.jwk.kid);
    expect(keys[1]!.jwk.kid).toBe(kidOf(first));
  });
});
