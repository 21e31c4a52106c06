import { createWriteStream, openAsBlob } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { Artifact, NamespacePlace } from 'platform-management-client';
import { countOf } from '../arguments.ts';
import { OutcomeError, UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { progressOf, show, table } from '../output.ts';
import { followed, type WaitOptions, withWait } from '../wait.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const ARTIFACTS = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts';
/** Nobody looks through more in a terminal. */
const MOST_CHOICES = 50;
const ENDS = new Set(['artifact.indexed', 'artifact.index_failed']);

interface UploadOptions extends WaitOptions {
  name?: string;
}

async function upload(
  bench: Workbench,
  given: string | undefined,
  { name, wait, waitSeconds }: UploadOptions,
): Promise<void> {
  bench.demand('workspace', { '<file>': given });
  const file = given ?? (await bench.ask('<file>', 'File to upload'));
  const found = await stat(file).catch((error: Error) => {
    throw new UsageError(`${file} cannot be read: ${error.message}`);
  });
  if (!found.isFile()) throw new UsageError(`${file} is no file.`);
  const fileName = path.basename(file);
  const place = await bench.namespace();
  const onProgress = progressOf(bench, fileName);
  const begin = async () =>
    bench.client.upload(place, await openAsBlob(file), { fileName, name: name ?? fileName, onProgress });
  const artifact = wait ? await indexed(bench, place, begin, waitSeconds) : await begin();
  show(bench, artifact, () => `Uploaded ${artifact.name}: ${artifact.artifact_id}`);
}

/** Uploads, and waits until the text of the file can be found. What has no text is done at once. */
async function indexed(
  bench: Workbench,
  place: NamespacePlace,
  begin: () => Promise<Artifact>,
  seconds: number,
): Promise<Artifact> {
  const { begun, event } = await followed(
    bench,
    {
      what: 'Reading the text of the file, to find it by',
      begin,
      isDone: ({ is_indexed }) => is_indexed,
      isEnd: ({ type, resource_id }, { artifact_id }) => ENDS.has(type) && resource_id === artifact_id,
    },
    seconds,
  );
  const { artifact_id } = begun;
  const params = { path: { ...place, artifact_id } };
  const { data } = await bench.client.rest.GET(`${ARTIFACTS}/{artifact_id}`, { params });
  if (event?.type === 'artifact.index_failed')
    throw new OutcomeError(`The text of the file cannot be found: ${data.index_error}`, data);
  return data;
}

async function download(bench: Workbench, given: string | undefined, target: string | undefined): Promise<void> {
  bench.demand('workspace', { '<artifact>': given });
  const artifact_id = given ?? (await chosenFile(bench));
  const response = await bench.client.download({ ...(await bench.namespace()), artifact_id });
  const body = Readable.fromWeb(response.body as import('node:stream/web').ReadableStream);
  if (target === undefined) return pipeline(body, bench.around.stdout, { end: false });
  const total = Number(response.headers.get('content-length') ?? 0);
  const draw = progressOf(bench, path.basename(target));
  let done = 0;
  body.on('data', (chunk: Buffer) => draw((done += chunk.length), total));
  await pipeline(body, createWriteStream(target));
  show(bench, { artifact_id, file: target, size_bytes: done }, () => `Wrote ${done} bytes to ${target}.`);
}

/** One of the newest files. */
async function chosenFile(bench: Workbench): Promise<string> {
  const choices = async () => {
    const found: Choice[] = [];
    for await (const one of bench.client.list(ARTIFACTS, { path: await bench.namespace() })) {
      found.push({ value: one.artifact_id, label: one.name });
      if (found.length === MOST_CHOICES) break;
    }
    return found;
  };
  return bench.choose({ option: '<artifact>', noun: 'file', choices });
}

async function list(bench: Workbench): Promise<void> {
  const found: { artifact_id: string; name: string; size_bytes: number; updated_at: string }[] = [];
  for await (const one of bench.client.list(ARTIFACTS, { path: await bench.namespace() }))
    found.push({
      artifact_id: one.artifact_id,
      name: one.name,
      size_bytes: one.size_bytes,
      updated_at: one.updated_at,
    });
  const head = ['ID', 'NAME', 'BYTES', 'CHANGED'];
  show(bench, found, () =>
    table(
      head,
      found.map((one) => [one.artifact_id, one.name, one.size_bytes, one.updated_at]),
    ),
  );
}

async function search(bench: Workbench, given: string | undefined, limit: number): Promise<void> {
  bench.demand('workspace', { '<query>': given });
  const query = given ?? (await bench.ask('<query>', 'What to look for'));
  const { data } = await bench.client.rest.POST(`${ARTIFACTS}/query`, {
    params: { path: await bench.namespace() },
    body: { query, limit },
  });
  const lines = data.results.map(({ artifact, score, matched_chunk }) => [
    `${artifact.name}  ${artifact.artifact_id}  ${score.toFixed(2)}`,
    matched_chunk && `  ${matched_chunk}`,
  ]);
  show(
    bench,
    data.results,
    () =>
      lines.flat().filter(Boolean).join('\n') ||
      'Nothing was found. A new file is found a moment later: upload it with --wait.',
  );
}

/** Adds `files`. */
export function addFileCommands(program: Command, around: Surroundings): void {
  const files = program.command('files').description('files and other artifacts of a namespace');
  withExamples(
    files
      .command('list')
      .description('list artifacts')
      .action((_options, command: Command) => list(workbenchOf(command, around))),
    'platform files list',
  );
  withExamples(
    withWait(
      files
        .command('upload [file]')
        .description(
          'upload a file; after a broken connection it goes on where it was. Its text can be found a moment later',
        )
        .option('--name <name>', 'name of the artifact; default: that of the file')
        .action((file: string | undefined, options: UploadOptions, command: Command) =>
          upload(workbenchOf(command, around), file, options),
        ),
      'the text of the file can be found',
    ),
    'platform files upload report.txt --wait',
  );
  withExamples(
    files
      .command('download [artifact]')
      .description('download the file of an artifact, to stdout or a file')
      .option('-o, --output <file>', 'where to write it')
      .action((id: string | undefined, options: { output?: string }, command: Command) =>
        download(workbenchOf(command, around), id, options.output),
      ),
    'platform files download art_… -o copy.txt',
  );
  withExamples(
    files
      .command('search [query]')
      .description('search the texts of artifacts')
      .option('--limit <n>', 'number of results', countOf, 5)
      .action((query: string | undefined, options: { limit: number }, command: Command) =>
        search(workbenchOf(command, around), query, options.limit),
      ),
    'platform files search "humidity of the greenhouse"',
  );
}
