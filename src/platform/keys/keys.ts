import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config.ts';
import { publishFile } from '../whole-file.ts';

/**
 * The text of a key file; created on first use, mode 0600, in a folder of mode 0700. Several processes may call this at
 * once: all get the same text.
 * @param make returns the text of a new file
 */
export function keyFile(file: string, make: () => string): string {
  if (!existsSync(file)) create(file, make());
  return readFileSync(file, 'utf8');
}

function create(file: string, text: string): void {
  const dir = path.dirname(file);
  if (!existsSync(dir)) {
    mkdirSync(dir, { recursive: true });
    chmodSync(dir, 0o700); // not through mkdir's mode, which would also apply to the parent folders
  }
  publishFile(file, text);
}

/** `APP_SECRET`, or the one in `KEYS_DIR/app.key`, created on first use: 256 random bits as base64url. */
export function appSecret({ appSecret: given, keysDir }: Pick<Config, 'appSecret' | 'keysDir'>): string {
  return given ?? keyFile(path.join(keysDir, 'app.key'), () => `${randomBytes(32).toString('base64url')}\n`).trim();
}
