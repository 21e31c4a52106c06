import { isJsonObject } from '../../kernel/json-object.ts';
import { parsedUrl } from './base-address.ts';
import { boundedAction } from './bounded-action.ts';
import { at, cut, type DocumentReferences, Gap, type JsonPart, type LocatedPart, within } from './references.ts';
import { SchemaParts } from './schema-parts.ts';
import { plainName, UniqueNames } from './unique-names.ts';

const MAX_OUTPUT_BYTES = 2 * 1024;
const MAX_PARAMETERS = 50;
const TIMEOUT_SECONDS = 30;

/** Headers that are not parameters, says OpenAPI, and those that a connection decides. */
const OWN_HEADERS = new RegExp(
  '^(?:accept|content-type|authorization|cookie|host|connection|keep-alive|content-length|transfer-encoding|te|' +
    'trailer|upgrade|expect|proxy-.*)$',
  'i',
);
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

/** An operation of a document. */
export interface FoundOperation extends LocatedPart {
  key: string;
  method: string;
  path: string;
  /** What it shares with others of its path. */
  pathItem: LocatedPart;
}

/** What is the same for all operations of a document. */
export interface ActionContext {
  references: DocumentReferences;
  /** Hears of what an action has less exactly. */
  gap: (gap: Gap) => void;
  /** Where credentials go: parameters of the same name are not asked for. */
  placements: ReadonlySet<string>;
  /** Names of fields and credentials of the tool: a parameter of the same name would stand for them. */
  reserved: readonly string[];
}

/** What is collected of the request. */
interface Request {
  parameters: Record<string, unknown>[];
  /** Names of parameters by those in the path. */
  inPath: Map<string, string>;
  headers: [string, string][];
  query: [string, string][];
  body: string | null;
  taken: UniqueNames;
}

/**
 * The action that an operation becomes.
 * @param name of the action
 * @param base the address before the path
 * @throws Gap
 */
export function actionOf(
  found: FoundOperation,
  name: string,
  base: string,
  context: ActionContext,
): Record<string, unknown> {
  return boundedAction(found.place, context.gap, (depth, gap) => made(found, name, base, { ...context, gap }, depth));
}

function made(found: FoundOperation, name: string, base: string, context: ActionContext, depth: number) {
  const { value: operation, method, place } = found;
  const taken = new UniqueNames(context.reserved);
  const request: Request = { parameters: [], inPath: new Map(), headers: [], query: [], body: null, taken };
  const schemas = new SchemaParts(context.references, depth, (at, message) =>
    context.gap(new Gap('simplified', at, message)),
  );
  for (const parameter of parametersOf(found, context.references)) addParameter(request, parameter, schemas, context);
  addBody(request, found, schemas, context);
  if (request.parameters.length > MAX_PARAMETERS)
    throw new Gap('too_large', place, `It has more than ${MAX_PARAMETERS} parameters.`);
  const url = urlOf(found, base, request);
  const summary = cut(at(operation, 'summary'), 255);
  const description = cut(at(operation, 'description'), 4_000) ?? summary;
  const output = outputOf(found, context, depth);
  return {
    name,
    ...(summary !== null && { display_name: summary }),
    ...(description !== null && { description }),
    method,
    url_template: url,
    ...(request.headers.length > 0 && { headers: Object.fromEntries(request.headers) }),
    ...(request.query.length > 0 && { query_params_template: Object.fromEntries(request.query) }),
    ...(request.body !== null && { body_template: request.body }),
    parameters: request.parameters,
    ...(output && { output_schema: output }),
    is_read_only: method === 'GET' || method === 'HEAD',
    is_destructive: method === 'DELETE',
    timeout_seconds: TIMEOUT_SECONDS,
  };
}

/** Those of the operation, and those of its path that it does not replace. @throws Gap */
function parametersOf({ value, place, pathItem }: FoundOperation, references: DocumentReferences): LocatedPart[] {
  const found = new Map<string, LocatedPart>();
  for (const [of, inPlace] of [
    [pathItem.value, pathItem.place],
    [value, place],
  ] as const) {
    const given = at(of, 'parameters');
    if (given === undefined) continue;
    if (!Array.isArray(given)) throw new Gap('invalid', within(inPlace, 'parameters'), 'It is no list.');
    if (given.length > 2 * MAX_PARAMETERS)
      throw new Gap('too_large', within(inPlace, 'parameters'), 'There are too many parameters.');
    for (const [index, parameter] of given.entries()) {
      const one = references.resolved(parameter, within(inPlace, 'parameters', index));
      found.set(JSON.stringify([at(one.value, 'in'), at(one.value, 'name')]), one);
    }
  }
  return [...found.values()];
}

function addParameter(
  request: Request,
  { value: given, place }: LocatedPart,
  schemas: SchemaParts,
  context: ActionContext,
) {
  const [name, where] = [at(given, 'name'), at(given, 'in')];
  if (typeof name !== 'string' || name === '' || name.length > 255)
    throw new Gap('invalid', place, 'The parameter has no usable name.');
  const isRequired = at(given, 'required') === true || where === 'path';
  if (where === 'header' && OWN_HEADERS.test(name)) return;
  if (context.placements.has(`${String(where)} ${where === 'header' ? name.toLowerCase() : name}`)) return;
  const sent = sentAs(given, where, name, place, schemas);
  if ('refusal' in sent) {
    if (isRequired) throw new Gap('unsupported', place, `${sent.refusal} It is required.`);
    context.gap(new Gap('unsupported', place, `${sent.refusal} It is left out.`));
    return;
  }
  if (sent.note) context.gap(new Gap('simplified', place, sent.note));
  const plain = request.taken.take(request.taken.has(plainName(name)) ? `${name}_${String(where)}` : name);
  const description = cut(at(given, 'description'), 1_000);
  const { type = 'string', ...part } = sent.part;
  request.parameters.push({
    name: plain,
    ...(plain !== name && { display_name: name }),
    type,
    ...part,
    ...(description !== null && { description }),
    ...(isRequired && { required: true }),
  });
  if (where === 'path') request.inPath.set(name, plain);
  else if (where === 'query') request.query.push([name, `{{${plain}}}`]);
  else request.headers.push([name, `{{${plain}}}`]);
}

type SentParameter = { refusal: string } | { part: Record<string, unknown>; note?: string };

/** How a parameter is sent: as one text, with the few styles that a template has. */
function sentAs(given: JsonPart, where: unknown, name: string, place: string, schemas: SchemaParts): SentParameter {
  if (where === 'cookie') return { refusal: 'An action sends no cookies.' };
  if (where !== 'path' && where !== 'query' && where !== 'header')
    throw new Gap('invalid', place, 'A parameter is in the path, the query, a header or a cookie.');
  if (where === 'header' && !HEADER.test(name)) return { refusal: 'It is no name of a header.' };
  const content = at(given, 'content');
  if (isJsonObject(content)) {
    const [type, medium] = Object.entries(content)[0] ?? [];
    if (!type || !isJson(type) || !isJsonObject(medium))
      return { refusal: 'It is sent in a form that an action does not have.' };
    return { part: schemas.part(at(medium, 'schema'), within(place, 'content', type, 'schema')) };
  }
  const part = schemas.part(at(given, 'schema'), within(place, 'schema'));
  const style = at(given, 'style') ?? (where === 'query' ? 'form' : 'simple');
  if (part.type === 'object') return { refusal: 'A template has no form for an object.' };
  if (style !== (where === 'query' ? 'form' : 'simple')) return { refusal: 'A template does not have its style.' };
  if (part.type !== 'array') return { part };
  if (where === 'query' && at(given, 'explode') !== false) {
    const items = isJsonObject(part.items) ? part.items : {};
    if (items.type === 'array' || items.type === 'object')
      return { refusal: 'A template has no form for its elements.' };
    return { part: items, note: 'It is sent once: the action takes one value.' };
  }
  return { part: { type: 'string' }, note: 'The action takes its values as one text, with commas between them.' };
}

const isJson = (type: string): boolean => /^application\/(?:[\w.+-]+\+)?json(?:\s*;|$)/i.test(type.trim());

function addBody(
  request: Request,
  { value: operation, method, place }: FoundOperation,
  schemas: SchemaParts,
  context: ActionContext,
) {
  const given = at(operation, 'requestBody');
  if (given === undefined) return;
  const inPlace = within(place, 'requestBody');
  const { value: body, place: found } = context.references.resolved(given, inPlace);
  const isRequired = at(body, 'required') === true;
  if (method === 'GET' || method === 'HEAD') {
    if (isRequired) throw new Gap('unsupported', inPlace, `An action sends no body with ${method}.`);
    return;
  }
  const content = at(body, 'content');
  // the type becomes a header, which is a template
  const media = Object.entries(isJsonObject(content) ? content : {}).filter(([type]) => !/[{}]/.test(type));
  const json = media.find(([type]) => isJson(type) || type.trim() === '*/*');
  const form = media.find(([type]) => /^application\/x-www-form-urlencoded\b/i.test(type.trim()));
  if (json) addJson(request, json, found, { isRequired, schemas, description: cut(at(body, 'description'), 1_000) });
  else if (form) addForm(request, form, found, schemas, context);
  else {
    const gap = new Gap('unsupported', within(found, 'content'), 'An action sends JSON or the fields of a form.');
    if (isRequired) throw gap;
    context.gap(gap);
  }
}

interface BodyOptions {
  isRequired: boolean;
  schemas: SchemaParts;
  description: string | null;
}

function addJson(request: Request, [type, medium]: [string, unknown], place: string, options: BodyOptions) {
  const { isRequired, schemas, description } = options;
  const schema = isJsonObject(medium) ? at(medium, 'schema') : undefined;
  const part = schemas.part(schema, within(place, 'content', type, 'schema'));
  const name = request.taken.take('body');
  request.parameters.push({
    name,
    display_name: 'Body',
    ...part,
    type: part.type ?? 'object',
    ...(description !== null && { description }),
    ...(isRequired && { required: true }),
  });
  request.body = `{{${name}}}`;
  if (!/^application\/json$|\*/i.test(type.trim()) && /^[\x20-\x7e]{1,200}$/.test(type))
    request.headers.push(['Content-Type', type.trim()]);
}

/** Fields of a form are parameters of their own. */
function addForm(
  request: Request,
  [type, medium]: [string, unknown],
  place: string,
  schemas: SchemaParts,
  context: ActionContext,
) {
  const inPlace = within(place, 'content', type, 'schema');
  const part = schemas.part(isJsonObject(medium) ? at(medium, 'schema') : undefined, inPlace);
  const fields = isJsonObject(part.properties) ? Object.entries(part.properties) : [];
  const pairs: string[] = [];
  for (const [field, described] of fields) {
    const { required, ...of } = described as Record<string, unknown>;
    const fieldPlace = within(inPlace, 'properties', field);
    if (of.type === 'array' || of.type === 'object' || !/^[\w.[\]-]{1,128}$/.test(field)) {
      const gap = new Gap('unsupported', fieldPlace, 'A form of an action has plain fields only.');
      if (required === true) throw gap;
      context.gap(gap);
      continue;
    }
    const name = request.taken.take(request.taken.has(plainName(field)) ? `${field}_body` : field);
    const label = name === field ? {} : { display_name: field };
    request.parameters.push({
      name,
      ...label,
      ...of,
      type: of.type ?? 'string',
      ...(required === true && { required }),
    });
    pairs.push(`${encodeURIComponent(field)}={{${name}}}`);
  }
  if (pairs.length === 0) return;
  request.body = pairs.join('&');
  request.headers.push(['Content-Type', 'application/x-www-form-urlencoded']);
}

/** How many parts of a path lead upwards or nowhere. */
const hasDots = (path: string): boolean => path.split('/').some((part) => /^(?:\.|%2e){1,2}$/i.test(part));

function urlOf({ path, pathItem }: FoundOperation, base: string, request: Request): string {
  const unsafe = new Gap('unsafe_address', pathItem.place, 'The path is none, or leads elsewhere than it seems to.');
  if (!path.startsWith('/') || /[\\?#\s]/.test(path) || hasDots(path)) throw unsafe;
  const template = path.replaceAll(/\{([^{}]*)\}/g, (_whole, name: string) => {
    const known = request.inPath.get(name);
    if (known !== undefined) return `{{${known}}}`;
    const plain = request.taken.take(name);
    request.inPath.set(name, plain);
    request.parameters.push({ name: plain, type: 'string', required: true });
    return `{{${plain}}}`;
  });
  const sample = template.replaceAll(/\{\{[^{}]*\}\}/g, 'x');
  const url = parsedUrl(`${base}${sample}`, null);
  if (/[{}]/.test(sample) || !url || !`${url.origin}${url.pathname}`.startsWith(base)) throw unsafe;
  return `${base}${template}`;
}

/** What the first success in JSON promises, if it is small. */
function outputOf({ value: operation, place }: FoundOperation, context: ActionContext, depth: number) {
  const responses = at(operation, 'responses');
  if (!isJsonObject(responses) || depth === 0) return null;
  const [status, given] = Object.entries(responses).find(([code]) => /^2(?:\d\d|XX)$/i.test(code)) ?? [];
  if (status === undefined) return null;
  const inPlace = within(place, 'responses', status);
  try {
    const { value: response } = context.references.resolved(given, inPlace);
    const content = at(response, 'content');
    const json = isJsonObject(content) ? Object.entries(content).find(([type]) => isJson(type)) : undefined;
    if (!json || !isJsonObject(json[1])) return null;
    const schemas = new SchemaParts(context.references, depth, () => undefined);
    const output = schemas.output(at(json[1], 'schema'), within(inPlace, 'content', json[0], 'schema'));
    if (Object.keys(output).length === 0) return null;
    if (Buffer.byteLength(JSON.stringify(output)) <= MAX_OUTPUT_BYTES) return output;
    context.gap(new Gap('simplified', inPlace, 'What it answers is not described: its schema is large.'));
  } catch (error) {
    if (!(error instanceof Gap)) throw error;
    context.gap(new Gap('simplified', error.place, `What it answers is not described: ${error.message}`));
  }
  return null;
}
