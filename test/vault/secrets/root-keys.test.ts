import { randomBytes } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import type { Service } from '../../support/service.ts';
import { idOf, Keeper, newKey, OwnVault, sealOne } from './own-vault.ts';

// some tests start processes

let own: OwnVault;
beforeEach(async () => {
  own = await OwnVault.make();
});
afterEach(() => own.remove());

async function stop(service: Service): Promise<void> {
  service.child.kill('SIGTERM');
  expect(await service.exited()).toBe(0);
}

/** What a start says that must fail. */
async function refusal(env: Record<string, string> = {}): Promise<string> {
  const service = own.service({ LOG_LEVEL: 'error', ...env });
  expect(await service.exited()).toBe(1);
  return service.output().trim();
}

describe('a start', () => {
  it('makes a root key once, readable by its owner alone, and starts with it again', async () => {
    const first = own.service();
    await sealOne(await first.url());
    await stop(first);
    const files = await own.keyFiles();
    expect(files).toEqual([expect.stringMatching(/^root-rk_[0-9A-Z]{26}\.key$/)]);
    expect((await stat(path.join(own.keysDir, files[0]!))).mode & 0o777).toBe(0o600);
    expect(await own.rootKeysInUse()).toEqual([[idOf(files[0]!), 1]]);
    await own.node();
    expect(await own.keyFiles()).toEqual(files);
  });

  it('with a missing, another or an unreadable key is refused in one sentence, and makes no new key', async () => {
    const first = await own.node();
    await (await Keeper.of(first)).create({ k: 1 });
    await first.close();
    const [file] = (await own.keyFiles()) as [string];
    const whole = await readFile(path.join(own.keysDir, file), 'utf8');

    await rm(path.join(own.keysDir, file));
    expect(await refusal()).toBe(
      `The service could not start. Secrets of this database are encrypted with the root key '${idOf(file)}', ` +
        `which this service does not have. Put the files root-<id>.key back into ${own.keysDir}.`,
    );
    expect(await own.keyFiles()).toEqual([]);
    // the other ways to be wrong, without a process each
    await expect(own.openKeys({ ROOT_KEYS: `other:${newKey()}` })).rejects.toThrow(
      `Secrets of this database are encrypted with the root key '${idOf(file)}', ` +
        'which this service does not have. Add them to ROOT_KEYS.',
    );
    await writeFile(path.join(own.keysDir, file), randomBytes(32).toString('base64url'));
    await expect(own.openKeys()).rejects.toThrow(
      `The root key '${idOf(file)}' of ${own.keysDir} cannot decrypt the data that this database has encrypted ` +
        'under this id: it is a different key.',
    );
    await expect(own.openKeys({ ROOT_KEYS: `${idOf(file)}:${newKey()}` })).rejects.toThrow(
      `The root key '${idOf(file)}' of ROOT_KEYS cannot decrypt the data that this database has encrypted ` +
        'under this id: it is a different key.',
    );
    await writeFile(path.join(own.keysDir, file), whole.slice(0, 20));
    await expect(own.openKeys()).rejects.toThrow(
      `The file ${path.join(own.keysDir, file)} has no root key. A root key is 32 bytes as base64url.`,
    );
    await rm(path.join(own.keysDir, file));
    // what a file holds works in the list as well
    await own.node({ ROOT_KEYS: `new:${newKey()}, ${idOf(file)}:${whole.trim()}` });
  });

  it('of nodes with different keys at once: one wins and starts again, the others leave no trace', async () => {
    const folders = ['a', 'b', 'c', 'd'].map((name) => ({ KEYS_DIR: path.join(own.base, name) }));
    const starts = await Promise.allSettled(folders.map((env) => own.openKeys(env)));
    const won = starts.findIndex(({ status }) => status === 'fulfilled');
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const [[id]] = (await own.rootKeysInUse()) as [[string, number]];
    expect(await own.rootKeysInUse()).toEqual([[id, 0]]);
    for (const [index, start] of starts.entries())
      if (start.status === 'rejected')
        expect(String(start.reason)).toBe(
          `Error: Secrets of this database are encrypted with the root key '${id}', ` +
            `which this service does not have. Put the files root-<id>.key back into ${folders[index]!.KEYS_DIR}.`,
        );
    expect((await own.openKeys(folders[won])).newest.id).toBe(id);
    await expect(own.openKeys(folders[(won + 1) % 4])).rejects.toThrow(
      `root key '${id}', which this service does not have`,
    );
  });

  it('of nodes with one folder of keys at the same time makes one key', async () => {
    const opened = await Promise.all([1, 2, 3, 4].map(() => own.openKeys()));
    const [file] = await own.keyFiles();
    expect(opened.map(({ newest }) => newest.id)).toEqual(Array(4).fill(idOf(file!)));
    expect(await own.keyFiles()).toHaveLength(1);
    expect(await own.rootKeysInUse()).toEqual([[idOf(file!), 0]]);
  });

  it('with unusable ROOT_KEYS is refused, and the sentence repeats nothing of them', async () => {
    const sentence =
      'ROOT_KEYS must be keys like id:key between commas, each key 32 bytes in base64 or base64url, each id once.';
    expect(await refusal({ ROOT_KEYS: 'hunter2' })).toBe(sentence);
    for (const ROOT_KEYS of [
      `a:${newKey().slice(4)}`,
      `a:${newKey()},a:${newKey()}`,
      `a:${newKey()},`,
      `a:${newKey()}x`,
      `:${newKey()}`,
      `a b:${newKey()}`,
    ])
      expect(() => loadConfig({ ROOT_KEYS }), ROOT_KEYS).toThrow(sentence);
    const [one, two] = [randomBytes(32), randomBytes(32)];
    const given = `one:${one.toString('base64')}, two:${two.toString('base64url')}`;
    expect(loadConfig({ ROOT_KEYS: given }).rootKeys).toEqual([
      { id: 'one', key: one },
      { id: 'two', key: two },
    ]);
  });
});
