// Manages the vault's keys, with or without a running service: `rewrap` moves every secret to the newest root key,
// `doctor` lists secrets that cannot be decrypted, `new-key` creates a root key.
import path from 'node:path';
import { type Config, commandLine, loadConfig } from '../config.ts';
import { makeRootKeyFile, RootKeys } from '../platform/keys/root-keys.ts';
import { examine } from '../vault/secrets/doctor.ts';
import { rewrap } from '../vault/secrets/rewrap.ts';
import { progressWriter } from './progress.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run vault -- COMMAND
  new-key   creates a root key in KEYS_DIR, which then wraps all new data keys
  rewrap    wraps the data keys of all secrets with the newest root key; the service may be running
  doctor    lists every secret and version that cannot be decrypted`;

async function runRewrap(config: Config): Promise<void> {
  await withDatabase(config, 'vault', async (database) => {
    const { prisma } = database;
    const rootKeys = await RootKeys.open(config, database);
    const { rootKeyId, rewrapped, faults, retired, needed } = await rewrap(prisma, rootKeys, progressWriter());
    console.log(
      `${rewrapped} ${rewrapped === 1 ? 'secret is' : 'secrets are'} newly wrapped; the root key is '${rootKeyId}'.`,
    );
    for (const id of retired) console.log(`The root key '${id}' is no longer used: you can remove it.`);
    for (const fault of faults) console.error(fault.message);
    for (const id of needed)
      console.error(`The root key '${id}' is still used: run rewrap again, or run doctor to find out why.`);
    if (faults.length + needed.length > 0) process.exitCode = 1;
  });
}

async function runDoctor(config: Config): Promise<void> {
  await withDatabase(config, 'vault', async ({ prisma }) => {
    let findings = 0;
    const { secrets, versions } = await examine(prisma, RootKeys.unchecked(config), (finding) => {
      findings++;
      const what = finding.version === null ? 'data key' : `version ${finding.version}`;
      console.log(`${finding.secretId} ${finding.orgId} ${what}: ${finding.reason}`);
    });
    console.log(
      `${secrets} secrets with ${versions} values: ${findings === 0 ? 'all are readable.' : `${findings} findings.`}`,
    );
    if (findings > 0) process.exitCode = 1;
  });
}

function runNewKey({ rootKeys, keysDir }: Config): void {
  if (rootKeys)
    throw new Error(
      'ROOT_KEYS is set, so key files are not read. Create a key with `openssl rand -base64 32`, ' +
        'and put `id:key` with a new id at the front of ROOT_KEYS.',
    );
  const id = makeRootKeyFile(keysDir);
  console.log(
    `The root key '${id}' is in ${path.join(keysDir, `root-${id}.key`)}. Keep a copy apart from the database. ` +
      'Now run rewrap.',
  );
}

const commands: Record<string, (config: Config) => void | Promise<void>> = {
  rewrap: runRewrap,
  doctor: runDoctor,
  'new-key': runNewKey,
};

try {
  const [name = '', ...more] = commandLine();
  const command = commands[name];
  if (!command || more.length > 0) throw new Error(USAGE);
  await command(loadConfig());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
