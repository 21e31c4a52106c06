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
  new-key   makes a root key in KEYS_DIR; from then on it wraps
  rewrap    wraps the data keys of all secrets with the newest root key; services may run
  doctor    lists every secret and version that does not open`;

async function runRewrap(config: Config): Promise<void> {
  await withDatabase(config, 'vault', async (database) => {
    const { prisma } = database;
    const rootKeys = await RootKeys.open(config, database);
    const { rootKeyId, rewrapped, faults, retired, needed } = await rewrap(prisma, rootKeys, progressWriter());
    console.log(
      `${rewrapped} ${rewrapped === 1 ? 'secret is' : 'secrets are'} newly wrapped; the root key is '${rootKeyId}'.`,
    );
    for (const id of retired) console.log(`Nothing needs the root key '${id}' any more: it can be taken away.`);
    for (const fault of faults) console.error(fault.message);
    for (const id of needed)
      console.error(`The root key '${id}' is still needed: run rewrap again, or see what doctor says.`);
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
      `${secrets} secrets with ${versions} values: ${findings === 0 ? 'all open.' : `${findings} findings.`}`,
    );
    if (findings > 0) process.exitCode = 1;
  });
}

function runNewKey({ rootKeys, keysDir }: Config): void {
  if (rootKeys)
    throw new Error(
      'ROOT_KEYS is set, so files are not read. Make a key with `openssl rand -base64 32`, ' +
        'and put `id:key` with a new id in front of ROOT_KEYS.',
    );
  const id = makeRootKeyFile(keysDir);
  console.log(
    `The root key '${id}' is in ${path.join(keysDir, `root-${id}.key`)}: keep a copy apart from the database. ` +
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
