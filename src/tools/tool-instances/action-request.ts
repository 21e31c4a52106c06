import { randomUUID } from 'node:crypto';
import type { OutboundRequest } from '../../platform/outbound/outbound.ts';
import { entryNames, filled, type LookUp, namesIn, replaced, unresolvedIn } from '../tools/placeholders.ts';
import type { KeyPlacement } from '../tools/tool-shapes.ts';
import type { ToolAction } from './effective-actions.ts';

type RequestValues = Readonly<Record<string, unknown>>;

/** A credential with the place where it goes in each request. */
export interface PlacedCredential {
  placement: KeyPlacement;
  value: string;
}

/** What a request is made from. */
export interface ActionRequestParts {
  action: ToolAction;
  /** Given with the call, and defaults of the action. */
  parameters: RequestValues;
  configuration: RequestValues;
  /** Everything that the instance keeps secret, by its name. */
  secrets: RequestValues;
  credentials: readonly PlacedCredential[];
  /** Which page of a list it asks for. */
  page?: RequestedPage;
}

/** A page of a list. */
export interface RequestedPage {
  /** What chooses it, in the query. */
  query: Readonly<Record<string, string | number>>;
  /** What the templates of the action say of the first page stays. */
  isFirst: boolean;
  /** Its address, in place of that of the action. */
  at?: URL;
}

/** Why no request can be made; the sentence is for the caller and shows no value. */
export class UnusableAction extends Error {
  override readonly name = 'UnusableAction';
  readonly code: 'schema_mismatch' | 'no_credentials';

  constructor(code: 'schema_mismatch' | 'no_credentials', message: string) {
    super(message);
    this.code = code;
  }
}

/** A secret that nobody has. */
const OTHER = randomUUID();
const WITHOUT_BODY = new Set(['GET', 'HEAD']);

/**
 * The request of an action, from its templates. What names something without a value is left out: a header, a query
 * parameter, a property or an element of a JSON body, a pair of a form. In the path of the URL and in other bodies it
 * is an error. No empty text stands for a value that nobody gave.
 *
 * Credentials go only where schema and configuration say: a call whose parameters would lead to another host is
 * refused.
 * @throws UnusableAction
 */
export function requestFor(parts: ActionRequestParts): OutboundRequest {
  const { action, configuration, credentials, page } = parts;
  const lookUp = lookUpIn(parts);
  const method = textOf(action.method) || 'GET';
  const url = page?.at ? new URL(page.at) : urlOf(parts);
  const headers = new Map<string, string>();
  for (const source of [configuration.default_headers, action.headers])
    for (const [name, template] of entriesOf(source)) {
      const value = filled(template, lookUp, plainText);
      if (value !== null) headers.set(name.toLowerCase(), value);
    }
  if (!page?.at)
    for (const [name, template] of entriesOf(action.query_params_template)) {
      const value = filled(template, lookUp, plainText);
      if (value) url.searchParams.set(name, value);
    }
  for (const [name, value] of Object.entries(page?.query ?? {}))
    if (!page!.isFirst || !url.searchParams.has(name)) url.searchParams.set(name, String(value));
  for (const { placement, value } of credentials) {
    const text = `${placement.prefix ?? ''}${value}`;
    if (placement.in === 'query') url.searchParams.set(placement.name, text);
    else headers.set(placement.name.toLowerCase(), text);
  }
  const template = textOf(action.body_template);
  const hasBody = template !== '' && !WITHOUT_BODY.has(method);
  const body = hasBody ? bodyOf(template, lookUp, headers.get('content-type') ?? '') : undefined;
  if (body !== undefined && !headers.has('content-type') && isJson(template))
    headers.set('content-type', 'application/json');
  const shownHost = shownHostOf(parts, url);
  return { method, url, headers: Object.fromEntries(headers), body, ...(shownHost !== null && { shownHost }) };
}

/** The host of a template, as whoever wrote it has it. */
export const hostIn = (template: string): string => template.replace(/^https?:\/\//i, '').split(/[/?#\\]/, 1)[0]!;

/** What stands for a host that a secret is a part of: it is not what it would be with other secrets. */
function shownHostOf(parts: ActionRequestParts, url: URL): string | null {
  const { secrets } = parts;
  const template = textOf(parts.action.url_template);
  const names = new Set(namesIn(template));
  if (!Object.keys(secrets).some((name) => names.has(name))) return null;
  const others = Object.fromEntries(Object.keys(secrets).map((name) => [name, OTHER]));
  const lookUp = lookUpIn({ ...parts, secrets: others });
  const [path] = template.split('?', 1) as [string];
  const text = replaced(path, (name, at) => (at === 0 ? plainText(lookUp(name)) : inPath(plainText(lookUp(name)))));
  return URL.canParse(text) && new URL(text).host === url.host ? null : hostIn(template);
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The entries of an object whose values are texts. */
const entriesOf = (value: unknown): [string, string][] =>
  Object.entries((typeof value === 'object' && value) || {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );

/**
 * The value of a name: a parameter, else of the configuration, else a secret; `undefined` if it has none. A parameter
 * that was not given may have its value in the configuration, but never is a secret: whoever describes an action would
 * choose which one it sends, and where.
 */
function lookUpIn({ action, parameters, configuration, secrets }: ActionRequestParts): LookUp {
  const declared = new Set(entryNames(action.parameters));
  return (name) => {
    for (const values of declared.has(name) ? [parameters, configuration] : [parameters, configuration, secrets])
      if (Object.hasOwn(values, name) && values[name] !== null) return values[name];
    return undefined;
  };
}

const plainText = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value as string);

const needed = (name: string) => new UnusableAction('schema_mismatch', `The action needs a value of '${name}'.`);

/** A part of a path: slashes of a value stay, all that would end the path does not. */
const inPath = (value: string): string => encodeURIComponent(value.toWellFormed()).replaceAll('%2F', '/');

/**
 * The address that a template begins with, in which each value is a part: a value at the beginning is an address
 * itself, and all others may have slashes, but never end the host.
 * @returns `null` if that is no address
 */
export function addressIn(template: string, textFor: (name: string) => string): URL | null {
  const [url, upToSlashes] = [(text: string) => text, (text: string) => text.split('/', 1)[0]!].map((part) => {
    const text = replaced(template, (name, at) => (at === 0 ? textFor(name) : inPath(part(textFor(name)))));
    return URL.canParse(text) ? new URL(text) : null;
  });
  return url && url.origin === upToSlashes?.origin ? url : null;
}

/** A part of a query or a form: it ends no pair and begins none. */
const inPair = (value: unknown): string => encodeURIComponent(plainText(value).toWellFormed());

/** How many parts of a path lead upwards or nowhere once a URL is made of it. */
const dotSegments = (path: string): number =>
  path.split(/[/\\]/).filter((part) => /^(?:\.|%2e){1,2}$/i.test(part)).length;

function urlOf(parts: ActionRequestParts): URL {
  const template = textOf(parts.action.url_template);
  const [path] = template.split('?', 1) as [string];
  const query = template.slice(path.length + 1);
  const lookUp = lookUpIn(parts);
  const unresolved = unresolvedIn(path, lookUp);
  if (unresolved !== null) throw needed(unresolved);
  const write = (value: LookUp) =>
    replaced(path, (name, at) => {
      const text = plainText(value(name));
      // an address of the configuration begins the URL as it is
      return at === 0 ? text : inPath(text);
    });
  const pairs = resolvedPairs(query, lookUp, inPair);
  const url = parsed(`${write(lookUp)}${pairs === '' ? '' : `?${pairs}`}`);
  if (!addressIn(path, (name) => plainText(lookUp(name))))
    throw new UnusableAction('schema_mismatch', 'A value must not end the host of the action.');
  const withoutValues = write((name) => (Object.hasOwn(parts.parameters, name) ? 'x' : lookUp(name)));
  if (dotSegments(write(lookUp)) > dotSegments(withoutValues))
    throw new UnusableAction('schema_mismatch', 'A value must not lead out of the path of the action.');
  const withoutParameters = write(lookUpIn({ ...parts, parameters: {} }));
  const hasSecrets = parts.credentials.length > 0 || Object.keys(parts.secrets).length > 0;
  const isFixed = URL.canParse(withoutParameters) && new URL(withoutParameters).origin === url.origin;
  if (hasSecrets && !isFixed)
    throw new UnusableAction(
      'schema_mismatch',
      'The parameters of a call must not choose the host that gets credentials.',
    );
  return url;
}

/** `a={{a}}&b={{b}}` without the pairs that have no value. */
const resolvedPairs = (template: string, lookUp: LookUp, write: (value: unknown) => string): string =>
  template
    .split('&')
    .flatMap((pair) => filled(pair, lookUp, write) ?? [])
    .join('&');

function parsed(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw new UnusableAction('schema_mismatch', 'The URL of the action is not an absolute URL.');
}

const isJson = (template: string): boolean => /^\s*[[{]/.test(template);
/** A form that is more than a JSON text with a wrong type. */
const isForm = (template: string, type: string): boolean =>
  /^application\/x-www-form-urlencoded\b/i.test(type) && !/^\s*(?:\[|\{(?!\{))/.test(template);
/** Whether a template is one placeholder: whoever gives its value writes the whole. */
const isWhole = (template: string): boolean => /^\s*\{\{[^{}]*\}\}\s*$/.test(template);

/** @returns `undefined` if the whole body has no value */
function bodyOf(template: string, lookUp: LookUp, type: string): string | undefined {
  if (isForm(template, type)) return resolvedPairs(template, lookUp, isWhole(template) ? plainText : inPair);
  const unresolved = unresolvedIn(template, lookUp);
  if (!isJson(template)) {
    if (unresolved === null) return replaced(template, (name) => plainText(lookUp(name)));
    throw needed(unresolved);
  }
  if (unresolved === null)
    return inJson(template, (name, isText) =>
      isText ? JSON.stringify(plainText(lookUp(name))).slice(1, -1) : JSON.stringify(lookUp(name)),
    );
  return resolvedJson(template, lookUp, unresolved);
}

/** In a JSON template, a placeholder within a string is a part of it, and elsewhere a value. */
function inJson(template: string, write: (name: string, isText: boolean) => string): string {
  let isText = false;
  let seen = 0;
  return replaced(template, (name, until) => {
    for (; seen < until; seen++) {
      if (template[seen] === '\\' && isText) seen++;
      else if (template[seen] === '"') isText = !isText;
    }
    return write(name, isText);
  });
}

/** Stands for what has no value. */
const ABSENT = Symbol('absent');
/** Begins the text that stands for a placeholder that is a value; no template has it. */
const MARK = `${randomUUID()} `;
const MAX_DEPTH = 64;

/** A JSON template without the properties and elements that have no value. */
function resolvedJson(template: string, lookUp: LookUp, unresolved: string): string | undefined {
  const marked = inJson(template, (name, isText) => (isText ? `{{${name}}}` : JSON.stringify(`${MARK}${name}`)));
  const value = (text: string): unknown => {
    if (!text.startsWith(MARK)) return filled(text, lookUp, plainText) ?? ABSENT;
    const found = lookUp(text.slice(MARK.length));
    return found === undefined ? ABSENT : found;
  };
  const copy = (at: unknown, depth: number): unknown => {
    if (typeof at === 'string') return value(at);
    if (typeof at !== 'object' || at === null) return at;
    if (depth === MAX_DEPTH) throw needed(unresolved);
    if (Array.isArray(at)) return at.map((item) => copy(item, depth + 1)).filter((item) => item !== ABSENT);
    const entries = Object.entries(at).map(([key, item]) => [value(key), copy(item, depth + 1)] as const);
    return Object.fromEntries(entries.filter((entry): entry is [string, unknown] => !entry.includes(ABSENT)));
  };
  const body = copy(parsedJson(marked, unresolved), 0);
  return body === ABSENT ? undefined : JSON.stringify(body);
}

function parsedJson(text: string, unresolved: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw needed(unresolved); // what is no JSON has no properties to leave out
  }
}
