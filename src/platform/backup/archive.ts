import { createHash, type Hash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';

const TITLE = 'PLATFORM BACKUP 1\n';
const LINE_FEED = 10;
/** A line that describes a piece is far shorter: anything longer is no archive. */
const LONGEST_HEAD = 64 * 1024;

/** A piece of an archive: what it is, how long, and its checksum. */
export interface PieceHead {
  kind: 'about' | 'keys' | 'rows' | 'file' | 'end';
  /** Of rows: the table. */
  table?: string;
  /** Of a file: its key in the store. */
  key?: string;
  /** Of a file: whether no more of it follows. */
  isLast?: boolean;
  /** Of the end: a checksum of all descriptions before it. */
  all?: string;
  bytes: number;
  sha256: string;
}

/** What the caller says of a piece. */
type Description = Omit<PieceHead, 'bytes' | 'sha256' | 'all'>;

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Writes an archive: a line with its name, then pieces, each a line of JSON followed by its bytes. It has its name only
 * when it is whole and on disk: a run that is killed leaves `FILE.ID.partial`.
 */
export class ArchiveWriter {
  readonly #file: string;
  readonly #partial: string;
  readonly #handle: FileHandle;
  readonly #all: Hash = createHash('sha256');

  private constructor(file: string, partial: string, handle: FileHandle) {
    this.#file = file;
    this.#partial = partial;
    this.#handle = handle;
  }

  /** @throws Error when there is such a file already */
  static async create(file: string): Promise<ArchiveWriter> {
    const isTaken = await open(file).then(
      async (handle) => {
        await handle.close();
        return true;
      },
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        return false;
      },
    );
    if (isTaken) throw new Error(`${file} already exists. Give the backup another name.`);
    // of this run alone: an older file would keep its mode, and two runs would write into each other's
    const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
    const handle = await open(partial, 'wx', 0o600);
    await handle.write(TITLE);
    return new ArchiveWriter(file, partial, handle);
  }

  async add(description: Description, bytes: Buffer): Promise<void> {
    const head = `${JSON.stringify({ ...description, bytes: bytes.length, sha256: sha256(bytes) })}\n`;
    this.#all.update(head);
    await this.#handle.write(head);
    await writeAll(this.#handle, bytes);
  }

  /** Gives the archive its name. */
  async finish(): Promise<void> {
    const end: PieceHead = { kind: 'end', all: this.#all.digest('hex'), bytes: 0, sha256: sha256(Buffer.alloc(0)) };
    await this.#handle.write(`${JSON.stringify(end)}\n`);
    await this.#handle.sync();
    await this.#handle.close();
    await rename(this.#partial, this.#file);
  }

  /** Removes what was written. */
  async abandon(): Promise<void> {
    await this.#handle.close();
    await rm(this.#partial, { force: true });
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
}

/** Bytes of a stream by lines and by number. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next line without its line feed; `null` when the bytes end before one. */
  async line(): Promise<string | null> {
    for (;;) {
      const at = this.#rest.indexOf(LINE_FEED);
      if (at >= 0)
        return this.#take(at + 1)
          .toString('utf8')
          .slice(0, -1);
      if (this.#rest.length > LONGEST_HEAD || !(await this.#fill())) return null;
    }
  }

  /** The next bytes; `null` when there are fewer. */
  async bytes(count: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let missing = count; missing > 0; ) {
      if (this.#rest.length === 0 && !(await this.#fill())) return null;
      const part = this.#take(Math.min(missing, this.#rest.length));
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  #take(count: number): Buffer {
    const taken = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return taken;
  }

  async #fill(): Promise<boolean> {
    const next = await this.#source.next();
    if (next.done) return false;
    this.#rest = this.#rest.length === 0 ? next.value : Buffer.concat([this.#rest, next.value]);
    return true;
  }
}

/**
 * The pieces of an archive in their order. Each was compared with its checksum, and at the end all of them.
 * @throws Error when it is no archive, is cut off, or has a byte that is not as it was written
 */
export async function* piecesOf(file: string): AsyncGenerator<{ head: PieceHead; bytes: Buffer }, void, void> {
  const reader = new ByteReader(createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>);
  try {
    if (`${await reader.line()}\n` !== TITLE) throw new Error(`${file} is not a backup of this service.`);
    const all = createHash('sha256');
    for (;;) {
      const line = await reader.line();
      if (line === null) throw new Error(`${file} is truncated.`);
      const head = headOf(line, file);
      if (head.kind === 'end') {
        if (head.all !== all.digest('hex')) throw new Error(`${file} was changed: a part is missing.`);
        return;
      }
      all.update(`${line}\n`);
      const bytes = await reader.bytes(head.bytes);
      if (bytes === null) throw new Error(`${file} is truncated.`);
      if (sha256(bytes) !== head.sha256)
        throw new Error(`${file} was changed: ${head.table ?? head.key ?? head.kind} has a different checksum.`);
      yield { head, bytes };
    }
  } finally {
    await reader.close();
  }
}

function headOf(line: string, file: string): PieceHead {
  const none = `${file} was changed: a part has no description.`;
  let head: unknown;
  try {
    head = JSON.parse(line);
  } catch (cause) {
    throw new Error(none, { cause });
  }
  if (!isHead(head)) throw new Error(none);
  return head;
}

/** Whether it can be read on: the checksums find what else was changed. */
function isHead(value: unknown): value is PieceHead {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, bytes } = value as Partial<Record<keyof PieceHead, unknown>>;
  return typeof kind === 'string' && Number.isSafeInteger(bytes) && Number(bytes) >= 0;
}
