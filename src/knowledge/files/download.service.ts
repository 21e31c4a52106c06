import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Sql } from '../../data/sql.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import type { NamespacePlace } from '../../kernel/checked-place.ts';
import { forbidden, notFound } from '../../kernel/errors.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import type { ByteRange } from '../../platform/storage/store.ts';
import { DAYS_AFTER_EXPIRY } from '../artifacts/artifact.reads.ts';
import type { DownloadLinks } from './download-links.ts';
import { attachment, nameOfText } from './file-name.ts';
import type { LinkCaller } from './link-caller.ts';

/** The link to an artifact as a client gets it. */
export interface DownloadLink {
  artifactId: string;
  /** Absolute. */
  downloadUrl: string;
  fileName: string;
  contentType: string;
  /** Seconds. */
  expiresIn: number;
  fileSizeBytes: number;
}

/** What of an artifact its link needs. */
interface Linked {
  id: string;
  orgId: string;
  version: number;
  name: string;
  hasFile: boolean;
  fileName: string | null;
  mimeType: string | null;
  sizeBytes: number;
}

/** The row of a version, with the row of its file. */
interface StoredVersion extends NamespacePlace {
  id: string;
  version: number;
  name: string;
  content: string | null;
  fileName: string | null;
  mimeType: string | null;
  storageKey: string | null;
  sizeBytes: number | null;
  sha256: string | null;
}

/** What a link leads to. */
export interface Download {
  fileName: string;
  contentType: string;
  disposition: string;
  sizeBytes: number;
  /** A strong entity tag, with its quotes. */
  etag: string;
  /** Of all bytes, in hexadecimal. */
  sha256: string | null;
  /** @throws MissingObject before the first byte */
  read(range?: ByteRange): Promise<Readable>;
  /** The address at the store, if clients can reach it; `null` if not. */
  redirect(): Promise<string | null>;
}

// the version that was linked: the head, or what became of it since
const FIND = `select a.id, a.org_id as "orgId", a.workspace_id as "workspaceId", a.namespace_id as "namespaceId",
    a.version, a.name, a.content, a.file_name as "fileName", a.mime_type as "mimeType",
    f.storage_key as "storageKey", f.size_bytes::float8 as "sizeBytes", f.sha256
  from artifacts l join artifacts a on a.root_artifact_id = l.root_artifact_id and a.version = $3
  join namespaces n on n.id = a.namespace_id join workspaces w on w.id = n.workspace_id
  left join files f on f.id = a.file_id
  where l.id = $1 and l.org_id = $2 and l.deleted_at is null and a.deleted_at is null and w.deleted_at is null
    and (a.expires_at is null or a.expires_at > now() - interval '${DAYS_AFTER_EXPIRY} days')`;

const BYTES = 'application/octet-stream';
/** How long an address at the store is valid: as long as a client needs to follow a redirect. */
const REDIRECT_SECONDS = 60;
/** Types that browsers run. At the store, no policy keeps them from doing so. */
const ACTIVE = /html|xml|svg|javascript|ecmascript/;

/** Downloads of artifacts: their links, and what the links lead to. */
export class DownloadService {
  readonly #sql: Sql;
  readonly #storage: Storage;
  readonly #links: DownloadLinks;
  readonly #linkCaller: LinkCaller;

  constructor(deps: { sql: Sql; storage: Storage; links: DownloadLinks; linkCaller: LinkCaller }) {
    this.#sql = deps.sql;
    this.#storage = deps.storage;
    this.#links = deps.links;
    this.#linkCaller = deps.linkCaller;
  }

  /** A link to a version of an artifact that the caller may read. */
  linkOf({ principal }: Caller, artifact: Linked, expiresIn: number): DownloadLink {
    const { id, orgId, version, name, mimeType } = artifact;
    const expires = Math.floor(Date.now() / 1_000) + expiresIn;
    const tokenId = principal.token?.id ?? null;
    return {
      artifactId: id,
      downloadUrl: this.#links.of({ artifactId: id, version, orgId, userId: principal.userId, tokenId, expires }),
      fileName: artifact.hasFile ? (artifact.fileName ?? 'file') : nameOfText(name, mimeType),
      contentType: artifact.hasFile ? (mimeType ?? BYTES) : typeOfText(mimeType),
      expiresIn,
      fileSizeBytes: artifact.sizeBytes,
    };
  }

  /**
   * What a link leads to.
   * @throws FORBIDDEN for a link that is not as it was made, has expired, or whose user may no longer read the
   * artifact;
   * RESOURCE_NOT_FOUND for an artifact that is gone
   */
  async open(caller: AnyCaller, artifactId: string, query: Readonly<Record<string, unknown>>): Promise<Download> {
    const claims = this.#links.read(artifactId, query);
    if (!claims) throw forbidden('artifact:read', 'The link is invalid or has expired.');
    const found = await this.#find(artifactId, claims.orgId, claims.version);
    await this.#linkCaller.demand(caller, claims, 'artifact:read', found);
    return this.#described(found);
  }

  async #find(id: string, orgId: string, version: number): Promise<StoredVersion> {
    const [found] = await this.#sql.read<StoredVersion>(FIND, [id, orgId, version]);
    if (!found) throw notFound('artifact', id);
    return found;
  }

  #described({ name, version, content, fileName, mimeType, storageKey, sizeBytes, sha256 }: StoredVersion): Download {
    const shownName = storageKey ? (fileName ?? 'file') : nameOfText(name, mimeType);
    if (!storageKey) {
      const disposition = attachment(shownName);
      const bytes = Buffer.from(content ?? '');
      const contentType = typeOfText(mimeType);
      const sha256OfText = createHash('sha256').update(bytes).digest('hex');
      const etag = `"${version}-${sha256OfText.slice(0, 32)}"`;
      const read = async (range?: ByteRange) => Readable.from([range ? slice(bytes, range) : bytes]);
      const length = bytes.length;
      return {
        fileName: shownName,
        contentType,
        disposition,
        sizeBytes: length,
        etag,
        sha256: sha256OfText,
        read,
        redirect: async () => null,
      };
    }
    const contentType = mimeType ?? BYTES;
    return storedDownload(this.#storage, { storageKey, fileName: shownName, contentType, sizeBytes, sha256 });
  }
}

/** The download of a file in the store. */
export function storedDownload(
  storage: Pick<Storage, 'read' | 'presign'>,
  file: { storageKey: string; fileName: string; contentType: string; sizeBytes: number | null; sha256: string | null },
): Download {
  const { storageKey, fileName, contentType, sizeBytes, sha256 } = file;
  const disposition = attachment(fileName);
  return {
    fileName,
    contentType,
    disposition,
    sizeBytes: sizeBytes ?? 0,
    etag: `"${sha256 ?? ''}"`,
    sha256,
    read: (range) => storage.read(storageKey, range),
    redirect: () =>
      storage.presign(storageKey, {
        expiresIn: REDIRECT_SECONDS,
        contentDisposition: disposition,
        contentType: ACTIVE.test(contentType) ? BYTES : contentType,
      }),
  };
}

const slice = (bytes: Buffer, { start, end }: ByteRange): Buffer => bytes.subarray(start, end + 1);
const typeOfText = (mimeType: string | null): string =>
  mimeType?.includes(';') ? mimeType : `${mimeType ?? 'text/plain'}; charset=utf-8`;
