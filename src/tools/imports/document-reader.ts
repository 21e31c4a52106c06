import { createHash } from 'node:crypto';
import os from 'node:os';
import type { Budget } from '../../access/throttle.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type ApiError, invalidInput, unavailable } from '../../kernel/errors.ts';
import { withoutSecretParts } from '../../kernel/plain-secrets.ts';
import { moduleOf } from '../../paths.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import { BoundedThread, ThreadError, type ThreadLimits } from '../../platform/threads/bounded-thread.ts';
import { MAX_DOCUMENT_BYTES } from './document-text.ts';
import { type DocumentTurn, DocumentTurns } from './document-turns.ts';
import type { ReadDocument, ReadEnd, ReadTask } from './import-plan.ts';

/** What a document may take where a processor is free: the largest in YAML takes about a second. */
const READ_MS = 3_000;
const MOST_READ_MS = 10_000;
/** The same work takes longer on a machine that has more to do than it has processors. */
const readMs = (): number =>
  Math.min(MOST_READ_MS, READ_MS * Math.max(1, os.loadavg()[0]! / os.availableParallelism()));
const LIMITS: ThreadLimits = { timeMs: readMs, heapMiB: 512, mostPending: 32 };
const FETCH_TIMEOUT_MS = 15_000;

/** Where a document comes from: one of these is given. */
export interface DocumentSource {
  url?: string | null;
  document?: string | null;
}

/** A document as it was found. */
export interface FoundDocument {
  /** Where it was fetched from; `null` if it was given as a text. */
  url: string | null;
  /** The SHA-256 of its text. */
  digest: string;
}

const INPUT = 'input';

/** Fetches documents through the guarded way out, and reads them in a thread of its own, one after the other. */
export class DocumentReader {
  readonly #outbound: Outbound;
  readonly #byUser: Budget;
  readonly #thread: BoundedThread;
  readonly #turns = new DocumentTurns(unavailable);

  /** @param byUser how many documents a user may have read */
  constructor(outbound: Outbound, byUser: Budget, limits: Partial<ThreadLimits> = {}) {
    this.#outbound = outbound;
    this.#byUser = byUser;
    this.#thread = new BoundedThread(moduleOf('tools/imports/read-thread'), { ...LIMITS, ...limits });
  }

  /**
   * Finds a document and reads it. It is in memory only while its organization has its turn.
   * @param taskOf says what to read of it; it may refuse
   * @param kept where it was fetched from before
   * @throws InputError at `url` or `document`; RATE_LIMIT_EXCEEDED; SERVICE_UNAVAILABLE while too many documents wait,
   * or when the client has left
   */
  async read(
    caller: Caller,
    orgId: string,
    source: DocumentSource,
    taskOf: (found: FoundDocument) => Omit<ReadTask, 'text' | 'documentUrl'>,
    kept: string | null = null,
  ): Promise<{ found: FoundDocument; read: ReadDocument }> {
    const wanted = wantedOf(source, kept);
    const { userId } = caller.principal;
    await this.#byUser.demand(userId);
    const signal = caller.request.left?.() ?? new AbortController().signal;
    return this.#turns.run({ orgId, userId }, signal, async (turn) => {
      const text = 'text' in wanted ? wanted.text : await this.#fetched(caller, orgId, wanted.url, signal, turn);
      const found = { url: 'url' in wanted ? wanted.url : null, digest: digestOf(text) };
      return { found, read: await this.#read({ ...taskOf(found), text, documentUrl: found.url }, turn) };
    });
  }

  async #fetched(
    { request }: Caller,
    owner: string,
    url: string,
    signal: AbortSignal,
    turn: DocumentTurn,
  ): Promise<string> {
    const at = [INPUT, 'url'];
    try {
      const answer = await this.#outbound.request({
        url,
        headers: { accept: 'application/json, application/yaml, text/yaml, */*;q=0.5' },
        owner,
        traceId: request.traceId,
        timeoutMs: FETCH_TIMEOUT_MS,
        maxBytes: MAX_DOCUMENT_BYTES,
        signal,
      });
      if (!answer.isOk) throw invalidInput(at, `the address answers ${answer.status}`);
      return answer.text();
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      if (error.code === 'timeout') turn.end = 'slow';
      throw refusalOf(error, at);
    }
  }

  async #read(task: ReadTask, turn: DocumentTurn): Promise<ReadDocument> {
    const at = [INPUT, task.documentUrl === null ? 'document' : 'url'];
    try {
      const end = (await this.#thread.run(task)) as ReadEnd;
      turn.end = 'read';
      if ('refusal' in end) throw invalidInput(at, end.refusal);
      return end.read;
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error;
      if (error.reason === 'full' || error.reason === 'closed') throw unavailable();
      if (error.reason !== 'timeout' && error.reason !== 'memory') throw error;
      turn.end = 'slow';
      throw invalidInput(at, `it takes too ${error.reason === 'timeout' ? 'long' : 'much memory'} to read`);
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

/** @throws InputError unless there is one source, without a credential in its address */
function wantedOf({ url, document }: DocumentSource, kept: string | null): { text: string } | { url: string } {
  if (url && document) throw invalidInput([INPUT, 'url'], 'give the address or the text of the document, not both');
  if (document) return { text: document };
  const address = url ?? kept;
  if (!address) throw invalidInput([INPUT, 'document'], 'give the address or the text of the document');
  refuseSecrets(address, [INPUT, 'url']);
  return { url: address };
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The address is kept and shown to all who see the tool. @throws InputError */
function refuseSecrets(address: string, at: string[]): void {
  const shown = withoutSecretParts('url', address, { write: () => '' });
  if (shown !== address)
    throw invalidInput(
      at,
      'it seems to have a credential, and would be kept with the tool: give the text of the document',
    );
}

function refusalOf(error: OutboundError, at: string[]): ApiError | Error {
  return error.code === 'busy' || error.code === 'aborted' ? unavailable() : invalidInput(at, error.message);
}
