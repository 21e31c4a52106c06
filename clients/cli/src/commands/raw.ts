import { createWriteStream, readFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { valuesOf } from '../arguments.ts';
import { UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { progressOf, readStdin, show, shownOn, working } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

interface ApiOptions {
  data?: string;
  output?: string;
}

/** `{org}`, `{workspace}` and `{namespace}` in a path stand for where the caller works. */
async function pathOf(bench: Workbench, given: string): Promise<string> {
  if (!given.startsWith('/')) throw new UsageError('The path begins with a slash, such as /v1/orgs/{org}/workspaces');
  let filled = given;
  if (given.includes('{org}')) filled = filled.replaceAll('{org}', await bench.org());
  if (given.includes('{workspace}')) filled = filled.replaceAll('{workspace}', (await bench.workspace()).workspace_id);
  if (given.includes('{namespace}')) filled = filled.replaceAll('{namespace}', (await bench.namespace()).namespace_id);
  return filled;
}

/** `-` reads stdin, `@FILE` a file. */
async function textOf(bench: Workbench, given: string): Promise<string> {
  if (given === '-') return readStdin(bench);
  return given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given;
}

async function api(
  bench: Workbench,
  verb: string | undefined,
  at: string | undefined,
  { data, output }: ApiOptions,
): Promise<void> {
  if (!bench.isInteractive) nameMissing({ '<method>': verb, '<path>': at });
  const choices = () => Promise.resolve(METHODS.map((value) => ({ value, label: value })));
  const method = verb ?? (await bench.pick({ option: '<method>', noun: 'method', choices }));
  const given = at ?? (await bench.ask('<path>', 'Path, such as /v1/orgs/{org}/workspaces'));
  if (!METHODS.includes(method.toLowerCase())) throw new UsageError(`The method is one of ${METHODS.join(', ')}.`);
  const filled = await pathOf(bench, given);
  const body = data === undefined ? undefined : await textOf(bench, data);
  const send = () =>
    bench.client.send(filled, {
      method: method.toUpperCase(),
      ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
    });
  // an import takes its time, and so does what is written to a file
  const isLong = data?.startsWith('@') || output !== undefined;
  const response = await working(bench, `${method.toUpperCase()} ${filled}`, send, isLong ? 0 : undefined);
  if (output !== undefined) return writeTo(bench, response, output);
  const text = await response.text();
  if (text !== '') bench.around.stdout.write(`${shownOn(bench.around.stdout, text.trimEnd())}\n`);
}

/** Writes an answer to a file as it comes: exports are long, and nobody knows how long. */
async function writeTo(bench: Workbench, { body, headers }: Response, file: string): Promise<void> {
  const length = headers.get('content-length');
  const draw = progressOf(bench, path.basename(file));
  let done = 0;
  const from = body ? Readable.fromWeb(body as import('node:stream/web').ReadableStream) : Readable.from([]);
  from.on('data', (chunk: Buffer) => draw((done += chunk.length), length === null ? null : Number(length)));
  await pipeline(from, createWriteStream(file));
  if (length === null) draw(done, done);
  show(bench, { file, size_bytes: done }, () => `Wrote ${done} bytes to ${file}.`);
}

function nameMissing(given: Record<string, string | undefined>): void {
  const missing = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length > 0) throw new UsageError(`Missing: ${missing.join(', ')}`);
}

async function graphql(bench: Workbench, given: string | undefined, pairs: string[]): Promise<void> {
  const document = await textOf(bench, given ?? (await bench.ask('<document>', 'GraphQL document')));
  const variables = valuesOf(pairs, 'variable');
  const data = await working(bench, 'Waiting for the answer', () =>
    bench.client.query<unknown, Record<string, unknown>>(document, variables),
  );
  bench.around.stdout.write(`${JSON.stringify(data, null, bench.isJson ? 0 : 2)}\n`);
}

/** Adds `api` and `graphql`: everything that has no command of its own. */
export function addRawCommands(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('api [method] [path]')
      .description('call any route; {org}, {workspace} and {namespace} in the path are filled in')
      .option('--data <json>', 'body; @FILE reads a file, - reads stdin')
      .option('-o, --output <file>', 'write the answer to a file, as it comes')
      .action((method: string | undefined, at: string | undefined, options: ApiOptions, command: Command) =>
        api(workbenchOf(command, around), method, at, options),
      ),
    'platform api get /v1/orgs/{org}/workspaces',
    'platform api get /v1/orgs/{org}/workspaces/{workspace}/export -o workspace.json',
  );
  withExamples(
    program
      .command('graphql [document]')
      .description('run a GraphQL document; @FILE reads a file, - reads stdin')
      .option('--var <name=value...>', 'variables')
      .action((document: string | undefined, options: { var?: string[] }, command: Command) =>
        graphql(workbenchOf(command, around), document, options.var ?? []),
      ),
    "platform graphql '{ me { username } }'",
  );
}
