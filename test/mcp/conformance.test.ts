import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { issueToken } from '../support/tokens.ts';
import { newInstance, newTool } from '../tools/tool-instances/instances.ts';

/*
 * The scenarios that each revision requires of servers, by the protocol's own suite (`--requirements`), as a program of
 * its own. Most of them call tools, prompts and resources that the suite's own server has. What cannot apply is named
 * here with the reason; all else must pass.
 */

const run = promisify(execFile);
const KEY = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };
const LOADER = path.join(import.meta.dirname, 'conformance-loader.mjs');
const packageFile = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json');
const SUITE = path.join(path.dirname(packageFile), 'dist/index.js');
const MAX_OUTPUT = 8 * 1024 * 1024;

const NO_RESOURCES = 'the service has tools, and no resources, prompts, completions or logs';
const OWN_TOOLS = "calls tools of the suite's own server by their names";
const NO_TASKS = 'an extension, which the service does not offer';
/** Scenarios and, after a slash, single checks that cannot apply. */
const NOT_APPLICABLE: readonly [RegExp, string][] = [
  [
    /^(?:resources|prompts)-|^(?:completion-complete|logging-set-level)\/|^caching\/.*-(?:prompts|resources)-/,
    NO_RESOURCES,
  ],
  [/^input-required-result-non-tool-request\//, NO_RESOURCES],
  [/^tools-call-|^elicitation-|^input-required-result-|^json-schema-2020-12\/|^server-sse-polling\//, OWN_TOOLS],
  [/^http-custom-header-server-validation\//, OWN_TOOLS],
  [/^server-stateless\/sep-2575-(?:server-rejects-undeclared-capability|missing-capability-http-400)$/, OWN_TOOLS],
  [/^tasks-/, NO_TASKS],
];

/** What must have passed: a suite that skips them says nothing. */
const PASSED = {
  '2025-11-25': ['dns-rebinding-protection', 'ping', 'server-initialize', 'tools-list'],
  '2026-07-28': [
    'caching',
    'dns-rebinding-protection',
    'http-header-validation',
    'sep-2164-resource-not-found',
    'server-stateless',
    'tools-list',
  ],
} as const;

let app: TestApp;
let ann: Person;
let gate: http.Server;
let results: string;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
  const { plaintext_token: token } = await issueToken(app, ann, { scopes: ['admin'] });
  const toolId = await newTool(ann, {
    config_schema: [],
    credential_schema: [KEY],
    action_schemas: [{ name: 'get', method: 'GET', url_template: 'https://tickets.test/get' }],
  });
  await newInstance(ann, toolId, { configuration: { api_key: 'a-key' } });
  gate = await startGate(token);
  results = await mkdtemp(path.join(os.tmpdir(), 'conformance-'));
});
afterAll(async () => {
  gate.close();
  await Promise.all([app.close(), rm(results, { recursive: true })]);
});

/** Gives requests a token, which the suite cannot send. It stands at the address of the service for all else. */
async function startGate(token: string): Promise<http.Server> {
  const { host, port } = new URL(app.url);
  const server = http.createServer((request, response) => {
    const own = request.headers.host ?? '';
    const { origin } = request.headers;
    const headers = {
      ...request.headers,
      authorization: `Bearer ${token}`,
      ...(own === ownHost() && { host }),
      ...(origin === `http://${ownHost()}` && { origin: app.url }),
    };
    const passed = http.request({ host: '127.0.0.1', port, path: request.url, method: request.method, headers });
    passed.once('response', (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    passed.once('error', () => response.destroy());
    response.once('close', () => passed.destroy());
    request.pipe(passed);
  });
  const ownHost = () => `localhost:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => {
    server.listen(0, 'localhost', resolve);
  });
  return server;
}

interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

/** What the suite found, as `scenario/check`. */
async function checksOf(address: string, revision: string): Promise<{ at: string; check: Check }[]> {
  const folder = await mkdtemp(path.join(results, 'run-'));
  const url = `http://localhost:${(gate.address() as AddressInfo).port}${address}`;
  const args = ['--import', LOADER, SUITE, 'server', '--url', url, '--requirements', revision, '-o', folder];
  // its exit code says that something failed, which is read from its files
  await run(process.execPath, args, { maxBuffer: MAX_OUTPUT }).catch((error: { code?: unknown }) => {
    if (error.code !== 1) throw error;
  });
  const scenarios = await readdir(folder);
  const found = await Promise.all(
    scenarios.map(async (name) => {
      const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '');
      const checks = JSON.parse(await readFile(path.join(folder, name, 'checks.json'), 'utf8')) as Check[];
      return checks.map((check) => ({ at: `${scenario}/${check.id}`, check }));
    }),
  );
  return found.flat();
}

const excuseOf = (at: string) => NOT_APPLICABLE.find(([pattern]) => pattern.test(at))?.[1];
const addresses = { platform: () => '/mcp', 'a workspace': () => `/mcp/w/${ann.workspaceId}` };

test.each([
  ['platform', '2025-11-25'],
  ['platform', '2026-07-28'],
  ['a workspace', '2025-11-25'],
  ['a workspace', '2026-07-28'],
] as const)('the tools of %s are served as the revision %s requires', async (address, revision) => {
  const checks = await checksOf(addresses[address](), revision);
  const failed = checks.filter(({ check }) => check.status === 'FAILURE');
  expect(failed.filter(({ at }) => !excuseOf(at)).map(({ at, check }) => [at, check.errorMessage])).toEqual([]);
  const passed = new Set(checks.filter(({ check }) => check.status === 'SUCCESS').map(({ at }) => at.split('/')[0]));
  expect(PASSED[revision].filter((scenario) => !passed.has(scenario))).toEqual([]);
});
