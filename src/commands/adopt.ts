// Makes the keys or the store of files of this node those of the service, after they were replaced on purpose.
import { adoptKeys } from '../access/shared-keys.ts';
import { type Config, commandLine, loadConfig } from '../config.ts';
import { adoptStore } from '../platform/nodes/store-check.ts';
import type { Database } from '../platform/postgres/database.ts';
import { Storage } from '../platform/storage/storage.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run adopt -- WHAT
  keys    the APP_SECRET and the signing keys of this node become the keys of the service
  files   the store of files of this node becomes the store of the service`;

async function keys(config: Config, database: Database): Promise<void> {
  await adoptKeys(config, database);
  console.log('The service has the keys of this node now. Restart the other nodes with them.');
}

async function files(config: Config, database: Database): Promise<void> {
  const storage = new Storage(config);
  try {
    await adoptStore(storage, database);
  } finally {
    await storage.close();
  }
  console.log('The service has the store of this node now. `npm run files -- doctor` lists what it lacks.');
}

const things: Record<string, (config: Config, database: Database) => Promise<void>> = { keys, files };

try {
  const [name = '', ...more] = commandLine();
  const adopt = Object.hasOwn(things, name) && more.length === 0 ? things[name] : undefined;
  if (!adopt) throw new Error(USAGE);
  const config = loadConfig();
  await withDatabase(config, 'adopt', (database) => adopt(config, database));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
