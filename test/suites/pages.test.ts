import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { ROOT_KEYS, startTestApp, type TestApp } from '../support/app.ts';
import { keptLog } from '../support/log-lines.ts';

/** A page of the documentation, as text and by its path below the root of the project. */
interface Page {
  path: string;
  text: string;
}

const blocksOf = (text: string, language = 'sh') =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, kind, block]) => (kind === language ? [block!] : []));

const pages: Page[] = [
  'README.md',
  ...readdirSync(path.join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' }),
]
  .filter((file) => file.endsWith('.md'))
  .map((file) => (file === 'README.md' ? file : path.join('docs', file)))
  .map((file) => ({ path: file, text: readFileSync(path.join(projectRoot, file), 'utf8') }));
const pageAt = (wanted: string) => pages.find((page) => page.path === wanted)!;
const hasCommands = ({ text }: Page) => blocksOf(text).length > 0;

const start = pageAt('docs/start.md');
const blockWith = (text: string) => blocksOf(start.text).find((block) => block.includes(text))!;
const registration = blockWith('/v1/auth/register');
const helpers = blockWith('pick() {');

/** A command with what its page says that it prints. */
interface Command {
  text: string;
  printed: string | null;
}

/**
 * The commands of a block: lines that end with a backslash or in the middle of a quotation go on, and an indented
 * comment is what the command before it prints.
 */
function commandsOf(block: string): Command[] {
  const commands: Command[] = [];
  let text = '';
  for (const line of block.trimEnd().split('\n')) {
    if (text === '' && commands.length > 0 && /^\s+# /.test(line)) {
      commands.at(-1)!.printed = line.replace(/^\s+# /, '');
      continue;
    }
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
  folder = mkdtempSync(path.join(os.tmpdir(), 'pages-'));
  for (const file of ['README.md', 'package.json']) copyFileSync(path.join(projectRoot, file), path.join(folder, file));
  for (const name of ['node_modules', 'scripts']) symlinkSync(path.join(projectRoot, name), path.join(folder, name));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the example provider as a page says. @returns what ends it */
async function startProvider(command: string, app: TestApp, port: number): Promise<() => Promise<void>> {
  const child = spawn('bash', ['-c', `exec ${command}`], {
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
/** Runs a command that would never end until its stream has sent an event, and prints nothing. */
const FOLLOW = `follow() { "$@" > followed.txt & local stream=$!
  until grep -q '^event: ' followed.txt; do sleep 0.1; done; kill $stream; }`;
const isEndless = ({ text }: Command) => text.startsWith('curl -sN ') && !text.includes(' > ');

/** Runs the commands of pages in one shell, one page after the other. @returns what each command printed */
async function printedBy(
  commands: readonly Command[],
  own: readonly string[],
  { url, database, dataDir }: TestApp,
): Promise<string[]> {
  const run = (command: Command) => (isEndless(command) ? `follow ${command.text}` : command.text);
  const script = [
    'set -euo pipefail',
    FOLLOW,
    ...own,
    ...commands.flatMap((command) => [`echo '${MARK}'`, run(command)]),
  ]
    .join('\n')
    .replaceAll('http://127.0.0.1:4000', url);
  // what waits for ever is ended before the test is
  const service = { DATABASE_URL: database.url, DATA_DIR: dataDir, ROOT_KEYS };
  const options = { cwd: folder, encoding: 'utf8', timeout: 90_000, env: { ...process.env, ...service } } as const;
  const { stdout } = await promisify(execFile)('bash', ['-c', script], options);
  return stdout
    .split(`${MARK}\n`)
    .slice(1)
    .map((text) => text.trim());
}

/** What a command printed; as its page has it, if the page leaves out parts, and only these differ. */
function abridged(output: string, printed: string | null): string {
  if (!printed?.includes('…')) return output;
  const parts = printed.split(/\s*…\s*/).map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(output) ? printed : output;
}

/** Keys and types of a JSON value: what two answers of one kind have in common. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item)]));
}

const { logger, lines } = keptLog();

/** Runs a page against a service of its own, started with the settings that the page says. */
async function runPage({ text }: Page): Promise<void> {
  const [, service = '', provider = ''] = /^```console\n((?:[A-Z_]+=\S+ )+npm start)\n(.*?)\n/ms.exec(text) ?? [];
  const ports = { 9000: await freePort(), 3000: await freePort() };
  const withPorts = (part: string) =>
    part.replaceAll(/(?<=127\.0\.0\.1:)(?:9000|3000)\b/g, (port) => String(ports[port as '9000' | '3000']));
  const env = Object.fromEntries(
    [...withPorts(service).matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
  );
  for (const program of blocksOf(text, 'js')) writeFileSync(path.join(folder, 'watch.mjs'), program);
  const own = await startTestApp({ env, logger });
  try {
    await own.listen();
    const stop = provider ? await startProvider(provider.split(' #')[0]!, own, ports[9000]) : null;
    try {
      const commands = blocksOf(withPorts(text)).flatMap(commandsOf);
      const outputs = await printedBy(commands, [registration, helpers], own);
      expect(commands.map(({ text, printed }, index) => [text, abridged(outputs[index]!, printed)])).toEqual(
        commands.map(({ text, printed }) => [text, printed ?? '']),
      );
    } finally {
      await stop?.();
    }
    for (const shown of blocksOf(text, 'json').filter((block) => block.includes('"level"'))) {
      const { trace_id: _trace, ...told } = JSON.parse(shown) as Record<string, unknown>;
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(expect.objectContaining(told));
    }
  } finally {
    await own.close();
  }
}

const guides = pages.filter((page) => hasCommands(page) && page !== start && page.path !== 'README.md');
test.each(guides.map((page) => [page.path, page] as const))(
  'every command of %s prints what the page says',
  (_path, page) => runPage(page),
  120_000,
);

test('docs/start.md shows answers of the shape that the service gives', async () => {
  const own = await startTestApp();
  try {
    await own.listen();
    const shown = [...start.text.matchAll(/^```sh\n((?:(?!```).)*)^```\n```json\n(.*?)^```$/gms)];
    expect(shown.length).toBeGreaterThan(3);
    const commands = shown.map(([, block]) => commandsOf(block!)[0]!);
    const outputs = await printedBy(commands, [registration], own);
    expect(outputs.map((text) => shapeOf(JSON.parse(text)))).toEqual(
      shown.map(([, , answer]) => shapeOf(JSON.parse(answer!))),
    );
  } finally {
    await own.close();
  }
});

test('the calls of README.md succeed', async () => {
  const own = await startTestApp();
  try {
    await own.listen();
    const [first = '', ...others] = blocksOf(pageAt('README.md').text);
    const commands = others.flatMap(commandsOf);
    const answers = (await printedBy(commands, [first], own)).map((text) => JSON.parse(text) as object);
    expect(answers).toHaveLength(4);
    for (const answer of answers) {
      for (const fault of ['error', 'errors', 'detail']) expect(answer).not.toHaveProperty(fault);
    }
  } finally {
    await own.close();
  }
});

test('every link of a page leads to a file, and to a heading in it', () => {
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
  const broken = pages.flatMap((page) =>
    [...page.text.replaceAll(/^```.*?^```$/gms, '').matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !/^(?:https?:|mailto:)/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#');
        const at = file ? path.join(projectRoot, path.dirname(page.path), file) : path.join(projectRoot, page.path);
        if (!existsSync(at)) return true;
        return anchor !== undefined && !anchorsOf(readFileSync(at, 'utf8')).includes(anchor);
      })
      .map((target) => `${page.path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every command for operators that a page names is a script of package.json', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8')) as { scripts: object };
  const named = pages.flatMap(({ text }) => [...text.matchAll(/npm run ([a-z:]+)/g)].map(([, name]) => name!));
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});
