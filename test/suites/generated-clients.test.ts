import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';

const run = promisify(execFile);
const home = path.join(projectRoot, 'test', 'generators', 'typescript');
const cache = path.join(projectRoot, 'node_modules', '.cache');
const FILES = ['use-the-api.ts', 'mistakes.ts'];
const STRICT = [
  '--ignoreConfig',
  '--strict',
  '--exactOptionalPropertyTypes',
  '--noUncheckedIndexedAccess',
  '--noImplicitReturns',
];
const OUTPUT = ['--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,dom,dom.iterable', '--types', ''];

let app: TestApp;
/** Where packages of the project are found from, with the compiled client. */
let folder: string;
beforeAll(async () => {
  app = await startTestApp();
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(path.join(cache, 'generated-client-'));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Fails with what the program printed. */
async function succeeds(program: string, ...args: string[]): Promise<void> {
  const { error } = await run(process.execPath, [program, ...args], { cwd: folder, maxBuffer: 2 ** 24 }).then(
    () => ({ error: '' }),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ error: `${stdout}${stderr}` }),
  );
  expect(error).toBe('');
}

test('a strict program over the types of openapi-typescript compiles, and does what it says', async () => {
  const document = (await app.server.inject({ url: '/openapi.json' })).body;
  writeFileSync(path.join(folder, 'openapi.json'), document);
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
  for (const file of FILES) copyFileSync(path.join(home, file), path.join(folder, file));
  const generator = path.join(home, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
  await succeeds(generator, 'openapi.json', '--output', 'api.d.ts', '--silent');
  const compiler = path.join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');
  await succeeds(compiler, ...STRICT, ...OUTPUT, ...FILES);

  const { useTheApi } = (await import(pathToFileURL(path.join(folder, 'use-the-api.js')).href)) as {
    useTheApi: (baseUrl: string, email: string) => Promise<unknown>;
  };
  const report = await useTheApi(await app.listen(), 'typed@example.test');
  expect(report).toEqual({
    workspaceId: expect.stringMatching(/^ws_/),
    names: ['Renamed', 'Default workspace'],
    apiKey: { api_key: 'sk-1', nested: { list: [1, 'two', null] } },
    renamed: 'Renamed',
    refusal: { status: 412, error: 'PRECONDITION_FAILED', traceId: expect.stringMatching(/^[0-9a-f-]{16,}/) },
    stream: expect.stringContaining('event: '),
  });
  const text = `select resource_version as version from workspaces where name = 'Renamed'`;
  expect((await app.database.pool.query(text)).rows).toEqual([{ version: 2 }]);
});
