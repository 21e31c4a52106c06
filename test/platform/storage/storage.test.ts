import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { Storage } from '../../../src/platform/storage/storage.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

const MIB = 1024 * 1024;
let s3: S3Server;
let dataDir: string;
let storage: Storage;

beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());
beforeEach(() => {
  dataDir = mkdtempSync(path.join(os.tmpdir(), 'storage-'));
});
afterEach(async () => {
  await storage.close();
  rmSync(dataDir, { recursive: true });
});

const open = (env: Record<string, string> = {}) => {
  storage = new Storage(loadConfig({ DATA_DIR: dataDir, ...env }));
  return storage;
};
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** In pieces of an odd size, so that no boundary of a part is one of a piece. */
function* pieces(bytes: Buffer, size = 70_001) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function keys(): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of storage.list()) found.push(key);
  return found.sort();
}

const folder = () => `ws_${randomBytes(6).toString('hex')}`;
const put = (key: string, bytes: Buffer, limitBytes = 100 * MIB) =>
  storage.put(key, Readable.from(pieces(bytes)), { limitBytes });

describe.each(['folder', 's3'])('files in a %s', (kind) => {
  beforeEach(async () => {
    open(kind === 's3' ? s3.env : {});
    for await (const { key } of storage.list()) await storage.remove(key);
  });

  it.each([0, 1, 70_001, 8 * MIB, 8 * MIB + 1, 16 * MIB, 20 * MIB + 17])(
    'returns %d bytes as they came, and counts and hashes them on the way',
    async (size) => {
      const bytes = randomBytes(size);
      const key = `${folder()}/a`;
      const facts = await put(key, bytes);
      expect(facts).toMatchObject({ sizeBytes: size, sha256: hashOf(bytes) });
      expect(facts.sample.equals(bytes.subarray(0, 64 * 1024))).toBe(true);
      expect(hashOf(await buffer(await storage.read(key)))).toBe(facts.sha256);
      expect(s3.openUploads()).toEqual([]);
    },
  );

  it('reads a range, both ends included', async () => {
    const key = `${folder()}/a`;
    await put(key, Buffer.from('0123456789'));
    expect(String(await buffer(await storage.read(key, { start: 2, end: 5 })))).toBe('2345');
    expect(String(await buffer(await storage.read(key, { start: 9, end: 9 })))).toBe('9');
  });

  it('refuses to read what is not there, before the first byte', async () => {
    await expect(storage.read(`${folder()}/missing`)).rejects.toMatchObject({ name: 'MissingObject' });
  });

  it.each([10, 9 * MIB])('leaves nothing of a file that is one byte larger than %d', async (limit) => {
    const key = `${folder()}/a`;
    await expect(put(key, randomBytes(limit + 1), limit)).rejects.toMatchObject({ name: 'TooManyBytes' });
    await put(`${key}2`, randomBytes(limit), limit);
    expect(await keys()).toEqual([`${key}2`]);
    expect(s3.openUploads()).toEqual([]);
  });

  it('leaves nothing of a file whose sender breaks off, wherever that is', async () => {
    const bytes = randomBytes(18 * MIB);
    for (let tenth = 0; tenth < 10; tenth++) {
      const broken = async function* () {
        yield* pieces(bytes.subarray(0, (bytes.length * tenth) / 10));
        throw new Error('the sender hung up');
      };
      const put = storage.put(`${folder()}/a`, Readable.from(broken()), { limitBytes: 100 * MIB });
      await expect(put).rejects.toThrow('the sender hung up');
      expect(await keys()).toEqual([]);
      expect(s3.openUploads()).toEqual([]);
    }
  });

  it('does not keep a sender going whose file cannot be stored', async () => {
    const key = `${folder()}/a`;
    const endless = Readable.from(
      (async function* () {
        for (;;) yield randomBytes(65_536);
      })(),
    );
    if (kind === 's3') s3.failNext('PUT', 3, 500);
    else await put(key, randomBytes(1));
    await expect(storage.put(key, endless, { limitBytes: 1024 * MIB })).rejects.toThrow();
    expect(endless.destroyed).toBe(true);
    expect(await keys()).toEqual(kind === 's3' ? [] : [key]);
  });

  it('removes a file, and again', async () => {
    const key = `${folder()}/a`;
    await put(key, randomBytes(10));
    await storage.remove(key);
    await storage.remove(key);
    expect(await keys()).toEqual([]);
  });

  it('removes a folder with its files, and no other one', async () => {
    const one = folder();
    await storage.makeFolder(one);
    await put(`${one}/a`, randomBytes(1));
    await put(`${one}/b`, randomBytes(1));
    await put(`${one}x/c`, randomBytes(1));
    await storage.removeFolder(one);
    await storage.removeFolder(one);
    expect(await keys()).toEqual([`${one}x/c`]);
  });

  it('lists sizes and times', async () => {
    const key = `${folder()}/a`;
    const before = Date.now();
    await put(key, randomBytes(123));
    const listed = await storage.list().next();
    expect(listed).toMatchObject({ done: false, value: { key, sizeBytes: 123 } });
    expect(Math.abs(listed.value!.changedAt.getTime() - before)).toBeLessThan(60_000);
  });

  it.each(['../x/a', 'a', '/etc/passwd', 'a/b/c', 'a/..', 'a/b\0', ''])('takes no key like %j', async (key) => {
    await expect(put(key, randomBytes(1))).rejects.toThrow('is no key of a file');
    await expect(storage.read(key)).rejects.toThrow('is no key of a file');
    await expect(storage.remove(key)).rejects.toThrow('is no key of a file');
  });
});

describe('what text is', () => {
  beforeEach(() => open());

  it.each([
    ['plain', Buffer.from('plain'), true],
    ['sequences cut by every chunk', Buffer.from('aé€😀'.repeat(50)), true],
    ['a sequence that the end cuts', Buffer.from('€').subarray(0, 2), false],
    ['Latin-1', Buffer.from('café', 'latin1'), false],
    ['NUL', Buffer.from('a\0b'), false],
    ['a lone continuation', Buffer.from([0x61, 0x80]), false],
  ])('%s', async (_name, bytes, isText) => {
    const one = Readable.from(pieces(bytes, 1));
    const three = Readable.from(pieces(bytes, 3));
    expect(await storage.put(`${folder()}/a`, one, { limitBytes: MIB })).toMatchObject({ isText });
    expect(await storage.put(`${folder()}/a`, three, { limitBytes: MIB })).toMatchObject({ isText });
  });
});

describe('the folder', () => {
  it('is readable only by the user of the service', async () => {
    open();
    const key = `${folder()}/a`;
    await put(key, randomBytes(1));
    const modeOf = (name: string) => statSync(path.join(dataDir, 'files', name)).mode & 0o777;
    expect([modeOf('.'), modeOf(path.dirname(key)), modeOf(key)]).toEqual([0o700, 0o700, 0o600]);
  });
});

describe('S3', () => {
  it('repeats a part that the store could not take', async () => {
    open(s3.env);
    const bytes = randomBytes(9 * MIB);
    const key = `${folder()}/a`;
    s3.failNext('PUT', 2, 503);
    expect(await put(key, bytes)).toMatchObject({ sha256: hashOf(bytes) });
    expect(hashOf(await buffer(await storage.read(key)))).toBe(hashOf(bytes));
  });

  it('leaves nothing on the disk of the service', async () => {
    open(s3.env);
    await put(`${folder()}/a`, randomBytes(9 * MIB));
    expect(readdirSync(path.join(dataDir, 'spool'))).toEqual([]);
  });

  it('aborts uploads that nobody finished for a day', async () => {
    open(s3.env);
    const start = await fetch(`${s3.url}/files/${folder()}/a?uploads`, { method: 'POST' });
    expect(start.status).toBe(200);
    expect([await storage.sweep(), s3.openUploads().length]).toEqual([0, 1]);
    s3.age(25 * 3_600_000);
    expect([await storage.sweep(), s3.openUploads().length]).toEqual([1, 0]);
  });

  it('gives addresses at the public endpoint, with the name and type that the service chose', async () => {
    open({ ...s3.env, S3_PUBLIC_ENDPOINT: s3.url.replace('127.0.0.1', 'localhost') });
    const key = `${folder()}/a`;
    await put(key, Buffer.from('content'));
    const contentDisposition = `attachment; filename="a.txt"`;
    const address = await storage.presign(key, { expiresIn: 60, contentDisposition, contentType: 'text/plain' });
    expect(new URL(address!)).toMatchObject({ hostname: 'localhost', pathname: `/files/${key}` });
    const answer = await fetch(address!);
    expect([answer.status, await answer.text()]).toEqual([200, 'content']);
    expect(answer.headers.get('content-disposition')).toBe(contentDisposition);
    expect(answer.headers.get('content-type')).toBe('text/plain');
  });

  it('gives no address when only the service can reach the store', async () => {
    open(s3.env);
    const options = { expiresIn: 60, contentDisposition: 'attachment', contentType: 'text/plain' };
    expect(await storage.presign(`${folder()}/a`, options)).toBeNull();
  });
});
