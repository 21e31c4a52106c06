import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { bearerChallenge } from '../mcp-servers/challenge.ts';
import { discoverOAuth } from '../mcp-servers/oauth-discovery.ts';
import type { ServerAuthorization } from '../mcp-servers/server-authorization.ts';
import type { McpSend } from '../mcp-servers/server-calls.ts';
import {
  CredentialsWanted,
  type ListedTools,
  listedTools,
  refusalWithoutCredential,
} from '../mcp-servers/tool-list.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';

/** What the address of an import may take, with all requests that it leads to. */
export const FETCH_TIMEOUT_MS = 15_000;
/** What of that the metadata of OAuth may take: it is less than the tools. */
const METADATA_TIMEOUT_MS = 5_000;
const MAX_METADATA_BYTES = 64 * 1024;

/** A server that is asked, with what all requests to it have in common. */
type AskedServer = Pick<OutboundRequest, 'owner' | 'traceId' | 'signal'> & { url: string };

/** Reads of an MCP server what an import needs: its tools, and how tokens for it are got. */
export class ServerReader {
  readonly #outbound: Outbound;

  constructor(outbound: Outbound) {
    this.#outbound = outbound;
  }

  /**
   * Lists the tools of a server. One that wants a token first, and says how to get it, has none listed.
   * @param options `mayBeUnlisted` whether that is of use
   * @throws OutboundError, McpFault; CredentialsWanted if it wants a credential, or another one
   */
  async read(
    server: AskedServer,
    credential: PlacedCredential | null,
    { mayBeUnlisted }: { mayBeUnlisted: boolean },
  ): Promise<ListedTools> {
    const endsAt = performance.now() + FETCH_TIMEOUT_MS;
    const timeLeft = () => Math.max(1, endsAt - performance.now());
    const send: McpSend = (request) => this.#outbound.request({ ...server, ...request, timeoutMs: timeLeft() });
    try {
      const listed = await listedTools(send, credential ? headerOf(credential) : {});
      // whoever has a credential is not told what the server wants of others
      const refusal = credential ? await refusalWithoutCredential(send).catch(notAsked) : null;
      return { ...listed, isListed: true, authorization: await this.#authorizationOf(server, refusal, timeLeft) };
    } catch (error) {
      if (!(error instanceof CredentialsWanted) || error.response.status !== 401 || credential) throw error;
      const authorization = await this.#authorizationOf(server, error.response, timeLeft);
      if (authorization.outcome !== 'found')
        throw new CredentialsWanted(`${error.message} ${authorization.message}`, error.response);
      if (!mayBeUnlisted) throw error;
      return { ...NOTHING_LISTED, isListed: false, authorization };
    }
  }

  /** @param refusal the server's, which may name its metadata */
  #authorizationOf(
    server: AskedServer,
    refusal: OutboundResponse | null,
    timeLeft: () => number,
  ): Promise<ServerAuthorization> {
    const at = new URL(server.url);
    const endsAt = performance.now() + METADATA_TIMEOUT_MS;
    // what the operator has opened is not opened for what a server of somebody else names: not on other ports either,
    // where the owner of the name decides what it means
    const isFixed = this.#outbound.isFixed(at);
    const isPublicOnly = (url: URL) => url.origin !== at.origin && (url.hostname !== at.hostname || !isFixed);
    const reader = {
      get: (url: URL) =>
        this.#outbound.request({
          ...server,
          url,
          headers: { accept: 'application/json' },
          timeoutMs: Math.max(1, Math.min(timeLeft(), endsAt - performance.now())),
          maxBytes: MAX_METADATA_BYTES,
          redirect: 'manual',
          isPublicOnly: isPublicOnly(url),
        }),
      refusalOf: (url: URL) => this.#outbound.refusalOf(url.href, isPublicOnly(url))?.message ?? null,
    };
    return discoverOAuth(reader, at, bearerChallenge(refusal?.headers.get('www-authenticate') ?? null));
  }
}

/** The tools are there: nothing that the server says to others takes them away. @throws OutboundError as discovery */
function notAsked(error: unknown): null {
  if (error instanceof OutboundError && error.code !== 'busy' && error.code !== 'aborted') return null;
  throw error;
}

/** A server that tells nothing without a credential. */
const NOTHING_LISTED = { protocol: 'unknown', server: {}, instructions: null, tools: [], isCut: false };

const headerOf = ({ placement: { name, prefix }, value }: PlacedCredential): Record<string, string> => ({
  [name.toLowerCase()]: `${prefix ?? ''}${value}`,
});
