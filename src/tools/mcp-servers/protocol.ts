import { version } from '../../paths.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';

/*
 * What of the Model Context Protocol this service speaks to servers of others (docs/decisions/0086): Streamable HTTP,
 * in sessions as the revisions of 2025 have it, and without any as that of 2026 has it.
 */

/** The revision without sessions. */
export const STATELESS = '2026-07-28';
/** Revisions with sessions, the newest first. */
export const WITH_SESSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];

/** Header of the revision that a request is of. */
export const VERSION_HEADER = 'mcp-protocol-version';
/** What a server may answer. */
export const ACCEPT = 'application/json, text/event-stream';

const CLIENT = { name: 'platform-management-api', version };

/** What each request of the revision without sessions says of its client: that it can be asked for nothing. */
export const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': STATELESS,
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
} as const;

/** How a session begins. */
export const INITIALIZE = { protocolVersion: WITH_SESSIONS[0], capabilities: {}, clientInfo: CLIENT } as const;

/** The value of a header for a text of a server: what a header cannot have is encoded. */
export function inHeader(text: string): string {
  const isPlain = /^[\x20-\x7e]*$/.test(text) && text === text.trim() && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

/** Why what a server answers is no answer; the sentence is for the caller, and has nothing of the answer. */
export class McpFault extends Error {
  override readonly name = 'McpFault';
  /** What it answered. */
  readonly response: OutboundResponse;

  constructor(message: string, response: OutboundResponse) {
    super(message);
    this.response = response;
  }
}
