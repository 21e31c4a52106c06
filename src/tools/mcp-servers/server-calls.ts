import { isJsonObject } from '../../kernel/json-object.ts';
import type { OutboundRequest } from '../../platform/outbound/outbound.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { AnswerScan, type RpcAnswer, type RpcObject } from './answer-scan.ts';
import { INITIALIZE, McpFault, VERSION_HEADER, WITH_SESSIONS } from './protocol.ts';

type Headers = Readonly<Record<string, string>>;

/** A request to a server, whose address, owner and time its sender knows. */
export type ServerRequest = Pick<OutboundRequest, 'method' | 'headers' | 'body' | 'reader'>;

/** Makes a request to a server through the guarded way out. */
export type McpSend = (request: ServerRequest) => Promise<OutboundResponse>;

/** What a server answers to a message. */
export interface McpReply {
  response: OutboundResponse;
  /** `null` if it is none: the response says why, or the server does not speak the protocol. */
  answer: RpcAnswer | null;
}

const SESSION = 'mcp-session-id';
/** What a session may be called: a header of visible characters. */
const SESSION_ID = /^[!-~]{1,1024}$/;

/** Sends a message and waits for its answer, but not for what a server would send after it. */
export async function ask(send: McpSend, headers: Headers, message: RpcObject & { id: number }): Promise<McpReply> {
  let scan = new AnswerScan(message.id, null);
  const response = await send({
    method: 'POST',
    // pieces of an encoded body would say nothing
    headers: { ...headers, 'accept-encoding': 'identity' },
    body: JSON.stringify(message),
    reader: (head) => {
      scan = new AnswerScan(message.id, head.headers.get('content-type'));
      return (piece) => scan.take(piece);
    },
  });
  scan.end(response.body);
  return { response, answer: scan.answer };
}

/** A session with a server. */
export interface McpSession {
  /** The revision that both speak. */
  version: string;
  /** With those of the session. */
  headers: Headers;
  /** What the server said when it began. */
  server: RpcObject;
}

/**
 * Begins a session.
 * @returns the response of a server that refuses it
 * @throws OutboundError; McpFault for an answer that is none, and a revision that this service does not speak
 */
export async function openSession(
  send: McpSend,
  headers: Headers,
): Promise<McpSession | { refused: OutboundResponse }> {
  const first = { jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE };
  const { response, answer } = await ask(send, headers, first);
  if (!response.isOk) return { refused: response };
  const faulty = (why: string) => new McpFault(why, response);
  if (!answer || 'error' in answer) throw faulty('The server begins no session of the Model Context Protocol.');
  const server = isJsonObject(answer.result) ? answer.result : {};
  const version = server.protocolVersion;
  if (typeof version !== 'string' || !WITH_SESSIONS.includes(version))
    throw faulty('The server speaks no revision of the Model Context Protocol that this service speaks.');
  const id = response.headers.get(SESSION);
  if (id !== null && !SESSION_ID.test(id)) throw faulty('The session of the server has no usable id.');
  const inSession = { ...headers, [VERSION_HEADER]: version, ...(id !== null && { [SESSION]: id }) };
  const notice = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const noted = await send({
    method: 'POST',
    headers: inSession,
    body: JSON.stringify(notice),
    reader: () => () => true,
  });
  if (noted.isOk) return { version, headers: inSession, server };
  closeSession(send, inSession);
  return { refused: noted };
}

/** The request that ends a session; `null` if the server gave it no id. */
export function endOfSession(headers: Headers): ServerRequest | null {
  if (headers[SESSION] === undefined) return null;
  const { 'content-type': _none, ...others } = headers;
  return { method: 'DELETE', headers: others, reader: () => () => true };
}

/** Ends a session, which nobody waits for: what it gave is there. The way out logs what goes wrong. */
export function closeSession(send: McpSend, headers: Headers): void {
  const request = endOfSession(headers);
  if (request) send(request).catch(() => undefined);
}
