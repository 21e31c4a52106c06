import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitCodes } from '../../clients/cli/dist/failures.js';
import { programOf } from '../../clients/cli/dist/program.js';
import type { Surroundings } from '../../clients/cli/dist/workbench.js';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine, type Ran } from '../support/command-line.ts';
import { blocksOf, pageAt } from '../support/doc-commands.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let ann: Person;
let home: string;
let env: Record<string, string>;
beforeAll(async () => {
  app = await startTestApp();
  const url = await app.listen();
  ann = await register(app, { name: 'ann' });
  home = mkdtempSync(path.join(tmpdir(), 'help-'));
  env = {
    PATH: process.env.PATH!,
    HOME: home,
    PLATFORM_URL: url,
    PLATFORM_TOKEN: ann.accessToken,
    PLATFORM_ORG: ann.orgId,
    PLATFORM_WORKSPACE: ann.workspaceId,
  };
});
afterAll(async () => {
  await app.close();
  rmSync(home, { recursive: true, force: true });
});

type Command = ReturnType<typeof programOf>;

/** The commands that do something. */
function leavesOf(command: Command, names: readonly string[] = []): string[] {
  const below = command.commands.filter((one) => one.name() !== 'help');
  return below.length === 0 ? [names.join(' ')] : below.flatMap((one) => leavesOf(one, [...names, one.name()]));
}
const commands = leavesOf(programOf(process as unknown as Surroundings, () => false));

/** The examples in the help of a command, as people see it. */
async function examplesOf(command: string): Promise<string[]> {
  const { code, out } = await commandLine([...command.split(' '), '--help']);
  expect(code).toBe(0);
  const [, examples] = out.split('\nExample:\n');
  return (examples ?? '').split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** What the examples work with. */
async function prepare(): Promise<Record<string, string>> {
  const made = async <Key extends string>(at: string, body: object, key: Key) => {
    const answer = await ann.call<Record<Key, string>>('POST', at, body);
    expect([at, answer.status]).toEqual([at, 201]);
    return answer.body[key];
  };
  const organization = `/v1/orgs/${ann.orgId}`;
  const shop = await made(`${ann.home}/apps`, { name: 'Shop' }, 'app_id');
  const one = await made(`${ann.home}/apps/${shop}/releases`, { version: '1.0.0' }, 'release_id');
  await made(`${ann.home}/apps/${shop}/releases`, { version: '1.1.0' }, 'release_id');
  for (const slug of ['staging', 'production'])
    await ann.call('POST', `${ann.home}/environments`, { name: slug, slug });
  const { environments } = (
    await ann.call<{ environments: { environment_id: string; slug: string }[] }>('GET', `${ann.home}/environments`)
  ).body;
  const staging = environments.find(({ slug }) => slug === 'staging')!.environment_id;
  await ann.call('POST', `${ann.home}/environments/${staging}/deploy`, { app_id: shop, release_id: one });
  const tool = {
    name: 'Tickets',
    slug: 'tickets',
    description: 'Reads tickets.',
    // they send nothing
    action_schemas: [
      { name: 'find', parameters: [{ name: 'query', type: 'string' }] },
      { name: 'remove', parameters: [{ name: 'id', type: 'integer' }], requires_confirmation: true },
    ],
  };
  const tool_id = await made(`${organization}/tools`, tool, 'tool_id');
  await made(`${ann.home}/tool-instances`, { tool_id, name: 'Tickets' }, 'instance_id');
  for (const [file, text] of Object.entries({
    'report.txt': 'The humidity of the greenhouse drifts.',
    'key.txt': 'sk-1\n',
    'app.js': "process.exitCode = process.env.OPENAI_API_KEY === 'sk-1' ? 0 : 1;",
  }))
    writeFileSync(path.join(home, file), text);
  const uploaded = await commandLine(['files', 'upload', path.join(home, 'report.txt'), '--json'], { env });
  const { artifact_id } = JSON.parse(uploaded.out) as { artifact_id: string };
  return { 'art_…': artifact_id, 'app_…': shop, 'org_…': ann.orgId };
}

test('every command shows an example of its use', async () => {
  const without: string[] = [];
  for (const command of commands) if ((await examplesOf(command)).length === 0) without.push(command);
  expect(without).toEqual([]);
  expect(commands.length).toBeGreaterThan(30);
});

const FILES = new Set(['report.txt', 'key.txt', 'app.js', 'copy.txt', 'token.txt', 'workspace.json']);

/** Runs an example where its files are. */
async function runExample(example: string, ids: Record<string, string>, around = env): Promise<Ran> {
  const command = /(?<=<\()[^)]+/.exec(example)?.[0] ?? example.split(' > ')[0]!;
  const [line = '', file] = command.replace(/^platform /, '').split(' < ');
  const words = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, ...parts]) => parts.find(Boolean) ?? '');
  const args = words.map((word) => ids[word] ?? (FILES.has(word) ? path.join(home, word) : word));
  const input = file === undefined ? {} : { input: readFileSync(path.join(home, file), 'utf8') };
  if (args[0] !== 'events') return commandLine(args, { env: around, ...input });
  // it follows from some moment on: what is done until then is not seen
  let ran: Ran | undefined;
  void commandLine(args, { env }).then((ended) => (ran = ended));
  return waitUntil(async () => {
    await commandLine(['env', 'deploy', '--env', 'staging', '--app', 'Shop', '--release', '1.0.0'], { env });
    return ran;
  });
}

/** The rows of a table of the guide, by the words in its first cell. */
function rowsOf(head: string): Map<string, string> {
  const [, table = ''] = pageAt('docs/guides/command-line.md').text.split(head);
  const [rows = ''] = table.split('\n\n');
  const found = new Map<string, string>();
  for (const [, first = '', second = ''] of rows.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm))
    for (const name of first.split(', ')) found.set(name.replaceAll('`', ''), second);
  return found;
}

/** What the guide says of the JSON of each command. */
const documented = rowsOf('| Command | JSON |');

/** Runs an example for a program. @throws unless its JSON has what the guide says */
async function expectJson(command: string, example: string, ids: Record<string, string>, around = env): Promise<void> {
  const ran = await runExample(example.replace(/(?= < |$)/, ' --json'), ids, around);
  expect([example, ran]).toMatchObject([example, { code: 0 }]);
  const fields = documented.get(command)!;
  const value: unknown = JSON.parse(ran.out);
  const isList = fields.startsWith('list of ');
  expect([command, Array.isArray(value)]).toEqual([command, isList]);
  const one = (isList ? (value as object[])[0] : value) as object;
  expect([command, value]).not.toEqual([command, []]);
  const [own = ''] = fields.split(': a list of ');
  if (own.startsWith('the ')) return;
  const names = [...own.replace(/\(.*\)/, '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  expect([command, ...Object.keys(one)]).toEqual(expect.arrayContaining([command, ...names]));
}

test('every example does what it says', async () => {
  const ids = await prepare();
  ids['https://platform.example.com'] = env.PLATFORM_URL!;
  const [withPassword = '', withToken = ''] = await examplesOf('login');
  const succeeds = async (example: string) =>
    expect([example, await runExample(example, ids)]).toMatchObject([example, { code: 0 }]);
  writeFileSync(path.join(home, 'token.txt'), ann.accessToken);
  await succeeds(withToken);
  rmSync(path.join(home, 'token.txt'));
  // what others need comes first, and what ends the session last
  const order = ['secrets set', ...commands.filter((one) => !/^(?:login|register|logout|secrets set)$/.test(one))];
  for (const command of order) for (const example of await examplesOf(command)) await succeeds(example);

  rmSync(path.join(home, 'token.txt'));
  for (const command of documented.keys()) {
    if (/^(?:login|register|logout)$/.test(command)) continue;
    const [example = ''] = await examplesOf(command);
    // what has that name is there already
    const isNew = ['secrets set', 'workspace create'].includes(command);
    await expectJson(command, isNew ? example.replace(/openai|Research/, 'second') : example, ids);
  }

  const { PLATFORM_TOKEN: _token, PLATFORM_ORG: _org, PLATFORM_WORKSPACE: _workspace, ...bare } = env;
  const asPassword = '--password-stdin < key.txt';
  const [register = ''] = await examplesOf('register');
  writeFileSync(path.join(home, 'key.txt'), ann.password);
  const newcomer = '--email new@example.test --username newcomer';
  await expectJson('register', `${register} ${newcomer} ${asPassword}`, ids, bare);
  await expectJson('login', `${withPassword} --username ${ann.username} ${asPassword}`, ids, bare);
  await expectJson('whoami', 'platform whoami', ids, bare);
  await expectJson('logout', 'platform logout', ids, bare);
});

test('the guide says of every command what its JSON has', () => {
  const none = ['completion', 'secrets run'];
  expect([...documented.keys(), ...none].sort()).toEqual([...commands].sort());
});

test('the guide and the help have every exit code', async () => {
  const listed = [...rowsOf('| Exit code | |').keys()].map(Number);
  expect(listed).toEqual([0, ...Object.values(exitCodes)]);
  const { out } = await commandLine(['--help']);
  const [, codes = ''] = out.split('Exit codes: ');
  expect([...codes.matchAll(/\d/g)].map(([code]) => Number(code))).toEqual(listed);
});

test('the guide shows every command', () => {
  const shown = ['sh', 'console'].flatMap((language) => blocksOf(pageAt('docs/guides/command-line.md').text, language));
  const text = shown.join('\n');
  expect(commands.filter((command) => !text.includes(`platform ${command}`))).toEqual([]);
});
