import { z } from 'zod';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { ApiError, forbidden, typeNotFound } from '../../kernel/errors.ts';
import { sessionIdOf } from '../../kernel/principal.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import { SealedAddresses } from '../../platform/keys/sealed-addresses.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { MakerOf } from '../connect-links/open-links.ts';
import { within } from '../tool-instances/within.ts';
import type { WholeOfCut } from './action-answer.ts';

const KEPT_MS = 24 * 3_600_000;
/** The answer does not wait longer for the store. */
const KEEPING_MS = 10_000;

/** Why the whole of a result is not kept. */
export type NotKept = 'secret' | 'storage_full' | 'too_large' | 'unavailable';

/** The whole of a result that is cut: where it is, or why it is not kept. */
export interface WholeResult {
  /** Absolute; it is its own permission. `null` if it is not kept. */
  downloadUrl: string | null;
  expiresAt: Date | null;
  fileName: string | null;
  contentType: string | null;
  sizeBytes: number;
  notKept: NotKept | null;
}

/** Whose result it is. */
export interface ResultOwner {
  orgId: string;
  workspaceId: string;
  /** Whose connection was used; `null` for that of the workspace. */
  namespaceId: string | null;
  toolInstanceId: string;
}

/** Where whole results are kept. */
export interface KeptResults<Download> {
  keep(
    owner: Omit<ResultOwner, 'toolInstanceId'> & { userId: string },
    result: { toolInstanceId: string; expiresAt: Date },
    content: { content: Buffer; name: string; contentType: string | null; isText: boolean },
    signal: AbortSignal,
  ): Promise<{ id: string; fileName: string; mimeType: string }>;
  find(id: string): Promise<(ResultOwner & { download: Download }) | null>;
  discard(id: string): Promise<void>;
}

const claims = z.strictObject({
  fileId: z.string(),
  userId: z.string(),
  tokenId: z.nullable(z.string()),
  /** Without a token. */
  sessionId: z.nullable(z.string()),
  /** Seconds since 1970. */
  expires: z.number(),
});

const PATH = '/files/tool-results';
/** Of the route, for the router. */
export const WHOLE_RESULT_ROUTE = `${PATH}/:ticket`;
const PERMISSION = 'tool_instance:execute';

interface WholeResultDeps<Download> {
  sql: Sql;
  files: KeptResults<Download>;
  /** Who asked for an address, if they may still use it. */
  makerOf: MakerOf;
  seal: Seal;
  publicUrl: () => string;
  onFault: (error: unknown, what: string) => void;
}

/**
 * Keeps the whole of results that were cut, for a day. Its address acts in the name of who ran the action, as long as
 * they may run actions of the instance, and their session or token lives (docs/decisions/0098).
 */
export class WholeResults<Download> {
  readonly #deps: WholeResultDeps<Download>;
  readonly #addresses: SealedAddresses<z.infer<typeof claims>>;

  constructor(deps: WholeResultDeps<Download>) {
    const { seal, publicUrl } = deps;
    this.#deps = deps;
    this.#addresses = new SealedAddresses({ seal, publicUrl, path: PATH, context: 'whole result', claims });
  }

  /** Keeps a result, if it can. The call was made: what goes wrong here is said, and no error. */
  async keep({ principal }: Caller, owner: ResultOwner, action: string, whole: WholeOfCut): Promise<WholeResult> {
    const { content, contentType, isText, sizeBytes } = whole;
    if (!content) return notKept('secret', sizeBytes);
    const { toolInstanceId, ...place } = owner;
    const { userId, token } = principal;
    const expires = Math.floor((Date.now() + KEPT_MS) / 1_000);
    const expiresAt = new Date(expires * 1_000);
    try {
      const { id, fileName, mimeType } = await this.#inTime((signal) =>
        this.#deps.files.keep(
          { ...place, userId },
          { toolInstanceId, expiresAt },
          { content, name: action, contentType, isText },
          signal,
        ),
      );
      const who = { userId, tokenId: token?.id ?? null, sessionId: sessionIdOf(principal) };
      const downloadUrl = this.#addresses.of({ fileId: id, ...who, expires });
      return { downloadUrl, expiresAt, fileName, contentType: mimeType, sizeBytes, notKept: null };
    } catch (error) {
      return notKept(this.#reasonOf(error), sizeBytes);
    }
  }

  /**
   * What an address leads to.
   * @throws FORBIDDEN for an address that is not as it was made, has expired, or whose user may no longer run actions
   * of the instance; RESOURCE_NOT_FOUND if it was removed
   */
  async open(caller: AnyCaller, ticket: string): Promise<Download> {
    const allowed = this.#addresses.read(ticket);
    if (!allowed) throw forbidden(PERMISSION, 'The address is invalid or has expired.');
    const { sql, files, makerOf } = this.#deps;
    const found = await files.find(allowed.fileId);
    if (!found) throw gone(allowed);
    await makerOf(caller, allowed, PERMISSION, found);
    const { toolInstanceId: id, orgId } = found;
    if (!(await findRow(sql, 'tool_instances', { id, orgId }))) throw gone(allowed);
    return found.download;
  }

  /**
   * What is kept in time. Then the store gets no more of it, which nothing holds from there on; what is stored all the
   * same is removed: the answer has gone without its address.
   */
  async #inTime<Kept extends { id: string }>(keep: (signal: AbortSignal) => Promise<Kept>): Promise<Kept> {
    const late = new AbortController();
    const keeping = keep(late.signal);
    try {
      return await within(KEEPING_MS, keeping);
    } catch (error) {
      if (error instanceof OutboundError) {
        late.abort(error);
        void this.#removed(keeping);
      }
      throw error;
    }
  }

  async #removed(keeping: Promise<{ id: string }>): Promise<void> {
    const { files, onFault } = this.#deps;
    try {
      const { id } = await keeping;
      await files.discard(id);
    } catch (error) {
      if (!OutboundError.in(error)) onFault(error, 'a whole result that came too late could not be removed');
    }
  }

  #reasonOf(error: unknown): NotKept {
    if (error instanceof ApiError && error.code === 'PAYLOAD_TOO_LARGE') return 'too_large';
    if (error instanceof ApiError && error.details.reason === 'storage_quota_exceeded') return 'storage_full';
    this.#deps.onFault(error, 'the whole result of an action could not be kept');
    return 'unavailable';
  }
}

const gone = ({ fileId }: { fileId: string }) => typeNotFound('tool_result', fileId);

const notKept = (reason: NotKept, sizeBytes: number): WholeResult => ({
  downloadUrl: null,
  expiresAt: null,
  fileName: null,
  contentType: null,
  sizeBytes,
  notKept: reason,
});
