import type { Readable } from 'node:stream';
import type { Access } from '../../access/access.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import type { Caller } from '../../kernel/caller.ts';
import { ApiError, conflict, rateLimited } from '../../kernel/errors.ts';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { StreamedAnswer, StreamLimits } from '../../platform/outbound/streamed-exchange.ts';
import type { CallPlace } from '../connections/call-place.ts';
import { type ConnectionCredentials, isKept, type UsableCredential } from '../connections/connection-credentials.ts';
import { isEndUserId, unknownEndUser } from '../connections/end-user.ts';
import type { ActionLimits } from '../tool-actions/action-limits.ts';
import { retryAfterOf } from '../tool-actions/action-retries.ts';
import { Redactor, textsIn } from '../tool-actions/redactor.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { demandRunnable } from '../tool-instances/runnable.ts';
import { demandCredentials } from '../tool-instances/sent-credential.ts';
import { type AddressFault, addressBelow } from './proxied-address.ts';
import { keepsCredentials, sentTexts } from './proxied-credentials.ts';
import { answeredHeaders, END_USER_HEADER, HOST_HEADER, sentHeaders, type WireHeaders } from './proxied-headers.ts';
import type { ProxiedInstance, ProxiedInstances } from './proxied-instance.ts';
import { failureOf, outcomeOf, type ProxyOutcome } from './proxy-failures.ts';
import { basesOf, defaultHeaders, type ToolBase } from './tool-base.ts';

/** A request that goes to the provider of an instance. */
export interface ProxiedRequest {
  method: string;
  /** Below the base of the tool, as it was sent, without the slash at its beginning. */
  path: string;
  /** As it was sent, without the question mark. */
  query: string;
  headers: WireHeaders;
  /** `null` if it has none. */
  body: Readable | null;
  /** `null` if it is not announced. */
  contentLength: number | null;
  /** Ends the call when whoever asked has gone. */
  signal: AbortSignal;
}

/** What the provider answers. */
export interface ProxiedAnswer {
  status: number;
  headers: Record<string, string>;
  /** It ends with an error if the answer is cut. */
  body: Readable;
  /** All of it, if it is there already; else `null`. */
  takeWhole: () => Buffer | null;
  /** What such an error is for the caller, if nothing of the answer was passed on yet. */
  failed: (error: unknown) => unknown;
}

/** Calls take as long as what they carry: they have room of their own, so that they hold up nothing else. */
const OF_ORGANIZATION: SlotLimits = { total: 320, perOwner: 16, waitingPerOwner: 32, reserved: 64 };
/** In all organizations: somebody may have many of them. */
const OF_USER: SlotLimits = { total: Number.POSITIVE_INFINITY, perOwner: 32, waitingPerOwner: 48 };
/** Whoever takes one has one of the organization: their total is never reached first. */
const OF_INSTANCE: SlotLimits = { total: OF_ORGANIZATION.total, perOwner: 8, waitingPerOwner: 32 };
const LONGEST_WAIT_MS = 10_000;

export const LIMITS: StreamLimits = {
  headMs: 120_000,
  idleMs: 45_000,
  wholeMs: 900_000,
  maxBytes: 1024 * 1024 * 1024,
};

/** What calls count as for the limits of actions, if the actions at the base do not share a group. */
const OWN_GROUP = '(proxy)';

interface ToolProxyDeps {
  access: Access;
  instances: ProxiedInstances;
  connections: ConnectionCredentials;
  outbound: Pick<Outbound, 'open'>;
  limits: ActionLimits;
  activity: ActivityRecorder;
  logger: Logger;
  /** Lower in tests. */
  streamLimits?: StreamLimits;
}

/** A call that is allowed. */
interface Prepared {
  caller: Caller;
  instance: ProxiedInstance;
  base: ToolBase;
  request: ProxiedRequest;
  /** What was sent last of a connection. */
  sent: UsableCredential | null;
}

/**
 * Calls the providers of tool instances with their credentials, for whoever runs steps. Bodies pass through; the
 * credential goes where the tool says, and only to the addresses of its actions (docs/decisions/0080).
 */
export class ToolProxy {
  readonly #deps: ToolProxyDeps;
  readonly #users = new Slots(OF_USER, tooMany);
  readonly #organizations = new Slots(OF_ORGANIZATION, tooMany);
  readonly #instances = new Slots(OF_INSTANCE, tooMany);
  readonly #outcomes = new Map<ProxyOutcome, number>();
  readonly #bytes = new Map([
    ['sent', 0],
    ['received', 0],
  ]);

  constructor(deps: ToolProxyDeps) {
    this.#deps = deps;
  }

  /** How many calls run. */
  get running(): number {
    return this.#instances.running;
  }

  /** How the calls since the start have ended. */
  get outcomes(): ReadonlyMap<ProxyOutcome, number> {
    return this.#outcomes;
  }

  /** Bytes of bodies since the start, by their direction. */
  get bytes(): ReadonlyMap<string, number> {
    return this.#bytes;
  }

  /**
   * Sends a request on. It resolves with the head of the answer; all of it is recorded once, when it is over.
   * @param place where the caller has the permission `connection:use`
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for a token that may not take the credential out; RESOURCE_CONFLICT
   * `instance_inactive`, `tool_disabled`, `no_base_address`, `no_credentials`, `needs_reauth`, `token_expired`;
   * INVALID_REQUEST; PAYLOAD_TOO_LARGE; RATE_LIMIT_EXCEEDED; UPSTREAM_ERROR, UPSTREAM_TIMEOUT
   */
  async call(caller: Caller, place: CallPlace, id: string, request: ProxiedRequest): Promise<ProxiedAnswer> {
    const { limits } = this.#deps;
    const instance = await this.#deps.instances.get(place, id, endUserIn(request.headers));
    // before anything is said of the instance: the hosts of its tool are not for everybody
    await this.#demandUse(caller, instance);
    if (instance.endUserId !== null && !instance.connection) throw unknownEndUser(id);
    demandRunnable(instance, instance.tool);
    const base = baseOf(instance, request.headers[HOST_HEADER]);
    const prepared: Prepared = { caller, instance, base, request, sent: null };
    const group = { instance, action: groupOf(base) };
    demandSize(request, this.#limits.maxBytes);
    await limits.demand(group);
    const leave = await this.#enter(caller, instance, request.signal);
    const failed = (error: unknown) =>
      isTooLong(error, request) ? tooLarge(this.#limits.maxBytes) : failureOf(error, instance.id, base.shownHost);
    let answer: StreamedAnswer | undefined;
    try {
      answer = await this.#answer(prepared);
      const { status, body, takeWhole, ended } = answer;
      // it was cut while its connection learned what it means: nothing of it was passed on yet
      if (body.errored) throw body.errored;
      const wait = status === 429 ? retryAfterOf({ headers: headersOf(answer) }) : null;
      if (wait !== null) limits.pause(group, wait);
      const shown = { status, headers: this.#shown(prepared, answer), body, takeWhole, failed };
      const whole = answer;
      void ended.then((error) => {
        leave();
        this.#record(prepared, whole, error);
      });
      return shown;
    } catch (error) {
      answer?.body.destroy();
      leave();
      const shown = failed(error);
      this.#count(shown === error ? 'fault' : outcomeOf(error as Error));
      throw shown;
    }
  }

  get #limits(): StreamLimits {
    return this.#deps.streamLimits ?? LIMITS;
  }

  /**
   * A token for a namespace may have actions run with what the workspace keeps, and not take it out: neither the
   * connection, nor what the instance keeps itself, which headers may have beside that.
   */
  async #demandUse(caller: Caller, instance: ProxiedInstance): Promise<void> {
    const { orgId, workspaceId, connection, ownNamespaceId, secrets } = instance;
    const isConnected = connection && !keepsCredentials(instance);
    const places = new Set(isConnected ? [connection.namespaceId] : [ownNamespaceId]);
    if (Object.keys(secrets).length > 0) places.add(ownNamespaceId);
    for (const namespaceId of places)
      await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, 'connection:use', { namespaceId });
  }

  /**
   * Waits until there is room: for the user first, then for the organization, so that nobody who waits holds what
   * others need.
   * @returns gives it back, once
   */
  async #enter(
    { principal: { userId } }: Caller,
    { id, orgId }: ProxiedInstance,
    gone: AbortSignal,
  ): Promise<() => void> {
    // most calls find room at once, and need no timer
    let waiting: AbortSignal | undefined;
    const taken: (() => void)[] = [];
    const leave = () => {
      for (const release of taken.splice(0).reverse()) release();
    };
    try {
      for (const [slots, owner] of [
        [this.#users, userId],
        [this.#organizations, orgId],
        [this.#instances, id],
      ] as const) {
        gone.throwIfAborted();
        if (!slots.takeNow(owner)) {
          waiting ??= AbortSignal.any([gone, AbortSignal.timeout(LONGEST_WAIT_MS)]);
          await slots.take(owner, waiting);
        }
        taken.push(() => slots.release(owner));
      }
      return leave;
    } catch (error) {
      leave();
      throw error instanceof ApiError ? error : tooMany();
    }
  }

  async #answer(prepared: Prepared): Promise<StreamedAnswer> {
    const { instance, request } = prepared;
    const { connections } = this.#deps;
    const { id: toolInstanceId, orgId, namespaceId, endUserId, connection, tool } = instance;
    const use = { orgId, toolInstanceId, namespaceId, endUserId };
    if (keepsCredentials(instance)) return this.#open(prepared, null);
    const credential = connection && !isKept(connection) ? await connections.freshFor(use) : connection;
    if (!credential) {
      demandCredentials(tool, {
        authMode: instance.authMode,
        hasCredentials: Object.keys(instance.secrets).length > 0,
      });
      return this.#open(prepared, null);
    }
    let last: StreamedAnswer | undefined;
    const ask = async (sent: UsableCredential) => {
      demandChecked(instance, sent);
      // the refusal of a token that was refreshed meanwhile
      last?.body.destroy();
      last = await this.#open(prepared, sent);
      return last;
    };
    try {
      return await connections.callWith(use, credential, ask, request.body === null);
    } catch (error) {
      last?.body.destroy();
      throw error;
    }
  }

  async #open(prepared: Prepared, credential: UsableCredential | null): Promise<StreamedAnswer> {
    const { caller, instance, base, request } = prepared;
    const { orgId, id } = instance;
    prepared.sent = credential;
    const { headers, query } = sentTexts(base, instance, credential);
    const url = addressBelow(base.url, request.path, request.query, query);
    if (typeof url === 'string') throw badAddress(url);
    const { traceId } = caller.request;
    // what is cut off by the end of the process is seen by this line alone
    this.#deps.logger.info(
      { trace_id: traceId, org_id: orgId, tool_instance_id: id, method: request.method },
      'a call goes through the proxy',
    );
    return this.#deps.outbound.open({
      method: request.method,
      url,
      headers: sentHeaders(request.headers, defaultHeaders(instance), headers),
      body: request.body,
      contentLength: request.contentLength,
      signal: request.signal,
      limits: this.#limits,
      owner: orgId,
      keepsConnections: true,
      traceId,
      ...(base.shownHost !== base.url.host && { shownHost: base.shownHost }),
    });
  }

  #shown({ instance, sent }: Prepared, { status, headers }: StreamedAnswer): Record<string, string> {
    let redactor: Redactor | undefined;
    const { connection, secrets } = instance;
    const clean = (text: string) => {
      redactor ??= new Redactor(textsIn([secrets, connection?.secret, sent?.secret]));
      return redactor.clean(text);
    };
    return answeredHeaders(status, headers, { clean });
  }

  #count(outcome: ProxyOutcome): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }

  #record({ caller, instance }: Prepared, { status, sizes }: StreamedAnswer, error: Error | null): void {
    const outcome = outcomeOf(error);
    this.#count(outcome);
    for (const [direction, size] of Object.entries(sizes))
      this.#bytes.set(direction, (this.#bytes.get(direction) ?? 0) + size);
    const entry = entryOf(instance, {
      code: outcome,
      status,
      ...(instance.endUserId !== null && { connection_id: instance.connection?.connectionId }),
      request_bytes: sizes.sent,
      response_bytes: sizes.received,
    });
    this.#deps.activity.record(caller, entry, { statusCode: status, success: error === null && status < 400 });
  }
}

/** The record of a call. */
export const entryOf = (
  instance: { id: string; orgId: string; workspaceId: string; namespaceId: string | null },
  metadata: Record<string, unknown>,
) => {
  const { id: resourceId, orgId, workspaceId, namespaceId } = instance;
  return {
    action: 'execute',
    resourceType: 'tool_instance',
    resourceId,
    orgId,
    workspaceId,
    namespaceId,
    metadata: { proxy: true, ...metadata },
  } as const;
};

const tooMany = () => rateLimited(1, 'Too many calls of this tool instance, organization or user are running.');
const tooLarge = (limit: number) => new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: limit });

const badAddress = (fault: AddressFault) =>
  new ApiError(
    'INVALID_REQUEST',
    { reason: `proxied_${fault}` },
    fault === 'path'
      ? 'The path must stay below the base address of the tool, and have no empty or dotted parts.'
      : 'The query has characters that must be encoded.',
  );

/** The end user that a request names; `null` if it names none. @throws INVALID_REQUEST */
function endUserIn({ [END_USER_HEADER]: given }: WireHeaders): string | null {
  if (given === undefined) return null;
  if (typeof given === 'string' && isEndUserId(given)) return given;
  throw new ApiError(
    'INVALID_REQUEST',
    { reason: 'end_user' },
    'The header x-tool-end-user names one end user, by at most 255 visible ASCII characters.',
  );
}

function demandSize({ contentLength }: ProxiedRequest, limit: number): void {
  if (contentLength !== null && contentLength > limit) throw tooLarge(limit);
}

/** Connections change while a call waits, and the caller was allowed to use the one that there was. */
function demandChecked({ id, connection }: ProxiedInstance, sent: UsableCredential): void {
  if (sent.connectionId === connection?.connectionId) return;
  throw conflict('tool_instance', id, 'connection_changed', 'The connection was replaced meanwhile. Call again.');
}

/** Whether it was the body of the request that had too many bytes. */
const isTooLong = (error: unknown, { body }: ProxiedRequest): boolean =>
  body !== null && !body.readableEnded && OutboundError.in(error)?.code === 'too_large';

/**
 * The base of a call: that of the first action, or the one with the host that the caller names.
 * @throws RESOURCE_CONFLICT `no_base_address`; INVALID_REQUEST
 */
function baseOf(instance: ProxiedInstance, named: string | string[] | undefined): ToolBase {
  const bases = basesOf(instance);
  const [first] = bases;
  if (!first)
    throw conflict(
      'tool_instance',
      instance.id,
      'no_base_address',
      'No action of the tool instance has an address of its own, so there is nothing to call.',
    );
  if (named === undefined) return first;
  const found = bases.find(({ url, shownHost }) => url.host === named || shownHost === named);
  if (found) return found;
  const hosts = [...new Set(bases.map(({ shownHost }) => shownHost))];
  throw new ApiError('INVALID_REQUEST', { reason: 'tool_host', hosts }, 'The tool has no action at this host.');
}

/** Calls share the limits of the actions at their base, if those have one. */
function groupOf({ actions }: ToolBase): ToolAction {
  const groups = new Set(actions.map(({ rate_limit_group: group }) => group ?? null));
  const [group] = groups;
  return { name: OWN_GROUP, ...(groups.size === 1 && { rate_limit_group: group }) };
}

const headersOf = ({ headers }: StreamedAnswer): Headers => {
  const after = headers['retry-after'];
  return new Headers(typeof after === 'string' ? { 'retry-after': after } : {});
};
