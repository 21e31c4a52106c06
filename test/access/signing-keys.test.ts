import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLocalJWKSet, jwtVerify } from 'jose';
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
const session = { userId: 'usr_1', orgId: null, sessionId: 'ses_1' };
const file = () => path.join(dir, 'jwt.json');

/** Lets the time pass after which a running node looks at its keys by itself. */
const later = (seconds: number) => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1_000 });

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

      later(6);
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

  it('is noticed at once by a node that gets a token of the new key', async () => {
    const [a, b] = [await SigningKeys.open(dir), await SigningKeys.open(dir)];
    const [nodeA, nodeB] = [new AccessTokens(a, 1800), new AccessTokens(b, 1800)];
    expect(await nodeB.verify(await nodeA.issue(session))).toMatchObject({ userId: 'usr_1' });
    for (let rotation = 0; rotation < 3; rotation++) {
      const kid = await SigningKeys.rotate(dir);
      const token = await new AccessTokens(await SigningKeys.open(dir), 1800).issue(session);
      expect(kidOf(token)).toBe(kid);
      // several at once: the second must not be turned away while the first has the keys read
      expect(await Promise.all(Array.from({ length: 5 }, () => nodeB.verify(token)))).toEqual(
        Array(5).fill(expect.objectContaining({ userId: 'usr_1' })),
      );
    }
  });

  it('forgets a key a day after it was retired, and not before', async () => {
    await SigningKeys.open(dir);
    const start = Date.now();
    const at = (hours: number) => new Date(start + hours * 3_600_000);
    await SigningKeys.rotate(dir, at(0));
    await SigningKeys.rotate(dir, at(24));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveLength(3);
    await SigningKeys.rotate(dir, at(26));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveLength(3);
    await SigningKeys.rotate(dir, at(60));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveLength(2);
  });

  it('keeps the file for its user alone', async () => {
    await SigningKeys.rotate(dir);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it('loses no key when several are asked for at once: one rotates, the others say why not', async () => {
    await SigningKeys.open(dir);
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => SigningKeys.rotate(dir)));
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const kept = (JSON.parse(readFileSync(file(), 'utf8')) as { jwk: { kid: string } }[]).map((key) => key.jwk.kid);
    expect(kept).toEqual(expect.arrayContaining(made));
    expect(made.length).toBeGreaterThan(0);
  });

  it('is made by `npm run keys:rotate`', async () => {
    const first = await new AccessTokens(await SigningKeys.open(dir), 1800).issue(session);
    const { code, output } = await runScript('keys:rotate', [], { KEYS_DIR: dir });
    expect(code).toBe(0);
    const keys = JSON.parse(readFileSync(file(), 'utf8')) as { jwk: { kid: string } }[];
    expect(keys).toHaveLength(2);
    expect(output).toContain(keys[0]!.jwk.kid);
    expect(keys[1]!.jwk.kid).toBe(kidOf(first));
  });
});

describe('a key that is taken out of the file', () => {
  it('takes its tokens along, also those that were verified before', async () => {
    const tokens = new AccessTokens(await SigningKeys.open(dir), 1800);
    const token = await tokens.issue(session);
    expect(await tokens.verify(token)).toMatchObject({ sessionId: 'ses_1' });
    await SigningKeys.rotate(dir);
    writeFileSync(file(), JSON.stringify(JSON.parse(readFileSync(file(), 'utf8')).slice(0, 1)));
    later(6);
    expect(await tokens.verify(token)).toBeNull();
  });
});

describe('the key set', () => {
  it('verifies the tokens for others, and holds no private part', async () => {
    const keys = await SigningKeys.open(dir);
    const token = await new AccessTokens(keys, 1800).issue(session);
    const jwks = await keys.jwks();
    expect(
      jwks.keys.every(
        (key) => key.d === undefined && key.alg === 'EdDSA' && key.use === 'sig' && key.crv === 'Ed25519',
      ),
    ).toBe(true);
    const { payload } = await jwtVerify(token, createLocalJWKSet(jwks));
    expect(payload.sub).toBe('usr_1');
  });

  it('is the same for nodes that start at once in an empty folder', async () => {
    const nodes = await Promise.all(Array.from({ length: 5 }, () => SigningKeys.open(dir)));
    const kids = await Promise.all(nodes.map(async (node) => (await node.current()).kid));
    expect(new Set(kids).size).toBe(1);
  });
});

describe('a key file that cannot be used', () => {
  it.each([
    ['is cut short', (text: string) => text.slice(0, text.length / 2)],
    ['is empty', () => ''],
    ['is no list', () => '{}'],
    ['holds nothing', () => '[]'],
    ['holds what is no key', () => '[{"jwk":{"kty":"OKP","kid":"x"}}]'],
    ['holds null', () => '[null]'],
  ])('%s: the error names the file and shows nothing of the key', async (_what, spoil) => {
    await SigningKeys.open(dir);
    const text = readFileSync(file(), 'utf8');
    writeFileSync(file(), spoil(text));
    const error = await SigningKeys.open(dir).then(
      () => new Error('it was opened'),
      (reason: unknown) => reason as Error,
    );
    expect(error.message).toContain(`'${file()}'`);
    expect(error.message).toContain('backup');
    const secret = /"d":"([^"]+)"/.exec(text)![1]!;
    expect(error.message).not.toContain(secret.slice(0, 8));
  });
});
