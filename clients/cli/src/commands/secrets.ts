import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { Ended, UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { readStdin, show, table, tell } from '../output.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const SECRETS = '/v1/orgs/{org_id}/secrets';
const BY_NAME = '/v1/orgs/{org_id}/secrets/by-name/{name}';

type SecretValue = Record<string, unknown>;

const REASON = 'why the value is read: it is recorded, and the organization may demand it';

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

/** One of the secrets that there are, by name. */
async function chosen(bench: Workbench, option: string): Promise<string> {
  const choices = async () => {
    const found: Choice[] = [];
    for await (const { name } of bench.client.list(SECRETS, { path: { org_id: await bench.org() } }))
      found.push({ value: name, label: name });
    return found;
  };
  return bench.choose({ option, noun: 'secret', choices });
}

/** A secret by its name with its value. The service records that it was revealed, and why. */
async function revealed(bench: Workbench, name: string, reason: string | undefined): Promise<SecretValue> {
  const org_id = await bench.org();
  const { data } = await bench.client.rest.GET(BY_NAME, {
    params: { path: { org_id, name }, query: { include_value: true, ...(reason !== undefined && { reason }) } },
  });
  return (data.value ?? {}) as SecretValue;
}

interface GetOptions {
  field?: string;
  reason?: string;
}

async function get(bench: Workbench, given: string | undefined, { field, reason }: GetOptions): Promise<void> {
  bench.demand('org', { '<name>': given });
  const name = given ?? (await chosen(bench, '<name>'));
  const value = await revealed(bench, name, reason);
  if (field === undefined) return show(bench, value, () => JSON.stringify(value, null, 2));
  if (!Object.hasOwn(value, field))
    throw new UsageError(`The secret '${name}' has no field '${field}'. It has: ${Object.keys(value).join(', ')}`);
  const inner = value[field];
  show(bench, inner, () => (typeof inner === 'string' ? inner : JSON.stringify(inner)));
}

/**
 * The value comes from stdin: what stands on a command line is seen by others, and kept by shells. In a terminal it is
 * asked for, and not shown.
 */
async function secretOf(bench: Workbench, field: string | undefined, usual: string): Promise<SecretValue> {
  if (bench.isInteractive) {
    const asked = field ?? usual;
    return { [asked]: await bench.ask('stdin', `Value of the field ${asked} (it is not shown)`, { isSecret: true }) };
  }
  if (bench.around.stdin.isTTY) throw new UsageError('Missing: the value, on stdin');
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

interface SetOptions {
  field?: string;
  type: string;
}

async function set(bench: Workbench, given: string | undefined, { field, type }: SetOptions): Promise<void> {
  bench.demand('org', { '<name>': given });
  const name = given ?? (await bench.ask('<name>', 'Name of the secret'));
  const value = await secretOf(bench, field, type);
  const org_id = await bench.org();
  const body = { name, secret_type: type, value };
  const { data } = await bench.client.rest.POST(SECRETS, { params: { path: { org_id } }, body });
  const variables = Object.keys(value).map((key) => variableOf(name, key));
  show(bench, data, () =>
    [
      `Stored ${data.name} as ${data.secret_id}.`,
      `A program has it as ${variables.join(', ')}: platform secrets run --secret ${data.name} -- PROGRAM`,
    ].join('\n'),
  );
}

async function rotate(bench: Workbench, given: string | undefined, field: string | undefined): Promise<void> {
  bench.demand('org', { '<name>': given });
  const name = given ?? (await chosen(bench, '<name>'));
  const org_id = await bench.org();
  const { data: secret } = await bench.client.rest.GET(BY_NAME, { params: { path: { org_id, name } } });
  const value = await secretOf(bench, field, secret.secret_type);
  const { data } = await bench.client.rest.POST('/v1/orgs/{org_id}/secrets/{secret_id}/rotate', {
    params: { path: { org_id, secret_id: secret.secret_id } },
    body: { value },
  });
  show(bench, data, () => `Rotated ${data.name}: version ${data.vault_version}.`);
}

/** `openai.api_key` becomes `OPENAI_API_KEY`. */
const variableOf = (name: string, field: string): string =>
  `${name}_${field}`.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_');

interface RunOptions {
  secret?: string[];
  reason?: string;
}

async function run(bench: Workbench, { secret: given, reason }: RunOptions, program: string[]): Promise<void> {
  const missing = { '--secret': given, '-- <command>': program[0] };
  bench.demand('org', missing);
  const names = given ?? [await chosen(bench, '--secret')];
  // without a program, one that can start others
  const [file = bench.around.env.SHELL || 'sh', ...args] = program;
  const variables: Record<string, string> = {};
  for (const name of names)
    for (const [field, value] of Object.entries(await revealed(bench, name, reason)))
      variables[variableOf(name, field)] = typeof value === 'string' ? value : JSON.stringify(value);
  if (program.length === 0) tell(bench, `Starting ${file} with the secret in its environment. End it with exit.`);
  const child = spawn(file, args, { stdio: 'inherit', env: { ...bench.around.env, ...variables } });
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
      .command('get [name]')
      .description('reveal the value of a secret, or one field of it')
      .option('--field <field>', 'only this field, as it is')
      .option('--reason <reason>', REASON)
      .action((name: string | undefined, options: GetOptions, command: Command) =>
        get(workbenchOf(command, around), name, options),
      ),
    'platform secrets get openai --field api_key',
  );
  withExamples(
    secrets
      .command('set [name]')
      .description('store a secret; its value is read from stdin, and asked for in a terminal')
      .option('--type <type>', 'kind of the secret', 'api_key')
      .option('--field <field>', 'stdin is a plain text, and the value of this field')
      .action((name: string | undefined, options: SetOptions, command: Command) =>
        set(workbenchOf(command, around), name, options),
      ),
    'platform secrets set openai --field api_key < key.txt',
  );
  withExamples(
    secrets
      .command('rotate [name]')
      .description('give a secret a new value, read from stdin, and asked for in a terminal')
      .option('--field <field>', 'stdin is a plain text, and the value of this field')
      .action((name: string | undefined, options: { field?: string }, command: Command) =>
        rotate(workbenchOf(command, around), name, options.field),
      ),
    'platform secrets rotate openai --field api_key < key.txt',
  );
  withExamples(
    secrets
      .command('run [command...]')
      .description('run a command, after --, with secrets in its environment: api_key of openai is OPENAI_API_KEY')
      .option('--secret <name...>', 'names of the secrets')
      .option('--reason <reason>', REASON)
      .action((given: string[], options: RunOptions, command: Command) =>
        run(workbenchOf(command, around), options, given),
      ),
    'platform secrets run --secret openai -- node app.js',
  );
}
