import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine, type Ran } from '../support/command-line.ts';
import { withTotp } from '../support/factors.ts';
import { type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

const CLI = path.join(projectRoot, 'clients', 'cli', 'dist', 'index.js');

let app: TestApp;
let url: string;
let ann: Person;
let home: string;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
  home = mkdtempSync(path.join(tmpdir(), 'cli-'));
});
afterAll(async () => {
  await app.close();
  rmSync(home, { recursive: true, force: true });
});

const bare = (env: Record<string, string>) => ({
  PATH: process.env.PATH!,
  HOME: home,
  PLATFORM_NO_KEYRING: '1',
  ...env,
});

/** Runs a command as somebody does who has nothing set but `env`. */
const cli = (args: string[], { env = {}, input }: { env?: Record<string, string>; input?: string } = {}) =>
  commandLine(args, { env: bare(env), ...(input !== undefined && { input }) });

/** The same as a program of its own. */
const program = (args: string[]) =>
  new Promise<Ran>((resolve) => {
    execFile(process.execPath, [CLI, ...args], { env: bare(asAnn()) }, (error, out, err) =>
      resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
  });

/** The credentials and the place of a person in the environment. */
const asAnn = () => ({
  PLATFORM_URL: url,
  PLATFORM_TOKEN: ann.accessToken,
  PLATFORM_ORG: ann.orgId,
  PLATFORM_WORKSPACE: ann.workspaceId,
});
const run = (args: string[], input?: string) => cli(args, { env: asAnn(), ...(input !== undefined && { input }) });

test('somebody signs in, is known to later commands, and signs out', async () => {
  const bob = await register(app, { name: 'bob' });
  const wrong = await cli(['login', '--url', url, '--username', bob.username, '--password-stdin'], {
    input: 'nonsense',
  });
  expect([wrong.code, wrong.out]).toEqual([3, '']);
  const good = await cli(['login', '--url', url, '--username', bob.username, '--password-stdin'], {
    input: bob.password,
  });
  expect(good).toEqual({ code: 0, out: `Signed in as ${bob.username} at ${url}.\n`, err: '' });
  const file = path.join(home, '.config', 'platform', 'profiles.json');
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  expect((statSync(path.dirname(file)).mode & 0o777).toString(8)).toBe('700');
  expect(readFileSync(file, 'utf8')).not.toContain(bob.password);

  const who = JSON.parse((await cli(['whoami', '--json'])).out) as object;
  expect(who).toMatchObject({ username: bob.username, url, credentials: 'profile', org: bob.orgId });
  const listed = await cli(['workspace', 'list', '--json']);
  expect(JSON.parse(listed.out)).toEqual([{ workspace_id: bob.workspaceId, name: 'Default workspace' }]);
  expect((await cli(['workspace', 'use', bob.workspaceId])).code).toBe(0);
  expect((await cli(['namespace', 'list'])).out).toContain('default');

  expect(await cli(['logout'])).toEqual({ code: 0, out: `Signed out of ${url}.\n`, err: '' });
  expect((await cli(['whoami', '--url', url])).code).toBe(3);
  const { rows } = await app.database.pool.query<{ live: number }>(
    'select count(*)::int as live from sessions where user_id = $1 and revoked_at is null',
    [bob.userId],
  );
  // the session of the registration: that of the command has ended
  expect(rows).toEqual([{ live: 1 }]);
});

test('no other service gets the tokens of a profile, and a session that has ended can be signed out of', async () => {
  const eve = await register(app, { name: 'eve' });
  const env = { XDG_CONFIG_HOME: path.join(home, 'eve') };
  const login = ['login', '--url', url, '--username', eve.username, '--password-stdin'];
  expect((await cli(login, { env, input: eve.password })).code).toBe(0);
  const heard: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    heard.push(request.headers.authorization);
    response.writeHead(401).end();
  }).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  expect((await cli(['whoami', '--url', elsewhere], { env })).code).toBe(3);
  expect(heard).toEqual([undefined]);
  other.close();

  await app.database.pool.query('update sessions set revoked_at = now() where user_id = $1', [eve.userId]);
  await waitUntil(async () => (await cli(['whoami'], { env })).code === 3);
  expect((await cli(['logout'], { env })).code).toBe(0);
  expect((await cli(['logout'], { env })).code).toBe(2);
});

test('a reader that has enough ends a command quietly; wrong usage is JSON for programs', async () => {
  const child = spawn('sh', ['-c', `"${process.execPath}" "${CLI}" workspace list --json | true`], {
    env: bare(asAnn()),
  });
  let err = '';
  child.stderr.on('data', (part: Buffer) => (err += part.toString()));
  await once(child, 'close');
  expect(err).toBe('');
  const wrong = await run(['nothing', '--json']);
  expect([wrong.code, JSON.parse(wrong.err)]).toMatchObject([2, { error: 'USAGE' }]);
  expect((await run(['workspace', 'list', '--url', 'foo'])).code).toBe(2);
  expect((await run(['events', 'tail', '--count', 'abc'])).code).toBe(2);
});

test('an API token is stored once the service has accepted it', async () => {
  const env = { XDG_CONFIG_HOME: path.join(home, 'other') };
  const options = ['login', '--url', url, '--token-stdin', '--profile', 'ci'];
  expect(await cli(options, { env, input: 'nonsense' })).toMatchObject({ code: 3, out: '' });
  expect((await cli(['whoami', '--profile', 'ci'], { env })).code).toBe(2);
  expect((await cli(options, { env, input: ann.accessToken })).code).toBe(0);
  expect((await cli(['whoami', '--profile', 'ci'], { env })).out).toContain(ann.username);
});

test('without a terminal, what is missing is named', async () => {
  const fresh = { XDG_CONFIG_HOME: path.join(home, 'fresh') };
  expect(await cli(['workspace', 'list'], { env: fresh })).toEqual({
    code: 2,
    out: '',
    err: 'Missing: --url, the address of the service. Or sign in: platform login\n',
  });
  const env = { ...fresh, PLATFORM_URL: url, PLATFORM_TOKEN: ann.accessToken };
  expect(await cli(['workspace', 'list'], { env })).toEqual({ code: 2, out: '', err: 'Missing: --org\n' });
  const json = await cli(['workspace', 'list', '--json'], { env });
  expect([json.code, JSON.parse(json.err)]).toEqual([2, { error: 'USAGE', message: 'Missing: --org' }]);
  expect((await cli(['nothing'])).code).toBe(2);
  expect((await cli(['--help'])).code).toBe(0);
});

test.each([
  [['workspace', 'list', '--org', 'org_none'], 4, 'FORBIDDEN'],
  [['secrets', 'get', 'none'], 5, 'RESOURCE_NOT_FOUND'],
  [['workspace', 'create', ''], 7, 'VALIDATION_ERROR'],
  [['workspace', 'list', '--token', 'nonsense'], 3, 'AUTHENTICATION_FAILED'],
])('%j ends with the exit code %i', async (args, code, error) => {
  const ran = await run([...args, '--json']);
  expect([ran.code, ran.out, JSON.parse(ran.err)]).toMatchObject([code, '', { error }]);
});

test('a service that is not there is exit code 8, and no stack', async () => {
  const ran = await run(['workspace', 'list', '--url', 'http://127.0.0.1:9']);
  expect(ran.code).toBe(8);
  expect(ran.err).toMatch(/^The service cannot be reached: .+\n$/);
});

test('a secret is stored from stdin, read, rotated, and given to a program by its environment', async () => {
  expect((await run(['secrets', 'set', 'openai', '--field', 'api_key'], 'sk-1\n')).code).toBe(0);
  expect((await run(['secrets', 'get', 'openai', '--field', 'api_key'])).out).toBe('sk-1\n');
  expect((await run(['secrets', 'rotate', 'openai'], '{"api_key":"sk-2"}')).out).toBe('Rotated openai: version 2.\n');
  const list = await run(['secrets', 'list']);
  expect(list.out).toContain('openai');
  expect(list.out).not.toContain('sk-2');
  const show = 'process.stdout.write(process.env.OPENAI_API_KEY); process.exitCode = 7';
  expect(await program(['secrets', 'run', '--secret', 'openai', '--', process.execPath, '-e', show])).toEqual({
    code: 7,
    out: 'sk-2',
    err: '',
  });
  const demand = (require_reveal_reason: boolean) =>
    ann.call('PATCH', `/v1/orgs/${ann.orgId}/sign-in-policy`, { require_reveal_reason });
  expect((await demand(true)).status).toBe(200);
  const printed = ['--', process.execPath, '-e', 'process.stdout.write(process.env.OPENAI_API_KEY)'];
  for (const refused of [
    await run(['secrets', 'get', 'openai']),
    await run(['secrets', 'run', '--secret', 'openai', ...printed]),
  ]) {
    expect([refused.code, refused.out]).toEqual([7, '']);
    expect(refused.err).toContain('reason');
  }
  const why = ['--reason', 'Ticket 7'];
  expect((await run(['secrets', 'get', 'openai', '--field', 'api_key', ...why])).out).toBe('sk-2\n');
  expect((await program(['secrets', 'run', '--secret', 'openai', ...why, ...printed])).out).toBe('sk-2');
  await demand(false);
  const bad = await run(['secrets', 'set', 'other'], 'sk-3-plain');
  expect([bad.code, bad.err.includes('sk-3')]).toEqual([2, false]);
  expect(await run(['secrets', 'get', 'openai', '--field', 'none'])).toMatchObject({
    code: 2,
    err: "The secret 'openai' has no field 'none'. It has: api_key\n",
  });
});

test('what names nothing is said by its argument, and all of it at once', async () => {
  for (const [args, missing] of [
    [['secrets', 'get'], '<name>'],
    [['secrets', 'set'], '<name>'],
    [['secrets', 'rotate'], '<name>'],
    [['secrets', 'run'], '--secret, -- <command>'],
    [['files', 'upload'], '<file>'],
    [['files', 'download'], '<artifact>'],
    [['files', 'search'], '<query>'],
    [['workspace', 'create'], '<name>'],
    [['tokens', 'create'], '<name>'],
    [['recipes', 'apply'], '<recipe>'],
    [['recipes', 'export'], '<app>'],
    [['api'], '<method>, <path>'],
    [['graphql'], '<document>'],
    [['register'], '--email, --username, --password-stdin'],
  ] as const)
    expect([args, await run([...args])]).toEqual([args, { code: 2, out: '', err: `Missing: ${missing}\n` }]);
});

test('somebody makes an account, and is signed in with it', async () => {
  const env = { XDG_CONFIG_HOME: path.join(home, 'new') };
  const args = ['register', '--url', url, '--email', 'zoe@example.test', '--username', 'zoe', '--password-stdin'];
  const made = await cli(args, { env, input: 'correct horse battery' });
  expect(made).toEqual({ code: 0, out: `Signed in as zoe at ${url}.\n`, err: '' });
  expect(JSON.parse((await cli(['workspace', 'list', '--json'], { env })).out)).toMatchObject([
    { name: 'Default workspace' },
  ]);
  const again = await cli(args, { env, input: 'correct horse battery' });
  expect(again.code).toBe(6);
});

test('an account with a second factor signs in with a code of its app', async () => {
  const fay = await register(app, { name: 'fay' });
  const { recoveryCodes } = await withTotp(app, fay);
  const env = { XDG_CONFIG_HOME: path.join(home, 'factor') };
  const login = ['login', '--url', url, '--username', fay.username, '--password-stdin'];
  expect(await cli(login, { env, input: fay.password })).toMatchObject({ code: 2, err: 'Missing: --code\n' });
  expect((await cli([...login, '--code', '000000'], { env, input: fay.password })).code).toBe(3);
  const signedIn = await cli([...login, '--code', recoveryCodes[0]!], { env, input: fay.password });
  expect(signedIn).toMatchObject({ code: 0, out: `Signed in as ${fay.username} at ${url}.\n` });
});

test('a file is uploaded, found and downloaded', async () => {
  const text = `Humidity drifts by two percent a year. ${randomBytes(8).toString('hex')}`;
  writeFileSync(path.join(home, 'notes.txt'), text);
  const uploaded = JSON.parse((await run(['files', 'upload', path.join(home, 'notes.txt'), '--json'])).out) as {
    artifact_id: string;
  };
  expect((await run(['files', 'list'])).out).toContain('notes.txt');
  await app.jobsDone();
  expect((await run(['files', 'search', 'how much does humidity drift'])).out).toContain('two percent');
  expect((await run(['files', 'download', uploaded.artifact_id])).out).toBe(text);
  expect((await run(['files', 'download', uploaded.artifact_id, '-o', path.join(home, 'copy.txt')])).code).toBe(0);
  expect(readFileSync(path.join(home, 'copy.txt'), 'utf8')).toBe(text);
  expect(await run(['files', 'upload', path.join(home, 'missing.txt')])).toMatchObject({ code: 2, out: '' });
});

test('events are followed while somebody works', async () => {
  const child = spawn(process.execPath, [CLI, 'events', 'tail', '--types', 'namespace.*', '--count', '2', '--json'], {
    env: bare(asAnn()),
  });
  let out = '';
  child.stdout.on('data', (part: Buffer) => (out += part.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  // it follows from some moment on: what is made until then is not seen
  let made = 0;
  await waitUntil(async () => {
    await ann.call('POST', `${ann.home}/namespaces`, { name: `N${made++}` });
    return out !== '';
  });
  await ann.call('POST', `${ann.home}/namespaces`, { name: 'Last' });
  expect(await ended).toBe(0);
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; type: string });
  expect(lines.map(({ type }) => type)).toEqual(['namespace.created', 'namespace.created']);
});

test('recipes are listed, applied and exported; activity is shown; every route can be called', async () => {
  expect((await run(['recipes', 'list'])).out).toContain('starter-chat');
  const { app_id } = JSON.parse((await run(['recipes', 'apply', 'starter-chat', '--json'])).out) as { app_id: string };
  expect(JSON.parse((await run(['recipes', 'export', app_id])).out)).toHaveProperty('definition');
  expect((await run(['activity'])).out).toContain('app');
  const called = await run(['api', 'get', '/v1/orgs/{org}/workspaces/{workspace}']);
  expect(JSON.parse(called.out)).toMatchObject({ workspace_id: ann.workspaceId });
  const made = await run(
    ['api', 'post', '/v1/orgs/{org}/workspaces/{workspace}/namespaces', '--data', '-'],
    '{"name":"X"}',
  );
  expect(JSON.parse(made.out)).toMatchObject({ name: 'X' });
  expect((await run(['api', 'get', '/v1/orgs/{org}/workspaces/ws_none'])).code).toBe(5);
  const document = 'query ($id: ID!) { organization(id: $id) { id } }';
  const asked = await run(['graphql', document, '--var', `id=${ann.orgId}`, '--json']);
  expect(JSON.parse(asked.out)).toEqual({ organization: { id: ann.orgId } });
});
