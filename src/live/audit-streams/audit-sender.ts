import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { Access } from '../../access/access.ts';
import type { Changes } from '../../data/changes.ts';
import type { FeedTerms, RecordFeed } from '../../data/record-feed.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { type NewObject, putNewObject } from '../../platform/storage/foreign-bucket.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { type ActingUser, CALLER_COLUMNS, CALLER_JOIN } from '../sending/acting-user.ts';
import { type AttemptResult, attempted, failedAttempt, type StoredAttempt, type Verdict } from '../sending/attempts.ts';
import type { Disabling } from '../sending/disabling.ts';
import { textsOf } from '../sending/secret-texts.ts';
import type { MessageSender } from '../sending/send-line.ts';
import type { TakenDelivery } from '../sending/send-queue.ts';
import { auditCaller } from './audit-caller.ts';
import { type AuditMessage, auditChannel, TERM_COLUMNS } from './audit-channel.ts';
import { KEPT_SINCE, type TargetType } from './audit-stream.words.ts';
import { putBack } from './put-back.ts';
import { isAcceptedBySplunk, splunkEvents } from './splunk.ts';

/** The whole time of an attempt. */
const ATTEMPT_TIMEOUT_MS = 30_000;
const RESERVED = /^(audit-batch-|content-type$|content-encoding$|accept)/;
const NONE = /^$/;

const gzip = promisify(zlib.gzip);

interface StreamRow extends ActingUser, FeedTerms {
  targetType: TargetType;
  url: string;
  bucket: string | null;
  region: string | null;
  prefix: string | null;
  credentialsRef: string | null;
  isCompressed: boolean;
}

const STREAM = `select h.target_type as "targetType", h.url, h.bucket, h.region, h.prefix,
    h.credentials_ref as "credentialsRef", h.is_compressed as "isCompressed", ${TERM_COLUMNS}, ${CALLER_COLUMNS}
  from audit_streams h ${CALLER_JOIN} where h.id = $1 and ${auditChannel.inUse}`;
/** What was replaced meanwhile is sent by another delivery: records that its former terms asked for are not gone. */
const GONE = `update audit_streams set gone_before = ${KEPT_SINCE} where id = $1
  and exists (select from audit_stream_deliveries d where d.id = $2 and d.status = 'pending')`;
const TOO_LARGE = 413;
/** The attempt is recorded with the delivery that has no other. */
const REFUSED = `update audit_stream_deliveries
  set tries = tries + 1, attempts = jsonb_path_query_array(attempts, '$[last - 8 to last]')
    || jsonb_build_array($3::jsonb)
  where id = $1 and tries = $2 and status = 'pending' returning size_bytes as size`;

/** What is needed to send something to a stream. */
export interface AuditTarget extends StreamRow {
  /** The entries of its secret; `null` if they cannot be had now. */
  texts: Readonly<Record<string, string>> | null;
}

interface SenderDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  vault: Vault;
  outbound: Outbound;
  feed: RecordFeed;
  disabling: Disabling;
  onFault: (error: unknown, what: string) => void;
}

interface SentLine {
  line: string;
  timestamp: Date;
}

/** How one attempt is made. */
interface Call {
  owner: string;
  signal: AbortSignal;
}

/**
 * Sends batches of records. Nothing of a stream is kept in memory: what was sent to its former address after a change
 * would be missing at the new one.
 */
export class AuditSender implements MessageSender<AuditTarget, AuditMessage> {
  readonly #deps: SenderDeps;
  readonly #outcomes = new Map<string, number>();
  #sent = 0;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Attempts since the start: `delivered`, or `failed`. */
  get outcomes(): ReadonlyMap<string, number> {
    return this.#outcomes;
  }

  /** Records that were delivered since the start, some perhaps more than once. */
  get sentRecords(): number {
    return this.#sent;
  }

  async destination(streamId: string): Promise<AuditTarget | null> {
    const { sql, access, disabling } = this.#deps;
    const [stream] = await sql.read<StreamRow>(STREAM, [streamId]);
    if (!stream) return null;
    const caller = await auditCaller(access, stream);
    if (caller === 'no access') await disabling.disable(streamId, 'no_access');
    if (typeof caller === 'string') return null;
    const { orgId, credentialsRef: reference } = stream;
    const reserved = stream.targetType === 'http' ? RESERVED : NONE;
    return { ...stream, texts: await textsOf(this.#deps, 'audit streams', { orgId, reference, reserved }) };
  }

  forget(): void {
    // nothing is kept
  }

  async send(target: AuditTarget, message: AuditMessage & TakenDelivery, call: Call): Promise<AttemptResult> {
    if (target.texts === null) return this.#counted(failedAttempt('credentials'), 0);
    const lines = await this.#linesOf(target, message, call.owner);
    // what retention removed cannot be sent any more, and holds up nothing
    if (lines.length === 0) return { ...failedAttempt('gone'), isDelivered: true };
    const { texts } = target;
    const result = await this.#guarded(() => this.#attempt(target, texts, message, lines, call));
    const isDivided = result.attempt.status_code === TOO_LARGE && lines.length > 1 && target.targetType !== 's3';
    if (isDivided) await this.#divide(call.owner, message, result.attempt);
    return this.#counted(result, message.isTest ? 0 : lines.length);
  }

  #counted(result: AttemptResult, records: number): AttemptResult {
    const outcome = result.isDelivered ? 'delivered' : 'failed';
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    if (result.isDelivered) this.#sent += records;
    return result;
  }

  /** A fault of what a stream names is an attempt that failed: else it is tried at once, for ever, unseen. */
  async #guarded(attempt: () => Promise<AttemptResult>): Promise<AttemptResult> {
    try {
      return await attempt();
    } catch (error) {
      // messages of the libraries may have values of the secret
      const kind = error instanceof Error ? error.name : typeof error;
      this.#deps.onFault(new Error(`An attempt has thrown: ${kind}`), 'a batch could not be sent');
      return failedAttempt('fault');
    }
  }

  /** What is too large for its receiver is put back, and comes in smaller batches. */
  async #divide(streamId: string, { id, tries }: TakenDelivery, attempt: StoredAttempt): Promise<void> {
    await this.#deps.changes.run(systemCaller('audit streams'), async (tx) => {
      const stream = await tx.lock('audit_streams', { id: streamId }, 'no key update');
      if (!stream) return;
      const values = [id, tries, JSON.stringify(attempt)];
      const [refused] = await tx.query<{ size: number }>({ text: REFUSED, values });
      if (!refused) return;
      await tx.query(putBack(streamId));
      tx.write(statement`update audit_streams set batch_bytes = ${Math.ceil(refused.size / 2)} where id = ${streamId}`);
    });
  }

  async #linesOf(target: AuditTarget, message: AuditMessage & TakenDelivery, id: string): Promise<SentLine[]> {
    const { fromXid, fromId, toXid, toId, records, excerpt, firstAt } = message;
    if (fromXid === null || fromId === null || toXid === null || toId === null)
      return [{ line: `${excerpt}\n`, timestamp: firstAt }];
    const found = await this.#deps.feed.between(target, { xid: fromXid, id: fromId }, { xid: toXid, id: toId });
    if (found.length < records) await this.#deps.sql.write(GONE, [id, message.id]);
    return found;
  }

  async #attempt(
    target: AuditTarget,
    texts: Readonly<Record<string, string>>,
    message: AuditMessage & TakenDelivery,
    lines: readonly SentLine[],
    call: Call,
  ): Promise<AttemptResult> {
    const { outbound } = this.#deps;
    const secrets = Object.values(texts);
    if (target.targetType === 's3') {
      const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, session_token: sessionToken } = texts;
      const { url: endpoint, bucket, region } = target;
      if (!accessKeyId || !secretAccessKey || bucket === null) return failedAttempt('credentials');
      const object: NewObject = {
        endpoint,
        region: region ?? 'us-east-1',
        bucket,
        credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
        key: keyOf(target, message),
        body: await gzip(lines.map(({ line }) => line).join('')),
        contentType: 'application/x-ndjson',
      };
      const put = () => putNewObject(outbound, object, { ...call, timeoutMs: ATTEMPT_TIMEOUT_MS });
      return attempted(put, { secrets, judge: isStored });
    }
    const isSplunk = target.targetType === 'splunk';
    if (isSplunk && !texts.token) return failedAttempt('credentials');
    const text = isSplunk ? splunkEvents(lines) : lines.map(({ line }) => line).join('');
    const headers = {
      ...(isSplunk ? { authorization: `Splunk ${texts.token}` } : texts),
      'content-type': isSplunk ? 'application/json' : 'application/x-ndjson',
      'audit-batch-id': message.id,
      'audit-batch-sequence': message.sequence,
      ...(target.isCompressed && { 'content-encoding': 'gzip' }),
    };
    const body = target.isCompressed ? await gzip(text) : text;
    const request = { method: 'POST', url: target.url, headers, body, redirect: 'error' } as const;
    return attempted(() => outbound.request({ ...request, ...call, timeoutMs: ATTEMPT_TIMEOUT_MS }), {
      secrets,
      ...(isSplunk && { judge: isAcceptedBySplunk }),
    });
  }
}

/** The key has the identifier of its delivery: what is there under it is this very file. */
const isStored = ({ isOk, status }: OutboundResponse): Verdict => ({
  isDelivered: isOk || status === 412,
  error: null,
});

/** `<prefix><organization>/<date>/<hour>/<sequence>-<delivery>.ndjson.gz`, by the time of the first record in UTC. */
function keyOf(
  { prefix, orgId }: AuditTarget,
  { id, isTest, sequence, firstAt }: AuditMessage & TakenDelivery,
): string {
  const [date, time] = firstAt.toISOString().split('T') as [string, string];
  const name = isTest ? 'test' : sequence.padStart(10, '0');
  return `${prefix ?? ''}${orgId}/${date}/${time.slice(0, 2)}/${name}-${id}.ndjson.gz`;
}
