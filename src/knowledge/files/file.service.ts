import { Readable } from 'node:stream';
import { inBatches } from '../../data/batches.ts';
import type { Sql } from '../../data/sql.ts';
import type { ClaimedDigest } from '../../kernel/digests.ts';
import { ApiError, invalidInput } from '../../kernel/errors.ts';
import { newIdWith } from '../../kernel/ids.ts';
import type { ReceivedFile } from '../../kernel/received-file.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { type ContentFacts, TooManyBytes } from '../../platform/storage/meter.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import type { ByteRange } from '../../platform/storage/store.ts';
import { refusalOf, type StorageLimits } from '../../tenancy/storage-limits/storage-limits.ts';
import type { FileTaking } from '../artifacts/artifact-content.ts';
import { cleanFileName } from './file-name.ts';
import { typeOfContent } from './file-type.ts';

/** Where a file belongs, and who sends it. */
export interface FileOwner {
  orgId: string;
  workspaceId: string;
  /** `null` for the whole workspace. */
  namespaceId: string | null;
  userId: string;
}

/** A file while it arrives. */
export interface IncomingFile {
  content: Readable;
  /** As the client sent it. */
  fileName: string;
  /** What the client says that it is. */
  contentType: string | null;
  /** What the client says of its bytes. */
  digests?: readonly ClaimedDigest[];
  /** How many bytes it has, as far as the request tells; by default nothing is known. */
  length?: { atLeast: number; atMost: number } | undefined;
}

/** The result of an action that is kept for a while: the instance that gave it, and when it is removed. */
export interface KeptResult {
  toolInstanceId: string;
  expiresAt: Date;
}

/** The id of a new file. */
export const newFileId = (): string => newIdWith('file');

/** The row that bytes are stored under. */
export interface NewFile {
  id: string;
  owner: FileOwner;
  fileName: string;
  /** What the client says that it is. */
  claimedType: string | null;
  /**
   * The file that these bytes are a piece of, and when both are removed unless they are used. Storage is reserved for
   * the file, not for its pieces.
   */
  piece?: { of: string; expiresAt: Date };
  result?: KeptResult | undefined;
  length?: IncomingFile['length'];
}

const BATCH = 200;
/** A result whose bytes are not there after this time never gets them: its process was killed. */
const RESULT_ARRIVES_MS = 10 * 60_000;
/**
 * What the results of a workspace may hold together: nobody lists or deletes them, and its artifacts need the rest. It
 * is a thousand results of the size from which on they are kept.
 */
const MAX_RESULT_BYTES = 256 * 1024 * 1024;
/** The upload of a whole file takes at most an hour; after that, what was received waits as long to be used. */
const UNUSED = `state = 'receiving' and coalesce(expires_at, created_at + interval '2 hours') < now()`;

// id and key are both unique: of two inserts at once, PostgreSQL may find the conflict at either
const INSERT = `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, claimed_mime_type,
    state, created_by, part_of, expires_at, tool_instance_id, reserved_bytes)
  select $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, 'receiving', $8::text, $9::text,
    $10::timestamptz, $11::text, $14::bigint
  from demand_storage($12, $13, $14, $15, $16)
  where case when $11::text is null then true else demand_result_storage($13, $14, ${MAX_RESULT_BYTES}) end
  on conflict do nothing returning id`;
/** Reserves for what has arrived beyond the reservation. */
const RESERVE = `update files set reserved_bytes = $2::bigint
  where id = $1 and state = 'receiving' and demand_storage($3, $4, $5, $6, $7) returning id`;
/** Bytes of an upload of unknown length that arrive before they are reserved. */
const STEP_BYTES = 1024 * 1024;
// the day of a result begins with it, unless its instance has gone meanwhile
const RECEIVED = `update files set size_bytes = $2, sha256 = $3, mime_type = $4, reserved_bytes = null,
    expires_at = case when expires_at > now() then coalesce($5::timestamptz, expires_at) else expires_at end
  where id = $1 and state = 'receiving' returning id`;
// a piece that is part of its file stays, whatever became of the answer
const LET_GO = `update files set state = 'removing' where id = $1 and state = 'receiving' and starts_at is null
  returning id, storage_key as key`;
const REMOVING = `select id, storage_key as key from files where state = 'removing' order by id limit ${BATCH}`;
const FIND = `select id, file_name as "fileName", mime_type as "mimeType", size_bytes::float8 as "sizeBytes", sha256
  from files where id = $1 and namespace_id = $2 and created_by = $3 and state = 'receiving'
    and size_bytes is not null and tool_instance_id is null`;
// what no artifact refers to any more; an artifact takes its file in one transaction
const ORPHANED = `update files f set state = 'removing' where f.id in (
    select id from files where state = 'kept'
      and not exists (select 1 from artifacts a where a.file_id = files.id) limit ${BATCH} for update skip locked)`;

/**
 * The files of artifacts. A row in `files` is written before the first byte and removed after the last one, so whatever
 * is killed, some row knows each file in the store.
 */
export class FileService {
  readonly tasks: readonly Task[] = [
    scheduled('files_removing', { everySeconds: 1, ifAny: `select 1 from files where state = 'removing'` }, () =>
      this.removeMarked(),
    ),
    scheduled('files_unused', { everySeconds: 60, ifAny: `select 1 from files where ${UNUSED}` }, () =>
      this.sweepUnused(),
    ),
    scheduled('files_parts', { everySeconds: 3_600 }, () => this.#storage.sweep()),
  ];
  readonly #sql: Sql;
  readonly #storage: Storage;
  readonly #storageLimits: StorageLimits;
  readonly #limitBytes: number;

  constructor(deps: { sql: Sql; storage: Storage; storageLimits: StorageLimits; maxUploadBytes: number }) {
    this.#sql = deps.sql;
    this.#storage = deps.storage;
    this.#storageLimits = deps.storageLimits;
    this.#limitBytes = deps.maxUploadBytes;
  }

  /**
   * Stores a file while it arrives. It belongs to nothing until {@link takingOf}; unused ones are removed after hours.
   * @param id of a file that was announced; a new one otherwise
   * @throws PAYLOAD_TOO_LARGE; RESOURCE_CONFLICT for an id that is in use, and `storage_quota_exceeded`; what `content`
   * fails with. Nothing is left
   */
  async receive(owner: FileOwner, incoming: IncomingFile, id = newFileId()): Promise<ReceivedFile> {
    return this.#receive(owner, incoming, id, async (file) => {
      await this.#received(file);
    });
  }

  /**
   * The same for a request that uses its file itself: nobody else can use it. Its row says what was received only when
   * it says that it is used, which is one statement less.
   * @throws as {@link receive}
   */
  async receiveForRequest(owner: FileOwner, incoming: IncomingFile): Promise<ReceivedFile> {
    return this.#receive(owner, incoming, newFileId());
  }

  /**
   * Stores the result of an action. It is never of an artifact, and removed when it expires.
   * @throws as {@link receive}
   */
  async receiveResult(owner: FileOwner, incoming: IncomingFile, result: KeptResult): Promise<ReceivedFile> {
    const id = newFileId();
    return this.#receive(
      owner,
      incoming,
      id,
      async (file) => {
        if ((await this.#received(file, result.expiresAt)).length > 0) return;
        // its instance went, and its row with it, while the bytes were stored
        await this.#storage.remove(keyOf(owner.workspaceId, id));
        throw uploadInUse('The file was removed while it was stored.');
      },
      result,
    );
  }

  /**
   * A received file that its sender has not used yet.
   * @throws invalid input at `path` when there is none
   */
  async demandReceived(
    owner: Pick<FileOwner, 'namespaceId' | 'userId'>,
    id: string,
    path: string[],
  ): Promise<ReceivedFile> {
    const [file] = await this.#sql.read<ReceivedFile>(FIND, [id, owner.namespaceId, owner.userId]);
    if (!file) throw unknownFile(path);
    return file;
  }

  /** How a transaction makes a received file its own, once. The error is invalid input at `path`. */
  takingOf({ id, mimeType, sizeBytes, sha256 }: ReceivedFile, path: string[]): FileTaking {
    return {
      demand: (tx) => tx.demand('files', { id, state: 'receiving' }, 'no key update', () => unknownFile(path)),
      take: (tx) =>
        tx.update(
          'files',
          { id },
          { state: 'kept', mimeType, sizeBytes: BigInt(sizeBytes), sha256, reservedBytes: null },
        ),
    };
  }

  /**
   * Removes a piece that is not part of its file. Somebody else may have removed its row while it was stored: then its
   * bytes came later than that.
   */
  async discardPiece({ workspaceId }: Pick<FileOwner, 'workspaceId'>, id: string): Promise<void> {
    await this.discard(id);
    const [row] = await this.#sql.read(`select 1 from files where id = $1 and state <> 'removing'`, [id]);
    if (!row) await this.#storage.remove(keyOf(workspaceId, id));
  }

  /** Removes a file unless it was kept. */
  async discard(id: string): Promise<void> {
    const [file] = await this.#sql.change<{ id: string; key: string }>(LET_GO, [id]);
    if (file) await this.#remove(file);
  }

  /**
   * Stores bytes under a row of their own, while they arrive. All bytes of files come in here.
   * @throws PAYLOAD_TOO_LARGE; INVALID_REQUEST `digest_mismatch`; RESOURCE_CONFLICT for an id that is in use, and
   * `storage_quota_exceeded`; what `content` fails with. Nothing is left
   */
  async store(file: NewFile, content: Readable, digests?: readonly ClaimedDigest[]): Promise<ContentFacts> {
    const { id, owner, piece, length } = file;
    const key = keyOf(owner.workspaceId, id);
    const reserved = await this.#insert(file, key);
    const isReserved = piece !== undefined || (length !== undefined && reserved >= length.atMost);
    try {
      return await this.#put(key, isReserved ? content : this.#reserving(owner, id, content, reserved), digests);
    } catch (error) {
      await this.discard(id);
      throw error;
    }
  }

  /** The bytes of a file. @throws MissingObject before the first byte */
  async read(storageKey: string, range?: ByteRange): Promise<Readable> {
    return this.#storage.read(storageKey, range);
  }

  /** Removes files that were received, perhaps in part, and never used. @returns how many */
  async sweepUnused(): Promise<number> {
    const text = `update files set state = 'removing' where id in (
      select id from files where ${UNUSED} order by id limit ${BATCH} for update skip locked)`;
    await inBatches(BATCH, () => this.#sql.write(text, []));
    return this.removeMarked();
  }

  /** Removes the files whose artifacts are gone: it runs with the retention of their rows. @returns how many */
  async removeFiles(): Promise<number> {
    await inBatches(BATCH, () => this.#sql.write(ORPHANED, []));
    return this.removeMarked();
  }

  /** Removes files that were marked: their bytes first, so that nothing is forgotten. @returns how many */
  async removeMarked(): Promise<number> {
    return inBatches(BATCH, async () => {
      const files = await this.#sql.read<{ id: string; key: string }>(REMOVING, []);
      for (const file of files) await this.#remove(file);
      return files.length;
    });
  }

  async #receive(
    owner: FileOwner,
    incoming: IncomingFile,
    id: string,
    isReceived?: (file: ReceivedFile) => Promise<void>,
    result?: KeptResult,
  ): Promise<ReceivedFile> {
    const { fileName, claimedType } = describedFile(incoming);
    const { content, digests, length } = incoming;
    const facts = await this.store({ id, owner, fileName, claimedType, length, result }, content, digests);
    try {
      const mimeType = await typeOfContent(facts, fileName, claimedType);
      const file = { id, fileName, mimeType, sizeBytes: facts.sizeBytes, sha256: facts.sha256 };
      await isReceived?.(file);
      return file;
    } catch (error) {
      await this.discard(id);
      throw error;
    }
  }

  #received(
    { id, sizeBytes, sha256, mimeType }: ReceivedFile,
    expiresAt: Date | null = null,
  ): Promise<{ id: string }[]> {
    return this.#sql.change<{ id: string }>(RECEIVED, [id, sizeBytes, sha256, mimeType, expiresAt]);
  }

  /**
   * Writes the row of a file, with storage reserved for it: for all that it may have, if there is so much, else for
   * what it has at least. @returns the reserved bytes
   */
  async #insert({ id, owner, fileName, claimedType, piece, result, length }: NewFile, key: string): Promise<number> {
    const { orgId, workspaceId, namespaceId, userId } = owner;
    const place = [id, orgId, workspaceId, namespaceId, key];
    const arrivesUntil = result ? new Date(Date.now() + RESULT_ARRIVES_MS) : null;
    const expiresAt = piece?.expiresAt ?? arrivesUntil;
    const values = [
      ...place,
      fileName,
      claimedType,
      userId,
      piece?.of ?? null,
      expiresAt,
      result?.toolInstanceId ?? null,
    ];
    const reserve = async (bytes: number) => {
      const all = [...values, ...this.#storageLimits.parametersOf(owner, bytes)];
      if ((await this.#sql.change(INSERT, all)).length === 0) throw uploadInUse();
      return bytes;
    };
    const { atLeast, atMost } = length ?? { atLeast: 0, atMost: 0 };
    return this.#storageLimits.guarded(async () => {
      try {
        return await reserve(Math.min(atMost, this.#limitBytes));
      } catch (error) {
        if (atLeast === atMost || !refusalOf(error)) throw error;
        return reserve(Math.min(atLeast, this.#limitBytes));
      }
    });
  }

  /**
   * Reserves storage for a file that has more bytes than were reserved before.
   * @throws RESOURCE_CONFLICT `storage_quota_exceeded`
   */
  async reserve(owner: FileOwner, id: string, { held, bytes }: { held: number; bytes: number }): Promise<void> {
    const limits = this.#storageLimits;
    const values = [id, bytes, ...limits.parametersOf(owner, bytes - held)];
    await limits.guarded(() => this.#sql.change(RESERVE, values), held);
  }

  /** The same content, with storage reserved while it arrives. It fails with the refusal. */
  #reserving(owner: FileOwner, id: string, content: Readable, reserved: number): Readable {
    let held = reserved;
    const hold = async (bytes: number) => {
      await this.reserve(owner, id, { held, bytes });
      held = bytes;
    };
    async function* pass(): AsyncGenerator<Buffer> {
      let seen = 0;
      // a refusal leaves the rest to whoever answers the request: to destroy it would end the connection
      for await (const chunk of content.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        seen += chunk.length;
        // the first byte too many ends it, but not each piece is worth a statement
        if (seen > held && (held === 0 || seen - held >= STEP_BYTES)) await hold(seen);
        yield chunk;
      }
      if (seen > held) await hold(seen);
    }
    return Readable.from(pass());
  }

  async #remove({ id, key }: { id: string; key: string }): Promise<void> {
    await this.#storage.remove(key);
    await this.#sql.write(`delete from files where id = $1 and state = 'removing'`, [id]);
  }

  async #put(key: string, content: Readable, digests: readonly ClaimedDigest[] = []): Promise<ContentFacts> {
    try {
      return await this.#storage.put(key, content, { limitBytes: this.#limitBytes, digests });
    } catch (error) {
      if (error instanceof TooManyBytes) throw new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: error.limitBytes });
      throw error;
    }
  }
}

const keyOf = (workspaceId: string, id: string): string => `${workspaceId.toLowerCase()}/${id}`;

/** How a file is described in its row. */
export const describedFile = ({ fileName, contentType }: Pick<IncomingFile, 'fileName' | 'contentType'>) => ({
  fileName: cleanFileName(fileName),
  claimedType: essenceOf(contentType),
});

/** The refusal of bytes for an upload that has them already, or that somebody else goes on with. */
export const uploadInUse = (message = 'This upload has already received a file.') =>
  new ApiError('RESOURCE_CONFLICT', { reason: 'upload_in_use' }, message);

const unknownFile = (path: string[]) =>
  invalidInput(path, 'there is no such upload, it is not complete, or it was used before');

const MIME = /^[a-z0-9!#$&^_.+-]{1,63}\/[a-z0-9!#$&^_.+-]{1,127}$/;

/** A media type without its parameters; `null` if it is none. */
function essenceOf(contentType: string | null): string | null {
  const essence = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();
  return MIME.test(essence) ? essence : null;
}
