import { isJsonObject } from '../../kernel/json-object.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { RpcObject } from './answer-scan.ts';
import { ACCEPT, ENVELOPE, McpFault, STATELESS, VERSION_HEADER } from './protocol.ts';
import type { ServerAuthorization } from './server-authorization.ts';
import { ask, closeSession, type McpSend, openSession } from './server-calls.ts';

/** Most tools of a server: an organization's tool has no more actions. */
export const MAX_TOOLS = 100;
const MAX_PAGES = 20;
const MAX_BYTES = 2 * 1024 * 1024;
const MAX_CURSOR = 4_096;

/** The tools of a server, as it told them. */
export interface ListedTools {
  /** Whether it told them: otherwise it wants a credential first. */
  isListed: boolean;
  authorization: ServerAuthorization;
  /** The revision that it speaks. */
  protocol: string;
  server: RpcObject;
  instructions: unknown;
  tools: unknown[];
  /** Whether it has more. */
  isCut: boolean;
}

/** A server that wants credentials, or others. */
export class CredentialsWanted extends McpFault {}

/**
 * Lists the tools of a server, whatever revision it speaks.
 * @param credential header with the credential
 * @throws OutboundError, McpFault
 */
export async function listedTools(
  send: McpSend,
  credential: Readonly<Record<string, string>>,
): Promise<Omit<ListedTools, 'isListed' | 'authorization'>> {
  const headers = { ...credential, accept: ACCEPT, 'content-type': 'application/json' };
  const discovered = await discover(send, headers);
  if (discovered) {
    const page = (cursor: string | null) =>
      pageOf(send, stateless('tools/list', headers), messageFor(cursor, ENVELOPE));
    const { _meta: meta, serverInfo, instructions } = discovered;
    const named = isJsonObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined;
    return { protocol: STATELESS, ...about(serverInfo ?? named, instructions), ...(await allPages(page)) };
  }
  const session = await openSession(send, headers);
  if ('refused' in session) throw faultOf(session.refused);
  try {
    const page = (cursor: string | null) => pageOf(send, session.headers, messageFor(cursor, null));
    const { serverInfo, instructions } = session.server;
    return { protocol: session.version, ...about(serverInfo, instructions), ...(await allPages(page)) };
  } finally {
    closeSession(send, session.headers);
  }
}

/** What a server answers whoever asks it without a credential, if it wants one. @throws OutboundError */
export async function refusalWithoutCredential(send: McpSend): Promise<OutboundResponse | null> {
  const headers = { accept: ACCEPT, 'content-type': 'application/json' };
  const { response } = await ask(send, stateless(DISCOVER, headers), discoverMessage());
  return response.status === 401 ? response : null;
}

const about = (server: unknown, instructions: unknown) => ({
  server: isJsonObject(server) ? server : {},
  instructions,
});

const stateless = (method: string, headers: Readonly<Record<string, string>>) => ({
  ...headers,
  [VERSION_HEADER]: STATELESS,
  'mcp-method': method,
});

const DISCOVER = 'server/discover';
const discoverMessage = () => ({ jsonrpc: '2.0', id: 1, method: DISCOVER, params: { _meta: ENVELOPE } });

/** What a server without sessions says of itself; `null` for a server that has them. */
async function discover(send: McpSend, headers: Readonly<Record<string, string>>): Promise<RpcObject | null> {
  const { response, answer } = await ask(send, stateless(DISCOVER, headers), discoverMessage());
  if (response.status === 401 || response.status === 403) throw faultOf(response);
  if (!answer || !('result' in answer) || !isJsonObject(answer.result)) return null;
  const { supportedVersions: versions } = answer.result;
  return Array.isArray(versions) && versions.includes(STATELESS) ? answer.result : null;
}

const messageFor = (cursor: string | null, envelope: RpcObject | null) => ({
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/list',
  params: { ...(cursor !== null && { cursor }), ...(envelope && { _meta: envelope }) },
});

interface ListPage {
  tools: unknown[];
  next: string | null;
  response: OutboundResponse;
}

async function pageOf(
  send: McpSend,
  headers: Readonly<Record<string, string>>,
  message: ReturnType<typeof messageFor>,
): Promise<ListPage> {
  const { response, answer } = await ask(send, headers, message);
  if (!response.isOk) throw faultOf(response);
  if (!answer || !('result' in answer) || !isJsonObject(answer.result) || !Array.isArray(answer.result.tools))
    throw new McpFault('The server does not answer the list of its tools as MCP says.', response);
  const { tools, nextCursor } = answer.result;
  const next = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : null;
  if (next !== null && next.length > MAX_CURSOR)
    throw new McpFault('The list of tools has no usable next page.', response);
  return { tools: tools as unknown[], next, response };
}

/** The tools of all pages. @throws McpFault for pages in a circle, and more than anybody reads */
async function allPages(pageAt: (cursor: string | null) => Promise<ListPage>) {
  const tools: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | null = null;
  let bytes = 0;
  for (let count = 1; ; count++) {
    const page: ListPage = await pageAt(cursor);
    const faulty = (why: string) => new McpFault(why, page.response);
    bytes += page.response.body.length;
    if (bytes > MAX_BYTES) throw faulty(`The list of tools has more than ${MAX_BYTES} bytes.`);
    tools.push(...page.tools.slice(0, MAX_TOOLS + 1 - tools.length));
    if (tools.length > MAX_TOOLS) return { tools: tools.slice(0, MAX_TOOLS), isCut: true };
    if (page.next === null) return { tools, isCut: false };
    if (seen.has(page.next)) throw faulty('The pages of the list of tools lead in a circle.');
    if (count === MAX_PAGES) throw faulty(`The list of tools has more than ${MAX_PAGES} pages.`);
    seen.add(page.next);
    cursor = page.next;
  }
}

function faultOf(response: OutboundResponse): McpFault {
  const { status } = response;
  if (status === 401 || status === 403)
    return new CredentialsWanted(`The server answers ${status}: it wants a credential, or another one.`, response);
  return new McpFault(`The server answers ${status}.`, response);
}
