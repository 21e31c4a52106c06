import { createHash, createPublicKey, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { oauthRsaKeys } from '../../src/access/oauth-keys.ts';
import { rsaKeyOf } from '../../src/access/rsa-keys.ts';

const SECRET = Buffer.from('a'.repeat(32));

describe('the RSA key of a secret', () => {
  test('is the same in every version: whoever has verified with it goes on', async () => {
    const key = await rsaKeyOf(SECRET);
    expect(key.asymmetricKeyDetails).toEqual({ modulusLength: 2_048, publicExponent: 65_537n });
    const { n = '' } = key.export({ format: 'jwk' });
    expect(createHash('sha256').update(n).digest('hex')).toBe(
      '71e6fcfe93f8efe6370bf04a7d8f1b011f7235fb2adb624cbd7b184bf3db01dd',
    );
    const text = Buffer.from('text');
    expect(verify('sha256', text, createPublicKey(key), sign('sha256', text, key))).toBe(true);
  });

  test('is another one for another secret; those of former secrets stay, after the one that signs', async () => {
    const former = 'b'.repeat(32);
    const keys = await oauthRsaKeys(SECRET, { formerAppSecrets: [former] });
    const [formerly] = await oauthRsaKeys(Buffer.from(former), { formerAppSecrets: [] });
    expect(keys.map(({ alg, use }) => [alg, use])).toEqual([
      ['RS256', 'sig'],
      ['RS256', 'sig'],
    ]);
    expect(keys[1]).toEqual(formerly);
    expect(keys[0]!.kid).not.toBe(keys[1]!.kid);
  });
});
