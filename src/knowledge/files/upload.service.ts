import type { Caller } from '../../kernel/caller.ts';
import type { Checked, NamespacePlace } from '../../kernel/checked-place.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { sessionIdOf } from '../../kernel/principal.ts';
import type { ReceivedFile } from '../../kernel/received-file.ts';
import type { Artifact } from '../artifacts/artifact.reads.ts';
import type { ArtifactService, CreateArtifact } from '../artifacts/artifact.service.ts';
import { type FileService, newFileId } from './file.service.ts';
import type { UploadPieces } from './upload-pieces.ts';
import type { UploadClaims, UploadTickets } from './upload-tickets.ts';

/** An address to which a client sends a file. */
export interface Upload {
  /** The id that the file gets. */
  file: string;
  /** Absolute. */
  url: string;
  expiresAt: Date;
  maxBytes: number;
  receivedBytes: number;
}

/** What a client says of a file that it will send. */
export interface NewUpload {
  fileName: string;
  contentType?: string | null | undefined;
  sizeBytes?: number | null | undefined;
  /** In hexadecimal. */
  sha256?: string | null | undefined;
  /** Whether an unfinished upload of the same file goes on. */
  resume?: boolean | null | undefined;
}

/** What an artifact is made of that is a file. */
export interface UploadedArtifact extends Omit<CreateArtifact, 'content' | 'mimeType'> {
  /** A file that was received in the namespace, from the same user, and is not used yet. */
  file: string;
}

/** A client that lost its connection may be back the next morning. */
const EXPIRES_SECONDS = 24 * 3_600;
const FILE = ['input', 'file'];

/** Artifacts out of files: the file is received first, by a form or at an address of its own. */
export class UploadService {
  readonly #files: FileService;
  readonly #pieces: UploadPieces;
  readonly #artifacts: ArtifactService;
  readonly #tickets: UploadTickets;
  readonly #maxBytes: number;

  constructor(deps: {
    files: FileService;
    pieces: UploadPieces;
    artifacts: ArtifactService;
    tickets: UploadTickets;
    maxUploadBytes: number;
  }) {
    this.#files = deps.files;
    this.#pieces = deps.pieces;
    this.#artifacts = deps.artifacts;
    this.#tickets = deps.tickets;
    this.#maxBytes = deps.maxUploadBytes;
  }

  /**
   * An address for one file, valid for a day, or until the session ends that asked for it. Nothing is stored until the
   * file arrives.
   * @throws invalid input for a size beyond that of the largest file, and for one to resume that is not described
   */
  async create(
    { principal }: Caller,
    place: Checked<NamespacePlace>,
    { fileName, contentType = null, sizeBytes = null, sha256 = null, resume }: NewUpload,
  ): Promise<Upload> {
    if (sizeBytes !== null && sizeBytes > this.#maxBytes)
      throw invalidInput(['input', 'sizeBytes'], `a file has at most ${this.#maxBytes} bytes`);
    const { orgId, workspaceId, namespaceId } = place;
    const owner = { orgId, workspaceId, namespaceId, userId: principal.userId };
    const announced = { ...owner, fileName, contentType, sizeBytes, sha256: sha256?.toLowerCase() ?? null };
    const { fileId, endsAt, receivedBytes } = (resume && (await this.#unfinished(announced))) || {
      fileId: newFileId(),
      endsAt: new Date(Date.now() + EXPIRES_SECONDS * 1_000),
      receivedBytes: 0,
    };
    const expires = Math.floor(endsAt.getTime() / 1_000);
    const { token } = principal;
    const signer = { tokenId: token?.id ?? null, sessionId: sessionIdOf(principal) };
    const url = this.#tickets.of({ ...announced, ...signer, fileId, expires });
    return { file: fileId, url, expiresAt: new Date(expires * 1_000), maxBytes: this.#maxBytes, receivedBytes };
  }

  #unfinished({ sizeBytes, sha256, ...file }: Omit<UploadClaims, 'fileId' | 'tokenId' | 'expires'>) {
    if (sizeBytes == null || sha256 == null)
      throw invalidInput(['input', 'resume'], 'what goes on is found by `sizeBytes` and `sha256`: give both');
    return this.#pieces.unfinished({ ...file, sizeBytes, sha256 });
  }

  /**
   * Makes a received file an artifact, or a new version of one.
   * @param received the file that came with the request, if one did
   * @throws invalid input for a file that is not there, or was used before; and as {@link ArtifactService.create}
   */
  async finish(
    caller: Caller,
    place: Checked<NamespacePlace>,
    input: UploadedArtifact,
    received: ReceivedFile | null,
  ): Promise<Artifact> {
    const { file: id, ...given } = input;
    const file = received?.id === id ? received : await this.#sentBefore(caller, place, id);
    return this.#artifacts.create(caller, place, given, file, this.#files.takingOf(file, FILE));
  }

  /** A file that came to an address of its own, as a whole or in pieces. */
  async #sentBefore(
    { principal: { userId } }: Caller,
    { namespaceId }: Checked<NamespacePlace>,
    id: string,
  ): Promise<ReceivedFile> {
    const owner = { namespaceId, userId };
    await this.#pieces.completeFor(owner, id);
    return this.#files.demandReceived(owner, id, FILE);
  }
}
