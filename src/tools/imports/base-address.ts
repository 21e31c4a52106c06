import { isJsonObject } from '../../kernel/json-object.ts';
import { at, Gap, type JsonPart, within } from './references.ts';

const MAX_SERVERS = 20;
const MAX_ADDRESS = 1_000;

/** A URL of a document, which may be relative to it; `null` if it is none. */
export const parsedUrl = (text: string, relativeTo: string | null): URL | null =>
  URL.canParse(text, relativeTo ?? undefined) ? new URL(text, relativeTo ?? undefined) : null;

/** An address of servers or operations: without credentials, query, and the slash at its end. `null` if it is none. */
export function addressOf(text: string, relativeTo: string | null): string | null {
  const found = parsedUrl(text, relativeTo);
  if (!found || !/^https?:$/.test(found.protocol)) return null;
  if (found.username !== '' || found.password !== '' || found.search !== '' || found.hash !== '') return null;
  const address = found.href.replace(/\/+$/, '');
  return address.length <= MAX_ADDRESS ? address : null;
}

/** The addresses of servers. Their variables have their defaults. */
export interface Servers {
  addresses: string[];
  gaps: Gap[];
}

/** The servers that a document, a path or an operation names; `null` if it names none. */
export function serversOf(of: JsonPart, place: string, documentUrl: string | null): Servers | null {
  const given = at(of, 'servers');
  if (!Array.isArray(given) || given.length === 0) return null;
  const servers: Servers = { addresses: [], gaps: [] };
  for (const [index, server] of given.slice(0, MAX_SERVERS).entries()) {
    const inPlace = within(place, 'servers', index);
    const address = isJsonObject(server) ? serverAddress(server, inPlace, documentUrl, servers.gaps) : null;
    if (address === null) servers.gaps.push(new Gap('invalid', inPlace, 'It is no usable address of a server.'));
    else if (!servers.addresses.includes(address)) servers.addresses.push(address);
  }
  return servers;
}

function serverAddress(server: JsonPart, place: string, documentUrl: string | null, gaps: Gap[]): string | null {
  const url = at(server, 'url');
  if (typeof url !== 'string' || url.length > MAX_ADDRESS) return null;
  const variables = at(server, 'variables');
  let isWhole = true;
  const text = url.replaceAll(/\{([^{}]*)\}/g, (_whole, name: string) => {
    const variable = isJsonObject(variables) ? at(variables, name) : undefined;
    const initial = isJsonObject(variable) ? at(variable, 'default') : undefined;
    if (typeof initial === 'string') return initial;
    isWhole = false;
    return '';
  });
  if (!isWhole) return null;
  if (text !== url) gaps.push(new Gap('simplified', place, 'The variables of the address have their default values.'));
  return addressOf(text, documentUrl);
}
