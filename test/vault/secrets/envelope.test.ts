import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeRootKeyFile, RootKeys } from '../../../src/platform/keys/root-keys.ts';
import {
  newDataKey,
  openValue,
  sealValue,
  unwrapKey,
  VaultFault,
  wrapKey,
} from '../../../src/vault/secrets/envelope.ts';

let keysDir: string;
let rootKeys: RootKeys;
beforeAll(() => {
  keysDir = mkdtempSync(path.join(tmpdir(), 'keys-'));
  makeRootKeyFile(keysDir);
  rootKeys = RootKeys.unchecked({ rootKeys: undefined, keysDir });
});
afterAll(() => rmSync(keysDir, { recursive: true, force: true }));

const secret = { orgId: 'org_1', id: 'sec_1' };
const others = [
  { orgId: 'org_2', id: 'sec_1' },
  { orgId: 'org_1', id: 'sec_2' },
];

describe('a data key', () => {
  it('opens for its own secret of its own organization only, with its own root key', () => {
    const root = rootKeys.newest;
    const dataKey = newDataKey();
    const wrapped = { rootKeyId: root.id, wrappedKey: wrapKey(root, secret, dataKey) };
    expect(unwrapKey(rootKeys, { ...secret, ...wrapped })).toEqual(dataKey);
    for (const other of others) expect(() => unwrapKey(rootKeys, { ...other, ...wrapped })).toThrow(VaultFault);
    expect(() => unwrapKey(rootKeys, { ...secret, ...wrapped, rootKeyId: 'rk_x' })).toThrow("'rk_x', which is missing");
  });

  it('is wrapped by the newest file as soon as it is there, and still opens with the older one', () => {
    const [older, dataKey] = [rootKeys.newest, newDataKey()];
    const wrapped = { rootKeyId: older.id, wrappedKey: wrapKey(older, secret, dataKey) };
    const id = makeRootKeyFile(keysDir);
    expect(rootKeys.newest.id).toBe(id);
    expect(rootKeys.find(older.id)).toEqual(older);
    expect(unwrapKey(rootKeys, { ...secret, ...wrapped })).toEqual(dataKey);
    expect(wrapKey(rootKeys.newest, secret, dataKey)).not.toEqual(wrapKey(rootKeys.newest, secret, dataKey));
  });
});

describe('a value', () => {
  it('opens as its own version of its own secret only', () => {
    const dataKey = newDataKey();
    const ciphertext = sealValue(dataKey, secret, 3, { token: 'x' });
    expect(openValue(dataKey, secret, { version: 3, ciphertext })).toEqual({ token: 'x' });
    for (const other of others) expect(() => openValue(dataKey, other, { version: 3, ciphertext })).toThrow(VaultFault);
    for (const version of [2, 4, 33])
      expect(() => openValue(dataKey, secret, { version, ciphertext })).toThrow(VaultFault);
    expect(() => openValue(newDataKey(), secret, { version: 3, ciphertext })).toThrow(VaultFault);
    expect(() => openValue(dataKey, secret, { version: 3, ciphertext: ciphertext.subarray(0, 9) })).toThrow(VaultFault);
  });
});
