import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { Ended, UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { readStdin, show, table } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const SECRETS = '/v1/orgs/{org_id}/secrets';
const BY_NAME = '/v1/orgs/{org_id}/secrets/by-name/{name}';

type SecretValue = Record<string, unknown>;

async function list(bench: Workbench): Promise<void> {
  const org_id = await bench.org();
  const secrets: { secret_id: string; name: string; secret_type: string; scope: string; status: string }[] = [];
  for await (const { secret_id, name, secret_type, scope, status } of bench.client.list(SECRETS, { path: { org_id } }))
    secrets.push({ secret_id, name, secret_type, scope, status });
  const head = ['NAME', 'TYPE', 'SCOPE', 'STATUS', 'ID'];
  show(bench, secrets, () =>
    table(
      head,
      secrets.map((one) => [one.name, one.secret_type, one.scope, one.status, one.secret_id]),
    ),
  );
}

/** A secret by its name with its value. The service records that it was revealed. */
async function revealed(bench: Workbench, name: string): Promise<SecretValue> {
  const org_id = await bench.org();
  const { data } = await bench.client.rest.GET(BY_NAME, {
    params: { path: { org_id, name }, query: { include_value: true } },
  });
  return (data.value ?? {}) as SecretValue;
}

async function get(bench: Workbench, name: string, field: string | undefined): Promise<void> {
  const value = await revealed(bench, name);
  if (field === undefined) return show(bench, value, () => JSON.stringify(value, null, 2));
  if (!Object.hasOwn(value, field))
    throw new UsageError(`The secret '${name}' has no field '${field}'. It has: ${Object.keys(value).join(', ')}`);
  const inner = value[field];
  show(bench, inner, () => (typeof inner === 'string' ? inner : JSON.stringify(inner)));
}

/** The value comes from stdin: what stands on a command line is seen by others, and kept by shells. */
async function valueFromStdin(bench: Workbench, field: string | undefined): Promise<SecretValue> {
  if (bench.around.stdin.isTTY) throw new UsageError('Give the value on stdin: platform secrets set NAME < FILE');
  const given = await readStdin(bench);
  if (field !== undefined) return { [field]: given };
  try {
    const value: unknown = JSON.parse(given);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as SecretValue;
  } catch {
    // the message below says what is expected; the text itself is a secret
  }
  throw new UsageError('The value on stdin must be a JSON object. For a plain text name its field: --field api_key');
}

async function set(bench: Workbench, name: string, options: { field?: string; type: string }): Promise<void> {
  const value = await valueFromStdin(bench, options.field);
  const org_id = await bench.org();
  const body = { name, secret_type: options.type, value };
  const { data } = await bench.client.rest.POST(SECRETS, { params: { path: { org_id } }, body });
  show(bench, data, () => `Stored ${data.name} as ${data.secret_id}.`);
}

async function rotate(bench: Workbench, name: string, field: string | undefined): Promise<void> {
  const value = await valueFromStdin(bench, field);
  const org_id = await bench.org();
  const { data: secret } = await bench.client.rest.GET(BY_NAME, { params: { path: { org_id, name } } });
  const { data } = await bench.client.rest.POST('/v1/orgs/{org_id}/secrets/{secret_id}/rotate', {
    params: { path: { org_id, secret_id: secret.secret_id } },
    body: { value },
  });
  show(bench, data, () => `Rotated ${data.name}: version ${data.vault_version}.`);
}

/** `openai.api_key` becomes `OPENAI_API_KEY`. */
const variableOf = (name: string, field: string): string =>
  `${name}_${field}`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');

async function run(bench: Workbench, names: string[], program: string[]): Promise<void> {
  const [file, ...given] = program;
  if (file === undefined) throw new UsageError('Missing: the command to run, after --');
  const variables: Record<string, string> = {};
  for (const name of names)
    for (const [field, value] of Object.entries(await revealed(bench, name)))
      variables[variableOf(name, field)] = typeof value === 'string' ? value : JSON.stringify(value);
  const child = spawn(file, given, { stdio: 'inherit', env: { ...bench.around.env, ...variables } });
  const stopped = (signal: NodeJS.Signals) => child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stopped);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(new UsageError(`${file} cannot be run: ${error.message}`)));
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, stopped);
  throw new Ended(code);
}

/** Adds `secrets`. */
export function addSecretCommands(program: Command, around: Surroundings): void {
  const secrets = program.command('secrets').description('secrets of the organization');
  withExamples(
    secrets
      .command('list')
      .description('list secrets, without their values')
      .action((_options, command: Command) => list(workbenchOf(command, around))),
    'platform secrets list',
  );
  withExamples(
    secrets
      .command('get <name>')
      .description('reveal the value of a secret, or one field of it')
      .option('--field <field>', 'only this field, as it is')
      .action((name: string, options: { field?: string }, command: Command) =>
        get(workbenchOf(command, around), name, options.field),
      ),
    'platform secrets get openai --field api_key',
  );
  withExamples(
    secrets
      .command('set <name>')
      .description('store a secret; its value is read from stdin')
      .option('--type <type>', 'kind of the secret', 'api_key')
      .option('--field <field>', 'stdin is a plain text, and the value of this field')
      .action((name: string, options: { field?: string; type: string }, command: Command) =>
        set(workbenchOf(command, around), name, options),
      ),
    'platform secrets set openai --field api_key < key.txt',
  );
  withExamples(
    secrets
      .command('rotate <name>')
      .description('give a secret a new value, read from stdin')
      .option('--field <field>', 'stdin is a plain text, and the value of this field')
      .action((name: string, options: { field?: string }, command: Command) =>
        rotate(workbenchOf(command, around), name, options.field),
      ),
    'platform secrets rotate openai --field api_key < key.txt',
  );
  withExamples(
    secrets
      .command('run <command...>')
      .description('run a command with secrets in its environment: NAME_FIELD in capitals')
      .requiredOption('--secret <name...>', 'names of the secrets')
      .action((given: string[], options: { secret: string[] }, command: Command) =>
        run(workbenchOf(command, around), options.secret, given),
      ),
    'platform secrets run --secret openai -- node app.js',
  );
}
