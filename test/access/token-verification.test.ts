import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { forgeries, RealToken } from '../support/forged-tokens.ts';
import { stopClock } from '../support/stopped-clock.ts';

const session = { userId: 'usr_1', orgId: 'org_1', sessionId: 'ses_1' };
const keysDir = mkdtempSync(path.join(tmpdir(), 'keys-'));
const file = path.join(keysDir, 'jwt.json');
const openTokens = async () => new AccessTokens(await SigningKeys.open(keysDir), 1_800);
let tokens: AccessTokens;
let real: RealToken;
beforeAll(async () => {
  tokens = await openTokens();
  const token = await tokens.issue(session);
  real = new RealToken(token, JSON.parse(readFileSync(file, 'utf8'))[0].jwk);
});
afterAll(() => rmSync(keysDir, { recursive: true }));

describe('a token that is issued', () => {
  it('names its session, and lives as long as the operator says', () => {
    const { iat = 0, jti, ...claims } = real.claims;
    expect(real.header).toEqual({ alg: 'EdDSA', kid: real.jwk.kid, typ: 'at+jwt' });
    expect(claims).toEqual({
      iss: 'platform-management-api',
      aud: 'platform-management-api',
      typ: 'access',
      sub: 'usr_1',
      org_id: 'org_1',
      sid: 'ses_1',
      exp: iat + 1_800,
    });
    expect(Math.abs(iat - Date.now() / 1_000)).toBeLessThan(60);
    expect(jti).toMatch(/^[0-9a-f-]{36}$/);
    expect(tokens.ttlSeconds).toBe(1_800);
  });

  it('is another one each time', async () => {
    stopClock();
    const [first, second] = [await tokens.issue(session), await tokens.issue(session)];
    expect(new RealToken(first, real.jwk).claims.jti).not.toBe(new RealToken(second, real.jwk).claims.jti);
  });

  it('is known again, the first time and later', async () => {
    const known = { ...session, expiresAtMs: real.claims.exp! * 1_000 };
    const fresh = await openTokens();
    for (let time = 0; time < 3; time++) expect(await fresh.verify(real.token)).toMatchObject(known);
    const homeless = await tokens.issue({ ...session, orgId: null });
    expect(await tokens.verify(homeless)).toMatchObject({ ...session, orgId: null });
  });
});

describe('a forged token is no token', () => {
  it.each(forgeries)('%s', async (_what, forge) => {
    const forged = await forge(real);
    for (let time = 0; time < 2; time++) expect(await tokens.verify(forged)).toBeNull();
  });

  it('another spelling of the same signature', async () => {
    expect(Buffer.from(real.twin.split('.')[2]!, 'base64url')).toEqual(
      Buffer.from(real.token.split('.')[2]!, 'base64url'),
    );
    expect(await tokens.verify(real.twin)).toBeNull();
  });

  it.each<[string, Record<string, unknown>]>([
    ['a fraction as iat', { iat: 0.5 }],
    ['a list as sub', { sub: ['usr_1'] }],
  ])('%s', async (_what, changes) => {
    expect(await tokens.verify(await real.signed({ ...changes, exp: Math.floor(Date.now() / 1_000) + 60 }))).toBeNull();
  });

  it.each(['cty', 'zzz'])('one more name in the header: %s', async (name) => {
    expect(await tokens.verify(await real.signed({}, { [name]: 'x' }))).toBeNull();
  });
});

describe('a token as only a fault of the service could make it', () => {
  it('lives for a day at most', async () => {
    const iat = Math.floor(Date.now() / 1_000);
    expect(await tokens.verify(await real.signed({ iat, exp: iat + 86_400 }))).toMatchObject(session);
    expect(await tokens.verify(await real.signed({ iat, exp: iat + 86_401 }))).toBeNull();
  });

  it('may name the parts of its header in any order', async () => {
    const { alg, kid, typ } = real.header;
    const header = Buffer.from(JSON.stringify({ typ, kid, alg })).toString('base64url');
    const turned = new RealToken(real.token.replace(/^[^.]+/, header), real.jwk);
    expect(await tokens.verify(turned.token)).toBeNull();
    expect(await tokens.verify(await turned.signed({}))).toMatchObject(session);
  });

  it('has no organization if that is no text', async () => {
    expect(await tokens.verify(await real.signed({ org_id: 1 }))).toMatchObject({ ...session, orgId: null });
  });

  it('may be 8 KiB long, and not longer', async () => {
    const byLength = new Map<number, string>();
    for (let size = 5_750; size < 5_820; size++) {
      const token = await real.signed({ filling: 'x'.repeat(size) });
      byLength.set(token.length, token);
    }
    // no token is a byte longer: base64 has no such length
    const [longest, longer] = [8_192, 8_194].map((length) => byLength.get(length)!) as [string, string];
    expect(await tokens.verify(longest)).toMatchObject(session);
    expect(await tokens.verify(longer)).toBeNull();
  });
});

describe('a token that was verified', () => {
  it('is refused from the second in which it expires', async () => {
    stopClock();
    const exp = Math.floor(Date.now() / 1_000) + 60;
    const token = await real.signed({ exp });
    expect(await tokens.verify(token)).toMatchObject({ expiresAtMs: exp * 1_000 });
    vi.setSystemTime(exp * 1_000 - 1);
    expect(await tokens.verify(token)).toMatchObject({ expiresAtMs: exp * 1_000 });
    vi.setSystemTime(exp * 1_000);
    expect(await tokens.verify(token)).toBeNull();
  });

  it('is not told apart from another one that has its hash', async () => {
    expect(await tokens.verify(real.token, 'mine')).toMatchObject(session);
    expect(await tokens.verify('x', 'mine')).toMatchObject(session);
    expect(await tokens.verify('x')).toBeNull();
  });
});

describe('keys that cannot be read', () => {
  it('are no fault of the token', async () => {
    stopClock();
    const text = readFileSync(file, 'utf8');
    const fresh = await openTokens();
    try {
      writeFileSync(file, '[]');
      vi.setSystemTime(Date.now() + 60_000);
      await expect(fresh.verify(real.token)).rejects.toThrow('cannot be used');
    } finally {
      writeFileSync(file, text);
    }
  });
});
