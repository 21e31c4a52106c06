import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { principalId } from '../access/principal.ts';
import type { PrismaClient } from '../generated/prisma/client.ts';
import { ApiError } from '../graphql/errors.ts';
import { callerError } from '../infra/faults.ts';
import type { Seal } from '../infra/seal.ts';
import type { ReplayGate } from './replay-gate.ts';

const KEY = /^[\x21-\x7e]{1,255}$/;
const LIFETIME_MS = 24 * 3600 * 1000;
/** A request that has not changed anything after so long is taken for dead: its node was killed. */
const ABANDONED_MS = 60_000;

interface StoredAnswer {
  statusCode: number;
  contentType: string;
  etag?: string;
  body: string;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/**
 * `Idempotency-Key` on the façade's POST routes of known callers (defaults §0.5): for 24 hours the same key with the same request gets the
 * stored answer and `Idempotent-Replayed: true`, while its caller may still do what it asks for. Answers are sealed, because some hold tokens. A request marks its key in the transaction
 * of its change, so that even one whose node was killed before it answered is never done twice.
 */
export function addIdempotency(
  server: FastifyInstance,
  { prisma, seal, mayReplay }: { prisma: PrismaClient; seal: Seal; mayReplay: ReplayGate },
): void {
  server.addHook('preHandler', async (request, reply) => {
    const id = idOf(request);
    if (!id) return undefined;
    const requestHash = seal.fingerprint(`${JSON.stringify(request.body ?? null)}${request.headers['if-match'] ?? ''}`);
    try {
      const answer = await claim(prisma, seal, id, requestHash);
      if (!answer) {
        request.caller.request.idempotencyId = id;
        return undefined;
      }
      await mayReplay(request);
      if (answer.etag) reply.header('etag', answer.etag);
      return reply
        .code(answer.statusCode)
        .header('idempotent-replayed', 'true')
        .type(answer.contentType)
        .send(answer.body);
    } catch (error) {
      throw callerError(error);
    }
  });
  server.addHook('onSend', async (request, reply, payload) => {
    const id = request.caller?.request.idempotencyId;
    if (id) await settle(prisma, seal, id, reply, typeof payload === 'string' ? payload : '');
    return payload;
  });
}

/** The row of the key, by caller, route and key; `null` where the header is absent or has no meaning. */
function idOf(request: FastifyRequest): string | null {
  const key = request.headers['idempotency-key'];
  const { principal } = request.caller;
  if (key === undefined || request.method !== 'POST' || !request.routeOptions.config.operation || !principal)
    return null;
  if (typeof key !== 'string' || !KEY.test(key)) {
    throw new ApiError(
      'INVALID_REQUEST',
      { reason: 'idempotency_key' },
      'The header Idempotency-Key must be 1 to 255 visible ASCII characters.',
    );
  }
  return sha256(`${principalId(principal)} ${request.method} ${request.url} ${key}`);
}

/** Takes the key for this request, or finds the answer of the one that had it. */
async function claim(prisma: PrismaClient, seal: Seal, id: string, requestHash: string): Promise<StoredAnswer | null> {
  const expired = new Date(Date.now() - LIFETIME_MS);
  const abandoned = new Date(Date.now() - ABANDONED_MS);
  await prisma.idempotencyKey.deleteMany({
    where: {
      id,
      OR: [{ createdAt: { lt: expired } }, { createdAt: { lt: abandoned }, statusCode: null, committedAt: null }],
    },
  });
  const { count } = await prisma.idempotencyKey.createMany({ data: [{ id, requestHash }], skipDuplicates: true });
  if (count === 1) return null;
  const row = await prisma.idempotencyKey.findUnique({ where: { id } });
  if (!row || (row.requestHash === requestHash && row.statusCode === null)) {
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

/** Keeps the answer, or frees the key where trying again makes sense. */
async function settle(prisma: PrismaClient, seal: Seal, id: string, reply: FastifyReply, body: string): Promise<void> {
  const { statusCode } = reply;
  try {
    if (statusCode >= 500 || statusCode === 429) {
      await prisma.idempotencyKey.deleteMany({ where: { id, committedAt: null } });
      return;
    }
    const etag = reply.getHeader('etag');
    const answer: StoredAnswer = {
      statusCode,
      contentType: String(reply.getHeader('content-type') ?? 'application/json; charset=utf-8'),
      ...(etag ? { etag: String(etag) } : {}),
      body,
    };
    await prisma.idempotencyKey.updateMany({
      where: { id },
      data: { statusCode, response: new Uint8Array(seal.seal(JSON.stringify(answer), id)) },
    });
  } catch (error) {
    // the request itself is done: its answer must leave, whether or not it can be repeated
    reply.log.error({ err: error }, 'the answer of an Idempotency-Key could not be kept');
  }
}
