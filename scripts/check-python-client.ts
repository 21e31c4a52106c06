// Generates a Python client from the OpenAPI document with openapi-python-client, and uses it: `npm run check:python`.
// It fails when the generator leaves out one operation. The generator comes from PyPI into a virtual environment; where
// there is no Python or no PyPI, this says so and checks nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../src/paths.ts';
import { Client } from '../test/support/client.ts';
import { startService } from '../test/support/service.ts';
import { buildIfChanged } from './build.mjs';

const GENERATOR = 'openapi-python-client==0.29.1';
const PROGRAM = path.join(projectRoot, 'test', 'generators', 'python', 'use_the_api.py');
const METHODS = new Set(['get', 'post', 'put', 'patch', 'delete']);
const MINUTE_MS = 60_000;

interface Run {
  isDone: boolean;
  output: string;
}

function run(program: string, args: string[], env: Record<string, string> = {}): Run {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    // it runs beside the tests, which may leave it a tenth of a processor
    timeout: 20 * MINUTE_MS,
    env: { ...process.env, ...env },
  });
  return { isDone: status === 0, output: error ? String(error) : `${stdout}${stderr}` };
}

/** @returns the folder of programs with the generator, or why there is none */
function environment(): { programs: string } | { missing: string } {
  const venv = path.join(projectRoot, 'node_modules', '.cache', GENERATOR.replace('==', '-'));
  const programs = path.join(venv, 'bin');
  if (existsSync(path.join(programs, 'openapi-python-client'))) return { programs };
  mkdirSync(path.dirname(venv), { recursive: true });
  const made = run('python3', ['-m', 'venv', '--clear', venv]);
  if (!made.isDone) return { missing: `python3 makes no virtual environment: ${lastLine(made)}` };
  const installed = run(path.join(programs, 'pip'), ['install', '--quiet', '--retries', '1', GENERATOR]);
  return installed.isDone ? { programs } : { missing: `pip installs no ${GENERATOR}: ${lastLine(installed)}` };
}

const lastLine = ({ output }: Run): string => output.trim().split('\n').at(-1) ?? '';

interface Documented {
  paths: Record<string, Record<string, { responses: Record<string, { content?: Record<string, unknown> }> }>>;
}

/** The generator knows no lines of JSON: their functions give the bytes, and it says so. */
const isOfLines = ({ paths }: Documented, warning: string): boolean => {
  const [, method = '', path = ''] = /^WARNING parsing (\S+) (\S+) within /.exec(warning) ?? [];
  const responses = Object.values(paths[path]?.[method.toLowerCase()]?.responses ?? {});
  return responses.some(({ content = {} }) => 'application/x-ndjson' in content);
};

/** @throws Error when the generator leaves something out, or the client does not do what it should */
async function check(programs: string, url: string, folder: string): Promise<void> {
  const documented = (await new Client(url).get('/openapi.json')) as unknown as Documented;
  const operations = Object.values(documented.paths).flatMap((path) =>
    Object.keys(path).filter((method) => METHODS.has(method)),
  );
  const client = path.join(folder, 'api_client');
  const given = ['generate', '--url', `${url}/openapi.json`, '--meta', 'none', '--output-path', client];
  const generated = run(path.join(programs, 'openapi-python-client'), given);
  const endpoints = run('find', [path.join(client, 'api'), '-name', '*.py', '-not', '-name', '__init__.py']);
  const count = endpoints.output.trim().split('\n').length;
  const warnings = generated.output.match(/^WARNING .*$/gm) ?? [];
  const isWhole = warnings.every((warning) => isOfLines(documented, warning)) && count === operations.length;
  if (!generated.isDone || /Unable to|not be generated/.test(generated.output) || !isWhole)
    throw new Error(`${count} of ${operations.length} operations were generated:\n${generated.output}`);
  console.log(`${count} of ${operations.length} operations have a function in the Python client.`);
  const used = run(path.join(programs, 'python'), [PROGRAM, url], { PYTHONPATH: folder });
  if (!used.isDone) throw new Error(used.output);
  console.log('It registers, stores a secret and reads it, pages and is refused.');
}

const python = environment();
if ('missing' in python) console.log(`NOT RUN: the Python client. ${python.missing}`);
else {
  buildIfChanged();
  const folder = mkdtempSync(path.join(tmpdir(), 'python-client-'));
  const service = startService({ DATA_DIR: path.join(folder, 'data'), LOG_LEVEL: 'warn' });
  try {
    await check(python.programs, await service.url(), folder);
  } finally {
    service.child.kill('SIGTERM');
    await service.exited();
    rmSync(folder, { recursive: true, force: true });
  }
}
