import { execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine } from '../support/command-line.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { waitUntil } from '../support/wait.ts';

const PROGRAM = path.join(projectRoot, 'clients', 'cli', 'dist', 'index.js');
const ENTER = '\r';
const DOWN = '\u001B[B';
const INTERRUPT = '\u0003';

let app: TestApp;
let url: string;
let ann: Person;
/** She works in two organizations: hers, and that of Ann. */
let bea: Person;
let home: string;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
  bea = await colleague(app, ann, 'editor');
  home = mkdtempSync(path.join(tmpdir(), 'terminal-'));
});
afterAll(async () => {
  await app.close();
  rmSync(home, { recursive: true, force: true });
});

/** What makes a pseudo-terminal: Debian has it everywhere, other systems have one with other options. */
const hasScript = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false;

/** Runs a command in a terminal. Each answer is typed when its question is seen. */
async function inTerminal(
  args: readonly string[],
  answers: readonly (readonly [question: string, typed: string])[],
): Promise<{ code: number; text: string }> {
  // a new terminal has no width, in which no question can be read
  const words = [process.execPath, PROGRAM, ...args].map((word) => `'${word}'`);
  const command = `stty cols 120 rows 40; exec ${words.join(' ')}`;
  const env = { PATH: process.env.PATH, HOME: home, TERM: 'xterm' };
  const child = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  let code: number | undefined;
  child.stdout.on('data', (part: Buffer) => (text += part.toString()));
  child.once('close', (ended) => (code = ended ?? -1));
  let seen = 0;
  try {
    for (const [question, typed] of answers) {
      seen = await waitUntil(() => {
        const found = text.indexOf(question, seen);
        if (found < 0 && code !== undefined) throw new Error(`It has ended: ${text}`);
        return found < 0 ? 0 : found + question.length;
      });
      child.stdin.write(typed);
    }
    await waitUntil(() => code !== undefined);
  } finally {
    child.kill();
  }
  return { code: code!, text };
}

describe.skipIf(!hasScript)('in a terminal', () => {
  test('somebody signs in, chooses an organization, and is asked for what is missing', async () => {
    const signedIn = await inTerminal(
      ['login', '--url', url],
      [
        ['Username or e-mail address', `${bea.username}${ENTER}`],
        ['Password', `${bea.password}${ENTER}`],
      ],
    );
    expect(signedIn).toMatchObject({ code: 0 });
    expect(signedIn.text).toContain(`Signed in as ${bea.username} at ${url}.`);
    expect(signedIn.text).not.toContain(bea.password);

    const listed = await commandLine(['org', 'list', '--json'], { env: { HOME: home } });
    const organizations = JSON.parse(listed.out) as { org_id: string }[];
    expect(organizations.map(({ org_id }) => org_id).sort()).toEqual([ann.orgId, bea.orgId].sort());
    const chosen = await inTerminal(['org', 'use'], [['Which organization?', DOWN + ENTER]]);
    expect(chosen.text).toContain(`Using the organization ${organizations[1]!.org_id}.`);

    const stopped = await inTerminal(['org', 'use'], [['Which organization?', INTERRUPT]]);
    expect([stopped.code, stopped.text.includes('Missing: <org>')]).toEqual([2, true]);
  });

  test('what may destroy something is shown, and sent after a yes only', async () => {
    const organization = `/v1/orgs/${ann.orgId}`;
    const remove = { name: 'remove', method: 'DELETE', url_template: 'https://tickets.test/7' };
    const action_schemas = [{ ...remove, requires_confirmation: true }];
    const tool = { name: 'Tickets', slug: 'tickets', description: 'Tickets.', action_schemas };
    const { body } = await ann.call<{ tool_id: string }>('POST', `${organization}/tools`, tool);
    await ann.call('POST', `${ann.home}/tool-instances`, { tool_id: body.tool_id, name: 'Tickets' });
    const place = ['--url', url, '--token', ann.accessToken, '--org', ann.orgId, '--workspace', ann.workspaceId];
    // the only instance and its only action need no question
    const { code, text } = await inTerminal(
      ['tools', 'call', ...place],
      [['Send DELETE https://tickets.test/7?', 'n']],
    );
    expect(code).toBe(1);
    expect(text).toMatch(/'remove' would send:\r\nDELETE https:\/\/tickets\.test\/7\r\n/);
    expect(text).toContain('Nothing was sent.');
  });
});

describe('completion', () => {
  test('bash completes commands, options and nothing where a value stands', async () => {
    const { out: script } = await commandLine(['completion', 'bash']);
    const lines = [
      'platform ',
      'platform sec',
      'platform --org org_1 secrets ',
      'platform secrets get openai --f',
      'platform env deploy --w',
      'platform env deploy --env ',
      'platform secrets run --secret openai -- no',
      'platform completion ',
    ];
    const asked = lines.map((line) => {
      const words = line.split(' ').map((word) => `'${word}'`);
      return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _platform; echo "\${COMPREPLY[*]}"`;
    });
    const run = promisify(execFile);
    const { stdout } = await run('bash', ['-uc', [script, ...asked, 'complete -p platform'].join('\n')]);
    const [commands = '', ...others] = stdout.trimEnd().split('\n');
    expect(commands.split(' ')).toEqual(expect.arrayContaining(['login', 'env', 'tools', 'tokens', 'doctor']));
    expect(others).toEqual([
      'secrets',
      'list get set rotate run',
      '--field',
      '--wait --wait-seconds --workspace',
      '',
      '',
      'bash zsh fish',
      'complete -o default -F _platform platform',
    ]);
  });

  test('other shells get theirs, and an unknown one is named', async () => {
    const { out: fish } = await commandLine(['completion', 'fish']);
    expect(fish).toContain(`complete -c platform -f -n "__platform_at 'secrets'" -a rotate -d '`);
    expect(fish).toContain(`complete -c platform -n "__platform_at 'env deploy'" -l release -r -d '`);
    expect((await commandLine(['completion', 'zsh'])).out).toContain('bashcompinit');
    expect((await commandLine(['completion', 'tcsh'])).code).toBe(2);
  });
});
