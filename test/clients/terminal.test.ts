import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { commandLine } from '../support/command-line.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { DOWN, ENTER, hasTerminal, INTERRUPT, inTerminal, openTerminal } from '../support/terminal.ts';

const PROGRAM = path.join(projectRoot, 'clients', 'cli', 'dist', 'index.js');

const FISH = '/usr/bin/fish';
const ZSH = '/usr/bin/zsh';

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

/** Runs a command in a terminal. */
const typed = (args: readonly string[], answers: readonly (readonly [question: string, typed: string])[]) =>
  inTerminal([process.execPath, PROGRAM, ...args], { env: { PATH: process.env.PATH, HOME: home } }, answers);

describe.skipIf(!hasTerminal)('in a terminal', () => {
  test('somebody signs in, chooses an organization, and is asked for what is missing', async () => {
    const signedIn = await typed(
      ['login', '--url', url],
      [
        ['Which way to sign in?', DOWN + ENTER],
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
    const chosen = await typed(['org', 'use'], [['Which organization?', DOWN + ENTER]]);
    expect(chosen.text).toContain(`Using the organization ${organizations[1]!.org_id}.`);

    const stopped = await typed(['org', 'use'], [['Which organization?', INTERRUPT]]);
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
    const { code, text } = await typed(['tools', 'call', ...place], [['Send DELETE https://tickets.test/7?', 'n']]);
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

  test.skipIf(!process.env.CI && !existsSync(FISH))('fish completes the same', async () => {
    const { out: script } = await commandLine(['completion', 'fish']);
    const file = path.join(home, 'platform.fish');
    writeFileSync(file, script);
    const lines = [
      'platform sec',
      'platform --org org_1 secrets ',
      'platform secrets get openai --f',
      'platform env deploy --w',
      'platform completion ',
      'platform secrets --org org_1 r',
    ];
    const asked = lines.map((line) => `echo '>'; complete -C '${line}'`);
    const { stdout } = await promisify(execFile)(
      FISH,
      ['--no-config', '-c', [`source '${file}'`, ...asked].join('\n')],
      { env: { PATH: '/usr/bin:/bin', HOME: home } },
    );
    const found = stdout
      .split('>\n')
      .slice(1)
      .map((part) => part.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]!])));
    expect(found.map((words) => [...words].sort())).toEqual([
      ['secrets'],
      ['get', 'list', 'rotate', 'run', 'set'],
      ['--field'],
      ['--wait', '--wait-seconds', '--workspace'],
      ['bash', 'fish', 'zsh'],
      ['rotate', 'run'],
    ]);
    // with what each of them does
    expect(stdout).toContain('rotate\tgive a secret a new value');
  });

  test.skipIf((!process.env.CI && !existsSync(ZSH)) || !hasTerminal)('zsh completes the same, by Tab', async () => {
    const { out: script } = await commandLine(['completion', 'zsh']);
    const file = path.join(home, 'platform.zsh');
    writeFileSync(file, script);
    const zsh = openTerminal([ZSH, '-f', '-i'], { env: { PATH: '/usr/bin:/bin', HOME: home } });
    try {
      // the program says which words it was given
      zsh.types(`source '${file}' && platform() { print -r -- "<$*>" } && echo rea\\dy${ENTER}`);
      await zsh.sees('ready');
      for (const [typed, given] of [
        ['platform sec', '<secrets>'],
        ['platform --org o secrets rot', '<--org o secrets rotate>'],
        ['platform secrets get openai --f', '<secrets get openai --field>'],
        ['platform completion z', '<completion zsh>'],
      ]) {
        zsh.types(`${typed}\t${ENTER}`);
        await zsh.sees(given!);
      }
      zsh.types(`exit${ENTER}`);
      await zsh.ended();
    } finally {
      zsh.close();
    }
  });

  test('another shell is named', async () => {
    expect((await commandLine(['completion', 'tcsh'])).code).toBe(2);
    expect((await commandLine(['completion'])).err).toBe('Missing: <shell>\n');
  });
});
