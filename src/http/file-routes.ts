import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { claimedDigests, digestField, sha256Claim } from '../kernel/digests.ts';
import { ApiError } from '../kernel/errors.ts';
import { hasTag, rangeOf } from '../knowledge/files/byte-range.ts';
import type { Download, DownloadService } from '../knowledge/files/download.service.ts';
import { DownloadLinks } from '../knowledge/files/download-links.ts';
import type { FileService } from '../knowledge/files/file.service.ts';
import type { LinkCaller } from '../knowledge/files/link-caller.ts';
import type { UploadPieces } from '../knowledge/files/upload-pieces.ts';
import { UploadTickets } from '../knowledge/files/upload-tickets.ts';
import { callerError } from '../platform/postgres/faults.ts';
import { MissingObject } from '../platform/storage/store.ts';
import { WHOLE_RESULT_ROUTE, type WholeResults } from '../tools/tool-actions/whole-results.ts';
import { addResumableUploads, uploadClaims, uploadError } from './resumable-uploads.ts';

/** Nothing of a download is run or shown by the origin of the service. */
const DOWNLOAD_HEADERS = {
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
  'accept-ranges': 'bytes',
};

interface FileRouteOptions {
  downloads: DownloadService;
  wholeResults: WholeResults<Download>;
  files: FileService;
  tickets: UploadTickets;
  pieces: UploadPieces;
  linkCaller: LinkCaller;
  maxUploadBytes: number;
}

/**
 * Serves signed addresses, which are their own permission: `GET` and `HEAD` `/files/artifacts/…` and
 * `/files/tool-results/…` for downloads, `PUT`, and `HEAD` and `PATCH`, `/files/uploads/…` for uploads.
 */
export function addFileRoutes(server: FastifyInstance, options: FileRouteOptions): void {
  const addDownload = (route: string, open: (request: FastifyRequest) => Promise<Download>) =>
    server.get(route, async (request, reply) => {
      try {
        return await sendDownload(request, reply, await open(request));
      } catch (error) {
        // a row without its bytes is a fault of the store, which the log has to show
        throw error instanceof MissingObject ? error : callerError(error);
      }
    });
  addDownload(DownloadLinks.route, ({ caller, params, query }) => {
    const { artifactId } = params as { artifactId: string };
    return options.downloads.open(caller, artifactId, query as Record<string, unknown>);
  });
  addDownload(WHOLE_RESULT_ROUTE, ({ caller, params }) =>
    options.wholeResults.open(caller, (params as { ticket: string }).ticket),
  );
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    scope.put(UploadTickets.route, { config: { takesFile: true } }, async (request, reply) => {
      try {
        return reply.send(await receive(request, options));
      } catch (error) {
        throw uploadError(request, error);
      }
    });
    addResumableUploads(scope, options);
  });
}

async function sendDownload(request: FastifyRequest, reply: FastifyReply, download: Download): Promise<FastifyReply> {
  const { etag, sizeBytes, contentType, disposition, sha256 } = download;
  const { headers, method } = request;
  reply.headers({ ...DOWNLOAD_HEADERS, etag });
  if (hasTag(headers['if-none-match'], etag)) return reply.code(304).send();
  // a request for a part of another version gets all of this one
  const isSame = headers['if-range'] === undefined || headers['if-range'] === etag;
  const range = isSame ? rangeOf(headers.range, sizeBytes) : null;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${sizeBytes}`);
    throw new ApiError('RANGE_NOT_SATISFIABLE', { size_bytes: sizeBytes });
  }
  const address = method === 'HEAD' ? null : await download.redirect();
  if (address) return reply.redirect(address, 302);
  const length = range ? range.end - range.start + 1 : sizeBytes;
  if (range) reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${sizeBytes}`);
  // of the whole, also beside a part of it
  if (sha256 !== null) reply.header('repr-digest', digestField(sha256));
  reply.headers({ 'content-type': contentType, 'content-disposition': disposition, 'content-length': length });
  // without a stream, the framework would answer HEAD with a length of its own
  if (method === 'HEAD' || length === 0) return reply.send(Readable.from([]));
  return reply.send(await download.read(range ?? undefined));
}

async function receive(request: FastifyRequest, options: FileRouteOptions): Promise<object> {
  const { files, maxUploadBytes } = options;
  const { headers } = request;
  const claims = await uploadClaims(request, options);
  const announced = headers['content-length'];
  if (Number(announced ?? 0) > maxUploadBytes) throw new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: maxUploadBytes });
  if (headers['content-range'] !== undefined)
    throw new ApiError(
      'INVALID_REQUEST',
      { reason: 'content_range' },
      'PUT sends a whole file. Send parts of a file with PATCH.',
    );
  const { fileId, fileName, contentType, sha256 } = claims;
  const digests = [...claimedDigests(headers), ...(sha256 ? [sha256Claim(sha256, 'sha256')] : [])];
  const length = announced === undefined ? undefined : { atLeast: Number(announced), atMost: Number(announced) };
  const file = await files.receive(claims, { content: request.raw, fileName, contentType, digests, length }, fileId);
  return {
    file: file.id,
    file_name: file.fileName,
    content_type: file.mimeType,
    file_size_bytes: file.sizeBytes,
    sha256: file.sha256,
  };
}
