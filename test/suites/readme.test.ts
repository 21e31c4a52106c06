import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';

const readme = readFileSync(path.join(projectRoot, 'README.md'), 'utf8');
const HEADING = '## Tool instances and connections\n';

const blocksOf = (text: string) => [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);

/** The section about connections, and what it needs of the ones before it. */
const section = blocksOf(readme.split(HEADING)[1]!.split(/^## /m)[0]!);
const [start = '', ...steps] = section;
const blockWith = (text: string) => blocksOf(readme).find((block) => block.includes(text))!;
const registration = blockWith('/v1/auth/register');
const helpers = blockWith('pick() {');
const workspace = /^WS=.*$/m.exec(readme)![0];

/** A command with what the README says that it prints. */
interface Command {
  text: string;
  printed: string | null;
}

/** The commands of a block: lines that end with a backslash or in the middle of a quotation go on. */
function commandsOf(block: string): Command[] {
  const commands: Command[] = [];
  let text = '';
  for (const line of block.trimEnd().split('\n')) {
    text += text === '' ? line : `\n${line}`;
    if (line.endsWith('\\') || !isClosed(text)) continue;
    const [, command = text, printed = null] = /^(.*?\S) +# (.+)$/s.exec(text) ?? [];
    commands.push({ text: command, printed });
    text = '';
  }
  return commands;
}

/** Whether every quotation has ended. */
function isClosed(text: string): boolean {
  let open = '';
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '\\' && open !== "'") at++;
    else if (open === '' && /["']/.test(character)) open = character;
    else if (character === open) open = '';
  }
  return open === '';
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

let app: TestApp;
let folder: string;
let providerPort: number;
let stopProvider: () => Promise<void>;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'readme-'));
  providerPort = await freePort();
  const [service = '', provider = ''] = start.trimEnd().split('\n');
  const allowed = /^OUTBOUND_ALLOW=(\S+) npm start$/.exec(service)?.[1];
  expect(allowed).toBe('127.0.0.1:9000');
  app = await startTestApp({ env: { OUTBOUND_ALLOW: `127.0.0.1:${providerPort}` } });
  await app.listen();
  const [command] = commandsOf(provider);
  const child = spawn('bash', ['-c', `exec ${command!.text}`], {
    cwd: projectRoot,
    env: { ...process.env, PORT: String(providerPort), CALLBACK_URL: `${app.url}/connections/callback` },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const closed = once(child, 'close');
  stopProvider = async () => {
    process.kill(-child.pid!, 'SIGTERM');
    await closed;
  };
  const printed: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(line);
    if (line.startsWith('client ')) return;
  }
  throw new Error(`The provider ended: ${printed.join('\n')}`);
}, 60_000);
afterAll(async () => {
  await stopProvider();
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

const MARK = '=== next';

/** Runs commands after those that every section needs. All of them must print what the README says. */
async function expectPrinted(blocks: readonly string[], url: string, replaced: (script: string) => string) {
  const commands = blocks.flatMap(commandsOf);
  expect(commands.filter(({ printed }) => printed !== null).length).toBeGreaterThan(4);
  const script = [
    'set -euo pipefail',
    registration,
    workspace,
    helpers,
    ...commands.flatMap(({ text }) => [`echo '${MARK}'`, text]),
  ]
    .join('\n')
    .replaceAll('http://127.0.0.1:4000', url);
  const options = { cwd: folder, encoding: 'utf8' } as const;
  const { stdout } = await promisify(execFile)('bash', ['-c', replaced(script)], options);
  const outputs = stdout.split(`${MARK}\n`).slice(1);
  expect(commands.map(({ text }, index) => [text, outputs[index]?.trim()])).toEqual(
    commands.map(({ text, printed }) => [text, printed ?? '']),
  );
}

test('every command of the section about connections prints what the README says', async () => {
  await expectPrinted(steps, app.url, (script) => script.replaceAll('127.0.0.1:9000', `127.0.0.1:${providerPort}`));
}, 120_000);

test.each(['Files', 'Entities and memories', 'Artifacts', 'Search'])(
  'every command of the section "%s" prints what the README says',
  async (title) => {
    for (const file of ['README.md', 'package.json'])
      copyFileSync(path.join(projectRoot, file), path.join(folder, file));
    const own = await startTestApp();
    try {
      await own.listen();
      const blocks = blocksOf(readme.split(`\n## ${title}\n`)[1]!.split(/^## /m)[0]!).filter(
        (block) => !block.startsWith('npm run '),
      );
      await expectPrinted(blocks, own.url, (script) => script);
    } finally {
      await own.close();
    }
  },
  120_000,
);
