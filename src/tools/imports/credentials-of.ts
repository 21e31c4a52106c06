import { isJsonObject } from '../../kernel/json-object.ts';
import { parsedUrl } from './base-address.ts';
import { at, cut, type DocumentReferences, Gap, type JsonPart, within } from './references.ts';

const MAX_SCHEMES = 100;
const MAX_SCOPES = 100;

/** A scheme of security as the credential of a tool, or why it is none. */
type Scheme = { entry: Record<string, unknown> } | { gap: Gap };

/** The credentials that operations accept. */
export interface Security {
  /** What the tool gets: the schemes that most operations accept. */
  credentialSchema: Record<string, unknown>[];
  /** Why an operation cannot be called with that; `null` if it can. */
  refusalOf: (operation: JsonPart, place: string) => Gap | null;
  gaps: Gap[];
}

/** A set of schemes that are needed together, as one text. */
const keyOf = (names: readonly string[]): string => JSON.stringify([...names].sort());

/** The sets of schemes that an operation accepts; `[]` if it needs none. One without schemes: it may need none. */
function alternativesOf(operation: JsonPart, root: JsonPart): string[][] {
  const given = at(operation, 'security') ?? at(root, 'security');
  return Array.isArray(given)
    ? given.slice(0, MAX_SCHEMES).map((set) => (isJsonObject(set) ? Object.keys(set) : []))
    : [];
}

/** What a document says of credentials, for all of its operations. */
export function securityOf(
  root: JsonPart,
  references: DocumentReferences,
  operations: readonly JsonPart[],
  documentUrl: string | null,
) {
  const schemes = schemesOf(root, references, documentUrl);
  const isUsable = (names: readonly string[]) =>
    names.length > 0 && names.every((name) => 'entry' in (schemes.get(name) ?? { gap: null }));
  const accepted = new Map<string, { names: string[]; count: number }>();
  let isNeededByAll = true;
  for (const operation of operations) {
    const alternatives = alternativesOf(operation, root);
    if (alternatives.length === 0 || alternatives.some((names) => names.length === 0)) isNeededByAll = false;
    for (const names of alternatives.filter(isUsable)) {
      const known = accepted.get(keyOf(names)) ?? { names, count: 0 };
      accepted.set(keyOf(names), { ...known, count: known.count + 1 });
    }
  }
  let chosen: { names: string[]; count: number } | null = null;
  for (const set of accepted.values()) if (!chosen || set.count > chosen.count) chosen = set;
  const names = chosen?.names ?? [];
  return {
    credentialSchema: names.flatMap((name) => {
      const scheme = schemes.get(name);
      return scheme && 'entry' in scheme ? [{ ...scheme.entry, required: isNeededByAll }] : [];
    }),
    refusalOf: (operation: JsonPart, place: string) => {
      const alternatives = alternativesOf(operation, root);
      const isOpen = alternatives.length === 0 || alternatives.some((set) => set.length === 0);
      if (isOpen || alternatives.some((set) => keyOf(set) === keyOf(names))) return null;
      const needed = alternatives[0]!.join(' and ').slice(0, 200);
      return new Gap('other_credentials', place, `The operation needs ${needed}, which the tool does not have.`);
    },
    gaps: [...schemes.values()].flatMap((scheme) => ('gap' in scheme ? [scheme.gap] : [])),
  } satisfies Security;
}

function schemesOf(root: JsonPart, references: DocumentReferences, documentUrl: string | null): Map<string, Scheme> {
  const components = at(root, 'components');
  const given = isJsonObject(components) ? at(components, 'securitySchemes') : undefined;
  const entries = isJsonObject(given) ? Object.entries(given).slice(0, MAX_SCHEMES) : [];
  const taken = new Set<string>();
  return new Map(
    entries.map(([name, scheme]): [string, Scheme] => {
      const place = within('/components/securitySchemes', name);
      try {
        const found = references.resolved(scheme, place);
        return [name, { entry: credentialOf(unique(name, taken), found.value, place, documentUrl) }];
      } catch (error) {
        if (error instanceof Gap) return [name, { gap: error }];
        throw error;
      }
    }),
  );
}

/** A name that placeholders may have. */
export function plainName(text: string): string {
  const plain = text.replaceAll(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 100);
  return /^[A-Za-z_]/.test(plain) ? plain : `_${plain}`;
}

/** A plain name that no other has. */
export function unique(text: string, taken: Set<string>): string {
  const name = plainName(text);
  let found = name;
  for (let count = 2; taken.has(found); count++) found = `${name}_${count}`;
  taken.add(found);
  return found;
}

function credentialOf(
  name: string,
  scheme: JsonPart,
  place: string,
  documentUrl: string | null,
): Record<string, unknown> {
  const key = (placement: object, more = '') => {
    const description = [cut(at(scheme, 'description'), 1_000), more].filter((text) => text).join(' ');
    return { name, type: 'secret', ...(description !== '' && { description }), placement };
  };
  const type = at(scheme, 'type');
  if (type === 'apiKey') {
    const [where, called] = [at(scheme, 'in'), at(scheme, 'name')];
    if (typeof called !== 'string' || !/^[!-~]{1,255}$/.test(called))
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
  if (type === 'oauth2') return oauthOf(name, scheme, place, documentUrl);
  throw new Gap(
    'unsupported',
    place,
    'Only keys, basic and bearer credentials, and OAuth 2.0 with a code are supported.',
  );
}

function oauthOf(name: string, scheme: JsonPart, place: string, documentUrl: string | null): Record<string, unknown> {
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
    scopes: isJsonObject(scopes)
      ? Object.keys(scopes)
          .filter((scope) => scope.length <= 255)
          .slice(0, MAX_SCOPES)
      : [],
  };
}
