import { isJsonObject } from '../../kernel/json-object.ts';
import type { OutboundRequest } from '../../platform/outbound/outbound.ts';
import { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { UnusableAction } from '../tool-instances/action-request.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { isErrorOfNone, type RpcObject } from './answer-scan.ts';
import { McpFault, STATELESS, VERSION_HEADER } from './protocol.ts';
import { ask, closeSession, type McpReply, type McpSend, type McpSession, openSession } from './server-calls.ts';

/** A session in which calls are made, one after the other. */
export interface OpenSession extends Pick<McpSession, 'headers'> {
  /** The id of its last message. */
  lastId: number;
  /** In the time of `performance`. */
  startedAt: number;
}

/** Where the sessions of calls come from, and where they go. */
export interface CallSessions {
  /** One that nobody else uses until it is brought back; `null` if there is none. */
  take: () => OpenSession | null;
  /** After an answer. */
  bring: (session: OpenSession) => void;
  /** After anything else. */
  end: (session: OpenSession) => void;
}

/** What a server says of a call that it did not carry out, although it answered. */
export interface McpRefusal {
  /** For programs. */
  code: 'tool_error' | 'rpc_error' | 'input_required' | 'protocol_error';
  /** For people: the end of a sentence that begins with the tool. */
  says: string;
}

/** The answer of a server as one of HTTP: its body is what the tool gave. */
export class McpAnswer extends OutboundResponse {
  readonly refusal: McpRefusal | null;

  constructor(of: OutboundResponse, { type, body }: { type: string; body: string }, refusal: McpRefusal | null = null) {
    const headers = new Headers(of.headers);
    headers.set('content-type', type);
    super({ status: of.status, headers, body: Buffer.from(body), url: of.url });
    this.refusal = refusal;
  }

  override get isOk(): boolean {
    return this.refusal === null && super.isOk;
  }
}

/** What a server refused; `null` for every other answer. */
export const refusalOf = (answer: OutboundResponse): McpRefusal | null =>
  answer instanceof McpAnswer ? answer.refusal : null;

/** Whether an action is a tool of an MCP server. */
export const isOfServer = ({ protocol }: ToolAction): boolean => protocol === 'mcp';

/** Whether what an action does may be done again: it changes nothing, or nothing more. */
export const mayRepeat = ({ is_read_only, is_idempotent }: ToolAction): boolean =>
  is_read_only === true || is_idempotent === true;

/** A session for one call. */
const ownSession = (send: McpSend): CallSessions => {
  const end = ({ headers }: OpenSession) => closeSession(send, headers);
  return { take: () => null, bring: end, end };
};

/**
 * Calls a tool of a server with the request of its action: at once where the action says that there are no sessions, or
 * else in a session. A refusal of HTTP is the answer.
 * @param kept `sessions` that are kept, without which the call has one of its own, which is ended after it;
 * `isRepeatable` whether what it does may be done again
 * @throws OutboundError; UnusableAction for an action whose body is no call of a tool
 */
export async function calledTool(
  request: OutboundRequest,
  send: McpSend,
  { sessions = ownSession(send), isRepeatable = false }: { sessions?: CallSessions; isRepeatable?: boolean } = {},
): Promise<OutboundResponse> {
  const message = callIn(request.body);
  const headers = request.headers ?? {};
  if (headers[VERSION_HEADER] === STATELESS) return toolAnswer(await ask(send, headers, message));
  const kept = sessions.take();
  const reply = kept && (await askedIn(kept, message, send, sessions));
  if (reply && !hasForgotten(reply, isRepeatable)) return toolAnswer(reply);
  const session = await sessionOrFault(send, headers);
  if (session instanceof OutboundResponse) return session;
  const begun = { headers: session.headers, lastId: 1, startedAt: performance.now() };
  return toolAnswer(await askedIn(begun, message, send, sessions));
}

/**
 * Whether a server no longer knows a session, and so has done nothing: it says 404 as the protocol has it. Some say
 * 400, which may also come from the tool: then it counts if the error is of no message, or the call may be repeated. It
 * begins again, once, in a new session.
 */
const hasForgotten = ({ response }: McpReply, isRepeatable: boolean): boolean =>
  response.status === 404 || (response.status === 400 && (isRepeatable || isErrorOfNone(response.text())));

/** Calls in a session. One in which anything went wrong is not used again. */
async function askedIn(
  session: OpenSession,
  message: RpcObject,
  send: McpSend,
  { bring, end }: CallSessions,
): Promise<McpReply> {
  session.lastId += 1;
  let reply: McpReply | null = null;
  try {
    reply = await ask(send, session.headers, { ...message, id: session.lastId });
    return reply;
  } finally {
    if (reply?.response.isOk && reply.answer) bring(session);
    // there is nothing to end where the server does not know it
    else if (reply?.response.status !== 404) end(session);
  }
}

/** @throws UnusableAction */
function callIn(body: OutboundRequest['body']): RpcObject & { id: number } {
  const message = typeof body === 'string' ? parsed(body) : undefined;
  if (!isJsonObject(message) || message.method !== 'tools/call' || !isJsonObject(message.params))
    throw new UnusableAction('schema_mismatch', 'The body of the action is no call of a tool of an MCP server.');
  return { ...message, jsonrpc: '2.0', id: 1 };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller says what it should be
  }
}

async function sessionOrFault(send: McpSend, headers: Readonly<Record<string, string>>) {
  try {
    const session = await openSession(send, headers);
    return 'refused' in session ? session.refused : session;
  } catch (error) {
    if (error instanceof McpFault) return fault(error.response);
    throw error;
  }
}

const TEXT = 'text/plain; charset=utf-8';
const fault = (response: OutboundResponse) =>
  new McpAnswer(response, { type: TEXT, body: '' }, { code: 'protocol_error', says: 'something else than MCP says' });

function toolAnswer({ response, answer }: McpReply): OutboundResponse {
  if (!response.isOk) return response;
  if (!answer) return fault(response);
  const refused = (code: McpRefusal['code'], says: string, body: string) =>
    new McpAnswer(response, { type: TEXT, body }, { code, says });
  if ('error' in answer) {
    const { code, message } = answer.error;
    const number = Number.isSafeInteger(code) ? ` ${String(code)}` : '';
    return refused('rpc_error', `with the error${number} of the protocol`, typeof message === 'string' ? message : '');
  }
  const { result } = answer;
  if (!isJsonObject(result)) return fault(response);
  if (result.resultType !== undefined && result.resultType !== 'complete')
    return refused('input_required', 'that it needs more than the call gave, which this service does not ask for', '');
  const content = Array.isArray(result.content) ? (result.content as unknown[]) : [];
  if (result.isError === true) return refused('tool_error', 'that the tool failed', textOf(content) ?? '');
  return new McpAnswer(response, contentOf(result, content));
}

/** The text of a content that is nothing else; `null` if it is more. */
function textOf(content: readonly unknown[]): string | null {
  const texts = content.map((part) => (isJsonObject(part) && part.type === 'text' ? part.text : null));
  return texts.every((text) => typeof text === 'string') ? texts.join('\n') : null;
}

/** What a tool gave: the structured content, or else its text, or else all parts of the content as they are. */
function contentOf({ structuredContent }: RpcObject, content: readonly unknown[]): { type: string; body: string } {
  const json = 'application/json';
  if (structuredContent !== undefined) return { type: json, body: JSON.stringify(structuredContent) };
  const text = textOf(content);
  return text === null ? { type: json, body: JSON.stringify({ content }) } : { type: TEXT, body: text };
}
