import { onceFor } from '../../kernel/once-for.ts';
import { addressIn, hostIn } from '../tool-instances/action-request.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { entryNames, filled, type LookUp, namesIn } from '../tools/placeholders.ts';
import { keyFieldsOf } from '../tools/tool-shapes.ts';
import type { ProxiedInstance } from './proxied-instance.ts';

/** An address that the actions of an instance go below: calls stay there, too. */
export interface ToolBase {
  /** Its path ends with a slash. */
  url: URL;
  /** Its host for people and programs: as the template has it, if a secret is a part of it. */
  shownHost: string;
  /** The actions that go there. */
  actions: ToolAction[];
}

type Valued = Pick<ProxiedInstance, 'actions' | 'configuration' | 'secrets'>;

/** A name of the configuration, else a secret: never a parameter, which is somebody else's. */
const lookUpIn =
  ({ configuration, secrets }: Valued): LookUp =>
  (name) => {
    for (const values of [configuration, secrets])
      if (Object.hasOwn(values, name) && values[name] !== null) return values[name];
    return undefined;
  };

const plainText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * The addresses that the actions of an instance begin with, in the order of the actions: what a placeholder of the
 * configuration says, or the host of a template. A secret in a path is a part of it, because such a path is an address
 * of one account. Actions whose parameters choose the host have none.
 */
export function basesOf(instance: Valued): ToolBase[] {
  const lookUp = lookUpIn(instance);
  const bases = new Map<string, ToolBase>();
  for (const action of instance.actions) {
    const beginning = beginningOf(action);
    const url = baseIn(beginning, instance, lookUp);
    if (!url) continue;
    const shownHost = hasSecretHost(beginning, instance) ? hostIn(beginning.template) : url.host;
    const known = bases.get(url.href) ?? { url, shownHost, actions: [] };
    known.actions.push(action);
    bases.set(url.href, known);
  }
  return [...bases.values()];
}

/** What says the host: an address, or a placeholder that is one, up to the path; and the path. */
const BEGINNING = /^((?:https?:\/\/|\{\{[^{}]*\}\})[^/?#]*)\/?([^?#]*)/i;
const WHOLE = /^\{\{[^{}]*\}\}$/;

/** What an action begins its address with. An action does not change, and calls are many. */
interface Beginning {
  template: string;
  /** The names of its own parameters. */
  own: ReadonlySet<string>;
  /** `undefined` for an action without an address. */
  authority: string | undefined;
  /** The names in that. */
  names: readonly string[];
  path: string;
}
const beginningOf = onceFor(({ url_template, parameters }: ToolAction): Beginning => {
  const template = typeof url_template === 'string' ? url_template : '';
  const [, authority, path = ''] = BEGINNING.exec(template) ?? [];
  return { template, own: new Set(entryNames(parameters)), authority, names: namesIn(authority ?? ''), path };
});

function baseIn({ authority, names, own, path }: Beginning, { secrets }: Valued, lookUp: LookUp): URL | null {
  const known: LookUp = (name) => (own.has(name) ? undefined : lookUp(name));
  if (authority === undefined || names.some((name) => known(name) === undefined)) return null;
  // the same that the action makes of it
  const url = addressIn(authority, (name) => plainText(known(name)));
  if (url?.username !== '' || url.password !== '') return null;
  if (authority.startsWith('{{')) return WHOLE.test(authority) ? folderOf(url) : folderAt(url.origin);
  const segments = path.split('/');
  const isSecret = (name: string) => !own.has(name) && Object.hasOwn(secrets, name);
  const last = segments.findLastIndex((segment) => namesIn(segment).some(isSecret));
  const folder = filled(segments.slice(0, last + 1).join('/'), known, (value) => encodeURIComponent(plainText(value)));
  return folder === null ? null : folderAt(`${url.origin}/${folder}`);
}

/** Whether a secret is a part of the host of a base. No parameter is: such a template has no base. */
function hasSecretHost({ names }: Beginning, { configuration, secrets }: Valued): boolean {
  const isPlain = (name: string) => Object.hasOwn(configuration, name) && configuration[name] !== null;
  return names.some((name) => Object.hasOwn(secrets, name) && !isPlain(name));
}

/** An address as what others are below; `null` if it is none. */
const folderAt = (text: string): URL | null => (URL.canParse(text) ? folderOf(new URL(text)) : null);

function folderOf({ protocol, username, password, origin, pathname }: URL): URL | null {
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '') return null;
  return new URL(pathname.endsWith('/') ? pathname : `${pathname}/`, origin);
}

/** What goes into each call. */
export interface PlacedTexts {
  /** Names in lower case. */
  headers: Map<string, string>;
  query: Map<string, string>;
}

/**
 * Secrets that the actions at a base name in their headers or queries, where nothing else than the tool says where they
 * go. Only what every call can have: no parameter is in them.
 */
export function namedSecrets(
  { actions }: ToolBase,
  instance: Valued,
  more: Readonly<Record<string, string>>,
): PlacedTexts {
  const secrets = { ...instance.secrets, ...more };
  const lookUp = lookUpIn({ ...instance, secrets });
  const placed: PlacedTexts = { headers: new Map(), query: new Map() };
  for (const action of actions) {
    const own = new Set(entryNames(action.parameters));
    const known: LookUp = (name) => (own.has(name) ? undefined : lookUp(name));
    const isSecret = (name: string) => !own.has(name) && Object.hasOwn(secrets, name);
    for (const [source, into, nameOf] of [
      [action.headers, placed.headers, (name: string) => name.toLowerCase()],
      [action.query_params_template, placed.query, (name: string) => name],
    ] as const)
      for (const [name, template] of Object.entries((source ?? {}) as Record<string, unknown>)) {
        if (typeof template !== 'string' || into.has(nameOf(name)) || !namesIn(template).some(isSecret)) continue;
        const text = filled(template, known, plainText);
        if (text !== null) into.set(nameOf(name), text);
      }
  }
  return placed;
}

/** The headers that the configuration has for every call. */
export function defaultHeaders(instance: Valued): Map<string, string> {
  const lookUp = lookUpIn(instance);
  const headers = new Map<string, string>();
  for (const [name, template] of Object.entries((instance.configuration.default_headers ?? {}) as object)) {
    const text = typeof template === 'string' ? filled(template, lookUp, plainText) : null;
    if (text !== null) headers.set(name.toLowerCase(), text);
  }
  return headers;
}

/** The field of a key that has no place of its own, and that the actions at a base name; `null` if there is none. */
export function namedKeyField({ actions }: ToolBase, credentialSchema: readonly object[]): string | null {
  const names = new Set(
    actions.flatMap((action) =>
      [action.headers, action.query_params_template].flatMap((source) =>
        Object.values((source ?? {}) as object).flatMap((text) => (typeof text === 'string' ? namesIn(text) : [])),
      ),
    ),
  );
  const field = keyFieldsOf(credentialSchema).find(({ name, placement }) => !placement && names.has(name));
  return field?.name ?? null;
}
