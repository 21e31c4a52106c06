import { isIP } from 'node:net';
import type { Readable } from 'node:stream';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import { activeSpan, type TraceSpan, within } from '../../kernel/spans.ts';
import type { Logger } from '../logger.ts';
import type { AllowedTarget } from './allowed-targets.ts';
import { type BodyReader, exchange, type LargerAnswers } from './exchange.ts';
import { failureOf, reasonOf } from './failures.ts';
import { type FetchInit, requestOf } from './fetch-request.ts';
import { type ConnectionOfCall, type ConnectTime, loadHttpClient } from './http-connection.ts';
import { KeptConnections, type KeptLimits } from './kept-connections.ts';
import { DnsNames, type Names } from './names.ts';
import { type OutboundCode, OutboundError } from './outbound-error.ts';
import { OutboundResponse } from './outbound-response.ts';
import { redirected, redirectOf, type Sent } from './redirects.ts';
import { checkedHeaders, checkedMethod, passedHeaders } from './request-head.ts';
import { openExchange, type StreamedAnswer, type StreamLimits } from './streamed-exchange.ts';
import { parseUrl, TargetRules, targetOf } from './target-rules.ts';

/** Whole time of a call: waiting, names, redirects and the body (defaults §4). */
const CALL_TIMEOUT_MS = 10_000;
/** Time of that to find the addresses and to connect. */
const CONNECT_TIMEOUT_MS = 3_000;
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 3;
const SLOTS: SlotLimits = { total: 256, perOwner: 16, waitingPerOwner: 100 };

/** For whom a call is made. */
export interface CallOrigin {
  /** Whose share of the parallel calls it uses: the id of the organization. */
  owner?: string;
  /** Trace of the request that caused it, for the log. */
  traceId?: string;
  /** In place of the host in the log and in traces: for an address whose host has something secret in it. */
  shownHost?: string | undefined;
  /**
   * Whether connections to the target stay open for the next call of the same owner. They are for requests that change
   * nothing: others have one of their own, since a request may be lost with a connection that its target closes.
   */
  keepsConnections?: boolean;
}

/** One outbound call. */
export interface OutboundRequest extends CallOrigin {
  /** GET (default), HEAD, POST, PUT, PATCH, DELETE or OPTIONS. */
  method?: string | undefined;
  /** Absolute, without credentials; https, or http to a target of `OUTBOUND_ALLOW`. */
  url: string | URL;
  headers?: Readonly<Record<string, string>> | undefined;
  body?: string | Uint8Array | undefined;
  /** Ends the call: with the reason of the signal if that is an `OutboundError`, else with `aborted`. */
  signal?: AbortSignal | undefined;
  /** Limit of the whole call. Default 10,000. */
  timeoutMs?: number;
  /** Limit of the body, both as sent and after decompression. Default 1 MiB. */
  maxBytes?: number;
  /** For whoever takes more than `maxBytes`, and limits how many such answers are in memory. */
  larger?: LargerAnswers | undefined;
  /**
   * `follow` (default): up to three redirects within the host, never from https to http; another port gets none of the
   * headers that could be credentials. `manual`: the redirect is the answer. `error`: a redirect is an error.
   */
  redirect?: 'follow' | 'manual' | 'error' | undefined;
  /** Whether `OUTBOUND_ALLOW` opens nothing for it: for targets that strangers name. */
  isPublicOnly?: boolean;
  /**
   * Reads an answer while it arrives: what it makes of the head gets each piece of the body as it was sent, and says
   * whether that is enough. Then the body ends there, and what would follow is not waited for.
   */
  reader?: BodyReader | undefined;
}

/** One outbound call whose bodies pass through. Redirects are not followed. */
export interface StreamedRequest extends CallOrigin {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: Readable | null;
  /** The length of the body, if it is known. */
  contentLength: number | null;
  signal: AbortSignal;
  limits: StreamLimits;
}

/** What the client is made of. */
export interface OutboundOptions {
  config: { readonly outboundAllow: readonly AllowedTarget[]; readonly outboundDns: readonly string[] };
  logger: Logger;
  /** Finds addresses instead of DNS. They are checked all the same. */
  names?: Names;
  /** Certificates (PEM) to trust instead of Node's own. */
  ca?: string;
  connectTimeoutMs?: number;
  slots?: SlotLimits;
  kept?: KeptLimits;
}

/** A request with where it goes. */
interface CheckedTarget extends ConnectionOfCall {
  method: string;
  headers: Readonly<Record<string, string>>;
}

/** Headers by which a GET may change something after all. */
const OTHER_METHODS = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const;
/** Credentials that are of the connection, and would be those of whatever is sent over it later. */
const OF_THE_CONNECTION = /^\s*(?:ntlm|negotiate)\b/i;

/**
 * The only way out of the service. A call finds the addresses of its target, checks all of them, and uses a connection
 * to one that it checked: nothing can change between the check and the use. The connection is new, or one that its
 * organization has kept (docs/decisions/0104). Proxies that the environment names are not used.
 *
 * Time, size and the number of parallel calls are limited.
 */
export class Outbound {
  readonly #rules: TargetRules;
  readonly #publicRules = new TargetRules([]);
  readonly #names: Names;
  readonly #options: OutboundOptions;
  readonly #slots: Slots;
  readonly #kept: KeptConnections;
  readonly #calls = new Map<AbortController, Promise<unknown>>();
  readonly #outcomes = new Map<string, number>();
  #isClosed = false;

  constructor(options: OutboundOptions) {
    this.#rules = new TargetRules(options.config.outboundAllow);
    this.#names = options.names ?? new DnsNames(options.config.outboundDns);
    this.#slots = new Slots(options.slots ?? SLOTS, () => new OutboundError('busy'));
    this.#kept = new KeptConnections(options.kept);
    this.#options = options;
  }

  /**
   * How the calls since the start have ended: `answered`, or the code of their {@link OutboundError}, or `fault` for a
   * bug.
   */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#outcomes;
  }

  /** How many calls run. */
  get running(): number {
    return this.#slots.running;
  }

  /** How many calls wait until others have ended. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** How many connections wait for their next request. */
  get idle(): number {
    return this.#kept.size;
  }

  /**
   * Why no call to a URL could be made, as far as the URL itself says so: what its name means is found for each call.
   * `null` if a call may be tried.
   * @param isPublicOnly as in a request. A host that the operator lists by its name is refused then: an address that is
   * kept is called later, by the rules for all.
   */
  refusalOf(url: string, isPublicOnly = false): OutboundError | null {
    const rules = isPublicOnly ? this.#publicRules : this.#rules;
    try {
      const target = targetOf(parseUrl(url));
      if (isPublicOnly && this.#rules.lists(target)) return new OutboundError('blocked_address');
      if (isIP(target.host) !== 0) rules.check(target, [target.host]);
      else if (!rules.lists(target) && !rules.opensRanges) rules.checkPublic(target);
      return null;
    } catch (error) {
      if (error instanceof OutboundError) return error;
      throw error;
    }
  }

  /**
   * Whether the host of a URL means the same at each call as far as others decide: it is an address, or listed by its
   * name. Whoever owns another name may have it lead elsewhere in the meantime.
   */
  isFixed(url: URL): boolean {
    const target = targetOf(parseUrl(url));
    return isIP(target.host) !== 0 || this.#rules.lists(target);
  }

  /**
   * Makes one call. Every status is an answer.
   * @throws OutboundError
   */
  async request(request: OutboundRequest): Promise<OutboundResponse> {
    const call = new AbortController();
    const answer = this.#counted(request, call);
    this.#calls.set(call, answer);
    try {
      return await answer;
    } finally {
      this.#calls.delete(call);
    }
  }

  /**
   * The same as a standard `fetch`, for client libraries: a URL, and a body of text, bytes or form fields. It rejects
   * with an {@link OutboundError}, or with the reason of its signal.
   */
  fetchFor(origin: CallOrigin = {}): (input: string | URL, init?: FetchInit) => Promise<Response> {
    return async (input, init = {}) => {
      try {
        return (await this.request({ ...origin, ...requestOf(input, init) })).toResponse();
      } catch (error) {
        throw init.signal?.aborted ? init.signal.reason : error;
      }
    };
  }

  /**
   * Makes one call whose bodies pass through, by the same rules: nothing of them is kept, and nothing decompressed. It
   * resolves with the head of the answer. Whoever calls limits how many such calls run: they may take long.
   * @throws OutboundError
   */
  async open(request: StreamedRequest): Promise<StreamedAnswer> {
    const startedAt = performance.now();
    const call = new AbortController();
    const span = spanOf(request);
    const record = (error: unknown, status: number | null) => {
      const failure = error === null ? null : failureOf(error, call.signal);
      span?.end(error === null ? undefined : (failure?.code ?? 'fault'));
      const outcome = error === null ? 'answered' : (failure?.code ?? 'fault');
      this.#record(request, startedAt, outcome, status, reasonOf(error) ?? undefined);
      return failure ?? error;
    };
    try {
      const opening = this.#opened(request, call);
      this.#calls.set(call, opening);
      const answer = await (span ? within(span, () => opening) : opening);
      span?.set({ 'http.response.status_code': answer.status });
      const ended = answer.ended.then((error) => {
        record(error, answer.status);
        this.#calls.delete(call);
      });
      this.#calls.set(call, ended);
      return answer;
    } catch (error) {
      this.#calls.delete(call);
      throw record(error, null);
    }
  }

  async #opened(request: StreamedRequest, call: AbortController): Promise<StreamedAnswer> {
    const { signal: given, limits, body, contentLength } = request;
    const { wholeMs, ...steps } = limits;
    const sent: Sent = {
      url: parseUrl(request.url),
      method: checkedMethod(request.method),
      headers: passedHeaders(request.headers),
    };
    const fail = (error: OutboundError) => call.abort(error);
    const cancel = () => fail(new OutboundError('aborted'));
    if (given.aborted || this.#isClosed) cancel();
    given.addEventListener('abort', cancel, { once: true });
    const timer = setTimeout(() => fail(new OutboundError('timeout')), wholeMs);
    const release = () => {
      clearTimeout(timer);
      given.removeEventListener('abort', cancel);
    };
    const errorOf = (error: unknown) => failureOf(error, call.signal) ?? (error as Error);
    try {
      const kept = body === null ? this.#keptFor(request, sent) : undefined;
      const answer = await this.#connected(sent, { call }, (to) =>
        openExchange({ ...to, kept, body, contentLength, limits: steps, fail, errorOf }),
      );
      void answer.ended.then(release);
      return answer;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Cancels the calls that still run, and resolves when their connections are closed. Later calls fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const call of this.#calls.keys()) call.abort(new OutboundError('aborted'));
    await Promise.allSettled([...this.#calls.values(), this.#kept.close()]);
  }

  async #counted(request: OutboundRequest, call: AbortController): Promise<OutboundResponse> {
    const startedAt = performance.now();
    const span = spanOf(request);
    try {
      const answer = await (span ? within(span, () => this.#timed(request, call)) : this.#timed(request, call));
      span?.set({ 'http.response.status_code': answer.status });
      span?.end();
      this.#record(request, startedAt, 'answered', answer.status);
      return answer;
    } catch (error) {
      const failure = failureOf(error, call.signal);
      span?.end(failure?.code ?? 'fault');
      this.#record(request, startedAt, failure?.code ?? 'fault', null, reasonOf(error) ?? undefined);
      throw failure ?? error;
    }
  }

  async #timed(request: OutboundRequest, call: AbortController): Promise<OutboundResponse> {
    const { signal: given, timeoutMs = CALL_TIMEOUT_MS, owner = '' } = request;
    const sent: Sent = {
      url: parseUrl(request.url),
      method: checkedMethod(request.method),
      headers: checkedHeaders(request.headers),
      body: request.body,
    };
    const cancel = () => call.abort(OutboundError.in(given?.reason) ?? new OutboundError('aborted'));
    if (given?.aborted || this.#isClosed) cancel();
    given?.addEventListener('abort', cancel, { once: true });
    const timer = setTimeout(() => call.abort(new OutboundError('timeout')), timeoutMs);
    try {
      await this.#slots.take(owner, call.signal);
      try {
        return await this.#follow(request, sent, call);
      } finally {
        this.#slots.release(owner);
      }
    } finally {
      clearTimeout(timer);
      given?.removeEventListener('abort', cancel);
    }
  }

  async #follow(request: OutboundRequest, first: Sent, call: AbortController): Promise<OutboundResponse> {
    let sent = first;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const answer = await this.#send(request, sent, call);
      const location = request.redirect === 'manual' ? null : redirectOf(answer);
      if (location === null) return answer;
      if (request.redirect === 'error') break;
      sent = redirected(sent, answer.status, location);
    }
    throw new OutboundError('redirect');
  }

  /** One request and its answer, with everything checked anew. */
  async #send(request: OutboundRequest, sent: Sent, call: AbortController): Promise<OutboundResponse> {
    const { maxBytes = MAX_BODY_BYTES, larger, isPublicOnly = false, reader } = request;
    const kept = this.#keptFor(request, sent);
    return this.#connected(
      sent,
      { call, isPublicOnly },
      async (to) =>
        new OutboundResponse({
          ...(await exchange({ ...sent, ...to, kept, maxBytes, larger, reader })),
          url: sent.url.href,
        }),
    );
  }

  /**
   * Where a request may take its connection from; `undefined` for one of its own. A GET changes nothing, so that it can
   * be made again (RFC 9110, section 9.2.1). After HEAD, some targets send a body that would be the next answer.
   */
  #keptFor({ owner, keepsConnections = false }: CallOrigin, { method, headers, body }: Sent): ConnectionOfCall['kept'] {
    if (!keepsConnections || owner === undefined || method !== 'GET' || body !== undefined) return undefined;
    if (OTHER_METHODS.some((name) => headers[name] !== undefined)) return undefined;
    if (OF_THE_CONNECTION.test(headers.authorization ?? '')) return undefined;
    return this.#kept.of(owner);
  }

  /** Checks where a request goes, and makes it over a connection to there that has to stand in time. */
  async #connected<Answer>(
    { url, method, headers: given }: Sent,
    { call, isPublicOnly = false }: { call: AbortController; isPublicOnly?: boolean },
    make: (to: CheckedTarget) => Promise<Answer>,
  ) {
    const { ca, connectTimeoutMs = CONNECT_TIMEOUT_MS } = this.#options;
    const { signal } = call;
    await loadHttpClient(); // before the time to connect begins
    const connecting = connectTime(connectTimeoutMs, call);
    connecting.begin();
    try {
      const target = targetOf(url);
      const rules = isPublicOnly ? this.#publicRules : this.#rules;
      const isListed = rules.lists(target);
      const addresses = await this.#names.addresses(target.host, { isListed, signal });
      const isOperators = rules.check(target, addresses);
      const headers = isOperators ? { ...traceHeader(), ...given } : given;
      return await make({ url, method, headers, addresses, ca, signal, connecting });
    } finally {
      connecting.end();
    }
  }

  /** Path and query may be credentials themselves, so the log has neither. */
  #record(
    request: CallOrigin & { method?: string | undefined; url: string | URL },
    startedAt: number,
    outcome: OutboundCode | 'answered' | 'fault',
    status: number | null,
    reason?: string,
  ): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    const { logger } = this.#options;
    const isAnswered = outcome === 'answered';
    if (isAnswered && !logger.isLevelEnabled('debug')) return;
    const fields = {
      trace_id: request.traceId,
      org_id: request.owner,
      method: request.method ?? 'GET',
      origin: shownOrigin(request),
      outcome,
      reason,
      status: status ?? undefined,
      duration_ms: Math.round(performance.now() - startedAt),
    };
    if (isAnswered) logger.debug(fields, 'an outbound call was answered');
    else logger.warn(fields, 'an outbound call failed');
  }
}

/** Ends a call that takes longer to connect. */
function connectTime(ms: number, call: AbortController): ConnectTime {
  let timer: NodeJS.Timeout | undefined;
  return {
    begin: () => {
      timer ??= setTimeout(() => call.abort(new OutboundError('timeout')), ms);
    },
    end: () => {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

function shownOrigin({ url, shownHost }: CallOrigin & { url: string | URL }): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { origin, protocol } = new URL(url);
  return shownHost === undefined ? origin : `${protocol}//${shownHost}`;
}

/** Path and query may be credentials themselves, so the trace has neither. */
function spanOf({
  method = 'GET',
  url,
  shownHost,
}: CallOrigin & { method?: string | undefined; url: string | URL }): TraceSpan | undefined {
  const parent = activeSpan();
  if (!parent) return undefined;
  const verb = method.toUpperCase().slice(0, 16);
  const target = URL.canParse(url) ? new URL(url) : null;
  const port = Number(target?.port) || (target?.protocol === 'http:' ? 80 : 443);
  return parent.child(verb, {
    kind: 'client',
    attributes: { 'http.request.method': verb, 'server.address': shownHost ?? target?.hostname, 'server.port': port },
  });
}

/**
 * For targets that the operator lists: they are the operator's own. Others get no trace: it would tell them which calls
 * belong together.
 */
function traceHeader(): { traceparent?: string } {
  const span = activeSpan();
  return span ? { traceparent: span.traceparent } : {};
}
