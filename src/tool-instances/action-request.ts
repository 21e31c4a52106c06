import type { OutboundRequest } from '../platform/outbound/outbound.ts';
import type { KeyPlacement } from '../tools/tool-shapes.ts';
import type { Action } from './effective-actions.ts';

type Values = Readonly<Record<string, unknown>>;

/** A credential with the place where it goes in each request. */
export interface PlacedCredential {
  placement: KeyPlacement;
  value: string;
}

/** What a request is made from. */
export interface RequestParts {
  action: Action;
  /** Given with the call, and defaults of the action. */
  parameters: Values;
  configuration: Values;
  /** Everything that the instance keeps secret, by its name. */
  secrets: Values;
  credentials: readonly PlacedCredential[];
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

const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g;
const WITHOUT_BODY = new Set(['GET', 'HEAD']);

/**
 * The request of an action, from its templates.
 *
 * Credentials go only where schema and configuration say: a call whose parameters would lead to another host is
 * refused.
 * @throws UnusableAction
 */
export function requestFor(parts: RequestParts): OutboundRequest {
  const { action, configuration, credentials } = parts;
  const method = textOf(action.method) || 'GET';
  const url = urlOf(parts);
  const headers = new Map<string, string>();
  for (const source of [configuration.default_headers, action.headers])
    for (const [name, template] of entriesOf(source))
      headers.set(name.toLowerCase(), filled(template, parts, plainText));
  for (const [name, template] of entriesOf(action.query_params_template)) {
    const value = filled(template, parts, plainText);
    if (value !== '') url.searchParams.set(name, value);
  }
  for (const { placement, value } of credentials) {
    const text = `${placement.prefix ?? ''}${value}`;
    if (placement.in === 'query') url.searchParams.set(placement.name, text);
    else headers.set(placement.name.toLowerCase(), text);
  }
  const template = textOf(action.body_template);
  const body = template === '' || WITHOUT_BODY.has(method) ? undefined : bodyOf(template, parts);
  if (body !== undefined && !headers.has('content-type') && isJson(template))
    headers.set('content-type', 'application/json');
  return { method, url, headers: Object.fromEntries(headers), body };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The entries of an object whose values are texts. */
const entriesOf = (value: unknown): [string, string][] =>
  Object.entries((typeof value === 'object' && value) || {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );

/** The value of a name: a parameter, else of the configuration, else a secret; `undefined` if it has none. */
function namedValue(name: string, { parameters, configuration, secrets }: RequestParts): unknown {
  for (const values of [parameters, configuration, secrets])
    if (Object.hasOwn(values, name) && values[name] !== null) return values[name];
  return undefined;
}

const plainText = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value as string);

const filled = (template: string, parts: RequestParts, write: (value: unknown) => string): string =>
  template.replaceAll(PLACEHOLDER, (_whole, name: string) => write(namedValue(name, parts)));

/** A part of a path: slashes of a value stay, all that would end the path does not. */
const inPath = (value: string): string => encodeURIComponent(value).replaceAll('%2F', '/');

function urlOf(parts: RequestParts): URL {
  const template = textOf(parts.action.url_template);
  const [path] = template.split('?', 1) as [string];
  const write = (values: RequestParts) =>
    template.replaceAll(PLACEHOLDER, (_whole, name: string, at: number) => {
      const value = namedValue(name, values);
      if (value === undefined) {
        if (values === parts) throw new UnusableAction('schema_mismatch', `The action needs a value of '${name}'.`);
        return '';
      }
      const text = plainText(value);
      if (at >= path.length) return encodeURIComponent(text);
      // an address of the configuration begins the URL as it is
      return at === 0 ? text : inPath(text);
    });
  const url = parsed(write(parts));
  const withoutParameters = write({ ...parts, parameters: {} });
  const hasSecrets = parts.credentials.length > 0 || Object.keys(parts.secrets).length > 0;
  const isFixed = URL.canParse(withoutParameters) && new URL(withoutParameters).origin === url.origin;
  if (hasSecrets && !isFixed)
    throw new UnusableAction(
      'schema_mismatch',
      'The parameters of a call must not choose the host that gets credentials.',
    );
  return url;
}

function parsed(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw new UnusableAction('schema_mismatch', 'The URL of the action is not an absolute URL.');
}

const isJson = (template: string): boolean => /^\s*[[{]/.test(template);

/** In a JSON template, a placeholder within a string is a part of it, and elsewhere a value. */
function bodyOf(template: string, parts: RequestParts): string {
  if (!isJson(template)) return filled(template, parts, plainText);
  return template.replaceAll(PLACEHOLDER, (_whole, name: string, at: number) => {
    const value = namedValue(name, parts);
    return isInString(template, at) ? JSON.stringify(plainText(value)).slice(1, -1) : JSON.stringify(value ?? null);
  });
}

/** Whether a place of a JSON text is within a string. */
function isInString(text: string, until: number): boolean {
  let isInside = false;
  for (let at = 0; at < until; at++) {
    if (text[at] === '\\' && isInside) at++;
    else if (text[at] === '"') isInside = !isInside;
  }
  return isInside;
}
