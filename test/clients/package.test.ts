import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { register } from '../support/person.ts';

const run = promisify(execFile);
const packageDir = path.join(projectRoot, 'clients', 'typescript');
const KIB = 1024;
/** Lines of code of the client that nobody generates. Decision 84 says what they are, and why they are no fewer. */
const MOST_LINES = 440;

let folder: string;
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  folder = mkdtempSync(path.join(tmpdir(), 'client-'));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

test('for a browser it is at most 12 KiB with all that it imports, and imports nothing of Node', async () => {
  const bundle = await rolldown({
    input: path.join(packageDir, 'dist', 'index.js'),
    platform: 'browser',
    external: (id) => id.startsWith('node:'),
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  expect(output).toHaveLength(1);
  expect(output[0].imports).toEqual([]);
  expect(gzipSync(output[0].code).length).toBeLessThanOrEqual(12 * KIB);
});

/** Lines that are neither blank nor a comment. Its formatter begins each comment of several lines on a line. */
function linesOfCode(text: string): number {
  let isComment = false;
  const lines = text.split('\n').filter((given) => {
    const line = given.trim();
    const isSkipped = isComment || line === '' || line.startsWith('//') || line.startsWith('/*');
    if (isComment || line.startsWith('/*')) isComment = !line.endsWith('*/');
    return !isSkipped;
  });
  return lines.length;
}

test('what is written by hand stays small, and the rest is generated', () => {
  const source = path.join(packageDir, 'src');
  const files = readdirSync(source).filter((name) => name.endsWith('.ts'));
  const lines = files.map((name) => linesOfCode(readFileSync(path.join(source, name), 'utf8')));
  expect(readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory())).toMatchObject([
    { name: 'generated' },
  ]);
  expect(lines.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(MOST_LINES);
});

/** The packed package where nothing of the project is, with the packages that it depends on. */
async function installed(): Promise<string> {
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: packageDir,
  });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const modules = path.join(folder, 'node_modules');
  const own = path.join(modules, 'platform-management-client');
  mkdirSync(own, { recursive: true });
  await run('tar', ['-xzf', path.join(folder, filename), '-C', own, '--strip-components', '1']);
  const { dependencies } = JSON.parse(readFileSync(path.join(own, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const needed = [...Object.keys(dependencies), 'random-int', 'unlimited-timeout'];
  for (const name of needed) {
    const target = path.join(modules, name);
    mkdirSync(path.dirname(target), { recursive: true });
    symlinkSync(path.join(projectRoot, 'node_modules', name), target);
  }
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  return folder;
}

test('the packed package compiles under strict options and runs, as does the example', async () => {
  const home = await installed();
  cpSync(path.join(projectRoot, 'examples', 'script', 'workspaces.ts'), path.join(home, 'workspaces.ts'));
  const compiler = path.join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
  const options = ['--module', 'nodenext', '--target', 'es2022', '--lib', 'es2023,dom,dom.iterable', '--types', ''];
  const compiled = await run(process.execPath, [compiler, '--ignoreConfig', ...strict, ...options, 'workspaces.ts'], {
    cwd: home,
  }).catch(({ stdout }: { stdout: string }) => ({ stdout }));
  expect(compiled.stdout).toBe('');

  const ann = await register(app, { name: 'ann' });
  const url = await app.listen();
  const { stdout } = await run(process.execPath, ['workspaces.js', url, ann.accessToken], { cwd: home });
  expect(stdout.trim().split('\n')).toEqual([
    'Default workspace',
    'made Research',
    'refused: RESOURCE_NOT_FOUND',
    'namespace.created',
  ]);
});
