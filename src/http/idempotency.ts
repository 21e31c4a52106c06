import { createHash } from 'node:crypto';
import { callbackify } from 'node:util';
import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify';
import type { Sql } from '../data/sql.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { ApiError } from '../kernel/errors.ts';
import type { Owner } from '../kernel/owner.ts';
import { principalId } from '../kernel/principal.ts';
import type { Seal } from '../platform/keys/seal.ts';
import { callerError } from '../platform/postgres/faults.ts';
import type { ReplayGate } from './replay-gate.ts';

const KEY = /^[\x21-\x7e]{1,255}$/;
/** The number of newest responses kept per user. Older ones are dropped before their 24 hours are over. */
const MAX_ROWS = 1_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** A longer response is not stored: its key only records that the request was carried out. */
const MAX_ANSWER_BYTES = 256 * 1024;

// one query in the usual case: the key is claimed, or its stored response is read
const CLAIM = `with claimed as (insert into idempotency_keys (id, request_hash, user_id) values ($1, $2, $3)
    on conflict (id) do nothing returning id)
  select exists (select 1 from claimed) as "isClaimed",
    k.request_hash as "requestHash", k.committed_at as "committedAt",
    k.status_code as "statusCode", k.response,
    coalesce(k.created_at < now() - interval '24 hours', false) as "isExpired",
    -- a request that has changed nothing after a minute counts as abandoned: its node was killed
    coalesce(k.created_at < now() - interval '1 minute' and k.status_code is null and k.committed_at is null, false)
      as "isAbandoned"
  from (select 1) one left join idempotency_keys k on k.id = $1`;
const FORGET_STALE = `delete from idempotency_keys where id = $1 and (created_at < now() - interval '24 hours'
  or (created_at < now() - interval '1 minute' and status_code is null and committed_at is null))`;
const FREE = 'delete from idempotency_keys where id = $1 and committed_at is null';
// The newest row is this one, whose size the statement does not see yet. Arrays instead of joins: if the table was
// empty when PostgreSQL last analyzed it, joins are planned for one row, as loops that read the table for each row.
const KEEP = `with kept as (update idempotency_keys set status_code = $2, response = $3, size_bytes = $4 where id = $1),
    others as (select id, row_number() over newer as n, sum(size_bytes) over newer as bytes from idempotency_keys
      where user_id = $5 and id <> $1 and (status_code is not null or committed_at is not null)
      window newer as (order by created_at desc, id desc))
  delete from idempotency_keys where id = any(array(
    -- those that another request removes already are left to it
    select k.id from idempotency_keys k
    where k.id = any(array(select id from others where n >= ${MAX_ROWS} or bytes + $4 > ${MAX_BYTES}))
    for update skip locked))`;

interface Claim {
  isClaimed: boolean;
  isExpired: boolean;
  isAbandoned: boolean;
  /** `null` if the key is new, or was created at this very moment. */
  requestHash: string | null;
  committedAt: Date | null;
  statusCode: number | null;
  response: Uint8Array | null;
}

interface StoredAnswer {
  statusCode: number;
  contentType: string;
  etag?: string;
  body: string;
}

/** The declarations for stored responses. */
export const storedAnswers: Owner = {
  retention: [`delete from idempotency_keys where created_at < now() - interval '24 hours'`],
};

interface IdempotencyOptions {
  sql: Sql;
  seal: Seal;
  mayReplay: ReplayGate;
  /** Notes what was written before for the request that is answered again. */
  written: (caller: AnyCaller) => Promise<void>;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/**
 * The hooks of the façade's POST routes for `Idempotency-Key`, for known callers (defaults §0.5): for 24 hours, the
 * same key with the same request gets the stored response and `Idempotent-Replayed: true`, as long as its caller may
 * still do what it asks for. Successes and conflicts are stored; a request that was refused for another reason leaves
 * its key free. Responses are sealed, because some contain tokens. A request marks its key in the transaction of its
 * change, so it is never carried out twice, even if its node was killed before it answered.
 */
export function idempotency({ sql, seal, mayReplay, written }: IdempotencyOptions) {
  const replay = callbackify(async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const id = idOf(request);
    if (!id) return;
    const requestHash = seal.fingerprint(
      `${JSON.stringify(request.form?.facts ?? request.body ?? null)}${request.headers['if-match'] ?? ''}`,
    );
    try {
      const userId = request.caller.principal?.userId ?? null;
      const answer = await claim(sql, seal, { id, requestHash, userId });
      if (!answer) {
        request.caller.request.idempotencyId = id;
        return;
      }
      await mayReplay(request);
      if (answer.statusCode < 300) await written(request.caller);
      if (answer.etag) reply.header('etag', answer.etag);
      await reply
        .code(answer.statusCode)
        .header('idempotent-replayed', 'true')
        .type(answer.contentType)
        .send(answer.body);
    } catch (error) {
      throw callerError(error);
    }
  });
  const keep = callbackify(settle);
  // the hooks await nothing without a key: most requests have none
  const hooks: Pick<RouteShorthandOptions, 'preHandler' | 'onSend'> = {
    preHandler(request, reply, done) {
      if (request.headers['idempotency-key'] === undefined) done();
      else replay(request, reply, (error) => done(error ?? undefined));
    },
    onSend(request, reply, payload, done) {
      const id = request.caller?.request.idempotencyId;
      if (!id) return done(null, payload);
      // a long answer is sent as bytes
      const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.toString() : '';
      keep(sql, seal, id, request, reply, body, (error) => (error ? done(error) : done(null, payload)));
    },
  };
  return hooks;
}

/** The id of the row, from caller, route and key; `null` if the header is absent or has no effect. */
function idOf(request: FastifyRequest): string | null {
  const key = request.headers['idempotency-key'];
  const { principal } = request.caller;
  if (key === undefined || !principal) return null;
  if (typeof key !== 'string' || !KEY.test(key)) {
    throw new ApiError(
      'INVALID_REQUEST',
      { reason: 'idempotency_key' },
      'The header Idempotency-Key must be 1 to 255 visible ASCII characters.',
    );
  }
  return sha256(`${principalId(principal)} ${request.method} ${request.url} ${key}`);
}

/** Claims the key for this request, or finds the response of the request that claimed it before. */
async function claim(
  sql: Sql,
  seal: Seal,
  key: { id: string; requestHash: string; userId: string | null },
): Promise<StoredAnswer | null> {
  const { id, requestHash, userId } = key;
  const [row] = await sql.change<Claim>(CLAIM, [id, requestHash, userId]);
  if (row?.isClaimed) return null;
  if (row?.isExpired || row?.isAbandoned) {
    await sql.write(FORGET_STALE, [id]);
    return claim(sql, seal, key);
  }
  const isRunning = row?.requestHash === requestHash && row.statusCode === null;
  if (!row?.requestHash || isRunning) {
    const message = row?.committedAt
      ? 'The first request with this Idempotency-Key was carried out, but its answer is not known.'
      : 'The first request with this Idempotency-Key is still running.';
    throw new ApiError('IDEMPOTENCY_CONFLICT', { reason: 'in_progress' }, message);
  }
  if (row.requestHash !== requestHash) {
    throw new ApiError(
      'IDEMPOTENCY_CONFLICT',
      { reason: 'different_request' },
      'This Idempotency-Key was used for a different request.',
    );
  }
  return JSON.parse(seal.open(row.response!, id)) as StoredAnswer;
}

/** Stores the response, or frees the key if a retry makes sense. */
async function settle(
  sql: Sql,
  seal: Seal,
  id: string,
  { caller }: FastifyRequest,
  reply: FastifyReply,
  body: string,
): Promise<void> {
  const { statusCode } = reply;
  const isKept = (statusCode < 300 || statusCode === 409) && Buffer.byteLength(body) <= MAX_ANSWER_BYTES;
  try {
    if (!isKept) {
      await sql.write(FREE, [id]);
      return;
    }
    const etag = reply.getHeader('etag');
    const answer: StoredAnswer = {
      statusCode,
      contentType: String(reply.getHeader('content-type') ?? 'application/json; charset=utf-8'),
      ...(etag ? { etag: String(etag) } : {}),
      body,
    };
    const sealed = seal.seal(JSON.stringify(answer), id);
    await sql.write(KEEP, [id, statusCode, sealed, sealed.length, caller.principal?.userId ?? null]);
  } catch (error) {
    // the request itself is done: its response must be sent, whether or not it can be repeated
    reply.log.error({ err: error }, 'the response of an Idempotency-Key could not be stored');
  }
}
