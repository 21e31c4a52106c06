import type { AdapterPayload } from 'oidc-provider';
import type { Budgets } from '../../access/budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { type ClientDocument, clientHostOf, DEVICE_GRANT, readClientDocument, readKeySet } from './client-document.ts';
import { ClientDocumentError } from './client-document-error.ts';
import type { SealedRecords } from './oauth-records.ts';

interface ClientDocumentsDeps {
  config: Pick<Config, 'oauthClientHosts'>;
  outbound: Outbound;
  budgets: Budgets;
  /** Where all nodes keep what was fetched. */
  records: Pick<SealedRecords, 'find' | 'upsert'>;
  /** What a record is kept under: another one after a change of the secret that seals it. */
  keyOf: (clientId: string) => string;
  /** Whether some organization has the program. */
  isKept: (clientId: string) => Promise<boolean>;
}

/** What is kept of an address: its document, or why there is none. */
interface Kept {
  document: ClientDocument | null;
  problem: string | null;
  /** Until then it is used without a question, in seconds. */
  freshUntil: number;
  /** Until then it is used while its host does not answer, in seconds. */
  usableUntil: number;
}

/** Documents are small: 5 KB is what the draft names. */
const MAX_BYTES = 5 * 1024;
/** Ten keys of RSA, with their certificates. */
const MAX_KEY_BYTES = 32 * 1024;
const TIMEOUT_MS = 2_500;
const MIN_SECONDS = 60;
const DEFAULT_SECONDS = 600;
export const MAX_SECONDS = 86_400;
/** How long an address without a document is not asked again. */
const PROBLEM_SECONDS = 60;
/** How long a document goes on while its host does not answer: its users would be signed out otherwise. */
const SILENT_SECONDS = 86_400;
/** How long keys are kept at most, and go on while their host does not answer: one that was stolen is taken back. */
const KEY_SECONDS = 600;
const SILENT_KEY_SECONDS = 3_600;
/** How long the document of a program is kept at most that no organization has: a stranger may have named it. */
const STRANGER_SECONDS = 600;
/** Fetches of a minute from one host, so that strangers cannot use the service against it. */
const OF_HOST = 20;
/** Fetches of a minute from all hosts together that strangers cause. */
const OF_STRANGERS = 300;
/** Fetches of a minute of one program that an organization has: strangers cannot use these up with other addresses. */
const OF_KEPT = 5;
/** Fetches of a minute that one address of the network may cause. */
const OF_ADDRESS = 10;
/** Shares the parallel calls of the service: strangers must not take those of organizations. */
const OWNER = 'client documents';

const now = (): number => Math.floor(Date.now() / 1_000);

/** Describes other people's programs, whose `client_id` is the address of a document about them. */
export class ClientDocuments {
  readonly #deps: ClientDocumentsDeps;
  readonly #ofHost: Budget;
  readonly #ofStrangers: Budget;
  readonly #ofKept: Budget;
  readonly #ofAddress: Budget;

  constructor(deps: ClientDocumentsDeps) {
    this.#deps = deps;
    this.#ofHost = deps.budgets.of('client_documents_of_host', OF_HOST, 60);
    this.#ofStrangers = deps.budgets.of('client_documents_of_strangers', OF_STRANGERS, 60);
    this.#ofKept = deps.budgets.of('client_documents_kept', OF_KEPT, 60);
    this.#ofAddress = deps.budgets.of('client_documents', OF_ADDRESS, 60);
  }

  get isOn(): boolean {
    return this.#deps.config.oauthClientHosts.some((host) => host !== 'none');
  }

  /** Whether a `client_id` may be the address of a document. */
  allows(clientId: string): boolean {
    const host = clientHostOf(clientId);
    const { oauthClientHosts: hosts } = this.#deps.config;
    return host !== null && (hosts.includes('*') || hosts.includes(host));
  }

  /**
   * The metadata of a client as oidc-provider fetches it: only what counts here, in an answer that says how long it
   * may be kept. One call per address at a time, which oidc-provider sees to.
   * @param address who causes it; `null` for the page that asks a user
   * @throws Error when there is no usable document
   */
  async fetch(clientId: string, address: string | null): Promise<Response> {
    if (!this.allows(clientId)) throw new ClientDocumentError('its host is not allowed');
    const known = (await this.#deps.records.find(this.#deps.keyOf(clientId))) as unknown as Kept | undefined;
    const kept = known && known.freshUntil > now() ? known : await this.#renew(clientId, address, known);
    if (!kept.document) throw new ClientDocumentError(kept.problem ?? 'there is none');
    return answerOf(clientId, kept.document, kept.freshUntil - now());
  }

  async #renew(clientId: string, address: string | null, known: Kept | undefined): Promise<Kept> {
    const former = known?.document && known.usableUntil > now() ? known : null;
    const isKept = await this.#deps.isKept(clientId);
    if (!(await this.#mayFetch(clientId, address, isKept))) {
      if (former) return goingOn(former, MIN_SECONDS);
      throw new ClientDocumentError('too many were fetched in a minute');
    }
    const kept = await this.#fetched(clientId, former, isKept);
    await this.#deps.records.upsert(
      this.#deps.keyOf(clientId),
      kept as unknown as AdapterPayload,
      kept.usableUntil - now(),
    );
    return kept;
  }

  /** @param isKept then its fetches are its own: strangers must not cut off a program that is in use */
  async #mayFetch(clientId: string, address: string | null, isKept: boolean): Promise<boolean> {
    if (address !== null && (await this.#ofAddress.take(address)) > 0) return false;
    if (isKept) return (await this.#ofKept.take(clientId)) === 0;
    // ports are of the same host
    return (
      (await this.#ofHost.take(new URL(clientId).hostname)) === 0 && (await this.#ofStrangers.take('all hosts')) === 0
    );
  }

  async #fetched(clientId: string, former: Kept | null, isKept: boolean): Promise<Kept> {
    try {
      const { document, seconds } = await this.#read(clientId);
      const freshUntil = now() + (isKept ? seconds : Math.min(seconds, STRANGER_SECONDS));
      const silent = document.signing ? SILENT_KEY_SECONDS : SILENT_SECONDS;
      return { document, problem: null, freshUntil, usableUntil: freshUntil + (isKept ? silent : 0) };
    } catch (error) {
      const freshUntil = now() + PROBLEM_SECONDS;
      if (former && isSilence(error)) return goingOn(former, PROBLEM_SECONDS);
      // when the service is busy, it has learned nothing
      const isAboutIt =
        error instanceof ClientDocumentError || (error instanceof OutboundError && error.code !== 'busy');
      if (!isAboutIt) throw error;
      return { document: null, problem: error.message, freshUntil, usableUntil: freshUntil };
    }
  }

  /** The document with its keys, and how long it may be used. */
  async #read(clientId: string): Promise<{ document: ClientDocument; seconds: number }> {
    const answer = await this.#get(clientId);
    const document = readClientDocument(clientId, answer.text());
    const seconds = lifetimeOf(answer.headers);
    const { signing } = document;
    if (!signing) return { document, seconds };
    if (!('url' in signing.keys)) return { document, seconds: Math.min(seconds, KEY_SECONDS) };
    const found = await this.#get(signing.keys.url, MAX_KEY_BYTES);
    const keys = readKeySet(found.text());
    return {
      document: { ...document, signing: { ...signing, keys } },
      seconds: Math.min(seconds, lifetimeOf(found.headers), KEY_SECONDS),
    };
  }

  async #get(url: string, maxBytes = MAX_BYTES): Promise<OutboundResponse> {
    const answer = await this.#deps.outbound.request({
      url,
      headers: { accept: 'application/json' },
      redirect: 'manual',
      timeoutMs: TIMEOUT_MS,
      maxBytes,
      owner: OWNER,
      // a stranger names the target: what the operator opens for organizations is not opened for them
      isPublicOnly: !this.#deps.config.oauthClientHosts.includes(clientHostOf(url) ?? ''),
    });
    if (saysNothing(answer.status)) throw new OutboundError('network');
    if (answer.status !== 200) throw new ClientDocumentError('its host did not answer 200');
    const [type = ''] = (answer.headers.get('content-type') ?? '').split(';', 1);
    if (!/^application\/(?:[\w.-]+\+)?json$/i.test(type.trim()))
      throw new ClientDocumentError('it is not sent as JSON');
    return answer;
  }
}

/** Whether nothing was learned of a document. */
const isSilence = (error: unknown): boolean =>
  error instanceof OutboundError && !error.isRefusal && error.code !== 'too_large';

/** A former document for some seconds more, and never after its last one. */
const goingOn = (former: Kept, seconds: number): Kept => ({
  ...former,
  freshUntil: Math.min(now() + seconds, former.usableUntil),
});

/** Whether a status says nothing of a document: its host fails, or refuses what it is asked for now. */
const saysNothing = (status: number): boolean => status >= 400 && status !== 404 && status !== 410;

/** How long a document may be used, as its host says, within bounds. */
function lifetimeOf(headers: Headers): number {
  const control = headers.get('cache-control') ?? '';
  if (/\bno-(?:store|cache)\b/i.test(control)) return MIN_SECONDS;
  const maxAge = /(?:^|[,\s])max-age\s*=\s*"?(\d{1,10})/i.exec(control)?.[1];
  const age = Number(headers.get('age') ?? 0) || 0;
  const expires = Date.parse(headers.get('expires') ?? '');
  const seconds = maxAge === undefined ? Math.floor(expires / 1_000) - now() : Number(maxAge) - age;
  return Math.max(MIN_SECONDS, Math.min(MAX_SECONDS, Number.isNaN(seconds) ? DEFAULT_SECONDS : seconds));
}

const OF_MACHINE = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Whether an address is one of a program of the user's own machine, which listens at any port (RFC 8252). */
export function isOfMachine(uri: string): boolean {
  const { protocol, hostname } = new URL(uri);
  return protocol === 'http:' ? OF_MACHINE.has(hostname) : protocol !== 'https:';
}

function answerOf(clientId: string, document: ClientDocument, seconds: number): Response {
  const { signing } = document;
  const metadata = {
    client_id: clientId,
    client_name: document.name,
    token_endpoint_auth_method: signing ? 'private_key_jwt' : 'none',
    ...(signing && { jwks: { keys: signing.keys } }),
    ...(signing?.algorithm && { token_endpoint_auth_signing_alg: signing.algorithm }),
    application_type: document.redirectUris.some(isOfMachine) ? 'native' : 'web',
    redirect_uris: document.redirectUris,
    grant_types: [
      ...(document.hasCode ? ['authorization_code'] : []),
      ...(document.hasDevices ? [DEVICE_GRANT] : []),
      ...(document.mayRefresh ? ['refresh_token'] : []),
    ],
    response_types: document.hasCode ? ['code'] : [],
    id_token_signed_response_alg: document.idTokenSignedResponseAlg,
  };
  return Response.json(metadata, { headers: { 'cache-control': `max-age=${Math.max(1, seconds)}` } });
}
