import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Sql } from '../../data/sql.ts';
import { type ClaimedDigest, DigestCheck, sha256Claim } from '../../kernel/digests.ts';
import { ApiError } from '../../kernel/errors.ts';
import type { ContentFacts } from '../../platform/storage/meter.ts';
import { BodyBytes } from './body-bytes.ts';
import { describedFile, type FileOwner, type FileService, newFileId, uploadInUse } from './file.service.ts';
import { typeOfContent } from './file-type.ts';

/** The file that an address for an upload is for. */
export interface AnnouncedFile extends FileOwner {
  fileId: string;
  fileName: string;
  contentType: string | null;
  sha256: string | null;
  /** When the address ends. */
  expiresAt: Date;
}

/** What a file is found by that its user goes on with. */
export interface SoughtFile extends FileOwner, Pick<AnnouncedFile, 'fileName' | 'contentType'> {
  sizeBytes: number;
  sha256: string;
}

/** A file of which some bytes have arrived. */
export interface UnfinishedFile {
  fileId: string;
  receivedBytes: number;
  /** When the first address for it ends. */
  endsAt: Date;
}

/** A request that goes on with a file. */
export interface Continuation {
  body: Readable;
  /** How many bytes of the file have arrived before, as the client knows it. */
  offset: number;
  /** How many bytes the file has in all, if the client says so. */
  declaredBytes: number | null;
  /** What the client says of the bytes of this request. */
  digests: readonly ClaimedDigest[];
}

/** How far a file is. */
export interface Progress {
  receivedBytes: number;
  declaredBytes: number | null;
}

/** The row of a file that arrives in pieces. */
interface UploadRow extends Progress, FileOwner {
  id: string;
  fileName: string;
  claimedType: string | null;
  declaredSha256: string | null;
  expiresAt: Date | null;
  isReceived: boolean;
}

/** How far a file is when a request goes on with it, and how much storage is reserved for it. */
interface BegunUpload extends Progress {
  reservedBytes: number;
}

/** A request that goes on with a file. */
interface Writing {
  announced: AnnouncedFile;
  writer: string;
  reservedBytes: number;
}

/** A piece that is stored, and counts once it is committed. */
interface Piece {
  id: string;
  startsAt: number;
  facts: ContentFacts;
}

/** After a crash, what belongs to no whole piece is sent again. */
const PIECE_BYTES = 8 * 1024 * 1024;
/** Each is an object in the store. The largest file has 640 whole ones. */
const MAX_PIECES = 10_000;
/** How long a file waits to be used, and its pieces to be completed, after the end of its address. */
const UNUSED_MS = 2 * 3_600_000;
/** A client that goes on begins a piece more often than that, unless its line is slow. */
const QUIET_MS = 5_000;

const STATUS = `select coalesce(received_bytes, size_bytes, 0)::float8 as "receivedBytes",
    coalesce(declared_bytes, size_bytes)::float8 as "declaredBytes"
  from files where id = $1 and state <> 'removing'`;
// its checksum is compared with the whole file in the end: nobody adds bytes of another file. The one that was begun
// last: who has left one that cannot be completed goes on with the next. What another client sends now is not given
const UNFINISHED = `select id as "fileId", received_bytes::float8 as "receivedBytes",
    expires_at - interval '${UNUSED_MS} ms' as "endsAt"
  from files where state = 'receiving' and created_at > now() - interval '1 day' and org_id = $1 and workspace_id = $2
    and namespace_id = $3 and created_by = $4 and file_name = $5 and declared_bytes = $6 and declared_sha256 = $7
    and received_bytes > 0 and expires_at - interval '${UNUSED_MS} ms' > now()
    and not exists (select 1 from files p
      where p.part_of = files.id and p.created_at > now() - interval '${QUIET_MS} ms')
    and (received_bytes = declared_bytes
      or (select count(*) from files p where p.part_of = files.id) < ${MAX_PIECES})
  order by created_at desc, id desc limit 1`;
// the writer that begins last goes on: what others have not committed by then is void
const BEGIN = `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, claimed_mime_type,
    state, created_by, expires_at, declared_sha256, declared_bytes, writer, received_bytes)
  values ($1, $2, $3, $4, $5, $6, $7, 'receiving', $8, $9, $10, $11, $12, 0)
  on conflict (id) do update set writer = excluded.writer,
    declared_bytes = coalesce(files.declared_bytes, excluded.declared_bytes)
  where files.state = 'receiving' and files.size_bytes is null and files.received_bytes is not null
  returning received_bytes::float8 as "receivedBytes", declared_bytes::float8 as "declaredBytes",
    coalesce(reserved_bytes, 0)::float8 as "reservedBytes",
    (select count(*)::int from files p where p.part_of = files.id) as pieces`;
const COMMIT = `with moved as (update files set received_bytes = received_bytes + $4
    where id = $1 and writer = $2 and received_bytes = $3 and state = 'receiving' and size_bytes is null returning id)
  update files p set starts_at = v.starts_at, size_bytes = v.size_bytes, sha256 = v.sha256
  from moved m, unnest($5::text[], $6::bigint[], $7::bigint[], $8::text[]) v (id, starts_at, size_bytes, sha256)
  where p.id = v.id and p.part_of = m.id and p.state = 'receiving' returning p.id`;
const FIND = `select id, org_id as "orgId", workspace_id as "workspaceId", namespace_id as "namespaceId",
    created_by as "userId", file_name as "fileName", claimed_mime_type as "claimedType",
    received_bytes::float8 as "receivedBytes", declared_bytes::float8 as "declaredBytes",
    declared_sha256 as "declaredSha256", expires_at as "expiresAt", size_bytes is not null as "isReceived"
  from files where id = $1 and state = 'receiving' and received_bytes is not null`;
const PIECES = `select storage_key as key from files
  where part_of = $1 and starts_at is not null and state = 'receiving' order by starts_at`;
// the file gets the bytes of the row that has them all; the key of each row is its own at any time. Whoever finds the
// file locked leaves it to the other: `finishUpload` completes what nobody has completed
const COMPLETE = `with upload as (select id from files
      where id = $1 and state = 'receiving' and size_bytes is null for update skip locked),
    whole as (delete from files where id = $2 and part_of = $1 and state = 'receiving'
      and exists (select 1 from upload) returning storage_key),
    pieces as (update files set state = 'removing' where part_of = $1 and id <> $2 and exists (select 1 from whole))
  update files f set storage_key = w.storage_key, size_bytes = $3, sha256 = $4, mime_type = $5, reserved_bytes = null
  from upload u, whole w where f.id = u.id returning f.id`;
// no bytes are stored under its own row before it is complete
const ABANDON = `with upload as (delete from files where id = $1 and state = 'receiving' and size_bytes is null)
  update files set state = 'removing' where part_of = $1 and state = 'receiving'`;

/**
 * Files that arrive in pieces (docs/decisions/0030). Each piece is an object in the store with a row of its own, so any
 * node goes on after any other. A piece counts when it is committed: then the file has so many bytes more. Of several
 * requests for one file, the one that began last goes on.
 */
export class UploadPieces {
  readonly #sql: Sql;
  readonly #files: FileService;
  readonly #maxBytes: number;

  constructor(deps: { sql: Sql; files: FileService; maxUploadBytes: number }) {
    this.#sql = deps.sql;
    this.#files = deps.files;
    this.#maxBytes = deps.maxUploadBytes;
  }

  /** How far a file is; nothing of it may have arrived. */
  async progressOf(fileId: string): Promise<Progress> {
    const [row] = await this.#sql.read<Progress>(STATUS, [fileId]);
    return row ?? { receivedBytes: 0, declaredBytes: null };
  }

  /**
   * An upload of the same file by the same user, of which something has arrived and whose address is still valid. One
   * of which all has arrived is found as well, until it is used. Not found is one to which a piece was begun just now,
   * and one that may have no more pieces.
   */
  async unfinished(sought: SoughtFile): Promise<UnfinishedFile | null> {
    const { orgId, workspaceId, namespaceId, userId, sizeBytes, sha256 } = sought;
    const { fileName } = describedFile(sought);
    const place = [orgId, workspaceId, namespaceId, userId];
    const [file] = await this.#sql.read<UnfinishedFile>(UNFINISHED, [...place, fileName, sizeBytes, sha256]);
    return file ?? null;
  }

  /**
   * Adds the bytes of a request to a file. If the client breaks off, those that have arrived count, unless it has said
   * what their digest is. The last ones complete the file.
   * @throws RESOURCE_CONFLICT `offset_mismatch`, `upload_in_use`, `limit_reached`, `storage_quota_exceeded`;
   * PAYLOAD_TOO_LARGE; INVALID_REQUEST `upload_length`, `aborted`, and `digest_mismatch`, after which nothing of these
   * bytes counts, or nothing of the file if its own digest is wrong
   */
  async receive(announced: AnnouncedFile, continuation: Continuation): Promise<Progress> {
    const { fileId } = announced;
    const { offset, digests } = continuation;
    const before = await this.progressOf(fileId);
    if (before.receivedBytes !== offset) throw offsetMismatch(before.receivedBytes);
    const writer = randomBytes(12).toString('hex');
    const { declaredBytes, reservedBytes } = await this.#begin(announced, continuation, writer);
    const check = DigestCheck.of(digests);
    const bytes = new BodyBytes(continuation.body, check);
    const limitBytes = declaredBytes ?? this.#maxBytes;
    const pieces = await this.#store({ announced, offset, writer, limitBytes, reservedBytes }, bytes, check);
    if (bytes.isBroken) throw new ApiError('INVALID_REQUEST', { reason: 'aborted' }, 'The upload was interrupted.');
    const receivedBytes = offset + pieces.reduce((sum, { facts }) => sum + facts.sizeBytes, 0);
    if (receivedBytes === declaredBytes) {
      const [only] = pieces;
      await this.#complete(fileId, only && only.facts.sizeBytes === declaredBytes ? only : null);
    }
    return { receivedBytes, declaredBytes };
  }

  /**
   * Makes a file of its pieces, if all have arrived from this user and the last request could not do it.
   * @throws INVALID_REQUEST `digest_mismatch`: nothing of the file is left
   */
  async completeFor({ namespaceId, userId }: Pick<FileOwner, 'namespaceId' | 'userId'>, fileId: string): Promise<void> {
    const [upload] = await this.#sql.read<UploadRow>(FIND, [fileId]);
    if (upload?.namespaceId === namespaceId && upload.userId === userId) await this.#complete(fileId, null);
  }

  /**
   * Makes a file of its pieces if all have arrived, and nobody has made it yet.
   * @param only the piece that is the whole file: it is not copied
   */
  async #complete(fileId: string, only: Piece | null): Promise<void> {
    const [upload] = await this.#sql.read<UploadRow>(FIND, [fileId]);
    if (!upload || upload.isReceived || upload.receivedBytes !== upload.declaredBytes) return;
    const { fileName, claimedType, declaredSha256 } = upload;
    try {
      if (only && declaredSha256 && only.facts.sha256 !== declaredSha256) throw wrongWhole();
      const { id, facts } = only ?? (await this.#assemble(upload));
      const mimeType = await typeOfContent(facts, fileName, claimedType);
      const completed = [fileId, id, facts.sizeBytes, facts.sha256, mimeType];
      // somebody else was faster: the same bytes are there twice for a moment
      if ((await this.#sql.change(COMPLETE, completed)).length === 0) await this.#files.discardPiece(upload, id);
    } catch (error) {
      // its pieces were removed while they were read here
      if (await this.#isReceived(fileId)) return;
      if (isMismatch(error)) await this.#sql.write(ABANDON, [fileId]);
      throw error;
    }
  }

  async #isReceived(fileId: string): Promise<boolean> {
    const [row] = await this.#sql.read(`select 1 from files where id = $1 and size_bytes is not null`, [fileId]);
    return row !== undefined;
  }

  async #begin(
    announced: AnnouncedFile,
    { offset, declaredBytes }: Continuation,
    writer: string,
  ): Promise<BegunUpload> {
    const { fileId, orgId, workspaceId, namespaceId, userId, sha256, expiresAt } = announced;
    const { fileName, claimedType } = describedFile(announced);
    // its own until it is complete; no bytes are stored there
    const key = `${workspaceId.toLowerCase()}/${fileId}_${writer}`;
    const place = [fileId, orgId, workspaceId, namespaceId, key, fileName, claimedType, userId];
    const [begun] = await this.#sql.change<BegunUpload & { pieces: number }>(BEGIN, [
      ...place,
      new Date(expiresAt.getTime() + UNUSED_MS),
      sha256,
      declaredBytes,
      writer,
    ]);
    if (!begun) throw uploadInUse();
    if (begun.receivedBytes !== offset) throw offsetMismatch(begun.receivedBytes);
    if (declaredBytes !== null && begun.declaredBytes !== declaredBytes) throw wrongLength();
    if (begun.pieces >= MAX_PIECES)
      throw new ApiError(
        'RESOURCE_CONFLICT',
        { reason: 'limit_reached', limit: MAX_PIECES },
        `A file may be sent in at most ${MAX_PIECES} parts. Start again with larger parts.`,
      );
    const writing = { announced, writer, reservedBytes: begun.reservedBytes };
    await this.#reserve(writing, begun.declaredBytes ?? 0);
    return { ...begun, reservedBytes: writing.reservedBytes };
  }

  /** Reserves storage for a file that has, or will have, so many bytes. */
  async #reserve(to: Writing, bytes: number): Promise<void> {
    const { announced, reservedBytes: held } = to;
    if (bytes <= held) return;
    await this.#files.reserve(announced, announced.fileId, { held, bytes });
    to.reservedBytes = bytes;
  }

  async #store(
    to: Writing & { offset: number; limitBytes: number },
    bytes: BodyBytes,
    check: DigestCheck | null,
  ): Promise<Piece[]> {
    const { announced, offset, limitBytes } = to;
    const stored: Piece[] = [];
    const open: Piece[] = [];
    let size = 0;
    try {
      while (await bytes.hasMore()) {
        const startsAt = offset + size;
        if (startsAt === limitBytes) throw new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: limitBytes });
        const atMost = Math.min(PIECE_BYTES, limitBytes - startsAt);
        const piece = await this.#storePiece(announced, bytes.take(atMost), startsAt);
        open.push(piece);
        stored.push(piece);
        size += piece.facts.sizeBytes;
        await this.#reserve(to, offset + size);
        // a digest is that of all bytes of the request: before the last one, none of them counts
        if (!check) await this.#commit(to, open.splice(0));
      }
      if (check && !bytes.isBroken) {
        check.verify();
        await this.#commit(to, open.splice(0));
      }
      return stored;
    } finally {
      for (const { id } of open) await this.#files.discardPiece(announced, id);
    }
  }

  async #storePiece(announced: AnnouncedFile, content: Readable, startsAt: number): Promise<Piece> {
    const { fileId, expiresAt } = announced;
    const id = newFileId();
    const piece = { of: fileId, expiresAt: new Date(expiresAt.getTime() + UNUSED_MS) };
    const row = { id, owner: announced, ...describedFile(announced), piece };
    const facts = await this.#files.store(row, content);
    return { id, startsAt, facts };
  }

  /** Makes pieces part of the file. @throws RESOURCE_CONFLICT `upload_in_use` if another request has begun since */
  async #commit({ announced, writer }: Writing, pieces: Piece[]): Promise<void> {
    const [first] = pieces;
    if (!first) return;
    const sizes = pieces.map(({ facts }) => facts.sizeBytes);
    const size = sizes.reduce((sum, one) => sum + one, 0);
    const values = [
      announced.fileId,
      writer,
      first.startsAt,
      size,
      pieces.map(({ id }) => id),
      pieces.map(({ startsAt }) => startsAt),
      sizes,
      pieces.map(({ facts }) => facts.sha256),
    ];
    try {
      if ((await this.#sql.change(COMMIT, values)).length === pieces.length) return;
    } catch (error) {
      for (const { id } of pieces) await this.#files.discardPiece(announced, id);
      throw error;
    }
    for (const { id } of pieces) await this.#files.discardPiece(announced, id);
    throw uploadInUse('Another request is writing to this upload.');
  }

  /** Stores the bytes of all pieces as one object. */
  async #assemble(upload: UploadRow): Promise<Pick<Piece, 'id' | 'facts'>> {
    const pieces = await this.#sql.read<{ key: string }>(PIECES, [upload.id]);
    const { id: of, expiresAt, fileName, claimedType, declaredSha256, declaredBytes } = upload;
    const id = newFileId();
    const row = { id, owner: upload, fileName, claimedType, piece: { of, expiresAt: expiresAt! } };
    const content = Readable.from(this.#bytesOf(pieces), { objectMode: false });
    const digests = declaredSha256 ? [sha256Claim(declaredSha256, SHA256)] : [];
    const facts = await this.#files.store(row, content, digests);
    if (facts.sizeBytes !== declaredBytes) {
      await this.#files.discardPiece(upload, id);
      throw new Error(`The pieces of '${of}' have ${facts.sizeBytes} bytes, and not ${declaredBytes}.`);
    }
    return { id, facts };
  }

  async *#bytesOf(pieces: readonly { key: string }[]): AsyncGenerator<Buffer, void, void> {
    for (const { key } of pieces) yield* (await this.#files.read(key)) as AsyncIterable<Buffer>;
  }
}

/** Of the input that announces a file. */
const SHA256 = 'sha256';

const wrongWhole = (): ApiError =>
  new ApiError(
    'INVALID_REQUEST',
    { reason: 'digest_mismatch', field: SHA256, algorithm: 'sha-256' },
    'The SHA-256 of the received file differs from the announced SHA-256. Send the file again.',
  );

const isMismatch = (error: unknown): boolean => error instanceof ApiError && error.details.reason === 'digest_mismatch';

const offsetMismatch = (uploadOffset: number): ApiError =>
  new ApiError(
    'RESOURCE_CONFLICT',
    { reason: 'offset_mismatch', upload_offset: uploadOffset },
    `${uploadOffset} bytes of this file have arrived. Continue at this offset.`,
  );

const wrongLength = (): ApiError =>
  new ApiError(
    'INVALID_REQUEST',
    { reason: 'upload_length' },
    'An earlier request announced another length of the file.',
  );
