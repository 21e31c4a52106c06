import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json-object.ts';

/** An operation of the document that an action of the tool was made of. */
export interface ImportedOperation {
  /** `GET /pets/{id}` */
  operation: string;
  /** The name of its action. */
  action: string;
  /** The digest of the action as it was made: what differs from it was changed since. */
  digest: string;
}

/** Where the actions of a tool came from, kept with it. */
export interface ImportSource {
  kind: 'openapi';
  /** `null` if the document was given as a text. */
  url: string | null;
  /** The SHA-256 of the text of the document. */
  digest: string;
  title: string;
  version: string | null;
  /** The address that was given in place of the servers of the document. */
  base_url: string | null;
  imported_at: string;
  operations: ImportedOperation[];
}

/** What of an action its document decides. */
export const actionDigest = (action: object): string =>
  createHash('sha256').update(canonicalJson(action)).digest('hex');
