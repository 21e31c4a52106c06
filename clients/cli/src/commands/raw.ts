import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { errorOf } from 'platform-management-client';
import { valuesOf } from '../arguments.ts';
import { UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { readStdin, shownOn } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

interface ApiOptions {
  data?: string;
}

/** `{org}`, `{workspace}` and `{namespace}` in a path stand for where the caller works. */
async function pathOf(bench: Workbench, path: string): Promise<string> {
  if (!path.startsWith('/')) throw new UsageError('The path begins with a slash, such as /v1/orgs/{org}/workspaces');
  let filled = path;
  if (path.includes('{org}')) filled = filled.replaceAll('{org}', await bench.org());
  if (path.includes('{workspace}')) filled = filled.replaceAll('{workspace}', (await bench.workspace()).workspace_id);
  if (path.includes('{namespace}')) filled = filled.replaceAll('{namespace}', (await bench.namespace()).namespace_id);
  return filled;
}

/** `-` reads stdin, `@FILE` a file. */
async function textOf(bench: Workbench, given: string): Promise<string> {
  if (given === '-') return readStdin(bench);
  return given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given;
}

async function api(bench: Workbench, method: string, path: string, { data }: ApiOptions): Promise<void> {
  if (!METHODS.includes(method.toLowerCase())) throw new UsageError(`The method is one of ${METHODS.join(', ')}.`);
  const body = data === undefined ? undefined : await textOf(bench, data);
  const response = await bench.client.send(await pathOf(bench, path), {
    method: method.toUpperCase(),
    ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
  });
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  if (text !== '') bench.around.stdout.write(`${shownOn(bench.around.stdout, text.trimEnd())}\n`);
}

async function graphql(bench: Workbench, given: string, pairs: string[]): Promise<void> {
  const data = await bench.client.query<unknown, Record<string, unknown>>(
    await textOf(bench, given),
    valuesOf(pairs, 'variable'),
  );
  bench.around.stdout.write(`${JSON.stringify(data, null, bench.isJson ? 0 : 2)}\n`);
}

/** Adds `api` and `graphql`: everything that has no command of its own. */
export function addRawCommands(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('api <method> <path>')
      .description('call any route; {org}, {workspace} and {namespace} in the path are filled in')
      .option('--data <json>', 'body; @FILE reads a file, - reads stdin')
      .action((method: string, path: string, options: ApiOptions, command: Command) =>
        api(workbenchOf(command, around), method, path, options),
      ),
    'platform api get /v1/orgs/{org}/workspaces',
  );
  withExamples(
    program
      .command('graphql <document>')
      .description('run a GraphQL document; @FILE reads a file, - reads stdin')
      .option('--var <name=value...>', 'variables')
      .action((document: string, options: { var?: string[] }, command: Command) =>
        graphql(workbenchOf(command, around), document, options.var ?? []),
      ),
    "platform graphql '{ me { username } }'",
  );
}
