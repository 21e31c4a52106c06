import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine } from '../support/command-line.ts';
import { type Person, register } from '../support/person.ts';
import { startTarget, type TargetServer } from '../support/target-server.ts';
import { waitFor } from '../support/wait.ts';

/** More than an answer shows. */
const HUGE = JSON.stringify('y'.repeat(300_000));

let app: TestApp;
let url: string;
let ann: Person;
let home: string;
let target: TargetServer;
beforeAll(async () => {
  target = await startTarget((request, response) => {
    if (request.url === '/broken') return response.writeHead(500).end('It is broken.');
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.url === '/huge') return response.end(HUGE);
    return response.end('{"items":["printer"]}');
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: `127.0.0.1:${target.port}` } });
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
  home = mkdtempSync(path.join(tmpdir(), 'commands-'));
});
afterAll(async () => {
  await app.close();
  await target.close();
  rmSync(home, { recursive: true, force: true });
});

const asAnn = () => ({
  HOME: home,
  PLATFORM_URL: url,
  PLATFORM_TOKEN: ann.accessToken,
  PLATFORM_ORG: ann.orgId,
  PLATFORM_WORKSPACE: ann.workspaceId,
});
const run = (...args: string[]) => commandLine(args, { env: asAnn() });
/** A command that succeeds. @returns its JSON */
async function json<Value>(...args: string[]): Promise<Value> {
  const ran = await run(...args, '--json');
  expect(ran).toMatchObject({ code: 0, err: '' });
  return JSON.parse(ran.out) as Value;
}
async function made<Key extends string>(at: string, body: object, key: Key): Promise<string> {
  const answer = await ann.call<Record<Key, string>>('POST', `${ann.home}${at}`, body);
  expect(answer.status).toBe(201);
  return answer.body[key];
}

describe('environments', () => {
  const release = { one: '', two: '' };
  let shop: string;
  beforeAll(async () => {
    shop = await made('/apps', { name: 'Shop' }, 'app_id');
    release.one = await made(`/apps/${shop}/releases`, { version: '1.0.0' }, 'release_id');
    release.two = await made(`/apps/${shop}/releases`, { version: '1.1.0' }, 'release_id');
    for (const slug of ['staging', 'production'])
      expect((await ann.call('POST', `${ann.home}/environments`, { name: `The ${slug}`, slug })).status).toBe(201);
  });
  const deploy = (version: string) => ['env', 'deploy', '--env', 'staging', '--app', 'Shop', '--release', version];

  test('a release is deployed by names, compared, promoted and rolled back', async () => {
    for (const version of ['1.0.0', '1.1.0'])
      expect((await run(...deploy(version))).out).toMatch(/^App deployed successfully: dep_\w+\n$/);
    const compare = ['env', 'compare', 'staging', 'production'];
    expect(await run(...compare)).toEqual({
      code: 0,
      out: 'APP   staging  production\nShop  1.1.0    -           differs\n',
      err: '',
    });
    const promote = ['env', 'promote', '--from', 'staging', '--to', 'production', '--app', shop];
    expect(await json(...promote)).toMatchObject({ message: 'App promoted successfully', release_id: release.two });
    expect(await json(...compare)).toEqual({
      from: { environment_id: expect.any(String) as string, slug: 'staging' },
      to: { environment_id: expect.any(String) as string, slug: 'production' },
      apps: [
        {
          app_id: shop,
          name: 'Shop',
          from: { release_id: release.two, version: '1.1.0' },
          to: { release_id: release.two, version: '1.1.0' },
          is_same: true,
        },
      ],
    });
    const rollback = ['env', 'rollback', '--env', 'staging', '--app', 'Shop'];
    expect(await json(...rollback)).toMatchObject({ release_id: release.one });
    const none = await run('env', 'rollback', '--env', 'production', '--app', 'Shop', '--json');
    expect([none.code, JSON.parse(none.err)]).toMatchObject([
      6,
      { error: 'RESOURCE_CONFLICT', message: 'No other release was deployed there before.' },
    ]);
  });

  test('a deployment is waited for by the events of the workspace', async () => {
    const done = await json<{ release_id: string }>(...deploy('1.0.0'), '--wait');
    expect(done.release_id).toBe(release.one);
  });

  test('what is missing, or is not there, is named', async () => {
    const lacking = await commandLine(['env', 'deploy'], { env: { ...asAnn(), PLATFORM_WORKSPACE: '' } });
    expect(lacking).toEqual({ code: 2, out: '', err: 'Missing: --workspace, --env, --app, --release\n' });
    expect(await run('env', 'compare', 'staging')).toMatchObject({ code: 2, err: 'Missing: <to>\n' });
    expect(await run('env', 'compare', 'staging', 'moon')).toMatchObject({
      code: 5,
      err: "There is no environment 'moon'.\n",
    });
    expect(await run(...deploy('9.9.9'))).toMatchObject({ code: 5, err: "There is no release '9.9.9'.\n" });
  });
});

describe('tools', () => {
  let instance: string;
  beforeAll(async () => {
    const at = `http://127.0.0.1:${target.port}`;
    const tool = {
      name: 'Tickets',
      slug: 'tickets',
      description: 'Reads tickets.',
      action_schemas: [
        {
          name: 'find',
          method: 'GET',
          url_template: `${at}/tickets`,
          query_params_template: { q: '{{query}}' },
          parameters: [{ name: 'query', type: 'string', required: true }],
        },
        { name: 'remove', method: 'DELETE', url_template: `${at}/tickets/7`, requires_confirmation: true },
        { name: 'break', method: 'GET', url_template: `${at}/broken` },
        { name: 'huge', method: 'GET', url_template: `${at}/huge` },
      ],
    };
    const { status, body } = await ann.call<{ tool_id: string }>('POST', `/v1/orgs/${ann.orgId}/tools`, tool);
    expect(status).toBe(201);
    instance = await made('/tool-instances', { tool_id: body.tool_id, name: 'Our tickets' }, 'instance_id');
  });
  const sent = () => target.requests.map(({ method, path: at }) => `${method} ${at}`);

  test('instances and their actions are listed, and an action runs', async () => {
    expect(await json('tools', 'list')).toEqual([
      expect.objectContaining({ instance_id: instance, name: 'Our tickets', tool: 'tickets', is_active: true }),
    ]);
    const shown = await run('tools', 'actions', 'Our tickets');
    expect(shown.out.split('\n').map((line) => line.trimEnd().split(/ {2,}/))).toEqual([
      ['ACTION', 'METHOD', 'PARAMETERS', 'ASKS'],
      ['find', 'GET', 'query'],
      ['remove', 'DELETE', 'yes'],
      ['break', 'GET'],
      ['huge', 'GET'],
      [''],
    ]);
    const called = await run('tools', 'call', 'Our tickets', 'find', '--param', 'query=printer');
    expect(called).toEqual({ code: 0, out: '{\n  "items": [\n    "printer"\n  ]\n}\n', err: '' });
    const dry = await run('tools', 'call', instance, 'find', '--data', '{"query":"x"}', '--dry-run');
    expect(dry.out).toMatch(/^GET http:\S+\/tickets\?q=x\n/);
    expect(sent()).toEqual(['GET /tickets?q=printer']);
  });

  test('what may destroy something is shown and sent only after a yes', async () => {
    const before = sent().length;
    const asked = await run('tools', 'call', instance, 'remove');
    const request = `DELETE http://127.0.0.1:${target.port}/tickets/7`;
    expect([asked.code, asked.out]).toEqual([2, '']);
    expect(asked.err).toContain(`'remove' would send:\n${request}\n`);
    expect(asked.err).toContain(`Missing: --yes. Send ${request}?\n`);
    const machine = await run('tools', 'call', instance, 'remove', '--json');
    expect(JSON.parse(machine.err)).toMatchObject({ error: 'USAGE', details: { request: { method: 'DELETE' } } });
    expect(sent()).toHaveLength(before);
    expect(await json('tools', 'call', instance, 'remove', '--yes')).toMatchObject({ success: true, code: 'ok' });
    expect(sent().slice(before)).toEqual(['DELETE /tickets/7']);
  });

  test('a result that is cut comes with the address of all of it', async () => {
    const { code, out, err } = await run('tools', 'call', instance, 'huge');
    expect([code, HUGE.startsWith(out.trimEnd())]).toEqual([0, true]);
    const [, address] = /^The result is cut\. All 300002 bytes, until \S+Z: (\S+)\n$/.exec(err) ?? [];
    expect(await (await fetch(address!)).text()).toBe(HUGE);
  });

  test('a refusal of the provider and a wrong parameter are failures of their own', async () => {
    const refused = await run('tools', 'call', instance, 'break', '--json');
    expect([refused.code, refused.out, JSON.parse(refused.err)]).toMatchObject([
      1,
      '',
      { error: 'FAILED', details: { code: 'http_500', excerpt: 'It is broken.' } },
    ]);
    expect((await run('tools', 'call', instance, 'break')).err).toMatch(/\nIt is broken\.\n$/);
    expect((await run('tools', 'call', instance, 'find', '--param', 'other=1')).code).toBe(7);
    expect((await run('tools', 'call', instance, 'find', '--param', 'query')).code).toBe(2);
    expect((await run('tools', 'call', instance, 'find', '--data', '[1]')).code).toBe(2);
  });
});

test('a token is shown once, to a file or alone on stdout, and in JSON only if that is asked for', async () => {
  const count = async () => (await json<object[]>('tokens', 'list', '--all')).length;
  const before = await count();
  const lost = await run('tokens', 'create', 'ci', '--json');
  expect([lost.code, lost.out, await count()]).toEqual([2, '', before]);

  const file = path.join(home, 'token.txt');
  const create = ['tokens', 'create', 'ci', '--scopes', 'read', '--expires-in-days', '9'];
  const kept = await json<{ name: string; scopes: string[] }>(...create, '-o', file);
  const token = readFileSync(file, 'utf8').trimEnd();
  expect([kept.name, kept.scopes]).toEqual(['ci', ['read']]);
  expect(JSON.stringify(kept)).not.toContain(token);
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  expect((await run('whoami', '--token', token)).out).toContain(ann.username);

  // what is there is never written over, and no token is made for it
  const taken = await run(...create, '-o', file);
  expect([taken.code, readFileSync(file, 'utf8').trimEnd(), await count()]).toEqual([2, token, before + 1]);

  const plain = await run('tokens', 'create', 'other');
  expect((await run('whoami', '--token', plain.out.trimEnd())).code).toBe(0);
  expect(plain.err).toMatch(/^Created the token other: tok_\w+\n$/);
  expect(await json('tokens', 'create', 'third', '--show-token')).toMatchObject({
    name: 'third',
    plaintext_token: expect.any(String) as string,
    refresh_token_plaintext: expect.any(String) as string,
  });

  expect((await run('tokens', 'revoke', 'ci')).out).toMatch(/^Revoked the token tok_\w+\.\n$/);
  expect((await run('whoami', '--token', token)).code).toBe(3);
  expect((await run('tokens', 'list')).out).not.toMatch(/\bci\b/);
  expect((await run('tokens', 'revoke', 'ci')).code).toBe(5);
  // a file that is made for a token goes if there is none
  const refused = path.join(home, 'refused.txt');
  expect((await run('tokens', 'create', 'x', '--scopes', 'raed', '-o', refused)).code).toBe(7);
  expect(() => statSync(refused)).toThrow();
});

describe('doctor', () => {
  type Report = { ok: boolean; checks: { check: string; status: string; message: string }[] };
  const statuses = ({ checks }: Report) => Object.fromEntries(checks.map(({ check, status }) => [check, status]));

  test('says that all is well, and until when', async () => {
    const { code, out } = await run('doctor', '--json');
    const report = JSON.parse(out) as Report;
    expect([code, report.ok]).toEqual([0, true]);
    // an access token lasts half an hour
    const fine = { address: 'ok', tls: 'ok', clock: 'ok', version: 'ok', ready: 'ok', 'signed in': 'ok' };
    expect(statuses(report)).toEqual({ ...fine, expiry: 'warning' });
    const create = ['tokens', 'create', 'd', '--scopes', 'read', '--show-token'];
    const token = await json<{ plaintext_token: string; expires_at: string }>(...create);
    const human = await run('doctor', '--token', token.plaintext_token);
    expect(human.out).toMatch(new RegExp(`^signed in +ok +as ${ann.username} <${ann.email}>, by the option$`, 'm'));
    expect(human.out).toMatch(new RegExp(`^expiry +ok +the token works until ${token.expires_at.slice(0, 19)}`, 'm'));
  });

  test('names what is wrong, with the exit code of the first fault', async () => {
    expect((await run('doctor', '--token', 'nonsense')).code).toBe(3);
    expect((await commandLine(['doctor', '--url', url], { env: { HOME: home } })).out).toContain(
      'signed in  failed  no. Sign in: platform login',
    );
    const secure = await startTarget((_request, response) => response.end('{}'), { isSecure: true });
    const untrusted = await run('doctor', '--json', '--url', `https://127.0.0.1:${secure.port}`);
    expect([untrusted.code, statuses(JSON.parse(untrusted.out) as Report)]).toMatchObject([
      8,
      { address: 'failed', tls: 'failed' },
    ]);
    await secure.close();
    const wrong = await startTarget((request, response) => {
      response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString());
      response.statusCode = request.url === '/readyz' ? 503 : 200;
      response.end('{"version":"9.0.0"}');
    });
    const late = await run('doctor', '--json', '--url', `http://127.0.0.1:${wrong.port}`);
    expect([late.code, statuses(JSON.parse(late.out) as Report)]).toMatchObject([
      1,
      { address: 'ok', clock: 'failed', version: 'warning', ready: 'failed' },
    ]);
    expect(late.out).toMatch(/this machine is 3[56]\d\d seconds ahead of the service/);
    await wrong.close();
  });
});

describe('files', () => {
  const upload = (name: string, ...more: string[]) => run('files', 'upload', path.join(home, name), '--wait', ...more);

  test('an upload ends when its text can be found; what has no text is done at once', async () => {
    writeFileSync(path.join(home, 'notes.txt'), 'Humidity drifts by two percent a year.');
    const done = JSON.parse((await upload('notes.txt', '--json')).out) as { is_indexed: boolean; chunk_count: number };
    expect(done).toMatchObject({ is_indexed: true, chunk_count: 1 });
    expect((await run('files', 'search', 'humidity')).out).toContain('two percent');
    writeFileSync(path.join(home, 'dot.png'), Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ', 'base64'));
    expect((await upload('dot.png')).code).toBe(0);
  });

  test('who looks on sees how far a transfer is, and what is waited for; others see nothing', async () => {
    const watched = (...args: string[]) => commandLine(args, { env: asAnn(), isWatched: true });
    const [large, copy] = [path.join(home, 'large.bin'), path.join(home, 'copy.bin')];
    writeFileSync(large, randomBytes(9_000_000));
    const sent = await watched('files', 'upload', large);
    // it goes in pieces of 4 MiB
    expect(sent.err.match(/\d+%/g)).toEqual(['47%', '93%', '100%']);
    expect(sent.err).toContain('large.bin [##############................] 47%');
    const id = /art_\w+/.exec(sent.out)![0];
    const read = await watched('files', 'download', id, '-o', copy);
    expect(read.err).toContain('copy.bin [##############################] 100%\n');
    expect(readFileSync(copy).equals(readFileSync(large))).toBe(true);

    writeFileSync(path.join(home, 'more.txt'), 'Sensors are calibrated each spring.');
    const indexed = await watched('files', 'upload', path.join(home, 'more.txt'), '--wait');
    expect(indexed.err).toContain('more.txt [');
    expect(indexed.err).toContain('Reading the text of the file, to find it by … 0 s');

    const file = path.join(home, 'workspace.json');
    const exported = ['api', 'get', '/v1/orgs/{org}/workspaces/{workspace}/export', '-o', file];
    const written = await watched(...exported);
    expect(written.err).toMatch(/GET \/v1\/\S+\/export … 0 s/);
    expect(written.err).toMatch(/workspace\.json .*100%\n$/);
    const definition = JSON.parse(readFileSync(file, 'utf8')) as object;
    expect(written.out).toMatch(/^Wrote \d+ bytes to /);
    writeFileSync(file, JSON.stringify(definition));
    const taken = await watched('api', 'post', '/v1/orgs/{org}/workspaces/{workspace}/import', '--data', `@${file}`);
    expect(taken.err).toMatch(/POST \/v1\/\S+\/import … 0 s/);
    for (const args of [exported, ['files', 'download', id, '-o', copy], ['files', 'upload', large]])
      expect((await run(...args)).err).toBe('');
  });

  test('an answer of which nobody knows the length is counted as it comes', async () => {
    const slow = await startTarget((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.write('{"a":1}\n'.repeat(200));
      response.end('{"a":2}\n');
    });
    const file = path.join(home, 'activity.ndjson');
    const args = ['api', 'get', '/v1/activity', '-o', file, '--url', `http://127.0.0.1:${slow.port}`];
    const { err } = await commandLine(args, { env: asAnn(), isWatched: true });
    expect(err).toMatch(/activity\.ndjson 1\.6 kB/);
    expect(readFileSync(file, 'utf8')).toHaveLength(1_608);
    await slow.close();
  });

  test('a wait has a limit, and an exit code of its own', async () => {
    // its stream never says anything
    const target = await startTarget((request, response) => {
      if (!request.url?.endsWith('/sync/stream')) return response.writeHead(404).end('{}');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return response.flushHeaders();
    });
    const args = ['files', 'upload', path.join(home, 'notes.txt'), '--wait', '--wait-seconds', '1', '--json'];
    const ran = await run(...args, '--url', `http://127.0.0.1:${target.port}`);
    expect([ran.code, ran.out, JSON.parse(ran.err)]).toEqual([
      9,
      '',
      { error: 'WAITED_TOO_LONG', message: 'Waited 1 seconds. Nothing was begun.', details: {} },
    ]);
    await target.close();
  });
});

test('a wait ends by the event of its own work alone; what was begun is named when it comes too late', async () => {
  let stream: ServerResponse | undefined;
  let isTold = false;
  const say = (type: string, resource_id: string | null) =>
    stream!.write(`id: 1\ndata: ${JSON.stringify({ type, resource_id })}\n\n`);
  const answers: Record<string, object> = {
    environments: { environments: [{ environment_id: 'env_1', slug: 'staging', name: 'S', status: 'active' }] },
    apps: { apps: [{ app_id: 'app_1', name: 'Shop' }] },
    releases: { releases: [{ release_id: 'rls_1', version: '1' }] },
    deploy: {
      message: 'Deployed',
      deployment_id: 'dep_1',
      environment_id: 'env_1',
      app_id: 'app_1',
      release_id: 'rls_1',
    },
  };
  const fake = await startTarget((request, response) => {
    const last = request.url!.split('?')[0]!.split('/').at(-1)!;
    if (last !== 'stream') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...answers[last], next_cursor: null }));
      if (last === 'deploy' && isTold) {
        say('deployment.created', 'dep_other');
        say('app.updated', 'dep_1');
        say('deployment.rolled_back', 'dep_1');
      }
      return;
    }
    stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
    say('connected', null);
  });
  const deploy = ['env', 'deploy', '--env', 'staging', '--app', 'Shop', '--release', '1', '--wait', '--json'];
  const at = ['--url', `http://127.0.0.1:${fake.port}`];
  // on a busy machine, the limit may be over before the work begins
  await waitFor(async () => {
    const late = await run(...deploy, ...at, '--wait-seconds', '1');
    expect([late.code, late.out, JSON.parse(late.err)]).toMatchObject([
      9,
      '',
      { error: 'WAITED_TOO_LONG', details: { deployment_id: 'dep_1' } },
    ]);
  });
  isTold = true;
  const told = await run(...deploy, ...at);
  expect([told.code, JSON.parse(told.out)]).toMatchObject([0, { deployment_id: 'dep_1' }]);
  await fake.close();
});

test('what a service says moves no cursor', async () => {
  const body = JSON.stringify({ error: 'FORBIDDEN', message: 'No.\u001B[2J\u202E', details: {} });
  const hostile = await startTarget((_request, response) => response.writeHead(403).end(body));
  const { code, err } = await run('whoami', '--url', `http://127.0.0.1:${hostile.port}`);
  expect([code, err]).toEqual([4, 'No.\\u001b[2J\\u202e\n']);
  await hostile.close();
});

test('places are kept by their names, and what is below another place is forgotten', async () => {
  const env = { HOME: path.join(home, 'places') };
  const cli = (...args: string[]) => commandLine(args, { env });
  const options = { env, input: ann.accessToken };
  expect((await commandLine(['login', '--url', url, '--token-stdin'], options)).code).toBe(0);
  expect((await cli('org', 'use')).err).toBe('Missing: <org>\n');
  expect((await cli('org', 'use', ann.orgId)).code).toBe(0);
  expect((await cli('workspace', 'use', 'Default workspace')).out).toBe(`Using the workspace ${ann.workspaceId}.\n`);
  expect((await cli('namespace', 'use', 'default')).out).toBe('Using the namespace default.\n');
  expect((await cli('workspace', 'use', 'No such')).code).toBe(5);
  const kept = () =>
    (
      JSON.parse(readFileSync(path.join(env.HOME, '.config/platform/profiles.json'), 'utf8')) as {
        profiles: Record<string, Record<string, string>>;
      }
    ).profiles.default!;
  expect(kept()).toMatchObject({ org: ann.orgId, workspace: ann.workspaceId, namespace: 'default' });
  await cli('org', 'use', 'org_other');
  expect([kept().org, kept().workspace, kept().namespace]).toEqual(['org_other', undefined, undefined]);
});
