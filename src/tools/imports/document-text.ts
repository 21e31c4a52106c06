import { parse, YAMLParseError } from 'yaml';
import { isJsonObject } from '../../kernel/json-object.ts';
import { overloadOf } from '../../kernel/json-shape.ts';
import { within } from './references.ts';

/** Most bytes of a document. */
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
/** Most bytes of one in YAML, which takes a hundred times as long to parse. */
const MAX_YAML_BYTES = 1024 * 1024;
const JSON_BOUNDS = { maxDepth: 200, maxValues: 3_000_000 };
/** How often aliases of YAML may be followed: the few that people write, and no bomb. */
const MAX_ALIASES = 100;
const MAX_PLACE = 200;

/** Why a document cannot be read at all; the sentence is for the caller. */
export class DocumentFault extends Error {
  override readonly name = 'DocumentFault';
}

/** The object that a text in JSON or YAML is. @throws DocumentFault */
export function parsedDocument(text: string): Record<string, unknown> {
  const value = text.trimStart().startsWith('{') ? fromJson(text) : fromYaml(text);
  if (!isJsonObject(value)) throw new DocumentFault('it is no object of JSON or YAML');
  return value;
}

function fromJson(text: string): unknown {
  if (overloadOf(text, JSON_BOUNDS)) throw new DocumentFault('it is nested too deeply, or has too many values');
  try {
    return JSON.parse(text);
  } catch {
    return fromYaml(text); // YAML has objects in braces, too
  }
}

function fromYaml(text: string): unknown {
  if (Buffer.byteLength(text) > MAX_YAML_BYTES)
    throw new DocumentFault(`it is no JSON, and YAML may have ${MAX_YAML_BYTES} bytes`);
  let value: unknown;
  try {
    // `uniqueKeys` compares each key with each other; `schema` keeps a directive from choosing other types
    value = parse(text, { maxAliasCount: MAX_ALIASES, uniqueKeys: false, schema: 'core', logLevel: 'error' });
  } catch (error) {
    throw new DocumentFault(faultOf(error)); // the message of the parser quotes the document
  }
  refuseCircles(value);
  return value;
}

/** An alias of YAML may stand within what it names. @throws DocumentFault with the place */
function refuseCircles(root: unknown): void {
  const around = new Set<object>();
  const done = new Set<object>();
  const look = (value: unknown, place: string): void => {
    if (typeof value !== 'object' || value === null || done.has(value)) return;
    if (around.has(value)) throw new DocumentFault(`it contains itself at ${place.slice(0, MAX_PLACE)}`);
    if (around.size === JSON_BOUNDS.maxDepth)
      throw new DocumentFault('it is nested too deeply, or has too many values');
    around.add(value);
    for (const [key, part] of Object.entries(value)) look(part, within(place, key));
    around.delete(value);
    done.add(value);
  };
  look(root, '');
}

function faultOf(error: unknown): string {
  const line = error instanceof YAMLParseError ? error.linePos?.[0].line : undefined;
  if (line !== undefined) return `it is neither JSON nor YAML: see line ${line}`;
  return error instanceof ReferenceError
    ? `it has aliases that lead nowhere, or more than ${MAX_ALIASES}`
    : 'it is neither JSON nor YAML, or nested too deeply';
}
