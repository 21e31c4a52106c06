import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appSecret, keyFile } from '../../../src/platform/keys/keys.ts';

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'keys-'));
});

afterEach(() => rm(dir, { recursive: true }));

describe('keyFile', () => {
  it('makes a file that only its user may read, once', async () => {
    const file = path.join(dir, 'keys', 'a.key');
    expect(keyFile(file, () => 'first')).toBe('first');
    expect(keyFile(file, () => 'second')).toBe('first');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(path.dirname(file))).mode & 0o777).toBe(0o700);
  });

  it('takes the key of whoever was quicker', () => {
    const file = path.join(dir, 'a.key');
    const slow = (): string => {
      keyFile(file, () => 'quick');
      return 'slow';
    };
    expect(keyFile(file, slow)).toBe('quick');
  });
});

describe('appSecret', () => {
  it('prefers the one that was given', () => {
    expect(appSecret({ appSecret: 'x'.repeat(32), keysDir: dir })).toBe('x'.repeat(32));
  });

  it('makes one of 256 bits and keeps it', async () => {
    const secret = appSecret({ appSecret: undefined, keysDir: dir });
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    expect(appSecret({ appSecret: undefined, keysDir: dir })).toBe(secret);
    expect((await readFile(path.join(dir, 'app.key'), 'utf8')).trim()).toBe(secret);
  });
});
