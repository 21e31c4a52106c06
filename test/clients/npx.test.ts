import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { register } from '../support/person.ts';

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

test('the packed command line runs by npx in an empty folder, with nothing but Node', async () => {
  const home = path.join(folder, 'home');
  const place = path.join(folder, 'empty');
  for (const at of [home, place]) mkdirSync(at);
  const env = {
    PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH}`,
    HOME: home,
    npm_config_cache: path.join(folder, 'cache'),
    npm_config_update_notifier: 'false',
    // no registry: whatever is not packed here is missing
    npm_config_offline: 'true',
  };
  const run = (file: string, args: string[], { cwd = place, input = '' } = {}) =>
    new Promise<string>((resolve, reject) => {
      const child = execFile(file, args, { cwd, env }, (error, out, err) =>
        error ? reject(new Error(`${file} ${args.join(' ')}: ${out}${err}`)) : resolve(out),
      );
      child.stdin!.end(input);
    });

  const packages = closureOf(CLI);
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const packed = JSON.parse(await run('npm', [...pack, ...packages.values()], { cwd: projectRoot })) as {
    name: string;
    filename: string;
  }[];
  expect(packed.map(({ name }) => name)).toEqual([...packages.keys()]);
  const dependencies = packed.map(({ name, filename }) => [name, `file:${path.join(folder, filename)}`]);
  const manifest = { private: true, dependencies: Object.fromEntries(dependencies) as object };
  writeFileSync(path.join(place, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock']);

  expect(await run('npx', ['platform', '--version'])).toBe(`${packageIn(CLI).version}\n`);
  const ann = await register(app, { name: 'ann' });
  const url = await app.listen();
  const platform = path.join(place, 'node_modules', '.bin', 'platform');
  const signedIn = await run(platform, ['login', '--url', url, '--token-stdin'], { input: ann.accessToken });
  expect(signedIn).toBe(`Signed in as ${ann.username} at ${url}.\n`);
  const listed = await run(platform, ['workspace', 'list', '--org', ann.orgId, '--json']);
  expect(JSON.parse(listed)).toEqual([{ workspace_id: ann.workspaceId, name: 'Default workspace' }]);
});
