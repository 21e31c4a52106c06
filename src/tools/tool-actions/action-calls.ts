import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput } from '../../kernel/errors.ts';
import { principalId } from '../../kernel/principal.ts';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import type { LargerAnswers } from '../../platform/outbound/exchange.ts';
import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { type ConnectionCredentials, ConnectionUnusable } from '../connections/connection-credentials.ts';
import type { CallHolder, KeptSessions } from '../mcp-servers/kept-sessions.ts';
import type { McpSend } from '../mcp-servers/server-calls.ts';
import { calledTool, isOfServer, type McpRefusal, mayRepeat, refusalOf } from '../mcp-servers/tool-call.ts';
import { type ActionRequestParts, requestFor, UnusableAction } from '../tool-instances/action-request.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { demandCredentials, meaningOf, type SentCredential, sentBy } from '../tool-instances/sent-credential.ts';
import type { ToolInstance } from '../tool-instances/tool-instance.reads.ts';
import { within } from '../tool-instances/within.ts';
import { type ShownAnswer, shownAnswer } from './action-answer.ts';
import { PARAMETERS } from './action-arguments.ts';
import type { ActionLimits } from './action-limits.ts';
import { limitsOf, retryAfterOf, withRetries } from './action-retries.ts';
import type { AnswerRoom, LargeAnswers } from './large-answers.ts';
import type { ReadPages } from './page-items.ts';
import { Redactor, textsIn } from './redactor.ts';
import { hiddenValues } from './shown-request.ts';

/** An action to call, with what its request is made of. */
export interface CalledAction {
  instance: ToolInstance;
  tool: ToolRow;
  action: ToolAction;
  /** Whose connection is used. */
  namespaceId: string | null;
  /** Ends the call when nobody waits for it any more. Its reason is an OutboundError. */
  signal?: AbortSignal;
  /** The end user whose connection is used, and no other; `null` for that of the place. */
  endUserId: string | null;
  parts: ActionRequestParts;
  /** For an answer of more than the usual bytes; without it, there is none. */
  room?: AnswerRoom;
}

/** How a call ended. Nothing in it is a credential. */
export interface CallEnd extends Omit<ShownAnswer, 'status' | 'fault'> {
  success: boolean;
  /** For programs. */
  code: string;
  /** A sentence for people. */
  message: string;
  status: number | null;
  attempts: number;
  durationMs: number;
  /** How its pages were read; `null` if it was one call. */
  pages: ReadPages | null;
}

/** What happens while a call is made. */
export interface Trace {
  /** Credentials of connections that were sent. */
  used: Set<string>;
  attempts: number;
  /** The address that was asked last. */
  url: string;
}

/** What a call may take. */
interface CallBounds {
  withinMs?: number;
  larger?: LargerAnswers | undefined;
}

/** Actions may take minutes: they leave most outbound calls to sign-ins, tokens and webhooks. */
const SLOTS: SlotLimits = { total: 96, perOwner: 8, waitingPerOwner: 50 };

interface CallDeps {
  outbound: Pick<Outbound, 'request'>;
  connections: ConnectionCredentials;
  limits: ActionLimits;
  /** With MCP servers. */
  sessions: KeptSessions;
  largeAnswers: LargeAnswers;
}

const NOTHING: Omit<ShownAnswer, 'status' | 'fault'> & Pick<CallEnd, 'status'> = {
  status: null,
  headers: {},
  format: 'none',
  result: null,
  truncated: false,
  whole: null,
  sizeBytes: 0,
  excerpt: null,
};

/** Calls providers for actions. Whatever a provider does is a result, without any credential in it. */
export class ActionCalls {
  readonly connections: ConnectionCredentials;
  readonly #deps: CallDeps;
  readonly #slots = new Slots(SLOTS, () => new OutboundError('busy'));

  constructor(deps: CallDeps) {
    this.#deps = deps;
    this.connections = deps.connections;
  }

  /** @throws UnusableAction for arguments that make no request, and without a credential that the tool needs */
  async make(caller: Caller, called: CalledAction): Promise<CallEnd> {
    const { tool, action } = called;
    if (typeof action.url_template !== 'string')
      return end({ success: true, code: 'nothing_to_call', message: 'The action calls nothing outside.' });
    const trace: Trace = { used: new Set(), attempts: 0, url: '' };
    const startedAt = performance.now();
    const timed = () => ({ attempts: trace.attempts, durationMs: Math.round(performance.now() - startedAt) });
    try {
      const { room } = called;
      const signal = endOfBoth(called.signal, room?.signal);
      const answer = await this.answer(caller, { ...called, signal }, trace, { larger: room });
      const shown = room?.isTaken
        ? await this.#deps.largeAnswers.shown(action, answer, { secrets: secretsOf(called, trace), signal })
        : shownAnswer(action, answer, redactorOf(called, trace));
      return end({ ...timed(), ...outcomeOf(tool, shown, refusalOf(answer)) });
    } catch (error) {
      return end({
        success: false,
        ...failureOf(error),
        ...timed(),
        sizeBytes: OutboundError.in(error)?.limitBytes ?? 0,
      });
    }
  }

  /**
   * What the provider answers. If it gets too many requests, the group of the action waits as long as it says.
   * @param bounds `withinMs` less than the limits of the action; `larger` for more than the usual bytes
   * @throws OutboundError, ConnectionUnusable, UnusableAction
   */
  async answer(caller: Caller, called: CalledAction, trace: Trace, bounds: CallBounds): Promise<OutboundResponse> {
    const answer = await this.#call(caller, called, trace, bounds);
    const wait = answer.status === 429 ? retryAfterOf(answer) : null;
    if (wait !== null) this.#deps.limits.pause(called, wait);
    return answer;
  }

  /** Calls with what the instance keeps itself, or with its connection, or without credentials if it needs none. */
  async #call(
    caller: Caller,
    called: CalledAction,
    trace: Trace,
    { withinMs = Number.POSITIVE_INFINITY, larger }: CallBounds,
  ): Promise<OutboundResponse> {
    const { connections } = this.#deps;
    const { instance, tool, action, namespaceId, endUserId, parts, signal } = called;
    const { orgId, id: toolInstanceId } = instance;
    const limits = limitsOf(action);
    const place = { orgId, namespaceId, toolInstanceId, principalId: principalId(caller.principal) };
    const wholeMs = Math.max(1, Math.min(limits.wholeMs, withinMs));
    const endsAt = performance.now() + wholeMs;
    const ask = async (
      { credentials, secrets }: SentCredential,
      connectionId: string | null = null,
    ): Promise<OutboundResponse> => {
      const request = requestFor({ ...parts, credentials, secrets: { ...parts.secrets, ...secrets } });
      trace.url = String(request.url);
      const common = { ...request, owner: orgId, keepsConnections: true, traceId: caller.request.traceId, signal };
      const isMcp = isOfServer(action);
      const call = async (timeoutMs: number) => {
        trace.attempts++;
        if (!isMcp) return this.#request({ ...common, larger, timeoutMs });
        const holder = { ...place, connectionId };
        return this.#callServer(common, { holder, isRepeatable: mayRepeat(action), timeoutMs });
      };
      const method = request.method ?? 'GET';
      const isRepeatable = isMcp ? { isRepeatable: mayRepeat(action) } : {};
      return withRetries({ method, ...isRepeatable, limits, endsAt, signal, ask: call });
    };
    if (parts.credentials.length > 0) return ask({ credentials: parts.credentials });
    const connected = connections.call({ orgId, toolInstanceId, namespaceId, endUserId }, (credential) => {
      trace.used.add(credential.secret);
      return ask(sentBy(tool, action, credential), credential.connectionId);
    });
    const answer = await within(wholeMs, connected);
    if (answer) return answer;
    demandKept(called);
    return ask({ credentials: [] });
  }

  /** Calls a tool of an MCP server. All of its requests together have the time of one try. */
  async #callServer(
    request: OutboundRequest & { owner: string },
    { holder, isRepeatable, timeoutMs }: { holder: CallHolder; isRepeatable: boolean; timeoutMs: number },
  ): Promise<OutboundResponse> {
    const endsAt = performance.now() + timeoutMs;
    const { url, owner, traceId, signal } = request;
    const send: McpSend = (step) =>
      this.#request({ url, owner, traceId, signal, ...step, timeoutMs: Math.max(1, endsAt - performance.now()) });
    return calledTool(request, send, { sessions: this.#deps.sessions.of(holder, request), isRepeatable });
  }

  /** Makes a request once there is room for it; its time includes the wait. */
  async #request({ timeoutMs, ...request }: OutboundRequest & { owner: string; timeoutMs: number }) {
    const endsAt = performance.now() + timeoutMs;
    const { owner, signal } = request;
    signal?.throwIfAborted();
    // most calls find room at once, and need no timer
    if (!this.#slots.takeNow(owner)) await this.#room(owner, timeoutMs, signal);
    try {
      return await this.#deps.outbound.request({ ...request, timeoutMs: Math.max(1, endsAt - performance.now()) });
    } finally {
      this.#slots.release(owner);
    }
  }

  async #room(owner: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(new OutboundError('timeout')), timeoutMs);
    try {
      await this.#slots.take(owner, endOfBoth(waiting.signal, signal));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Ends with the first of them. Most calls have one, and a signal that follows others costs more than all the rest. */
const endOfBoth = (one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal =>
  one && other ? AbortSignal.any([one, other]) : (one ?? other ?? AbortSignal.any([]));

/** What a call has sent that is secret. */
const secretsOf = ({ parts }: CalledAction, { used }: Trace): string[] => [
  ...textsIn([parts.secrets, hiddenValues(parts)]),
  ...used,
];

/** Removes what a call has sent that is secret. */
export const redactorOf = (called: CalledAction, trace: Trace): Redactor => new Redactor(secretsOf(called, trace));

/** How a call ended, without what it does not have. */
export const end = (given: Pick<CallEnd, 'success' | 'code' | 'message'> & Partial<CallEnd>): CallEnd => ({
  ...NOTHING,
  attempts: 0,
  durationMs: 0,
  pages: null,
  ...given,
});

/** What an answer comes to. */
export function outcomeOf({ name }: ToolRow, { fault, ...shown }: ShownAnswer, refusal: McpRefusal | null = null) {
  const { status } = shown;
  if (refusal) return { ...shown, success: false, code: refusal.code, message: `${name} answered ${refusal.says}.` };
  if (status < 200 || status > 299)
    return {
      ...shown,
      success: false,
      code: `http_${status}`,
      message: `${name} answered ${status}: ${meaningOf(status)}.`,
    };
  if (fault !== null)
    return { ...shown, success: false, code: 'schema_mismatch', message: `${name} answered ${status}, but ${fault}.` };
  return { ...shown, success: true, code: 'ok', message: `${name} answered ${status}.` };
}

/** Errors that say something to the caller; the others are the caller's fault, or bugs. */
export function failureOf(error: unknown): { code: string; message: string } {
  const outbound = OutboundError.in(error);
  const known = outbound ?? (error instanceof ConnectionUnusable ? error : null);
  if (!known) throw error;
  return { code: known.code, message: known.message };
}

/** @throws UnusableAction for a tool that needs credentials, if the instance keeps none and has no connection */
export const demandKept = ({ instance: { authMode }, tool, parts }: CalledAction): void =>
  demandCredentials(tool, { authMode, hasCredentials: Object.keys(parts.secrets).length > 0 });

/**
 * Does what needs a request.
 * @throws InputError for arguments that make none; RESOURCE_CONFLICT `no_credentials`
 */
export async function mendable<Value>({ id }: ToolInstance, work: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof UnusableAction)) throw error;
    if (error.code === 'no_credentials') throw conflict('tool_instance', id, error.code, error.message);
    throw invalidInput(PARAMETERS, error.message);
  }
}
