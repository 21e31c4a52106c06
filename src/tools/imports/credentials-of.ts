import { isJsonObject } from '../../kernel/json-object.ts';
import { entryShapes, misplacedIn } from '../tools/tool-shapes.ts';
import { parsedUrl } from './base-address.ts';
import { at, cut, type DocumentReferences, Gap, type JsonPart, within } from './references.ts';
import { UniqueNames } from './unique-names.ts';

const MAX_SCHEMES = 100;
const MAX_SCOPES = 100;
const MAX_SCOPE = 255;
/** What a request can ask for (RFC 6749, 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
/** A header that a request can have (RFC 9110, 5.6.2). */
const HEADER = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,255}$/;

/** A scheme of security as the credential of a tool, or why it is none. */
type Scheme = { entry: Record<string, unknown> } | { gap: Gap };

/** What is collected of the schemes of a document. */
interface Schemes {
  byName: Map<string, Scheme>;
  /** What credentials have less exactly. */
  gaps: Gap[];
}

/** The credentials that operations accept. */
export interface Security {
  /** What the tool gets: the schemes that most operations accept. */
  credentialSchema: Record<string, unknown>[];
  /** Why an operation cannot be called with that; `null` if it can. */
  refusalOf: (operation: JsonPart, place: string) => Gap | null;
  gaps: Gap[];
}

/** Schemes that are needed together. */
interface SchemeSet {
  names: string[];
  /** The same for the same schemes. */
  key: string;
}

/** A set of schemes that are needed together, as one text. */
const keyOf = (names: readonly string[]): string => JSON.stringify([...names].sort());

const NONE: readonly SchemeSet[] = [];

/**
 * The sets of schemes that operations accept. What operations have in common is looked at once: otherwise a document
 * decides how often.
 */
class Alternatives {
  readonly #root: JsonPart;
  readonly #known = new Map<unknown, SchemeSet[]>();

  constructor(root: JsonPart) {
    this.#root = root;
  }

  /** One without schemes: the operation may need none. So does one that has no sets. */
  of(operation: JsonPart): readonly SchemeSet[] {
    const given = at(operation, 'security') ?? at(this.#root, 'security');
    if (!Array.isArray(given)) return NONE;
    const sets = this.#known.get(given) ?? setsIn(given);
    this.#known.set(given, sets);
    return sets;
  }
}

/** Each set once. */
function setsIn(given: readonly unknown[]): SchemeSet[] {
  const sets = given.slice(0, MAX_SCHEMES).map((set) => (isJsonObject(set) ? Object.keys(set) : []));
  return [...new Map(sets.map((names) => [keyOf(names), names]))].map(([key, names]) => ({ key, names }));
}

const isOpen = (sets: readonly SchemeSet[]): boolean =>
  sets.length === 0 || sets.some(({ names }) => names.length === 0);

/** What a document says of credentials, for all of its operations. */
export function securityOf(
  root: JsonPart,
  references: DocumentReferences,
  operations: readonly JsonPart[],
  documentUrl: string | null,
) {
  const schemes = schemesOf(root, references, documentUrl);
  const alternatives = new Alternatives(root);
  const isUsable = ({ names }: SchemeSet) =>
    names.length > 0 && names.every((name) => 'entry' in (schemes.byName.get(name) ?? { gap: null }));
  const users = new Map<readonly SchemeSet[], number>();
  for (const operation of operations) {
    const sets = alternatives.of(operation);
    users.set(sets, (users.get(sets) ?? 0) + 1);
  }
  const accepted = new Map<string, SchemeSet & { count: number }>();
  for (const [sets, count] of users)
    for (const set of sets) accepted.set(set.key, { ...set, count: count + (accepted.get(set.key)?.count ?? 0) });
  const [first, ...others] = [...accepted.values()].filter(isUsable);
  const { names, key } = others.reduce(
    (most, set) => (set.count > most.count ? set : most),
    first ?? { names: [], key: keyOf([]), count: 0 },
  );
  const isNeededByAll = ![...users.keys()].some(isOpen);
  return {
    credentialSchema: names.flatMap((name) => {
      const scheme = schemes.byName.get(name);
      return scheme && 'entry' in scheme ? [{ ...scheme.entry, required: isNeededByAll }] : [];
    }),
    refusalOf: (operation: JsonPart, place: string) => {
      const sets = alternatives.of(operation);
      if (isOpen(sets) || sets.some((set) => set.key === key)) return null;
      const needed = sets[0]!.names.join(' and ').slice(0, 200);
      return new Gap('other_credentials', place, `The operation needs ${needed}, which the tool does not have.`);
    },
    gaps: [...[...schemes.byName.values()].flatMap((scheme) => ('gap' in scheme ? [scheme.gap] : [])), ...schemes.gaps],
  } satisfies Security;
}

function schemesOf(root: JsonPart, references: DocumentReferences, documentUrl: string | null): Schemes {
  const components = at(root, 'components');
  const given = isJsonObject(components) ? at(components, 'securitySchemes') : undefined;
  const entries = isJsonObject(given) ? Object.entries(given).slice(0, MAX_SCHEMES) : [];
  const taken = new UniqueNames();
  const gaps: Gap[] = [];
  const byName = entries.map(([name, scheme]): [string, Scheme] => {
    const place = within('/components/securitySchemes', name);
    try {
      const found = references.resolved(scheme, place);
      const entry = credentialOf(taken.take(name), found.value, place, { documentUrl, gap: (gap) => gaps.push(gap) });
      demandForm(entry, place);
      return [name, { entry }];
    } catch (error) {
      if (error instanceof Gap) return [name, { gap: error }];
      throw error;
    }
  });
  return { byName: new Map(byName), gaps };
}

/** What is imported is checked like what people write. @throws Gap */
function demandForm(entry: Record<string, unknown>, place: string): void {
  const [issue] = [...entryShapes.credentialSchema.check(entry), ...misplacedIn([entry])];
  if (issue) throw new Gap('invalid', place, `Its credential is none of a tool: ${issue.msg}`);
}

/** What is the same for all schemes. */
interface SchemeContext {
  documentUrl: string | null;
  gap: (gap: Gap) => void;
}

function credentialOf(name: string, scheme: JsonPart, place: string, context: SchemeContext): Record<string, unknown> {
  const key = (placement: object, more = '') => {
    const description = [cut(at(scheme, 'description'), 1_000), more].filter((text) => text).join(' ');
    return { name, type: 'secret', ...(description !== '' && { description }), placement };
  };
  const type = at(scheme, 'type');
  if (type === 'apiKey') {
    const [where, called] = [at(scheme, 'in'), at(scheme, 'name')];
    if (typeof called !== 'string' || !(where === 'header' ? HEADER : /^[!-~]{1,255}$/).test(called))
      throw new Gap('invalid', place, 'The key has no usable name.');
    if (where === 'header' || where === 'query') return key({ in: where, name: called });
    throw new Gap('unsupported', place, 'A key in a cookie cannot be sent.');
  }
  if (type === 'http') {
    const kind = String(at(scheme, 'scheme')).toLowerCase();
    const placement = { in: 'header', name: 'Authorization' };
    if (kind === 'bearer') return key({ ...placement, prefix: 'Bearer ' });
    if (kind === 'basic')
      return key({ ...placement, prefix: 'Basic ' }, 'The user name and the password in base64: `name:password`.');
  }
  if (type === 'oauth2') return oauthOf(name, scheme, place, context);
  throw new Gap(
    'unsupported',
    place,
    'Only keys, basic and bearer credentials, and OAuth 2.0 with a code are supported.',
  );
}

function oauthOf(
  name: string,
  scheme: JsonPart,
  place: string,
  { documentUrl, gap }: SchemeContext,
): Record<string, unknown> {
  const flows = at(scheme, 'flows');
  const flow = isJsonObject(flows) ? at(flows, 'authorizationCode') : undefined;
  if (!isJsonObject(flow)) throw new Gap('unsupported', place, 'OAuth 2.0 is supported with an authorization code.');
  const address = (key: string) => {
    const text = at(flow, key);
    const found = typeof text === 'string' ? parsedUrl(text, documentUrl) : null;
    if (found && /^https?:$/.test(found.protocol) && found.username === '' && found.href.length <= 2_048)
      return found.href;
    throw new Gap('invalid', within(place, 'flows', 'authorizationCode', key), 'It is no usable address.');
  };
  const scopes = at(flow, 'scopes');
  return {
    name,
    type: 'oauth2',
    authorization_url: address('authorizationUrl'),
    token_url: address('tokenUrl'),
    scopes: scopesIn(scopes, within(place, 'flows', 'authorizationCode', 'scopes'), gap),
  };
}

/** The scopes that a request can ask for. */
function scopesIn(given: unknown, place: string, gap: (gap: Gap) => void): string[] {
  const all = isJsonObject(given) ? Object.keys(given) : [];
  const usable = all.filter((scope) => scope.length <= MAX_SCOPE && SCOPE.test(scope));
  if (usable.length < all.length) gap(new Gap('invalid', place, 'Scopes that no request can ask for are left out.'));
  if (usable.length > MAX_SCOPES) gap(new Gap('too_large', place, `Only the first ${MAX_SCOPES} scopes are taken.`));
  return usable.slice(0, MAX_SCOPES);
}
