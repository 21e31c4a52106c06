import { parse, YAMLParseError } from 'yaml';
import { isJsonObject } from '../../kernel/json-object.ts';
import { overloadOf } from '../../kernel/json-shape.ts';

/** Most bytes of a document. */
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
/** Most bytes of one in YAML, which takes a hundred times as long to parse. */
const MAX_YAML_BYTES = 1024 * 1024;
const JSON_BOUNDS = { maxDepth: 200, maxValues: 3_000_000 };
/** How often aliases of YAML may be followed: the few that people write, and no bomb. */
const MAX_ALIASES = 100;

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
  try {
    // `uniqueKeys` compares each key with each other; `schema` keeps a directive from choosing other types
    return parse(text, { maxAliasCount: MAX_ALIASES, uniqueKeys: false, schema: 'core', logLevel: 'error' });
  } catch (error) {
    throw new DocumentFault(faultOf(error)); // the message of the parser quotes the document
  }
}

function faultOf(error: unknown): string {
  const line = error instanceof YAMLParseError ? error.linePos?.[0].line : undefined;
  if (line !== undefined) return `it is neither JSON nor YAML: see line ${line}`;
  return error instanceof ReferenceError
    ? `it has aliases that lead nowhere, or more than ${MAX_ALIASES}`
    : 'it is neither JSON nor YAML, or nested too deeply';
}
