import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config.ts';
import { claimedDigests } from '../kernel/digests.ts';
import { ApiError, forbidden } from '../kernel/errors.ts';
import { finishReading } from '../kernel/finish-reading.ts';
import type { LinkCaller } from '../knowledge/files/link-caller.ts';
import type { Progress, UploadPieces } from '../knowledge/files/upload-pieces.ts';
import { type UploadClaims, UploadTickets } from '../knowledge/files/upload-tickets.ts';
import { callerError } from '../platform/postgres/faults.ts';

const VERSION = '1.0.0';
const PIECE_TYPE = 'application/offset+octet-stream';

/** What scripts of other origins may read of the answers. */
export const RESUMABLE_UPLOAD_HEADERS = [
  'tus-resumable',
  'tus-version',
  'tus-max-size',
  'tus-extension',
  'upload-offset',
  'upload-length',
  'upload-defer-length',
  'upload-expires',
];

interface ResumableUploadOptions {
  tickets: UploadTickets;
  pieces: UploadPieces;
  linkCaller: LinkCaller;
  maxUploadBytes: number;
}

/** Answers `OPTIONS` with what is offered. Call it before CORS, which answers every `OPTIONS` itself. */
export function addUploadDiscovery(server: FastifyInstance, { maxUploadBytes }: Pick<Config, 'maxUploadBytes'>): void {
  const offered = {
    'tus-resumable': VERSION,
    'tus-version': VERSION,
    'tus-extension': 'expiration',
    'tus-max-size': maxUploadBytes,
  };
  const [folder] = UploadTickets.route.split(':');
  server.addHook('onRequest', (request, reply, done) => {
    if (request.method === 'OPTIONS' && request.url.startsWith(folder!)) reply.headers(offered);
    done();
  });
}

/**
 * The protocol tus 1.0.0 at the address of an upload: `HEAD` tells how many bytes have arrived, `PATCH` adds to them.
 * An upload is created by the mutation `createUpload`, which the extension `creation` would do without a place.
 */
export function addResumableUploads(server: FastifyInstance, options: ResumableUploadOptions): void {
  server.head(UploadTickets.route, async (request, reply) => {
    try {
      checkVersion(request, reply);
      const claims = await uploadClaims(request, options);
      const { receivedBytes, declaredBytes } = await options.pieces.progressOf(claims.fileId);
      const length = declaredBytes ?? claims.sizeBytes ?? null;
      describe(reply, claims, { receivedBytes, declaredBytes: length });
      return reply.headers(length === null ? { 'upload-defer-length': 1 } : { 'upload-length': length }).send();
    } catch (error) {
      throw callerError(error);
    }
  });
  server.patch(UploadTickets.route, { config: { takesFile: true } }, async (request, reply) => {
    try {
      checkVersion(request, reply);
      const claims = await uploadClaims(request, options);
      const progress = await receive(request, claims, options);
      describe(reply, claims, progress);
      return reply.code(204).send();
    } catch (error) {
      throw uploadError(request, error);
    }
  });
}

/** What the address of an upload allows. @throws FORBIDDEN */
export async function uploadClaims(
  request: FastifyRequest,
  { tickets, linkCaller }: Pick<ResumableUploadOptions, 'tickets' | 'linkCaller'>,
): Promise<UploadClaims> {
  const claims = tickets.read((request.params as { ticket: string }).ticket);
  if (!claims) throw forbidden('artifact:create', 'The address of the upload is invalid or has expired.');
  await linkCaller.demand(request.caller, claims, 'artifact:create', claims);
  return claims;
}

/**
 * The error of an upload as its client gets it: a client that breaks off is no fault of the service, and one that is
 * still sending gets the answer.
 */
export function uploadError({ raw }: FastifyRequest, error: unknown): unknown {
  finishReading(raw);
  return raw.readableAborted || raw.errored
    ? new ApiError('INVALID_REQUEST', { reason: 'aborted' }, 'The upload was interrupted.')
    : callerError(error);
}

/** A client that says no version gets ours. */
function checkVersion({ headers }: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'tus-resumable': VERSION });
  const given = headers['tus-resumable'];
  if (given === undefined || given === VERSION) return;
  reply.header('tus-version', VERSION);
  throw new ApiError('PRECONDITION_FAILED', { supported: [VERSION] }, `This service supports tus version ${VERSION}.`);
}

async function receive(
  request: FastifyRequest,
  claims: UploadClaims,
  options: ResumableUploadOptions,
): Promise<Progress> {
  const { headers, raw } = request;
  const { pieces, maxUploadBytes } = options;
  const { sizeBytes = null, sha256 = null } = claims;
  if (headers['content-type'] !== PIECE_TYPE)
    throw new ApiError(
      'UNSUPPORTED_MEDIA_TYPE',
      { expected: PIECE_TYPE },
      `The content type of a part must be ${PIECE_TYPE}.`,
    );
  const offset = numberIn(headers['upload-offset'], 'upload_offset', 'Upload-Offset');
  if (offset === null) throw unreadable('upload_offset', 'Upload-Offset');
  const declaredBytes = numberIn(headers['upload-length'], 'upload_length', 'Upload-Length') ?? sizeBytes;
  if (sizeBytes !== null && declaredBytes !== sizeBytes) throw unreadable('upload_length', 'Upload-Length');
  const end = offset + Number(headers['content-length'] ?? 0);
  const limitBytes = Math.min(declaredBytes ?? maxUploadBytes, maxUploadBytes);
  if (end > limitBytes || (declaredBytes ?? 0) > limitBytes)
    throw new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: limitBytes });
  const announced = { ...claims, sha256, expiresAt: new Date(claims.expires * 1_000) };
  return pieces.receive(announced, { body: raw, offset, declaredBytes, digests: claimedDigests(headers) });
}

function describe(reply: FastifyReply, { expires }: UploadClaims, { receivedBytes }: Progress): void {
  reply.headers({ 'upload-offset': receivedBytes, 'upload-expires': new Date(expires * 1_000).toUTCString() });
}

type NumberReason = 'upload_offset' | 'upload_length';

function numberIn(given: string | string[] | undefined, reason: NumberReason, header: string): number | null {
  if (given === undefined) return null;
  if (typeof given !== 'string' || !/^\d{1,15}$/.test(given)) throw unreadable(reason, header);
  return Number(given);
}

const unreadable = (reason: NumberReason, header: string): ApiError =>
  new ApiError(
    'INVALID_REQUEST',
    { reason },
    `The header ${header} is missing, invalid, or differs from an earlier request of this upload.`,
  );
