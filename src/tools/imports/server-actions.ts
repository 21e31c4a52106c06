import { isJsonObject } from '../../kernel/json-object.ts';
import { ACCEPT, ENVELOPE, inHeader, STATELESS } from '../mcp-servers/protocol.ts';
import { type ListedTools, MAX_TOOLS } from '../mcp-servers/tool-list.ts';
import { entryNames } from '../tools/placeholders.ts';
import type { KeyPlacement } from '../tools/tool-shapes.ts';
import { boundedAction } from './bounded-action.ts';
import { Gaps } from './gaps.ts';
import type { ReadDocument, ReadOperation, ReadTask } from './import-plan.ts';
import { at, cut, DocumentReferences, Gap, type JsonPart, within } from './references.ts';
import { SchemaParts } from './schema-parts.ts';
import { UniqueNames } from './unique-names.ts';

const MAX_NAME = 128;
const MAX_PROPERTY = 255;
const MAX_PARAMETERS = 50;
const MAX_OUTPUT_BYTES = 2 * 1024;
const TIMEOUT_SECONDS = 30;
/** How often a call that may be repeated is. */
const RETRIES = 2;

/** A tool of a server, with its place in the list. */
interface FoundTool {
  key: string;
  value: JsonPart;
  place: string;
}

/** Reads the tools of an MCP server as a document is read: each becomes an action that calls it. */
export function readServer(task: ReadTask): ReadDocument {
  const { text, search, most, keys } = task;
  const { protocol, server, instructions, tools, isCut, isListed, authorization } = JSON.parse(text) as ListedTools;
  const url = task.documentUrl!;
  const gaps = new Gaps();
  if (isCut) gaps.add(new Gap('too_large', '/tools', `Of its tools, the first ${MAX_TOOLS} are taken.`), null);
  const found = toolsIn(tools, gaps);
  const credentialSchema = credentialsOf(task, { isListed, authorization });
  const reserved = [...task.reserved, ...entryNames(credentialSchema)];
  const names = new UniqueNames();
  const named = found.map((tool) => ({ tool, name: names.take(tool.key.slice(0, 100)) }));
  const word = search?.toLowerCase() ?? '';
  let matching = 0;
  const operations = named.flatMap(({ tool, name }): ReadOperation[] => {
    const title = titleOf(tool.value);
    const texts = [tool.key, title, at(tool.value, 'description')].filter((part) => typeof part === 'string');
    const doesMatch = word === '' || texts.some((part) => part.toLowerCase().includes(word));
    if (doesMatch) matching += 1;
    if (!keys.includes(tool.key) && !(doesMatch && matching <= most)) return [];
    const gap = (found: Gap) => gaps.add(found, tool.key);
    const action = taken(tool, name, { url, protocol, reserved, gap });
    return [
      { operation: tool.key, place: tool.place, operationId: tool.key, summary: title, isDeprecated: false, action },
    ];
  });
  return {
    format: protocol,
    title: cut(at(server, 'title'), 255) ?? cut(at(server, 'name'), 255) ?? (isListed ? 'MCP' : new URL(url).host),
    description: cut(instructions, 4_000) ?? cut(at(server, 'description'), 4_000),
    version: cut(at(server, 'version'), 255),
    baseUrl: url,
    servers: [url],
    credentialSchema,
    authorization,
    isListed,
    total: found.length,
    matching,
    operations,
    gaps: gaps.listed,
    gapCount: gaps.count,
  };
}

/**
 * What a server says of OAuth, and the credential that it was asked with. A server does not say where that goes: it
 * goes where it went when the tools were listed.
 */
function credentialsOf(
  { credential }: ReadTask,
  { isListed, authorization: { service } }: Pick<ListedTools, 'isListed' | 'authorization'>,
): Record<string, unknown>[] {
  const placement: KeyPlacement = credential?.placement ?? { in: 'header', name: 'Authorization', prefix: 'Bearer ' };
  const key = { name: 'credential', type: 'secret', placement };
  const isNeeded = credential !== null || !isListed;
  if (!service) return [{ ...key, required: isNeeded }];
  const oauth = { name: 'oauth', display_name: 'Sign in', ...service, required: isNeeded };
  // one of the two will do
  return credential ? [oauth, { ...key, required: false }] : [oauth];
}

/** The tools that can be called by their names. */
function toolsIn(tools: readonly unknown[], gaps: Gaps): FoundTool[] {
  const seen = new Set<string>();
  return tools.flatMap((value, index) => {
    const place = within('/tools', index);
    const key = isJsonObject(value) ? at(value, 'name') : undefined;
    const isUsable = typeof key === 'string' && key !== '' && key.length <= MAX_NAME && isPlain(key);
    if (!isJsonObject(value) || !isUsable || seen.has(key)) {
      const why = isUsable && seen.has(key) ? 'Another tool has its name.' : 'It has no usable name.';
      gaps.add(new Gap('invalid', place, why), null);
      return [];
    }
    seen.add(key);
    return [{ key, value, place }];
  });
}

/** Whether a text can stand in a template as it is. */
const isPlain = (text: string): boolean => text.isWellFormed() && !text.includes('\u0000') && !text.includes('{{');

const annotationsOf = (tool: JsonPart): JsonPart => {
  const given = at(tool, 'annotations');
  return isJsonObject(given) ? given : {};
};

const titleOf = (tool: JsonPart): string | null =>
  cut(at(tool, 'title'), 255) ?? cut(at(annotationsOf(tool), 'title'), 255);

interface Taking {
  url: string;
  protocol: string;
  reserved: readonly string[];
  gap: (gap: Gap) => void;
}

function taken(tool: FoundTool, name: string, taking: Taking): Record<string, unknown> | null {
  try {
    return boundedAction(tool.place, taking.gap, (depth, gap) => actionOf(tool, name, { ...taking, gap }, depth));
  } catch (error) {
    if (!(error instanceof Gap)) throw error;
    taking.gap(error);
    return null;
  }
}

function actionOf({ key, value: tool, place }: FoundTool, name: string, taking: Taking, depth: number) {
  const { url, protocol, reserved, gap } = taking;
  const isStateless = protocol === STATELESS;
  const { parameters, sent } = argumentsOf(tool, within(place, 'inputSchema'), reserved, depth, gap);
  const title = titleOf(tool);
  const description = cut(at(tool, 'description'), 4_000) ?? title;
  const output = outputOf(tool, within(place, 'outputSchema'), depth, gap);
  // a template: placeholders stand for values of JSON, and what has none is left out
  const meta = isStateless ? `"_meta":${JSON.stringify(ENVELOPE)},` : '';
  const params = `{${meta}"name":${JSON.stringify(key)},"arguments":{${sent.join(',')}}}`;
  return {
    name,
    ...(title !== null && { display_name: title }),
    ...(description !== null && { description }),
    protocol: 'mcp',
    method: 'POST',
    url_template: url,
    headers: {
      Accept: ACCEPT,
      ...(isStateless && {
        'MCP-Protocol-Version': STATELESS,
        'Mcp-Method': 'tools/call',
        'Mcp-Name': inHeader(key),
      }),
    },
    body_template: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`,
    parameters,
    ...(output && { output_schema: output }),
    ...hintsOf(annotationsOf(tool)),
    timeout_seconds: TIMEOUT_SECONDS,
  };
}

/** What a server says of a tool. What says nothing may destroy something, as MCP has it. */
function hintsOf(annotations: JsonPart) {
  const isReadOnly = at(annotations, 'readOnlyHint') === true;
  const isDestructive = !isReadOnly && at(annotations, 'destructiveHint') !== false;
  const isIdempotent = isReadOnly || at(annotations, 'idempotentHint') === true;
  return {
    is_read_only: isReadOnly,
    is_destructive: isDestructive,
    is_idempotent: isIdempotent,
    ...(isDestructive && { requires_confirmation: true }),
    ...(isIdempotent && { retry_count: RETRIES }),
  };
}

/** The parameters of a tool, and the members of its arguments in the template. @throws Gap */
function argumentsOf(
  tool: JsonPart,
  place: string,
  reserved: readonly string[],
  depth: number,
  gap: (gap: Gap) => void,
) {
  const given = at(tool, 'inputSchema');
  if (!isJsonObject(given)) throw new Gap('invalid', place, 'The tool does not say what it takes.');
  const schemas = new SchemaParts(new DocumentReferences(given), depth + 1, (at, message) =>
    gap(new Gap('simplified', `${place}${at}`, message)),
  );
  const whole = schemas.part(given, '');
  if (whole.type !== undefined && whole.type !== 'object')
    throw new Gap('unsupported', place, 'An action takes named arguments.');
  if (whole.properties === undefined && isJsonObject(at(given, 'properties')))
    throw new Gap('too_large', place, `It has more than ${MAX_PARAMETERS} parameters.`);
  const names = new UniqueNames(reserved);
  const parameters: Record<string, unknown>[] = [];
  const sent: string[] = [];
  for (const [property, part] of Object.entries(whole.properties ?? {}) as [string, Record<string, unknown>][]) {
    if (property.length > MAX_PROPERTY || !isPlain(property))
      throw new Gap('unsupported', place, 'It has a parameter whose name no template can have.');
    const name = names.take(property);
    const { type, ...described } = part;
    if (type === undefined)
      gap(new Gap('simplified', within(place, 'properties', property), 'It is of no one type: it takes a text.'));
    parameters.push({
      name,
      ...(name !== property && { display_name: property }),
      type: type ?? 'string',
      ...described,
    });
    sent.push(`${JSON.stringify(property)}:{{${name}}}`);
  }
  return { parameters, sent };
}

/** What the structured content promises, if it is small. */
function outputOf(tool: JsonPart, place: string, depth: number, gap: (gap: Gap) => void) {
  const given = at(tool, 'outputSchema');
  if (!isJsonObject(given) || depth === 0) return null;
  try {
    const output = new SchemaParts(new DocumentReferences(given), depth, () => undefined).output(given, '');
    if (Object.keys(output).length === 0) return null;
    if (Buffer.byteLength(JSON.stringify(output)) <= MAX_OUTPUT_BYTES) return output;
    gap(new Gap('simplified', place, 'What it answers is not described: its schema is large.'));
  } catch (error) {
    if (!(error instanceof Gap)) throw error;
    gap(new Gap('simplified', place, `What it answers is not described: ${error.message}`));
  }
  return null;
}
