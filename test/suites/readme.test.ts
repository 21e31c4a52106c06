import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { keptLog } from '../support/log-lines.ts';

const readme = readFileSync(path.join(projectRoot, 'README.md'), 'utf8');
const blocksOf = (text: string, language = 'sh') =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, kind, block]) => (kind === language ? [block!] : []));
const sectionOf = (title: string): string => readme.split(`\n## ${title}\n`)[1]!.split(/^## /m)[0]!;
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
    if (open === '' && /\s#/.test(text.slice(at - 1, at + 1))) return true; // a comment, whatever is quoted in it
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

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'readme-'));
  for (const file of ['README.md', 'package.json']) copyFileSync(path.join(projectRoot, file), path.join(folder, file));
  symlinkSync(path.join(projectRoot, 'node_modules'), path.join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the example provider as the README says. @returns what ends it */
async function startProvider(command: Command, app: TestApp, port: number): Promise<() => Promise<void>> {
  const child = spawn('bash', ['-c', `exec ${command.text}`], {
    cwd: projectRoot,
    env: { ...process.env, PORT: String(port), CALLBACK_URL: `${app.url}/connections/callback` },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  const closed = once(child, 'close');
  const stop = async () => {
    process.kill(-child.pid!, 'SIGTERM');
    await closed;
  };
  const printed: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(line);
    if (line.startsWith('client ')) return stop;
  }
  throw new Error(`The provider ended: ${printed.join('\n')}`);
}

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
  // what waits for ever is ended before the test is
  const options = { cwd: folder, encoding: 'utf8', timeout: 90_000 } as const;
  const { stdout } = await promisify(execFile)('bash', ['-c', replaced(script)], options);
  const outputs = stdout.split(`${MARK}\n`).slice(1);
  expect(commands.map(({ text }, index) => [text, outputs[index]?.trim()])).toEqual(
    commands.map(({ text, printed }) => [text, printed ?? '']),
  );
}

const { logger, lines } = keptLog();

test.each([
  ['Sign in through your company', ['OUTBOUND_ALLOW', 'SSO_REDIRECT_URIS']],
  ['Tool instances and connections', ['OUTBOUND_ALLOW']],
])(
  'every command of the section "%s" prints what the README says, and the log says what it shows',
  async (title, settings) => {
    const section = sectionOf(title);
    const [start = '', ...steps] = blocksOf(section);
    const [service = '', provider = ''] = start.trimEnd().split('\n');
    const ports = { 9000: await freePort(), 3000: await freePort() };
    const withPorts = (text: string) =>
      text.replaceAll(/(?<=127\.0\.0\.1:)(?:9000|3000)\b/g, (port) => String(ports[port as '9000' | '3000']));
    expect(service).toMatch(/^(?:[A-Z_]+=\S+ )+npm start$/);
    const env = Object.fromEntries(
      [...withPorts(service).matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    );
    expect(Object.keys(env)).toEqual(settings);
    const own = await startTestApp({ env, logger });
    try {
      await own.listen();
      const stop = await startProvider(commandsOf(provider)[0]!, own, ports[9000]);
      try {
        await expectPrinted(steps, own.url, withPorts);
      } finally {
        await stop();
      }
      for (const shown of blocksOf(section, 'json')) {
        const { trace_id: _trace, ...told } = JSON.parse(shown) as Record<string, unknown>;
        expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(expect.objectContaining(told));
      }
    } finally {
      await own.close();
    }
  },
  120_000,
);

test.each(['Live events in a client', 'Files', 'Entities and memories', 'Artifacts', 'Search', 'Notifications'])(
  'every command of the section "%s" prints what the README says',
  async (title) => {
    const section = sectionOf(title);
    for (const script of blocksOf(section, 'js')) writeFileSync(path.join(folder, 'watch.mjs'), script);
    const own = await startTestApp();
    try {
      await own.listen();
      const blocks = blocksOf(section).filter((block) => !block.startsWith('npm run '));
      await expectPrinted(blocks, own.url, (script) => script);
    } finally {
      await own.close();
    }
  },
  120_000,
);
