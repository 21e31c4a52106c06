import { createHash } from 'node:crypto';
import type { Budget } from '../../access/throttle.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type ApiError, invalidInput, unavailable } from '../../kernel/errors.ts';
import { withoutSecretParts } from '../../kernel/plain-secrets.ts';
import { Slots } from '../../kernel/slots.ts';
import { moduleOf } from '../../paths.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import { BoundedThread, ThreadError, type ThreadLimits } from '../../platform/threads/bounded-thread.ts';
import { MAX_DOCUMENT_BYTES } from './document-text.ts';
import type { ReadDocument, ReadEnd, ReadTask } from './import-plan.ts';

/** A document of 1 MiB in YAML takes about two seconds; a busy machine takes its time for it. */
const LIMITS: ThreadLimits = { timeMs: 10_000, heapMiB: 512, mostPending: 32 };
const FETCH_TIMEOUT_MS = 15_000;

/** Where a document comes from: one of these is given. */
export interface DocumentSource {
  url?: string | null;
  document?: string | null;
}

/** A document as it was found. */
export interface FoundDocument {
  text: string;
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
  /** One document of each organization at a time: nobody's documents hold up those of all others. */
  readonly #slots = new Slots({ total: 8, perOwner: 1, waitingPerOwner: 8 }, unavailable);

  /** @param byUser how many documents a user may have fetched */
  constructor(outbound: Outbound, byUser: Budget, limits: Partial<ThreadLimits> = {}) {
    this.#outbound = outbound;
    this.#byUser = byUser;
    this.#thread = new BoundedThread(moduleOf('tools/imports/read-thread'), { ...LIMITS, ...limits });
  }

  /**
   * @param kept where it was fetched from before
   * @throws InputError at `url` or `document`; RATE_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE
   */
  async found(
    { principal: { userId }, request }: Caller,
    orgId: string,
    { url, document }: DocumentSource,
    kept: string | null = null,
  ): Promise<FoundDocument> {
    if (url && document) throw invalidInput([INPUT, 'url'], 'give the address or the text of the document, not both');
    if (document) return { text: document, url: null, digest: digestOf(document) };
    const address = url ?? kept;
    if (!address) throw invalidInput([INPUT, 'document'], 'give the address or the text of the document');
    const at = [INPUT, 'url'];
    refuseSecrets(address, at);
    await this.#byUser.demand(userId);
    try {
      const answer = await this.#outbound.request({
        url: address,
        headers: { accept: 'application/json, application/yaml, text/yaml, */*;q=0.5' },
        owner: orgId,
        traceId: request.traceId,
        timeoutMs: FETCH_TIMEOUT_MS,
        maxBytes: MAX_DOCUMENT_BYTES,
      });
      if (!answer.isOk) throw invalidInput(at, `the address answers ${answer.status}`);
      const text = answer.text();
      return { text, url: address, digest: digestOf(text) };
    } catch (error) {
      if (error instanceof OutboundError) throw refusalOf(error, at);
      throw error;
    }
  }

  /** @throws InputError at `url` or `document`; SERVICE_UNAVAILABLE while too many documents wait */
  async read(
    orgId: string,
    { text, url }: FoundDocument,
    task: Omit<ReadTask, 'text' | 'documentUrl'>,
  ): Promise<ReadDocument> {
    const at = [INPUT, url === null ? 'document' : 'url'];
    await this.#slots.take(orgId, new AbortController().signal);
    try {
      const end = (await this.#thread.run({ ...task, text, documentUrl: url })) as ReadEnd;
      if ('refusal' in end) throw invalidInput(at, end.refusal);
      return end.read;
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error;
      if (error.reason === 'full' || error.reason === 'closed') throw unavailable();
      if (error.reason === 'timeout') throw invalidInput(at, 'it takes too long to read');
      if (error.reason === 'memory') throw invalidInput(at, 'it takes too much memory to read');
      throw error;
    } finally {
      this.#slots.release(orgId);
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
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
