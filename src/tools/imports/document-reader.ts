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
import { unfinishedWork } from '../../platform/threads/unfinished-work.ts';
import { McpFault } from '../mcp-servers/protocol.ts';
import { CredentialsWanted } from '../mcp-servers/tool-list.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';
import { BEARER } from '../tool-instances/sent-credential.ts';
import { parsedUrl } from './base-address.ts';
import { MAX_DOCUMENT_BYTES } from './document-text.ts';
import { type DocumentTurn, DocumentTurns } from './document-turns.ts';
import type { ImportKind, ReadDocument, ReadEnd, ReadTask } from './import-plan.ts';
import type { ImportSource } from './import-source.ts';
import { FETCH_TIMEOUT_MS, ServerReader } from './server-reader.ts';

/** What a document may take where a processor is free: the largest in YAML takes about a second. */
const READ_MS = 3_000;
const MOST_READ_MS = 10_000;
/** The same work takes longer on a machine that has more to do than it has processors. */
const readMs = (): number =>
  Math.min(MOST_READ_MS, READ_MS * Math.max(1, os.loadavg()[0]! / os.availableParallelism()));
const LIMITS: ThreadLimits = { timeMs: readMs, heapMiB: 512, mostPending: 32 };

/** Where a document comes from: its address or its text is given. */
export interface DocumentSource {
  kind?: ImportKind | null;
  url?: string | null;
  document?: string | null;
  /** What an MCP server is asked with. It is kept nowhere. */
  credential?: string | null;
  /** The header for it, in place of `Authorization`. */
  credentialHeader?: string | null;
  /** The same with its place, of a connection. */
  connected?: PlacedCredential | null;
}

/** Where the document of an import was before. */
export type KeptSource = Pick<ImportSource, 'kind' | 'url'>;

/** A document as it was found. */
export interface FoundDocument {
  kind: ImportKind;
  /** Where it was fetched from; `null` if it was given as a text. */
  url: string | null;
  /** The SHA-256 of its text. */
  digest: string;
}

const INPUT = 'input';

/** Fetches documents through the guarded way out, and reads them in a thread of its own, one after the other. */
export class DocumentReader {
  readonly #outbound: Outbound;
  readonly #servers: ServerReader;
  readonly #byUser: Budget;
  readonly #thread: BoundedThread;
  readonly #turns = new DocumentTurns(unavailable);

  /** @param byUser how many documents a user may have read */
  constructor(outbound: Outbound, byUser: Budget, limits: Partial<ThreadLimits> = {}) {
    this.#outbound = outbound;
    this.#servers = new ServerReader(outbound);
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
    taskOf: (found: FoundDocument) => TaskOfCaller,
    kept: KeptSource | null = null,
  ): Promise<{ found: FoundDocument; read: ReadDocument }> {
    const wanted = wantedOf(source, kept);
    const { userId } = caller.principal;
    await this.#byUser.demand(userId);
    const signal = caller.request.left?.() ?? new AbortController().signal;
    return this.#turns.run({ orgId, userId }, signal, async (turn) => {
      const text = 'text' in wanted ? wanted.text : await this.#fetched(caller, orgId, wanted, signal, turn);
      const found = { kind: wanted.kind, url: 'url' in wanted ? wanted.url : null, digest: digestOf(text) };
      const { kind, credential } = wanted;
      // the credential itself stays here
      const placed = credential && { placement: credential.placement };
      const task = { ...taskOf(found), kind, credential: placed, text, documentUrl: found.url };
      return { found, read: await this.#read(task, turn) };
    });
  }

  async #fetched(
    caller: Caller,
    owner: string,
    { kind, url, credential, isKept }: Address,
    signal: AbortSignal,
    turn: DocumentTurn,
  ): Promise<string> {
    const at = [INPUT, 'url'];
    const common = { url, owner, traceId: caller.request.traceId, signal };
    try {
      if (kind === 'mcp')
        return JSON.stringify(await this.#servers.read(common, credential, { mayBeUnlisted: !isKept }));
      const answer = await this.#outbound.request({
        ...common,
        headers: { accept: 'application/json, application/yaml, text/yaml, */*;q=0.5' },
        timeoutMs: FETCH_TIMEOUT_MS,
        maxBytes: MAX_DOCUMENT_BYTES,
      });
      if (!answer.isOk) throw invalidInput(at, `the address answers ${answer.status}`);
      return answer.text();
    } catch (error) {
      if (error instanceof OutboundError) {
        if (error.code === 'timeout') turn.end = 'slow';
        throw refusalOf(error, at);
      }
      if (error instanceof CredentialsWanted) throw invalidInput([INPUT, 'credential'], error.message);
      if (error instanceof McpFault) throw invalidInput(at, error.message);
      throw error;
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
      throw unfinishedWork(error, (what) => {
        turn.end = 'slow';
        return invalidInput(at, `it takes too ${what} to read`);
      });
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}

/** What the caller of a reader says of a task. */
type TaskOfCaller = Omit<ReadTask, 'kind' | 'text' | 'documentUrl' | 'credential'>;

interface WantedSource {
  kind: ImportKind;
  credential: PlacedCredential | null;
}
type Address = WantedSource & { url: string; isKept: boolean };

/** @throws InputError unless there is one source, without a credential in its address */
function wantedOf(source: DocumentSource, kept: KeptSource | null): Address | (WantedSource & { text: string }) {
  const { url, document } = source;
  const kind = source.kind ?? kept?.kind ?? 'openapi';
  const credential = credentialOf(kind, source);
  if (document && kind === 'mcp') throw invalidInput([INPUT, 'document'], 'give the address of the MCP server: `url`');
  if (url && document) throw invalidInput([INPUT, 'url'], 'give the address or the text of the document, not both');
  if (document) return { kind, credential, text: document };
  const address = url ?? (kept?.kind === kind ? kept.url : null);
  if (!address && kind === 'mcp') throw invalidInput([INPUT, 'url'], 'give the address of the MCP server');
  if (!address) throw invalidInput([INPUT, 'document'], 'give the address or the text of the document');
  refuseSecrets(address, [INPUT, 'url']);
  return { kind, credential, url: kind === 'mcp' ? serverAddress(address) : address, isKept: kept !== null };
}

/** The address of a server, as it stands in its actions: no part of it is a placeholder. @throws InputError */
function serverAddress(address: string): string {
  const url = parsedUrl(address, null);
  if (url?.hash !== '' || url.username !== '' || url.password !== '' || url.href.includes('{{'))
    throw invalidInput([INPUT, 'url'], 'it must be an address without user name, fragment and braces');
  return url.href;
}

const OF_PROTOCOL = /^(?:accept|accept-encoding|content-type|mcp-.*)$/i;

/** @throws InputError for a credential that nothing would be asked with */
function credentialOf(
  kind: ImportKind,
  { credential, credentialHeader, connected }: DocumentSource,
): PlacedCredential | null {
  if (connected) return connected;
  if (kind !== 'mcp' && credential) throw invalidInput([INPUT, 'credential'], 'only an MCP server is asked with it');
  if (credentialHeader && !credential)
    throw invalidInput([INPUT, 'credentialHeader'], 'there is no credential that goes into it');
  if (credentialHeader && OF_PROTOCOL.test(credentialHeader))
    throw invalidInput([INPUT, 'credentialHeader'], 'the protocol decides this header');
  if (!credential) return null;
  const placement = credentialHeader ? { in: 'header' as const, name: credentialHeader } : BEARER;
  return { placement, value: credential };
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
