import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { ENTER, hasTerminal, inTerminal, openTerminal, type Terminal } from '../support/terminal.ts';

const CLI = path.join(projectRoot, 'clients', 'cli');

let app: TestApp;
let folder: string;
beforeAll(async () => {
  app = await startTestApp();
  folder = mkdtempSync(path.join(tmpdir(), 'npx-'));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Package {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
}
const packageIn = (at: string) => JSON.parse(readFileSync(path.join(at, 'package.json'), 'utf8')) as Package;

/** A package and all that it depends on, with the folders in which they are. */
function closureOf(at: string, found = new Map<string, string>()): Map<string, string> {
  const { name, dependencies = {} } = packageIn(at);
  if (found.has(name)) return found;
  found.set(name, at);
  for (const needed of Object.keys(dependencies)) closureOf(folderOf(needed, at), found);
  return found;
}

function folderOf(name: string, from: string): string {
  const here = path.join(from, 'node_modules', name);
  if (existsSync(here)) return here;
  if (from === projectRoot) throw new Error(`${name} is not installed.`);
  return folderOf(name, path.dirname(from));
}

let place: string;
let env: Record<string, string>;
/** Packs the command line and all that it needs, and installs it in an empty folder. */
beforeAll(async () => {
  const home = path.join(folder, 'home');
  place = path.join(folder, 'empty');
  for (const at of [home, place]) mkdirSync(at);
  env = {
    PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH}`,
    HOME: home,
    npm_config_cache: path.join(folder, 'cache'),
    npm_config_update_notifier: 'false',
    // no registry: whatever is not packed here is missing
    npm_config_offline: 'true',
  };
  const packages = closureOf(CLI);
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const packed = JSON.parse(await run('npm', [...pack, ...packages.values()], projectRoot)) as {
    name: string;
    filename: string;
  }[];
  expect(packed.map(({ name }) => name)).toEqual([...packages.keys()]);
  const dependencies = packed.map(({ name, filename }) => [name, `file:${path.join(folder, filename)}`]);
  const manifest = { private: true, dependencies: Object.fromEntries(dependencies) as object };
  writeFileSync(path.join(place, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']);
});

const run = (file: string, args: string[], cwd = place) =>
  new Promise<string>((resolve, reject) => {
    execFile(file, args, { cwd, env }, (error, out, err) =>
      error ? reject(new Error(`${file} ${args.join(' ')}: ${out}${err}`)) : resolve(out),
    );
  });

test('the packed command line runs by npx in an empty folder, with nothing but Node', async () => {
  expect(await run('npx', ['platform', '--version'])).toBe(`${packageIn(CLI).version}\n`);
  // where somebody begins is in the help
  const help = await run('npx', ['platform', '--help']);
  for (const step of ['register', 'workspace create', 'workspace use', 'secrets set', 'secrets run', 'files upload'])
    expect(help).toContain(`platform ${step}`);
});

test.skipIf(!hasTerminal)('a newcomer with nothing but an address does all that the help begins with', async () => {
  const url = await app.listen();
  const platform = (...args: string[]) => [path.join(place, 'node_modules', '.bin', 'platform'), ...args];
  const does = async (args: string[], answers: [string, string][] = []) => {
    const { code, text } = await inTerminal(platform(...args), { env, cwd: place }, answers);
    expect([args, code, text]).toEqual([args, 0, text]);
    return text;
  };
  const signedIn = await does(
    ['register'],
    [
      ['Address of the service', `${url}${ENTER}`],
      ['E-mail address', `zoe@example.test${ENTER}`],
      ['Username', `zoe${ENTER}`],
      ['Password', `correct horse battery${ENTER}`],
    ],
  );
  expect(signedIn).toContain(`Signed in as zoe at ${url}.`);
  expect(signedIn).not.toContain('correct horse');

  const made = await does(['workspace', 'create'], [['Name of the workspace', `Research${ENTER}`]]);
  // it says what comes next
  const [, use = ''] = /To work in it: platform (workspace use ws_\w+)/.exec(made) ?? [];
  expect(await does(use.split(' '))).toContain('Using the workspace ws_');

  const stored = await does(
    ['secrets', 'set'],
    [
      ['Name of the secret', `openai${ENTER}`],
      ['Value of the field api_key', `sk-77${ENTER}`],
    ],
  );
  expect(stored).toContain('OPENAI_API_KEY: platform secrets run --secret openai -- PROGRAM');
  expect(stored).not.toContain('sk-77');
  const program = ['node', '-e', 'console.log([...process.env.OPENAI_API_KEY].reverse().join(""))'];
  expect(await does(['secrets', 'run', '--secret', 'openai', '--', ...program])).toContain('77-ks');

  writeFileSync(path.join(place, 'report.txt'), 'The humidity of the greenhouse drifts.');
  const uploaded = await does(['files', 'upload', '--wait'], [['File to upload', `report.txt${ENTER}`]]);
  expect(uploaded).toContain('report.txt [##############################] 100%');
  expect(await does(['files', 'search', 'humidity'])).toContain('The humidity of the greenhouse drifts.');

  const tail = platform('events', 'tail', '--types', 'artifact.created', '--count', '1');
  const watching: Terminal = openTerminal(tail, { env, cwd: place });
  try {
    await watching.sees('Following the events');
    await does(['files', 'upload', 'report.txt', '--name', 'Again']);
    await watching.sees('artifact.created  zoe');
    expect(await watching.ended()).toBe(0);
  } finally {
    watching.close();
  }
});
