import type { ServerAuthorization } from '../mcp-servers/server-authorization.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';

/*
 * What is read of an OpenAPI document, or of the tools of an MCP server: plain data, which the thread that reads it
 * hands over.
 */

/** What a tool can be imported from. */
export const importKinds = {
  openapi: 'An OpenAPI document.',
  mcp: 'A remote MCP server. Its operations are its tools, by their names.',
} as const;

/** A word of {@link importKinds}. */
export type ImportKind = keyof typeof importKinds;

/** What kind of a gap it is, with what it means. */
export const gapKinds = {
  remote_reference: 'A reference leads out of the document. Only references within it are followed.',
  broken_reference: 'A reference leads nowhere, or in a circle.',
  unsupported: 'An action cannot send it this way: a method, a style of a parameter, a media type, a cookie.',
  unsafe_address: 'The address leads elsewhere than it seems to, or this service does not call it.',
  other_host: 'The operation has a server of its own on another host, which would get the credentials of the tool.',
  other_credentials: 'The operation needs other credentials than the tool has.',
  too_large: 'It is larger than an action may be.',
  invalid: 'It is not what OpenAPI or MCP says.',
  simplified: 'The action has it, but less exactly.',
} as const;

/** A word of {@link gapKinds}. */
export type GapKind = keyof typeof gapKinds;

/** Something of a document that no action has, or has less exactly. */
export interface ImportGap {
  /** Where in the document, as a JSON pointer. */
  place: string;
  /** The operation that it is about; `null` if it is about all. */
  operation: string | null;
  kind: GapKind;
  message: string;
}

/** What to read of a document. */
export interface ReadTask {
  kind: ImportKind;
  text: string;
  /** Where it was found: addresses of servers may be relative to it. */
  documentUrl: string | null;
  /** In place of the servers of the document. */
  baseUrl: string | null;
  /** Operations that are read in any case. */
  keys: readonly string[];
  /** Names that no parameter gets: those of fields and credentials of the tool. */
  reserved: readonly string[];
  /** Others are read if they contain this text. */
  search: string | null;
  /** How many others are read at most. */
  most: number;
  /** Where the credential goes that an MCP server was asked with; `null` if it was asked without. */
  credential: Pick<PlacedCredential, 'placement'> | null;
}

/** An operation of a document, with the action that it would become. */
export interface ReadOperation {
  /** `GET /pets/{id}`, or the name of a tool. */
  operation: string;
  place: string;
  operationId: string | null;
  summary: string | null;
  isDeprecated: boolean;
  /** `null` if it cannot be taken: a gap says why. */
  action: Record<string, unknown> | null;
}

/** What was read. */
export interface ReadDocument {
  /** Of OpenAPI, or of MCP: `3.1.0`, `2025-11-25`. */
  format: string;
  title: string;
  description: string | null;
  version: string | null;
  /** Where its operations are. `null` if the document does not say. */
  baseUrl: string | null;
  /** Addresses of its servers, as far as they are addresses. */
  servers: string[];
  credentialSchema: Record<string, unknown>[];
  /** What an MCP server says of OAuth; `null` for a document. */
  authorization: ServerAuthorization | null;
  /** Whether its operations are known: an MCP server may want a credential first. */
  isListed: boolean;
  /** How many operations it has. */
  total: number;
  /** How many of them contain the text that was searched for. */
  matching: number;
  operations: ReadOperation[];
  gaps: ImportGap[];
  /** How many gaps there are; not all may be listed. */
  gapCount: number;
}

/** How the reading of a document ended. */
export type ReadEnd = { read: ReadDocument } | { refusal: string };
