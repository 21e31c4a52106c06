// Restores a backup into an empty place: database, files and keys, of this version or of an older one.
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { type Config, commandLine, loadConfig } from '../config.ts';
import { migrationsDir } from '../paths.ts';
import { piecesOf } from '../platform/backup/archive.ts';
import { type KeyFiles, keyNamesIn, openKeys } from '../platform/backup/sealed-keys.ts';
import { keyFile } from '../platform/keys/keys.ts';
import { createLogger } from '../platform/logger.ts';
import { applyAll } from '../platform/postgres/migrate.ts';
import { startEmbeddedPostgres } from '../platform/postgres/postgres-embedded.ts';
import { beginFill, connectForCopy, countTables, TableFill } from '../platform/postgres/table-copy.ts';
import { Storage } from '../platform/storage/storage.ts';
import type { About } from './backup-about.ts';
import { progressWriter } from './progress.ts';

const USAGE = `Usage: npm run restore -- FILE
  restores a backup into an empty database, an empty file store and an empty KEYS_DIR`;

const expanded = promisify(gunzip) as (bytes: Buffer) => Promise<Buffer>;
type CopyTarget = Awaited<ReturnType<typeof connectForCopy>>;

/** What was read of a whole and unchanged archive. */
interface Contents {
  about: About;
  keys: KeyFiles | null;
  pieces: number;
}

/** Reads all of it before anything is written. */
async function contentsOf(file: string, { backupPassphrase }: Config): Promise<Contents> {
  let about: About | undefined;
  let sealed: Buffer | undefined;
  let pieces = 0;
  for await (const { head, bytes } of piecesOf(file)) {
    pieces++;
    if (head.kind === 'about') about = JSON.parse(bytes.toString('utf8')) as About;
    if (head.kind === 'keys') sealed = bytes;
  }
  if (!about) throw new Error(`${file} has no description. It may be truncated.`);
  if (sealed && !backupPassphrase)
    throw new Error('Set BACKUP_PASSPHRASE to the passphrase of the backup: its keys are sealed with it.');
  return { about, keys: sealed && backupPassphrase ? await openKeys(sealed, backupPassphrase) : null, pieces };
}

/** @throws Error naming what is not empty */
async function refuseFull({ keysDir }: Config, keys: KeyFiles | null, storage: Storage, connection: CopyTarget) {
  const tables = await countTables(connection);
  if (tables > 0) throw new Error(`The database has ${tables} tables already. Restore into a new database.`);
  for await (const { key } of storage.list())
    throw new Error(`The file store already has ${key}. Restore into an empty file store.`);
  if (keys && keyNamesIn(keysDir).length > 0)
    throw new Error(`${keysDir} already has keys. Restore into another KEYS_DIR.`);
}

type Pieces = ReturnType<typeof piecesOf>;
type Piece = Pieces extends AsyncGenerator<infer P, void, void> ? P : never;

/** The pieces, told one by one. */
async function* told(pieces: Pieces, total: number): Pieces {
  const tell = progressWriter('pieces');
  let done = 0;
  for await (const piece of pieces) {
    yield piece;
    tell({ done: ++done, total });
  }
}

/** The bytes of a file, which may be far larger than the memory: its other pieces follow its first one. */
async function* bytesOf(first: Piece, pieces: Pieces): AsyncGenerator<Buffer, void, void> {
  yield first.bytes;
  for (let { head } = first; !head.isLast; ) {
    const next = await pieces.next();
    if (next.done || next.value.head.key !== head.key) throw new Error(`The file ${head.key} is incomplete.`);
    ({ head } = next.value);
    yield next.value.bytes;
  }
}

/** Fills the tables and stores the files, in the order of the archive. @param folders gets those of the files */
async function fill(pieces: Pieces, storage: Storage, tables: TableFill, folders: Set<string>): Promise<void> {
  for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
    const { head, bytes } = next.value;
    if (head.kind === 'rows') {
      const rows = JSON.parse((await expanded(bytes)).toString('utf8')) as string[];
      await tables.add(head.table ?? '', rows);
    } else if (head.kind === 'file') {
      const key = head.key ?? '';
      folders.add(key.split('/')[0] ?? '');
      await storage.put(key, Readable.from(bytesOf(next.value, pieces)), { limitBytes: Number.MAX_SAFE_INTEGER });
    }
  }
}

/** @param written gets the name of each file before it is written */
function writeKeys(keysDir: string, keys: KeyFiles, written: string[]): void {
  mkdirSync(keysDir, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(keys)) {
    if (path.basename(name) !== name)
      throw new Error(`The backup has a key called '${name}', which is not a valid name.`);
    written.push(name);
    keyFile(path.join(keysDir, name), () => text);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Why a restore failed comes first, and then what could not be removed of it. */
class RestoreError extends Error {
  override readonly name = 'RestoreError';
  constructor(cause: unknown, left: readonly unknown[]) {
    super([messageOf(cause), ...left.map((failure) => `Could not be cleaned up: ${messageOf(failure)}`)].join('\n'), {
      cause,
    });
  }
}

async function restoreInto(config: Config, url: string, file: string, contents: Contents): Promise<void> {
  const storage = new Storage(config);
  const connection = await connectForCopy(url, 'restore');
  const folders = new Set<string>();
  const written: string[] = [];
  try {
    await refuseFull(config, contents.keys, storage, connection);
    await beginFill(connection);
    await applyAll(connection, migrationsDir, contents.about.database.migrations);
    const tables = await TableFill.begin(connection, contents.about.database);
    await fill(told(piecesOf(file), contents.pieces), storage, tables, folders);
    await tables.finish();
    if (contents.keys) writeKeys(config.keysDir, contents.keys, written);
    await connection.query('commit');
  } catch (error) {
    const left = await failuresOf([
      () => connection.end(), // what was not committed is gone
      ...[...folders].map((folder) => () => storage.removeFolder(folder)),
      ...written.map((name) => () => rmSync(path.join(config.keysDir, name), { force: true })),
      () => storage.close(),
    ]);
    throw new RestoreError(error, left);
  }
  await connection.end();
  await storage.close();
}

/** Takes each step, whatever becomes of those before. @returns why some failed */
async function failuresOf(steps: readonly (() => unknown)[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}

async function restore(config: Config, file: string): Promise<void> {
  const contents = await contentsOf(file, config);
  const url = config.databaseDirectUrl ?? config.databaseUrl;
  if (url) await restoreInto(config, url, file, contents);
  else {
    const logger = createLogger({ logLevel: 'error' });
    const server = await startEmbeddedPostgres({ dir: path.join(config.dataDir, 'postgres'), logger });
    try {
      await restoreInto(config, server.url, file, contents);
    } finally {
      await server.stop();
    }
  }
  const { version, createdAt } = contents.about;
  console.log(
    `The backup of ${createdAt} (version ${version}) is restored. Now run \`npm run doctor\`, then start the service.`,
  );
  if (!contents.keys)
    console.error(
      `THE BACKUP HAS NO KEYS: put the earlier keys into ${config.keysDir} first. ` +
        'Without them, no secret can be decrypted.',
    );
}

try {
  const [file, ...more] = commandLine();
  if (file === undefined || more.length > 0) throw new Error(USAGE);
  await restore(loadConfig(), file);
} catch (error) {
  console.error(messageOf(error));
  process.exitCode = 1;
}
