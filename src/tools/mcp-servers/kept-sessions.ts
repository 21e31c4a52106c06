import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import { endOfSession } from './server-calls.ts';
import type { CallSessions, OpenSession } from './tool-call.ts';

/** Whose session it is: nobody else may be in it. */
export interface CallHolder {
  orgId: string;
  /** Where the call is made, which several places may share the connection for; `null` for the workspace. */
  namespaceId: string | null;
  toolInstanceId: string;
  /** `null` for what the instance keeps itself, and for no credential. */
  connectionId: string | null;
  /** Who calls, a user or a token: a server may keep in a session what one of them has done there. */
  principalId: string;
}

/** Bounds of the sessions that nobody uses at the moment. */
export interface SessionLimits {
  /** Of a node. */
  total: number;
  /** Of one holder: calls at the same time have a session each. */
  perHolder: number;
  idleMs: number;
  /** From when it began. */
  ageMs: number;
}

const LIMITS: SessionLimits = { total: 500, perHolder: 4, idleMs: 120_000, ageMs: 1_800_000 };
/** How often it is looked which have ended. */
const SWEEP_MS = 10_000;
/** Nobody waits for the end of a session for longer. */
const END_TIMEOUT_MS = 5_000;
/** Ends come in bursts: they leave the calls of their organization their room. Those that find none are left out. */
const ENDS: SlotLimits = { total: 16, perOwner: 2, waitingPerOwner: 500, waiting: 1_000 };
/** How long a node that stops waits for them. */
const CLOSE_MS = 1_000;

interface Free {
  session: OpenSession;
  owner: string;
  url: OutboundRequest['url'];
  /** Of the address and all headers that it began with, so of the credential. */
  digest: string;
  since: number;
}

type SessionRequest = Pick<OutboundRequest, 'url' | 'headers'>;

/**
 * Sessions with MCP servers that nobody uses at the moment, on this node. A call takes one out, so that none is in two
 * calls, and brings it back. It is given out only to the holder who brought it, and only for requests with the same
 * address and headers: with another credential, the session of the former one is ended.
 */
export class KeptSessions {
  readonly #outbound: Pick<Outbound, 'request'>;
  readonly #limits: SessionLimits;
  /** By holder; the holders who were here longest ago come first. */
  readonly #free = new Map<string, Free[]>();
  readonly #ending = new Set<Promise<unknown>>();
  readonly #ends = new Slots(ENDS, () => new OutboundError('busy'));
  /** Ends that wait for a slot. */
  readonly #waiting = new Set<AbortController>();
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(outbound: Pick<Outbound, 'request'>, limits: Partial<SessionLimits> = {}) {
    this.#outbound = outbound;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** How many are kept. */
  get size(): number {
    return this.#size;
  }

  /** The sessions of a holder for requests like one. */
  of(holder: CallHolder, request: SessionRequest): CallSessions {
    const { url } = request;
    const [key, digest] = [keyOf(holder), digestOf(request)];
    const freeOf = (session: OpenSession): Free => ({
      session,
      url,
      owner: holder.orgId,
      digest,
      since: performance.now(),
    });
    return {
      take: () => this.#take(key, digest),
      bring: (session) => this.#bring(key, freeOf(session)),
      end: (session) => this.#end(freeOf(session)),
    };
  }

  /** Takes a session out, if there is one for such a request. Those of the holder for other requests are ended. */
  #take(key: string, digest: string): OpenSession | null {
    this.#sweep();
    const kept = this.#free.get(key) ?? [];
    const others = kept.filter((free) => free.digest !== digest);
    const same = kept.filter((free) => free.digest === digest);
    const taken = same.pop();
    this.#put(key, same);
    for (const free of others) this.#end(free);
    return taken?.session ?? null;
  }

  /** Brings a session back whose call was answered, or ends it if there is no room. */
  #bring(key: string, free: Free): void {
    const kept = this.#free.get(key) ?? [];
    const isOld = free.since - free.session.startedAt > this.#limits.ageMs;
    if (this.#isClosed || isOld || kept.length >= this.#limits.perHolder) {
      this.#end(free);
      return;
    }
    // it comes last now
    this.#put(key, []);
    this.#put(key, [...kept, free]);
    this.#makeRoom();
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  /** Ends the sessions of connections that are no more. */
  endOf(isHolder: (holder: CallHolder) => boolean): void {
    for (const [key, kept] of this.#free) {
      if (!isHolder(JSON.parse(key) as CallHolder)) continue;
      this.#put(key, []);
      for (const free of kept) this.#end(free);
    }
  }

  /** Tells a server that a session has ended. Nobody waits for it, and the way out logs what goes wrong. */
  #end({ url, owner, session: { headers } }: Free): void {
    const request = endOfSession(headers);
    if (!request) return;
    const ended = this.#tell({ ...request, url, owner, timeoutMs: END_TIMEOUT_MS })
      .catch(() => undefined)
      .finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  async #tell(request: OutboundRequest & { owner: string }): Promise<void> {
    const waiting = new AbortController();
    this.#waiting.add(waiting);
    try {
      await this.#ends.take(request.owner, waiting.signal);
    } finally {
      this.#waiting.delete(waiting);
    }
    try {
      await this.#outbound.request(request);
    } finally {
      this.#ends.release(request.owner);
    }
  }

  /** Ends all. Resolves when their servers know, or do not answer in time. */
  async endAll(): Promise<void> {
    this.endOf(() => true);
    await Promise.all(this.#ending);
  }

  /** The same for good, for at most a second: servers end what nobody uses themselves. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    const isOver = new AbortController();
    const over = delay(CLOSE_MS, undefined, { signal: isOver.signal }).catch(() => undefined); // nobody waits any more
    await Promise.race([this.endAll(), over]);
    isOver.abort();
    for (const waiting of this.#waiting) waiting.abort(new OutboundError('aborted'));
  }

  #makeRoom(): void {
    for (const [key, [oldest, ...others]] of this.#free) {
      if (this.#size <= this.#limits.total) return;
      this.#put(key, others);
      this.#end(oldest!);
    }
  }

  #sweep(): void {
    const { idleMs, ageMs } = this.#limits;
    const now = performance.now();
    const isOver = ({ since, session }: Free) => now - since > idleMs || now - session.startedAt > ageMs;
    for (const [key, kept] of this.#free) {
      const over = kept.filter(isOver);
      if (over.length === 0) continue;
      this.#put(
        key,
        kept.filter((free) => !isOver(free)),
      );
      for (const free of over) this.#end(free);
    }
    if (this.#size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #put(key: string, kept: Free[]): void {
    this.#size += kept.length - (this.#free.get(key)?.length ?? 0);
    if (kept.length > 0) this.#free.set(key, kept);
    else this.#free.delete(key);
  }
}

const keyOf = ({ orgId, namespaceId, toolInstanceId, connectionId, principalId }: CallHolder): string =>
  JSON.stringify({ orgId, namespaceId, toolInstanceId, connectionId, principalId });

/** The same for requests that a server cannot tell apart by what comes before their body. */
function digestOf({ url, headers = {} }: SessionRequest): string {
  const sorted = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value])
    .sort(([a], [b]) => (a! < b! ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([String(url), sorted]))
    .digest('hex');
}
