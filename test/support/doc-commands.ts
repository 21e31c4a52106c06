import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { ROOT_KEYS, startTestApp, type TestApp } from './app.ts';
import { freePort } from './free-port.ts';
import { keptLog } from './log-lines.ts';
import { PATIENCE_MS } from './slowness.ts';

/** A page of the documentation, as text and by its path below the root of the project. */
export interface Page {
  path: string;
  text: string;
}

export const blocksOf = (text: string, language = 'sh') =>
  [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, kind, block]) => (kind === language ? [block!] : []));

export const pages: Page[] = [
  'README.md',
  ...readdirSync(path.join(projectRoot, 'docs'), { recursive: true, encoding: 'utf8' }),
]
  .filter((file) => file.endsWith('.md'))
  .map((file) => (file === 'README.md' ? file : path.join('docs', file)))
  .map((file) => ({ path: file, text: readFileSync(path.join(projectRoot, file), 'utf8') }));
export const pageAt = (wanted: string) => pages.find((page) => page.path === wanted)!;
const hasCommands = ({ text }: Page) => blocksOf(text).length > 0;

export const start = pageAt('docs/start.md');
const blockWith = (text: string) => blocksOf(start.text).find((block) => block.includes(text))!;
export const registration = blockWith('/v1/auth/register');
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
export function commandsOf(block: string): Command[] {
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

let folder: string;
/** Makes the folder in which commands run: a project with its scripts. It is the caller's to remove. */
export function makeFolder(): string {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pages-'));
  for (const file of ['README.md', 'package.json']) copyFileSync(path.join(projectRoot, file), path.join(folder, file));
  for (const name of ['node_modules', 'scripts']) symlinkSync(path.join(projectRoot, name), path.join(folder, name));
  return folder;
}

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
/**
 * Runs a command that would never end until its stream has sent an event, and prints nothing. Somebody changes the
 * workspace meanwhile: a stream that begins late must not wait for what happened before.
 */
const FOLLOW = `follow() { "$@" > followed.txt & local stream=$!
  until grep -q '^event: ' followed.txt; do
    api PUT /workspaces/$WS "{\\"description\\":\\"Change $RANDOM\\"}" > /dev/null; sleep 0.1; done; kill $stream; }`;
const isEndless = ({ text }: Command) => text.startsWith('curl -sN ') && !text.includes(' > ');

/** Runs the commands of pages in one shell, one page after the other. @returns what each command printed */
export async function printedBy(
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
  const options = { cwd: folder, encoding: 'utf8', timeout: PATIENCE_MS, env: { ...process.env, ...service } } as const;
  const shell = promisify(execFile)('bash', ['-c', script], options);
  // a command that reads what nobody sends ends, and does not wait
  shell.child.stdin!.end();
  const { stdout } = await shell.catch((error: Error & { stdout: string }) => {
    const printed = outputsIn(error.stdout);
    const last = commands[printed.length - 1]?.text ?? 'its beginning';
    throw new Error(`The shell ended in ${last}\n${printed.join('\n')}`, { cause: error });
  });
  return outputsIn(stdout);
}

const outputsIn = (stdout: string) =>
  stdout
    .split(`${MARK}\n`)
    .slice(1)
    .map((text) => text.trim());

/** What a command printed; as its page has it, if the page leaves out parts, and only these differ. */
function abridged(output: string, printed: string | null): string {
  if (!printed?.includes('…')) return output;
  const parts = printed.split(/\s*…\s*/).map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(output) ? printed : output;
}

const { logger, lines } = keptLog();

/** Runs a page against a service of its own, started with the settings that the page says. */
export async function runPage({ text }: Page): Promise<void> {
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

/** The pages with commands that go on in the shell of the first five minutes. */
export const pagesWithCommands = pages.filter(
  (page) => hasCommands(page) && page !== start && page.path !== 'README.md',
);

/** The guides among them, with the names of their files. */
export const guidesWithCommands = pagesWithCommands.flatMap((page) =>
  path.dirname(page.path) === 'docs/guides' ? [{ ...page, name: path.basename(page.path) }] : [],
);
