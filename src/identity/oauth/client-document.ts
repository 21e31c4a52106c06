import { isIP } from 'node:net';
import { redirectProblem } from '../applications/redirect-uris.ts';
import { ClientDocumentError } from './client-document-error.ts';
import { assertionAlgorithms, type ClientKey, readClientKeys } from './client-keys.ts';

/** What the document of somebody else's program says, as far as it counts here. */
export interface ClientDocument {
  /** What it calls itself, which can be anything. */
  name: string;
  redirectUris: string[];
  idTokenSignedResponseAlg: string;
  mayRefresh: boolean;
  /** Whether it is begun in a browser, which the answer goes back to. */
  hasCode: boolean;
  /** Whether it may be let in by a code of a device. */
  hasDevices: boolean;
  /** How it proves who it is with its own key; `null` for a program without one. */
  signing: ClientSigning | null;
}

/** The keys of a program, or where they are, and the algorithm, if it signs with one alone. */
export interface ClientSigning {
  keys: readonly ClientKey[] | { url: string };
  algorithm: string | null;
}

/** With the name, it fits where names of applications are shown. */
const MAX_ADDRESS = 190;
const MAX_NAME = 60;
const MAX_URIS = 20;
/** The device grant (RFC 8628). */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** The algorithms of ID tokens that a client may ask for. */
export const idTokenAlgorithms = ['ES256', 'RS256'] as const;

/**
 * The host of a `client_id` that is the address of a document; `null` for any other text. One document has one
 * address: https, as a browser writes it, with a path, and nothing that makes another host look like its own.
 */
export function clientHostOf(clientId: string): string | null {
  if (clientId.length > MAX_ADDRESS || !/^https:\/\/[!-~]+$/.test(clientId) || !URL.canParse(clientId)) return null;
  const { href, host, hostname, pathname, username, password } = new URL(clientId);
  if (href !== clientId || username !== '' || password !== '' || /[?#]/.test(clientId)) return null;
  const isName = isIP(hostname) === 0 && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(hostname);
  return isName && pathname !== '/' ? host : null;
}

/** The name under which a client is known: it ends with the host that it has, whatever it calls itself. */
export const shownName = (name: string, host: string): string => (name ? `${name} (${host})` : host);

/**
 * Reads the document at an address.
 * @throws ClientDocumentError when it is of another client, wants what is not offered, or names no address for answers
 */
export function readClientDocument(clientId: string, text: string): ClientDocument {
  const document = objectOf(text);
  if (document.client_id !== clientId) throw new ClientDocumentError('its client_id is not its address');
  if ('client_secret' in document || 'client_secret_expires_at' in document)
    throw new ClientDocumentError('it has a secret, which everybody can read');
  const grantTypes = textsOf(document.grant_types ?? ['authorization_code', 'refresh_token'], 'grant_types');
  const signing = signingOf(clientId, document);
  const hasCode = grantTypes.includes('authorization_code');
  // anybody could begin in the name of a program without a key, and have somebody else type the code
  const hasDevices = signing !== null && grantTypes.includes(DEVICE_GRANT);
  if (!hasCode && !hasDevices) throw new ClientDocumentError('its grant_types have no code');
  if (hasCode && !textsOf(document.response_types ?? ['code'], 'response_types').includes('code'))
    throw new ClientDocumentError('its response_types have no code');
  return {
    name: nameOf(document.client_name),
    redirectUris: hasCode ? redirectUrisOf(document.redirect_uris) : [],
    idTokenSignedResponseAlg: algorithmOf(document.id_token_signed_response_alg),
    mayRefresh: grantTypes.includes('refresh_token'),
    hasCode,
    hasDevices,
    signing,
  };
}

/** The keys that an address answers with. @throws ClientDocumentError */
export const readKeySet = (text: string): ClientKey[] => readClientKeys(objectOf(text));

/** Keys of a program without `private_key_jwt` are for other servers. */
function signingOf(clientId: string, document: Record<string, unknown>): ClientSigning | null {
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_signing_alg: wanted = null } = document;
  if (method === 'none') return null;
  if (method !== 'private_key_jwt')
    throw new ClientDocumentError('its token_endpoint_auth_method is neither none nor private_key_jwt');
  const algorithm = assertionAlgorithms.find((known) => known === wanted) ?? null;
  if (algorithm === null && wanted !== null)
    throw new ClientDocumentError('its token_endpoint_auth_signing_alg is not offered');
  if ('jwks' in document === 'jwks_uri' in document)
    throw new ClientDocumentError('it has not one of jwks and jwks_uri');
  if ('jwks' in document) return { keys: readClientKeys(document.jwks), algorithm };
  return { keys: { url: keyAddressOf(clientId, document.jwks_uri) }, algorithm };
}

/** Keys must be at the host of the document, because that is the host that people are shown. */
function keyAddressOf(clientId: string, value: unknown): string {
  if (typeof value === 'string' && value !== clientId && clientHostOf(value) === clientHostOf(clientId)) return value;
  throw new ClientDocumentError('its jwks_uri is not at its own host');
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // the same as for any other text that is no object
  }
  throw new ClientDocumentError('it is no JSON object');
}

function textsOf(value: unknown, name: string): string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new ClientDocumentError(`its ${name} are no list of texts`);
}

/** Addresses that no answer goes to here are left out: the document is for other servers, too. */
function redirectUrisOf(value: unknown): string[] {
  const uris = [...new Set(textsOf(value, 'redirect_uris'))];
  if (uris.length > MAX_URIS) throw new ClientDocumentError(`it has more than ${MAX_URIS} redirect_uris`);
  const usable = uris.filter((uri) => uri.length <= 2_048 && redirectProblem(uri) === null);
  if (usable.length === 0) throw new ClientDocumentError('it has no redirect_uris that can be used');
  return usable;
}

function algorithmOf(value: unknown): string {
  const known = idTokenAlgorithms.find((algorithm) => algorithm === (value ?? 'ES256'));
  if (known) return known;
  throw new ClientDocumentError('its id_token_signed_response_alg is not offered');
}

/**
 * On one line, without what is invisible, and without parentheses of any kind: the host that is shown in these is the
 * real one.
 */
function nameOf(value: unknown): string {
  if (typeof value !== 'string') return '';
  const line = value
    .normalize('NFKC')
    .replaceAll(/[\s\p{C}\p{DI}\p{Ps}\p{Pe}]+/gu, ' ')
    .trim();
  return [...line].slice(0, MAX_NAME).join('').trim();
}
