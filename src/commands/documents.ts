// Looks after the documents of front ends, with or without a running service: `add` registers those of a manifest,
// `check` lists those that the schema does not accept any more.
import { readFile } from 'node:fs/promises';
import { type Config, commandLine, loadConfig } from '../config.ts';
import { Sql } from '../data/sql.ts';
import { documentsOf } from '../engine/path/document-manifest.ts';
import { Documents } from '../engine/path/documents.ts';
import { RegisteredDocuments } from '../engine/path/registered-documents.ts';
import { schema } from '../wiring/schema.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run documents -- COMMAND
  add MANIFEST   registers the documents of a manifest, if all of them are valid; running services know them at once
  check          lists every registered document that is not valid; exit code 1 if there is one`;

/** Names the documents that are not valid. @returns their number */
function reportInvalid(config: Config, texts: ReadonlyMap<string, string>): number {
  const documents = new Documents(schema, config);
  let invalid = 0;
  for (const [id, text] of texts) {
    const errors = documents.errorsOf(text);
    if (errors.length > 0) invalid++;
    for (const { message, locations } of errors) {
      const [place] = locations ?? [];
      console.error(`${id}${place ? ` ${place.line}:${place.column}` : ''}: ${message}`);
    }
  }
  if (invalid > 0) process.exitCode = 1;
  return invalid;
}

async function add(config: Config, manifest: string): Promise<void> {
  const texts = documentsOf(await readFile(manifest, 'utf8'));
  const invalid = reportInvalid(config, texts);
  if (invalid > 0) return console.error(`${invalid} of ${texts.size} documents are not valid. Nothing was registered.`);
  await withDatabase(config, 'documents', async ({ pool }) => {
    const { added, taken } = await new RegisteredDocuments(new Sql(pool)).register(texts);
    if (taken.length === 0)
      return console.log(`${added.length} documents are new, ${texts.size - added.length} were registered before.`);
    for (const id of taken) console.error(`${id}: this id already has another document.`);
    console.error('An id always stands for the same document. Nothing was registered.');
    process.exitCode = 1;
  });
}

async function check(config: Config): Promise<void> {
  await withDatabase(config, 'documents', async ({ pool }) => {
    const texts = await new RegisteredDocuments(new Sql(pool)).all();
    const invalid = reportInvalid(config, texts);
    console.log(
      `${texts.size} documents are registered: ${invalid === 0 ? 'all are valid' : `${invalid} are not valid`}.`,
    );
  });
}

try {
  const [command, manifest, ...more] = commandLine();
  if (command === 'add' && manifest !== undefined && more.length === 0) await add(loadConfig(), manifest);
  else if (command === 'check' && manifest === undefined) await check(loadConfig());
  else throw new Error(USAGE);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
