import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLocalJWKSet, type JWK, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { FolderInUseError, lockFolder } from '../../src/platform/folder-lock.ts';

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
const storedKeys = () => JSON.parse(readFileSync(file(), 'utf8')) as { jwk: JWK; retiredAt?: string }[];

/** Lets the time pass after which a running node looks at its keys by itself. */
const later = (seconds: number) => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1_000 });

describe('a rotation', () => {
  it('is noticed at once by a node that gets a token of the new key', async () => {
    const [a, b] = [await SigningKeys.open(dir), await SigningKeys.open(dir)];
    const [nodeA, nodeB] = [new AccessTokens(a, 1800), new AccessTokens(b, 1800)];
    expect(await nodeB.verify(await nodeA.issue(session))).toMatchObject({ userId: 'usr_1' });
    for (let rotation = 0; rotation < 3; rotation++) {
      const kid = await SigningKeys.rotate(dir);
      const token = await new AccessTokens(await SigningKeys.open(dir), 1800).issue(session);
      expect(kidOf(token)).toBe(kid);
      // several at once: the second must not be turned away while the first has the keys read
      expect(await Promise.all(Array.from({ length: 5 }, async () => nodeB.verify(token)))).toEqual(
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
    expect(storedKeys()).toHaveLength(3);
    await SigningKeys.rotate(dir, at(26));
    expect(storedKeys()).toHaveLength(3);
    await SigningKeys.rotate(dir, at(60));
    expect(storedKeys()).toHaveLength(2);
  });

  it('forgets a key 25 hours after it was retired, to the millisecond', async () => {
    await SigningKeys.open(dir);
    const start = Date.now();
    const kept = async (at: number) => {
      await SigningKeys.rotate(dir, new Date(start + at));
      return storedKeys().length;
    };
    const day = 25 * 3_600_000;
    expect(await kept(0)).toBe(2);
    expect(await kept(day - 1)).toBe(3);
    expect(await kept(day)).toBe(3);
  });

  it('tells when the older keys were retired, and makes a key that signs', async () => {
    const keys = await SigningKeys.open(dir);
    const first = (await keys.current()).kid;
    const second = await SigningKeys.rotate(dir, new Date(0));
    const third = await SigningKeys.rotate(dir, new Date(60_000));
    expect(storedKeys().map(({ jwk, retiredAt }) => [jwk.kid, retiredAt])).toEqual([
      [third, undefined],
      [second, '1970-01-01T00:01:00.000Z'],
      [first, '1970-01-01T00:00:00.000Z'],
    ]);
    const shown = await (await SigningKeys.open(dir)).list();
    expect(shown.map(({ id, createdAt, retiredAt }) => [id, createdAt?.getTime(), retiredAt?.getTime()])).toEqual([
      [third, 60_000, undefined],
      [second, 0, 60_000],
      [first, expect.any(Number), 0],
    ]);
    expect(storedKeys()[0]!.jwk).toMatchObject({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' });
  });

  it('makes the first key too where there is none, and its folder', async () => {
    const folder = path.join(dir, 'new');
    const kid = await SigningKeys.rotate(folder);
    expect((await (await SigningKeys.open(folder)).current()).kid).toBe(kid);
    expect(readdirSync(folder)).toEqual(['jwt.json']);
  });

  it('is noticed by a node that meets only known keys, after five seconds', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const keys = await SigningKeys.open(dir);
    const first = (await keys.current()).kid;
    const kids = async () => (await keys.jwks()).keys.map(({ kid }) => kid);
    const second = await SigningKeys.rotate(dir);
    vi.setSystemTime(Date.now() + 4_999);
    expect([(await keys.current()).kid, await kids()]).toEqual([first, [first]]);
    vi.setSystemTime(Date.now() + 1);
    expect([(await keys.current()).kid, await kids()]).toEqual([second, [second, first]]);
  });

  it('waits for nobody: while another one goes on, it says that the folder is in use', async () => {
    const first = (await (await SigningKeys.open(dir)).current()).kid;
    const lock = await lockFolder(`${file()}.lock`);
    await expect(SigningKeys.rotate(dir)).rejects.toThrow(FolderInUseError);
    lock.release();
    expect(await SigningKeys.rotate(dir)).not.toBe(first);
    expect(storedKeys()).toHaveLength(2);
  });

  it('keeps the file for its user alone', async () => {
    await SigningKeys.rotate(dir);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  it('loses no key when several are asked for at once: one rotates, the others say why not', async () => {
    await SigningKeys.open(dir);
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => SigningKeys.rotate(dir)));
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const kept = storedKeys().map(({ jwk }) => jwk.kid);
    expect(kept).toEqual(expect.arrayContaining(made));
    expect(made.length).toBeGreaterThan(0);
  });
});

describe('a key that is taken out of the file', () => {
  it('takes its tokens along, also those that were verified before', async () => {
    const tokens = new AccessTokens(await SigningKeys.open(dir), 1800);
    const token = await tokens.issue(session);
    expect(await tokens.verify(token)).toMatchObject({ sessionId: 'ses_1' });
    await SigningKeys.rotate(dir);
    writeFileSync(file(), JSON.stringify(storedKeys().slice(0, 1)));
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

describe('a public key', () => {
  it('is found by its id, and is none without one', async () => {
    const keys = await SigningKeys.open(dir);
    const { kid, privateKey } = await keys.current();
    expect([privateKey.type, (await keys.verifying(kid))!.type]).toEqual(['private', 'public']);
    for (const other of ['', 'x', `${kid} `]) expect(await keys.verifying(other)).toBeNull();
  });
});

describe('a key file that cannot be used', () => {
  const refusal = (why: string) =>
    `The signing keys in '${file()}' cannot be used: ${why}. Restore the file from a backup, or remove it. ` +
    'The service then creates new keys, and all users have to sign in again.';
  const opening = (dirOf = dir) =>
    SigningKeys.open(dirOf).then(
      () => 'it was opened',
      (reason: unknown) => (reason as Error).message,
    );

  it.each<[string, (text: string) => string, string]>([
    ['is cut short', (text) => text.slice(0, text.length / 2), 'it is not JSON and may be truncated'],
    ['is empty', () => '', 'it is not JSON and may be truncated'],
    ['is no list', () => '{}', 'it is not a list of keys'],
    ['is null', () => 'null', 'it is not a list of keys'],
    ['holds nothing', () => '[]', 'it is not a list of keys'],
    ['holds null', () => '[null]', 'it is not a list of keys'],
    ['holds what has no key', () => '[{}]', 'it is not a list of keys'],
    ['holds a key without an id', () => '[{"jwk":{"kty":"OKP"}}]', 'it is not a list of keys'],
    ['holds a number as an id', (text) => text.replace(/"kid":"[^"]+"/, '"kid":1'), 'it is not a list of keys'],
    [
      'holds one key that is none',
      (text) => text.replace(/\]$/, ',{"jwk":{"kty":"OKP"}}]'),
      'it is not a list of keys',
    ],
    [
      'holds an empty id',
      (text) => text.replace(/"kid":"[^"]+"/, '"kid":""'),
      'it has an entry that is not an Ed25519 key with an id',
    ],
    [
      'holds half a key',
      () => '[{"jwk":{"kty":"OKP","kid":"x"}}]',
      'it has an entry that is not an Ed25519 key with an id',
    ],
    [
      'holds a secret in place of a key',
      () => '[{"jwk":{"kty":"oct","k":"c2VjcmV0","kid":"x"}}]',
      'it has an entry that is not an Ed25519 key with an id',
    ],
  ])('%s: the error names the file and shows nothing of the key', async (_what, spoil, why) => {
    await SigningKeys.open(dir);
    writeFileSync(file(), spoil(readFileSync(file(), 'utf8')));
    expect(await opening()).toBe(refusal(why));
  });

  it('is a folder: the system says so', async () => {
    mkdirSync(file());
    expect(await opening()).toContain('EISDIR');
  });

  it('is noticed while the service runs, and again once it is mended', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const keys = await SigningKeys.open(dir);
    const { kid } = await keys.current();
    const text = readFileSync(file(), 'utf8');
    writeFileSync(file(), '');
    vi.setSystemTime(Date.now() + 5_000);
    await expect(keys.current()).rejects.toThrow(refusal('it is not JSON and may be truncated'));
    writeFileSync(file(), text);
    const second = await SigningKeys.rotate(dir);
    vi.setSystemTime(Date.now() + 5_000);
    expect((await keys.current()).kid).toBe(second);
    expect(await keys.verifying(kid)).not.toBeNull();
  });
});
