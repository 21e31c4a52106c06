import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type http from 'node:http';
import {
  type CallToolResult,
  createMcpHandler,
  Server,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { startTarget, type TargetServer } from './target-server.ts';

/** A server of the SDK, which answers at `/mcp`. */
export interface McpServerOfOthers extends TargetServer {
  url: string;
  /** What it offers. */
  tools: Tool[];
  /** What its tools do; the arguments that they got are kept. */
  call: (name: string, args: Record<string, unknown>) => CallToolResult;
  called: { name: string; args: Record<string, unknown> }[];
  /** The header without which it answers 401. */
  wants: [name: string, value: string] | null;
  /** Answers any request before all else; `false` leaves it. */
  first: ((request: http.IncomingMessage, response: http.ServerResponse) => Promise<boolean> | boolean) | null;
  /** Answers in place of the SDK; `null` leaves it to that. */
  instead: ((message: Rpc, response: http.ServerResponse, request: http.IncomingMessage) => unknown) | null;
  /** Sessions that are open. */
  sessions: Map<string, WebStandardStreamableHTTPServerTransport>;
}

/** A message that a server gets. */
export interface Rpc {
  id?: number;
  method: string;
  params?: Record<string, unknown>;
}

/** What the tools of a server do first. */
const OFFERED: Tool[] = [
  {
    name: 'echo',
    title: 'Echo',
    description: 'Says it again.',
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'What to say.', maxLength: 100 },
        'times/n': { type: 'integer', minimum: 1 },
      },
      required: ['text'],
    },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'weather',
    inputSchema: {
      type: 'object',
      properties: { place: { $ref: '#/$defs/place' } },
      $defs: { place: { type: 'object' } },
    },
    outputSchema: { type: 'object', properties: { degrees: { type: 'number' } }, required: ['degrees'] },
    annotations: { destructiveHint: false, idempotentHint: true },
  },
  { name: 'erase', description: 'Erases all.', inputSchema: { type: 'object' } },
];

/**
 * A server of the official SDK.
 * @param kind `sessions`: of the revisions of 2025, with a session for each client; `both`: that of 2026, and those of
 * 2025 without sessions
 */
export async function startMcpServer(kind: 'sessions' | 'both'): Promise<McpServerOfOthers> {
  const rest: Omit<McpServerOfOthers, keyof TargetServer | 'url'> = {
    tools: structuredClone(OFFERED),
    call: (name) => ({ content: [{ type: 'text', text: `${name} was called` }] }),
    called: [],
    wants: null,
    first: null,
    instead: null,
    sessions: new Map(),
  };
  const newServer = () => {
    const server = new Server({ name: 'others', title: 'Of others', version: '7' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: own.tools }));
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }) => {
      own.called.push({ name, args });
      return own.call(name, args);
    });
    return server;
  };
  const handler = createMcpHandler(newServer);
  const inSession = async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : own.sessions.get(id);
    if (known) return known.handleRequest(request);
    if (id !== null) return new Response('there is no such session', { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void own.sessions.set(session, transport),
      onsessionclosed: (session) => void own.sessions.delete(session),
    });
    await newServer().connect(transport);
    return transport.handleRequest(request);
  };
  const target = await startTarget(async (request, response, body) => {
    const { wants, first, instead } = own;
    if (await first?.(request, response)) return;
    if (wants && request.headers[wants[0]] !== wants[1]) return response.writeHead(401).end('who are you?');
    if (instead && request.method === 'POST') {
      const answered: unknown = await instead(JSON.parse(body) as Rpc, response, request);
      if (answered !== null) return;
    }
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const asked = new Request(`http://localhost${request.url!}`, {
      method: request.method!,
      headers,
      ...(request.method === 'POST' && { body }),
    });
    await passed(await (kind === 'sessions' ? inSession(asked) : handler.fetch(asked)), response);
  });
  const own: McpServerOfOthers = Object.assign(target, rest, { url: `http://127.0.0.1:${target.port}/mcp` });
  return own;
}

async function passed(answer: Response, response: http.ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.flushHeaders();
  for await (const piece of answer.body ?? [])
    if (!response.write(piece)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
  response.end();
}

/** Answers a message in JSON. */
export const replies = (response: http.ServerResponse, message: Rpc, result: unknown, headers = {}) =>
  response
    .writeHead(200, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
