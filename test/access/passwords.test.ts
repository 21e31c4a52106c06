import { describe, expect, it } from 'vitest';
import { Passwords } from '../../src/access/passwords.ts';
import { randomToken, successorOf, tokenHash } from '../../src/access/random-token.ts';

describe('a password', () => {
  it('is stored as Argon2id with 19 MiB, two passes and one lane', async () => {
    const passwords = new Passwords();
    const stored = await passwords.hash('correct horse');
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await passwords.hash('correct horse')).not.toBe(stored);
    expect(await passwords.verify(stored, 'correct horse')).toBe(true);
    expect(await passwords.verify(stored, 'correct horse ')).toBe(false);
  });

  it('is the same however its characters are composed', async () => {
    const passwords = new Passwords();
    const stored = await passwords.hash('e\u0301ﬁ');
    expect(await passwords.verify(stored, '\u00e9fi')).toBe(true);
  });

  it('of nobody is never right', async () => {
    const passwords = new Passwords();
    for (const guess of ['', 'no password has this hash']) expect(await passwords.verify(null, guess)).toBe(false);
  });

  it('is hashed again when it was stored with other parameters', () => {
    const passwords = new Passwords();
    expect(passwords.isOutdated('$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA')).toBe(false);
    for (const other of ['$argon2id$v=19$m=4096,t=3,p=1$c2FsdA$aGFzaA', '$2b$10$x', ''])
      expect(passwords.isOutdated(other)).toBe(true);
  });

  it('waits for its turn, and is refused when too many wait', async () => {
    const passwords = new Passwords();
    const broken = 'not a hash';
    const all = Array.from({ length: 3 + 256 }, () => passwords.verify(broken, 'x').catch(() => 'done'));
    expect(passwords.queueDepth).toBe(256);
    await expect(passwords.hash('x')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(new Set(await Promise.all(all))).toEqual(new Set(['done']));
    expect(passwords.queueDepth).toBe(0);
    // the turns of all of them were given back
    const again = Array.from({ length: 3 }, () => passwords.verify(broken, 'x').catch(() => 'done'));
    expect(passwords.queueDepth).toBe(0);
    await Promise.all(again);
  });
});

describe('a random token', () => {
  it('has 256 bits, and another time others', () => {
    expect(randomToken()).toMatch(/^[\w-]{43}$/);
    expect(randomToken()).not.toBe(randomToken());
  });

  it('is stored as its SHA-256', () => {
    expect(tokenHash('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  it('has one successor, which needs the secret', () => {
    const secret = Buffer.from('secret');
    expect(successorOf('a', secret)).toMatch(/^[\w-]{43}$/);
    expect(successorOf('a', secret)).toBe(successorOf('a', secret));
    expect(successorOf('b', secret)).not.toBe(successorOf('a', secret));
    expect(successorOf('a', Buffer.from('other'))).not.toBe(successorOf('a', secret));
    // what a node of another version made must stay valid
    expect(successorOf('a', secret)).toBe('lN4D0Rl5EpiH7ZWHBpkGtBDcR2U7bTo1OWiqeXFDh70');
  });
});
