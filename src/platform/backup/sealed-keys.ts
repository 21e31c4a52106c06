import { randomBytes, scrypt } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { open, seal } from '../keys/aead.ts';

const SALT_BYTES = 16;
/** 128 MiB of memory for each try. */
const COST = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };
const CONTEXT = 'keys of a backup';

const derive = promisify(scrypt) as unknown as (
  passphrase: string,
  salt: Buffer,
  bytes: number,
  cost: typeof COST,
) => Promise<Buffer>;

/** The names and texts of key files. */
export type KeyFiles = Readonly<Record<string, string>>;

/** The names of the key files of a folder. A volume has other entries too, such as `lost+found`. */
export const keyNamesIn = (keysDir: string): string[] =>
  existsSync(keysDir) ? readdirSync(keysDir).filter((name) => /\.(key|json|pem)$/.test(name)) : [];

/** Seals keys with AES-256-GCM under a key that scrypt derives from the passphrase. */
export async function sealKeys(keys: KeyFiles, passphrase: string): Promise<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  const key = await derive(passphrase, salt, 32, COST);
  return Buffer.concat([salt, seal(key, Buffer.from(JSON.stringify(keys)), CONTEXT)]);
}

/** @throws Error when the passphrase is another one */
export async function openKeys(sealed: Buffer, passphrase: string): Promise<KeyFiles> {
  const key = await derive(passphrase, sealed.subarray(0, SALT_BYTES), 32, COST);
  try {
    return JSON.parse(open(key, sealed.subarray(SALT_BYTES), CONTEXT).toString('utf8')) as KeyFiles;
  } catch (cause) {
    throw new Error('The keys of this backup cannot be decrypted with BACKUP_PASSPHRASE.', { cause });
  }
}
