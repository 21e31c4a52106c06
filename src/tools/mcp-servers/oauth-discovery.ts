import { z } from 'zod';
import { isJsonObject } from '../../kernel/json-object.ts';
import { type JsonBounds, overloadOf } from '../../kernel/json-shape.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { BearerChallenge } from './challenge.ts';
import { type DiscoveredService, type ServerAuthorization, withoutService } from './server-authorization.ts';

/** How metadata is read. */
export interface MetadataReader {
  /** Asks for a document, without a credential. A redirect is an answer. @throws OutboundError */
  get: (url: URL) => Promise<OutboundResponse>;
  /** Why this service does not call an address; `null` if it may. */
  refusalOf: (url: URL) => string | null;
}

/** What a document is taken apart to. */
const BOUNDS: JsonBounds = { maxDepth: 20, maxValues: 5_000 };
const MAX_SCOPES = 100;
const MAX_SCOPE = 255;
/** What a request can ask for (RFC 6749, 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

const address = z
  .string()
  .max(2_048)
  .regex(/^https?:\/\/[!-~]+$/);
const words = z.array(z.string()).max(5_000);

/** The metadata of a protected resource (RFC 9728, 2), as far as it is used. */
const resourceDocument = z.object({
  resource: address,
  authorization_servers: z.array(address).max(100).optional(),
  scopes_supported: words.optional(),
  bearer_methods_supported: words.optional(),
});
type ResourceDocument = z.infer<typeof resourceDocument>;

/** The metadata of an authorization server (RFC 8414, 2, or OpenID Connect Discovery), as far as it is used. */
const serverDocument = z.object({
  issuer: address,
  authorization_endpoint: address,
  token_endpoint: address,
  revocation_endpoint: address.optional(),
  registration_endpoint: address.optional(),
  scopes_supported: words.optional(),
  response_types_supported: words.optional(),
  grant_types_supported: words.optional(),
  code_challenge_methods_supported: words.optional(),
  token_endpoint_auth_methods_supported: words.optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
  client_id_metadata_document_supported: z.boolean().optional(),
});
type ServerDocument = z.infer<typeof serverDocument>;

/** Why metadata is not used: a sentence for people. */
class Unusable extends Error {
  override readonly name = 'Unusable';
}

/** An address of a stranger in a sentence. */
const shown = (url: URL): string => (url.href.length > 300 ? `${url.href.slice(0, 300)}…` : url.href);

/**
 * Finds how tokens for an MCP server are got, as the protocol has it: the server names the metadata of its resource,
 * that names an authorization server, and that says where its endpoints are. Everything is checked against what led to
 * it. Whatever a server publishes is an outcome.
 * @param challenge of its 401; `null` if it gave none: then the metadata is looked for where it usually is
 * @throws OutboundError only if the service has no room for the call, or nobody waits for it any more
 */
export async function discoverOAuth(
  reader: MetadataReader,
  server: URL,
  challenge: BearerChallenge | null,
): Promise<ServerAuthorization> {
  try {
    const resource = await resourceOf(reader, server, challenge?.resourceMetadata ?? null);
    if (!resource) return withoutService('none', 'The server publishes no metadata of a protected resource.');
    const issuer = issuerOf(resource);
    const found = await authorizationServerOf(reader, issuer);
    return authorizationOf(reader, { resource, issuer, found, asked: challenge?.scope ?? null });
  } catch (error) {
    if (error instanceof Unusable) return withoutService('unusable', error.message);
    throw error;
  }
}

async function resourceOf(reader: MetadataReader, server: URL, named: string | null): Promise<ResourceDocument | null> {
  const place = 'oauth-protected-resource';
  const places = named === null ? [wellKnown(server, place), rootOf(server, place)] : [namedBy(server, named)];
  for (const url of unique(places)) {
    const json = await jsonAt(reader, url);
    if (json === null && named !== null) throw new Unusable(`There is no metadata at ${shown(url)}, which it names.`);
    if (json === null) continue;
    const { data } = resourceDocument.safeParse(json);
    if (!data) throw new Unusable(`The metadata at ${shown(url)} is none of a protected resource.`);
    demandResource(data, server, url);
    return data;
  }
  return null;
}

/** The address of its metadata is at the server itself: others do not speak for it. @throws Unusable */
function namedBy(server: URL, named: string): URL {
  const url = URL.canParse(named) ? new URL(named) : null;
  if (url?.origin !== server.origin)
    throw new Unusable('The server names metadata of its resource that is not at its own host.');
  return url;
}

/** A token for a resource is good there, and below it: a server may not have one made for others. @throws Unusable */
function demandResource({ resource, bearer_methods_supported: ways }: ResourceDocument, server: URL, at: URL): void {
  const url = URL.canParse(resource) ? new URL(resource) : null;
  const isIts =
    url?.origin === server.origin &&
    isAsWritten(url, resource) &&
    url.hash === '' &&
    url.username === '' &&
    url.password === '' &&
    (url.search === '' || url.search === server.search) &&
    isWithin(server.pathname, url.pathname);
  if (!isIts) throw new Unusable(`The metadata at ${shown(at)} is that of another resource.`);
  if (ways && !ways.includes('header')) throw new Unusable('The server takes no token in the header Authorization.');
}

/** Whether a text is an address as it is read: the text goes on to others, who may read it in another way. */
const isAsWritten = (url: URL, text: string): boolean => url.href === text || url.href === `${text}/`;

function isWithin(path: string, whole: string): boolean {
  const folder = whole.endsWith('/') ? whole : `${whole}/`;
  return path === whole || `${path}/`.startsWith(folder);
}

/** @throws Unusable */
function issuerOf({ authorization_servers: issuers }: ResourceDocument): URL {
  const [first] = issuers ?? [];
  if (first === undefined) throw new Unusable('The metadata of the server names no authorization server.');
  const url = URL.canParse(first) ? new URL(first) : null;
  if (url === null || url.username !== '' || url.password !== '' || !isBare(first))
    throw new Unusable('The metadata of the server names an authorization server that has no usable address.');
  return url;
}

/** Without query and fragment (RFC 8414, 2). */
const isBare = (text: string): boolean => !/[?#]/.test(text);

async function authorizationServerOf(reader: MetadataReader, issuer: URL): Promise<ServerDocument> {
  const openid = 'openid-configuration';
  const below = new URL(issuer);
  below.pathname = `${withoutSlash(issuer.pathname)}/.well-known/${openid}`;
  const places = [wellKnown(issuer, 'oauth-authorization-server'), wellKnown(issuer, openid), below];
  for (const url of unique(places)) {
    const json = await jsonAt(reader, url);
    if (json === null) continue;
    const { data } = serverDocument.safeParse(json);
    if (!data) throw new Unusable(`The metadata at ${shown(url)} is none of an authorization server.`);
    // an issuer may end with a slash, which is no part of the address of its document
    if (withoutSlash(data.issuer) !== withoutSlash(issuer.href))
      throw new Unusable(`The metadata at ${shown(url)} names another issuer.`);
    return data;
  }
  throw new Unusable(`The authorization server ${shown(issuer)} publishes no metadata.`);
}

interface FoundMetadata {
  resource: ResourceDocument;
  issuer: URL;
  found: ServerDocument;
  /** The scopes that the server has asked for. */
  asked: string | null;
}

/** @throws Unusable */
function authorizationOf(
  reader: MetadataReader,
  { resource, issuer, found, asked }: FoundMetadata,
): ServerAuthorization {
  const lacks = (list: readonly string[] | undefined, word: string) => list !== undefined && !list.includes(word);
  if (lacks(found.response_types_supported, 'code') || lacks(found.grant_types_supported, 'authorization_code'))
    throw new Unusable(`The authorization server ${shown(issuer)} grants nothing by an authorization code.`);
  if (!found.code_challenge_methods_supported?.includes('S256'))
    throw new Unusable(`The authorization server ${shown(issuer)} does not say that it takes PKCE with S256.`);
  const endpoint = (name: 'authorization_endpoint' | 'token_endpoint' | 'revocation_endpoint', text: string) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    const refusal = url ? reader.refusalOf(url) : 'It is no address.';
    if (refusal === null) return url!.href;
    throw new Unusable(`The '${name}' of the authorization server ${shown(issuer)} cannot be used. ${refusal}`);
  };
  const methods = found.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const saysWhoItIs = found.authorization_response_iss_parameter_supported === true;
  // everybody's authorizations can be begun with a public client, so its codes must say whose they are
  const takesClientDocuments =
    saysWhoItIs && found.client_id_metadata_document_supported === true && methods.includes('none');
  const service: DiscoveredService = {
    type: 'oauth2',
    authorization_url: endpoint('authorization_endpoint', found.authorization_endpoint),
    token_url: endpoint('token_endpoint', found.token_endpoint),
    ...(found.revocation_endpoint !== undefined && {
      revocation_url: endpoint('revocation_endpoint', found.revocation_endpoint),
    }),
    scopes: scopesOf(asked?.split(' ') ?? resource.scopes_supported ?? [], found.scopes_supported ?? []),
    pkce: true,
    token_endpoint_auth_method: methodOf(methods, issuer),
    resource: resource.resource,
    issuer: found.issuer,
    ...(saysWhoItIs && { authorization_response_iss_parameter_supported: true }),
  };
  return { outcome: 'found', message: saidOf({ resource, issuer, found }), service, takesClientDocuments };
}

function saidOf({ resource, issuer, found }: Omit<FoundMetadata, 'asked'>): string {
  const others = (resource.authorization_servers ?? []).length - 1;
  const more = others > 0 ? ` It is the first of ${others + 1} that the server names; only this one is used.` : '';
  const registration =
    found.registration_endpoint === undefined
      ? ''
      : ' It registers clients by itself, which this service does not use.';
  return `The server takes tokens of the authorization server ${shown(issuer)}.${more}${registration}`;
}

/** @throws Unusable */
function methodOf(methods: readonly string[], issuer: URL): DiscoveredService['token_endpoint_auth_method'] {
  for (const method of ['client_secret_basic', 'client_secret_post', 'none'] as const)
    if (methods.includes(method)) return method;
  throw new Unusable(`The authorization server ${shown(issuer)} takes no client that has a secret or none.`);
}

/** What is asked for; what gives refresh tokens is added where it exists. */
function scopesOf(wanted: readonly string[], known: readonly string[]): string[] {
  const usable = wanted.filter((scope) => scope.length <= MAX_SCOPE && SCOPE.test(scope));
  const offline = known.includes('offline_access') ? ['offline_access'] : [];
  return [...new Set([...usable.slice(0, MAX_SCOPES - offline.length), ...offline])];
}

/** The address that RFC 8414 and RFC 9728 have for a document about another: between its host and its path. */
function wellKnown(url: URL, place: string): URL {
  const path = withoutSlash(url.pathname);
  const at = new URL(`/.well-known/${place}${path}`, url.origin);
  at.search = url.search;
  return at;
}

const rootOf = (url: URL, place: string): URL => new URL(`/.well-known/${place}`, url.origin);
const withoutSlash = (text: string): string => (text.endsWith('/') ? text.slice(0, -1) : text);
const unique = (urls: readonly URL[]): URL[] => [...new Map(urls.map((url) => [url.href, url])).values()];

/** An object in JSON; `null` if there is none. @throws Unusable for an address that cannot be read */
async function jsonAt({ get }: MetadataReader, url: URL): Promise<Record<string, unknown> | null> {
  const answer = await answerAt(get, url);
  if (answer.status !== 200) return null;
  const text = answer.text();
  if (overloadOf(text, BOUNDS)) throw new Unusable(`The metadata at ${shown(url)} has too many parts.`);
  try {
    const json: unknown = JSON.parse(text);
    return isJsonObject(json) ? json : null;
  } catch {
    return null; // a page that is answered for every address is no metadata
  }
}

/** @throws Unusable; OutboundError `busy`, `aborted` */
async function answerAt(get: MetadataReader['get'], url: URL): Promise<OutboundResponse> {
  try {
    return await get(url);
  } catch (error) {
    if (!(error instanceof OutboundError) || error.code === 'busy' || error.code === 'aborted') throw error;
    throw new Unusable(`The metadata at ${shown(url)} cannot be read. ${error.message}`);
  }
}
