// Backs up the database, the files and the keys into one archive while the service runs, and checks one.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Config, commandLine, loadConfig } from '../config.ts';
import { keptFiles } from '../knowledge/files/kept-files.ts';
import { version } from '../paths.ts';
import { ArchiveWriter, piecesOf } from '../platform/backup/archive.ts';
import { type KeyFiles, keyNamesIn, openKeys, sealKeys } from '../platform/backup/sealed-keys.ts';
import { beginSnapshot, connectForCopy, rowsOf, shapeOf } from '../platform/postgres/table-copy.ts';
import { Storage } from '../platform/storage/storage.ts';
import { MissingObject } from '../platform/storage/store.ts';
import type { About } from './backup-about.ts';
import { progressWriter } from './progress.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run backup -- COMMAND
  create FILE   writes a backup of the database, the files and the keys; the service may be running
  verify FILE   reads a whole backup and compares it with its checksums`;

const compressed = promisify(gzip) as (text: Buffer, options: { level: number }) => Promise<Buffer>;
type CopyConnection = Awaited<ReturnType<typeof connectForCopy>>;

/** The keys as files, also those that the environment gives. */
function keyFilesOf({ keysDir, appSecret, rootKeys }: Config): KeyFiles {
  return {
    ...Object.fromEntries(keyNamesIn(keysDir).map((name) => [name, readFileSync(path.join(keysDir, name), 'utf8')])),
    ...Object.fromEntries((rootKeys ?? []).map(({ id, key }) => [`root-${id}.key`, `${key.toString('base64url')}\n`])),
    ...(appSecret ? { 'app.key': `${appSecret}\n` } : {}),
  };
}

async function addKeys(config: Config, archive: ArchiveWriter): Promise<void> {
  if (config.backupPassphrase)
    return archive.add({ kind: 'keys' }, await sealKeys(keyFilesOf(config), config.backupPassphrase));
  console.error(
    'THE KEYS ARE NOT IN THIS BACKUP, because BACKUP_PASSPHRASE is not set. ' +
      `Without a copy of ${config.keysDir} the secrets in this backup can never be decrypted.`,
  );
}

async function addRows(snapshot: CopyConnection, about: About, archive: ArchiveWriter): Promise<number> {
  const tell = progressWriter('tables');
  const { tables } = about.database;
  let count = 0;
  for (const [done, table] of tables.entries()) {
    for await (const rows of rowsOf(snapshot, table)) {
      count += rows.length;
      const bytes = await compressed(Buffer.from(JSON.stringify(rows)), { level: 1 });
      await archive.add({ kind: 'rows', table: table.name }, bytes);
    }
    tell({ done: done + 1, total: tables.length });
  }
  return count;
}

async function addFile(storage: Storage, key: string, archive: ArchiveWriter): Promise<void> {
  let before: Buffer | undefined;
  for await (const chunk of await storage.read(key)) {
    if (before) await archive.add({ kind: 'file', key, isLast: false }, before);
    before = chunk as Buffer;
  }
  await archive.add({ kind: 'file', key, isLast: true }, before ?? Buffer.alloc(0));
}

/** @returns how many there are, and the keys of those that the store does not have */
async function addFiles(config: Config, snapshot: CopyConnection, archive: ArchiveWriter) {
  const storage = new Storage(config);
  const ask = async <R extends object>(text: string, values: unknown[]) => (await snapshot.query<R>(text, values)).rows;
  const missing: string[] = [];
  let count = 0;
  const tell = progressWriter('files');
  try {
    const kept = [];
    for await (const file of keptFiles(ask)) kept.push(file.key);
    for (const key of kept) {
      await addFile(storage, key, archive).catch((error: unknown) => {
        if (!(error instanceof MissingObject)) throw error;
        missing.push(key);
      });
      tell({ done: ++count, total: kept.length });
    }
  } finally {
    await storage.close();
  }
  return { count, missing };
}

async function create(config: Config, file: string): Promise<void> {
  const archive = await ArchiveWriter.create(file);
  try {
    await withDatabase(config, 'backup', async ({ url }) => {
      const snapshot = await connectForCopy(url, 'backup');
      try {
        await beginSnapshot(snapshot);
        const about: About = { version, createdAt: new Date().toISOString(), database: await shapeOf(snapshot) };
        await archive.add({ kind: 'about' }, Buffer.from(JSON.stringify(about)));
        await addKeys(config, archive);
        const rows = await addRows(snapshot, about, archive);
        const { count, missing } = await addFiles(config, snapshot, archive);
        await archive.finish();
        console.log(`${file} has ${rows} rows, ${count - missing.length} files and ${keysSaid(config)}.`);
        for (const key of missing)
          console.error(`${key}: the store does not have this file, so it is not in the backup.`);
        if (missing.length > 0) process.exitCode = 1;
      } finally {
        await snapshot.end();
      }
    });
  } catch (error) {
    await archive.abandon();
    throw error;
  }
}

const keysSaid = ({ backupPassphrase }: Config): string => (backupPassphrase ? 'the keys' : 'NO KEYS');

async function verify({ backupPassphrase }: Config, file: string): Promise<void> {
  let about: About | undefined;
  let keys: Buffer | undefined;
  let files = 0;
  for await (const { head, bytes } of piecesOf(file)) {
    if (head.kind === 'about') about = JSON.parse(bytes.toString('utf8')) as About;
    if (head.kind === 'keys') keys = bytes;
    if (head.kind === 'file' && head.isLast) files++;
  }
  if (!about) throw new Error(`${file} has no description. It may be truncated.`);
  const names = keys && backupPassphrase ? Object.keys(await openKeys(keys, backupPassphrase)).length : 0;
  const ofKeys = keys
    ? backupPassphrase
      ? `${names} keys, which can be decrypted`
      : 'keys, which were not checked (BACKUP_PASSPHRASE is not set)'
    : 'NO KEYS';
  console.log(
    `${file} is complete: version ${about.version} of ${about.createdAt}, ${about.database.tables.length} tables, ` +
      `${files} files, ${ofKeys}.`,
  );
}

const commands: Record<string, (config: Config, file: string) => Promise<void>> = { create, verify };

try {
  const [name = '', file, ...more] = commandLine();
  const command = commands[name];
  if (!command || file === undefined || more.length > 0) throw new Error(USAGE);
  await command(loadConfig(), file);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
