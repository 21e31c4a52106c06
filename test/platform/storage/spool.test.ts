import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Spool } from '../../../src/platform/storage/spool.ts';

const BYTES = randomBytes(300_001);
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), 'spool-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

async function* content() {
  yield BYTES;
}

/** Takes its time with each chunk. */
function slowReceiver() {
  const copies: Buffer[] = [];
  const memory = new Set<ArrayBufferLike>();
  const receiver = new Writable({
    async write(chunk: Buffer, _encoding, done) {
      await setImmediate();
      copies.push(Buffer.from(chunk));
      memory.add(chunk.buffer);
      done();
    },
  });
  return { receiver, memory, received: () => Buffer.concat(copies) };
}

test('a part is sent through one buffer, which waits until its bytes have left; again from its beginning', async () => {
  const spool = await Spool.open(dir, content(), 8 * 1024 * 1024);
  try {
    const part = await spool.fill();
    for (const _attempt of [1, 2]) {
      const { receiver, memory, received } = slowReceiver();
      spool.read(part).pipe(receiver);
      await once(receiver, 'finish');
      expect(received().equals(BYTES)).toBe(true);
      expect(memory.size).toBe(1);
    }
  } finally {
    await spool.close();
  }
});

test('a receiver is told when the part cannot be read, and one that has failed stops it', async () => {
  const spool = await Spool.open(dir, content(), 8 * 1024 * 1024);
  const part = await spool.fill();
  const broken = new Writable({ write: (_chunk, _encoding, done) => done(new Error('gone')) });
  spool.read(part).pipe(broken);
  expect(await once(broken, 'error')).toMatchObject([{ message: 'gone' }]);
  await spool.close();
  const { receiver } = slowReceiver();
  spool.read(part).pipe(receiver);
  expect(await once(receiver, 'error')).toMatchObject([{ code: 'EBADF' }]);
});
