import type { ContentFacts } from '../../platform/storage/meter.ts';

/** Texts have no marks of their own, so what they are follows from the ending of their name, within kinds of text. */
const textEndings: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  markdown: 'text/markdown',
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  html: 'text/html',
  htm: 'text/html',
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  ndjson: 'application/x-ndjson',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  css: 'text/css',
  js: 'text/javascript',
  mjs: 'text/javascript',
  ts: 'application/typescript',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  toml: 'application/toml',
  sql: 'application/sql',
  sh: 'application/x-sh',
  py: 'text/x-python',
};
const textTypes = new Set([...Object.values(textEndings), 'text/plain']);

/**
 * The media type of a file by its bytes. The client's claim and the name decide only between kinds of text.
 * @param claimed without parameters
 */
export async function typeOfContent(
  { sample, isText, sizeBytes }: Pick<ContentFacts, 'sample' | 'isText' | 'sizeBytes'>,
  fileName: string,
  claimed: string | null,
): Promise<string> {
  if (sizeBytes === 0) return 'application/octet-stream';
  // loaded with the first file: it takes long
  const { fileTypeFromBuffer } = await import('file-type');
  const known = await fileTypeFromBuffer(sample);
  if (known && !(isText && known.mime === 'application/xml')) return known.mime;
  if (!isText) return 'application/octet-stream';
  const ending = fileName.slice(fileName.lastIndexOf('.') + 1).toLowerCase();
  if (Object.hasOwn(textEndings, ending)) return textEndings[ending]!;
  if (known) return known.mime;
  return claimed && textTypes.has(claimed) ? claimed : 'text/plain';
}
