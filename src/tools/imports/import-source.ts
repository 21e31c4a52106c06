import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/json-object.ts';
import type { ImportKind } from './import-plan.ts';

/** An operation of the document that an action of the tool was made of. */
export interface ImportedOperation {
  /** `GET /pets/{id}`, or the name of a tool. */
  operation: string;
  /** The name of its action. */
  action: string;
  /** The digest of the action as it was made: what differs from it was changed since. */
  digest: string;
}

/** Where the actions of a tool came from, kept with it. */
export interface ImportSource {
  kind: ImportKind;
  /** `null` if the document was given as a text. */
  url: string | null;
  /** The digest of the document and of the addresses that it was read with. */
  digest: string;
  title: string;
  version: string | null;
  /** The address that was given in place of the servers of the document. */
  base_url: string | null;
  imported_at: string;
  operations: ImportedOperation[];
}

/**
 * Whether a tool that is imported again, without an address, gets its actions from elsewhere than before. Whoever sees
 * secrets would send them there.
 */
export const steersNextImport = (before: ImportSource | null, after: ImportSource): boolean =>
  (after.url !== null && after.url !== before?.url) || after.base_url !== (before?.base_url ?? null);

/** The imported operations of a tool. An action is of one operation: of two that name it, the later one counts. */
export function operationsOf(source: ImportSource | null): Map<string, ImportedOperation> {
  const byAction = new Map((source?.operations ?? []).map((imported) => [imported.action, imported]));
  return new Map([...byAction.values()].map((imported) => [imported.operation, imported]));
}

/** What of an action its document decides. */
export const actionDigest = (action: object): string =>
  createHash('sha256').update(canonicalJson(action)).digest('hex');
