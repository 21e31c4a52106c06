import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderInUseError, type FolderLock, lockFolder } from '../../src/platform/folder-lock.ts';

let dir: string;
let file: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'lock-'));
  file = path.join(dir, 'owner');
});

afterEach(() => rm(dir, { recursive: true }));

/** Leaves a lock as another process would have. */
async function leaveLock(change: object): Promise<void> {
  const lock = await lockFolder(file);
  const owner = JSON.parse(await readFile(file, 'utf8')) as object;
  lock.release();
  await writeFile(file, JSON.stringify({ ...owner, ...change }));
}

async function takes(): Promise<boolean> {
  const lock = await lockFolder(file);
  lock.release();
  return true;
}

describe('lockFolder', () => {
  it('goes to exactly one of those that ask at once, also when a dead process left it', async () => {
    await leaveLock({ pid: 2 ** 22 + 1 });
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => lockFolder(file)));
    const taken = results.filter(
      (result): result is PromiseFulfilledResult<FolderLock> => result.status === 'fulfilled',
    );
    expect(taken).toHaveLength(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(FolderInUseError);
    taken[0]?.value.release();
    expect(await readdir(dir)).toEqual([]);
  });

  it('takes over from a dead process whose id another process has now', async () => {
    await leaveLock({ started: 'long ago' });
    expect(await takes()).toBe(true);
  });

  it('takes over a lock that a crash of the machine cut off', async () => {
    await writeFile(file, '{"realm":"he');
    expect(await takes()).toBe(true);
  });

  it('is refused while another container that shares the folder shows a heartbeat', async () => {
    await leaveLock({ realm: 'another container' });
    let seconds = 1_000;
    const beat = setInterval(() => void utimes(file, (seconds += 1), seconds), 50);
    await expect(lockFolder(file)).rejects.toBeInstanceOf(FolderInUseError);
    clearInterval(beat);
  });
});
