import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runScript } from '../../support/command.ts';
import { waitUntil } from '../../support/wait.ts';
import { idOf, Keeper, newKey, OwnVault, sealOne } from './own-vault.ts';

// each test starts processes, one after the other

let own: OwnVault;
beforeEach(async () => {
  own = await OwnVault.make();
});
afterEach(() => own.remove());

describe('npm run vault', () => {
  it('moves every secret to a new key while the service reads and writes; the old key can then go', async () => {
    const node = await own.node();
    const ann = await Keeper.of(node);
    const ids = await Promise.all(Array.from({ length: 10 }, (_, n) => ann.create({ n })));
    await own.fill(500);
    const [old] = (await own.keyFiles()) as [string];

    let isOver = false;
    const outcomes: unknown[] = [];
    const done = { reads: 0, rotations: 0 };
    const readers = [0, 1, 2].map(async (offset) => {
      for (let turn = offset; !isOver; turn++) {
        const n = turn % ids.length;
        const value = await ann.reveal(ids[n]!);
        if (JSON.stringify(value) !== JSON.stringify({ n })) outcomes.push(value);
        done.reads++;
      }
    });
    const writer = (async () => {
      for (let n = 0; !isOver; n++) {
        const id = await ann.create({ late: n });
        if ((await ann.rotate(id, { late: -n })) !== 200) outcomes.push('rotate');
        done.rotations++;
      }
    })();
    const made = await own.vault('new-key');
    expect(made).toMatchObject({ code: 0, output: expect.stringContaining("The root key 'rk_") });
    const fresh = (await own.keyFiles()).at(-1)!;
    expect(fresh > old).toBe(true);
    const moved = await own.vault('rewrap');
    isOver = true;
    await Promise.all([...readers, writer]);
    expect(outcomes).toEqual([]);
    expect(Math.min(done.reads, done.rotations)).toBeGreaterThan(0);
    expect(moved.output).toContain(`the root key is '${idOf(fresh)}'.`);
    expect(moved.output).toContain(`The root key '${idOf(old)}' is no longer used: you can remove it.`);
    expect(moved.code).toBe(0);
    const { rows } = await own.sql.query<{ n: number }>('select count(*)::int as n from secrets');
    expect(await own.rootKeysInUse()).toEqual([[idOf(fresh), rows[0]!.n]]);

    await rm(path.join(own.keysDir, old));
    expect(await ann.reveal(ids[0]!)).toEqual({ n: 0 });
    expect(await own.vault('doctor')).toEqual({
      code: 0,
      output: expect.stringMatching(/^\d+ secrets with \d+ values: all are readable\.$/),
    });
    await node.close();
    await own.node();
  });

  it('goes on after a kill -9 where it was; nothing is lost', async () => {
    const ann = await Keeper.of(await own.node());
    const id = await ann.create({ k: 'v' });
    await own.fill(3_000);
    const [old] = (await own.keyFiles()) as [string];
    await own.vault('new-key');
    const fresh = (await own.keyFiles()).at(-1)!;
    // one that is locked is left for later: however late the kill comes, the work is not done
    await own.sql.query('begin');
    await own.sql.query('select 1 from secrets where id = $1 for update', [id]);
    const child = own.startVault('rewrap');
    await once(child.stdout, 'data'); // the first line of its progress
    child.kill('SIGKILL');
    await once(child, 'close');
    // the database may still be at the last of what it was asked
    await waitUntil(async () => (await own.otherWriters()) === 0);
    await own.sql.query('commit');
    const halfway = new Map((await own.rootKeysInUse()) as [string, number][]);
    expect(halfway.get(idOf(old))).toBeGreaterThan(0);
    expect(halfway.get(idOf(fresh))).toBeGreaterThan(0);
    expect(await ann.reveal(id)).toEqual({ k: 'v' });
    const rest = halfway.get(idOf(old))!;
    const resumed = await own.vault('rewrap');
    expect(resumed.code).toBe(0);
    expect(resumed.output).toContain(`${rest} of ${rest}`);
    expect(await own.rootKeysInUse()).toEqual([[idOf(fresh), 3_001]]);
    expect(await own.vault('doctor')).toEqual({ code: 0, output: '3001 secrets with 3001 values: all are readable.' });
    const idle = await own.vault('rewrap');
    expect(idle).toEqual({ code: 0, output: `0 secrets are newly wrapped; the root key is '${idOf(fresh)}'.` });
  });

  it('a node that still wraps with the older key keeps working, and its key is not taken from it', async () => {
    const [one, two] = [newKey(), newKey()];
    const ann = await Keeper.of(await own.node({ ROOT_KEYS: `one:${one},two:${two}` }));
    await ann.create({ k: 1 });
    const ahead = { ROOT_KEYS: `two:${two},one:${one}` };
    expect(await own.vault('rewrap', ahead)).toMatchObject({
      code: 0,
      output: expect.stringContaining("The root key 'one' is no longer used"),
    });
    expect(await own.rootKeysInUse()).toEqual([['two', 1]]);
    const id = await ann.create({ k: 2 });
    expect(await ann.reveal(id)).toEqual({ k: 2 });
    expect(await own.rootKeysInUse()).toEqual([
      ['one', 1],
      ['two', 1],
    ]);
    await expect(own.openKeys({ ROOT_KEYS: `two:${two}` })).rejects.toThrow(
      "root key 'one', which this service does not have",
    );
    expect(await runScript('vault', ['new-key'], own.environment(ahead))).toMatchObject({
      code: 1,
      output: expect.stringContaining('ROOT_KEYS is set'),
    });
  });

  it('doctor lists what does not open, and nothing of a value', async () => {
    const node = await own.node();
    const ann = await Keeper.of(node);
    const [a, b, c, d] = (await Promise.all(['a', 'b', 'c', 'd'].map((k) => ann.create({ marker: `plain-${k}` })))) as [
      string,
      string,
      string,
      string,
    ];
    await ann.rotate(a, { marker: 'plain-a2' });
    await own.sql.query(
      `update secret_versions set ciphertext = set_bit(ciphertext, 0, 1 - get_bit(ciphertext, 0))
       where (secret_id, version) = ($1, 1)`,
      [a],
    );
    await own.sql.query(
      'update secrets set wrapped_key = (select wrapped_key from secrets where id = $2) where id = $1',
      [b, d],
    );
    await own.sql.query('delete from secret_versions where secret_id = $1', [c]);
    await node.close();
    const found = await own.vault('doctor');
    expect(found.code).toBe(1);
    const root = idOf((await own.keyFiles())[0]!);
    expect(found.output.split('\n').sort()).toEqual(
      [
        `${a} ${ann.orgId} version 1: cannot be decrypted with the data key`,
        `${b} ${ann.orgId} data key: cannot be decrypted with the root key '${root}'`,
        `${c} ${ann.orgId} version 1: has no ciphertext`,
        '4 secrets with 4 values: 3 findings.',
      ].sort(),
    );
    expect(found.output).not.toContain('plain-');
    await rm(path.join(own.keysDir, `root-${root}.key`));
    const lost = await own.vault('doctor');
    expect(lost.code).toBe(1);
    expect(lost.output).toContain(`${d} ${ann.orgId} data key: is wrapped by the root key '${root}', which is missing`);
  });

  it('works on the embedded database, beside a running service and without one', async () => {
    const embedded = { DATABASE_URL: '' };
    expect(await own.vault('doctor', embedded)).toMatchObject({
      code: 1,
      output: expect.stringContaining('There is no database in'),
    });
    const service = own.service(embedded);
    await sealOne(await service.url());
    expect(await own.vault('doctor', embedded)).toEqual({
      code: 0,
      output: '1 secrets with 1 values: all are readable.',
    });
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    expect((await own.vault('new-key', embedded)).code).toBe(0);
    expect(await own.vault('rewrap', embedded)).toMatchObject({
      code: 0,
      output: expect.stringContaining('1 secret is newly wrapped'),
    });
    // the database alone is of no use
    expect(await own.vault('doctor', { ...embedded, KEYS_DIR: path.join(own.base, 'no-keys') })).toMatchObject({
      code: 1,
      output: expect.stringContaining('which is missing'),
    });
  });

  it('says how it is used', async () => {
    expect(await own.vault('polish')).toMatchObject({
      code: 1,
      output: expect.stringContaining('Usage: npm run vault -- COMMAND'),
    });
  });
});
