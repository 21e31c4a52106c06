import { sha256 } from './bytes.ts';
import { apiError, success } from './errors.ts';
import { EventsClient } from './events.ts';
import type { components, operations } from './generated/rest.ts';
import { again, patientMs } from './requests.ts';

export type Artifact = components['schemas']['Artifact'];
/** Where an artifact is. `default` names the namespace that each workspace has. */
export type NamespacePlace = operations['FinishUpload']['parameters']['path'];

export type UploadOptions = Omit<components['schemas']['UploadArtifactInput'], 'file'> & {
  fileName: string;
  mimeType?: string;
  /** Called after each piece. */
  onProgress?: (sent: number, total: number) => void;
  /** Bytes of a piece. Default 4 MiB. */
  pieceBytes?: number;
  signal?: AbortSignal;
};

/** A part of a file; both ends count, as in `Range`. Without `to` up to its end. */
export interface ByteRange {
  from: number;
  to?: number;
}

const NAMESPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}';
const PIECE_BYTES = 4 * 1024 * 1024;

export class FilesClient extends EventsClient {
  /**
   * Sends a file in pieces and makes it an artifact. Each piece carries its checksum; after a broken connection the
   * upload goes on where the service has it.
   */
  async upload(path: NamespacePlace, file: Blob, options: UploadOptions): Promise<Artifact> {
    const { fileName, mimeType, onProgress, pieceBytes = PIECE_BYTES, signal, ...artifact } = options;
    const given = { params: { path }, signal: signal ?? null };
    const announced = { file_name: fileName, size_bytes: file.size, ...(mimeType && { mime_type: mimeType }) };
    const { data: ticket } = await this.rest.POST(`${NAMESPACE}/uploads`, { ...given, body: announced });
    const send = async (from: number) => {
      const body = await file.slice(from, from + pieceBytes).arrayBuffer();
      // pages that are not from https have no `crypto.subtle`: TCP's own checksum has to do
      const digest = crypto.subtle && { 'content-digest': `sha-256=:${await sha256(body)}:` };
      const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(from), ...digest };
      return this.#tus(ticket.url, { method: 'PATCH', headers, body, signal: given.signal });
    };
    for (let sent = 0; sent < file.size; onProgress?.(sent, file.size)) {
      const attempt = async (failures: number) => {
        const from = failures > 0 ? await this.#tus(ticket.url, { method: 'HEAD', signal: given.signal }) : sent;
        return from < file.size ? send(from) : from;
      };
      sent = await again(attempt, patientMs, signal);
    }
    const body = { ...artifact, file: ticket.file };
    return (await this.rest.POST(`${NAMESPACE}/uploads/finish`, { ...given, body })).data;
  }

  /** The file of an artifact, or a part of it. @throws ApiError if there is none, or the range lies beyond its end */
  async download(path: NamespacePlace & { artifact_id: string }, range?: ByteRange, signal: AbortSignal | null = null) {
    const { data } = await this.rest.GET(`${NAMESPACE}/artifacts/{artifact_id}/download`, { params: { path }, signal });
    const headers = range && { range: `bytes=${range.from}-${range.to ?? ''}` };
    return success(await this.fetch(data.download_url, { headers: { ...headers }, signal }));
  }

  /** The address of an upload speaks tus 1.0.0, and is itself the authorization. @returns how much has arrived */
  async #tus(url: string, init: RequestInit & { headers?: object }): Promise<number> {
    const sent = { ...init, headers: { 'tus-resumable': '1.0.0', ...init.headers } };
    const { status, headers } = await success(await this.fetch(url, sent));
    const offset = headers.get('upload-offset') ?? '';
    if (/^\d+$/.test(offset)) return Number(offset);
    throw apiError({ status, code: 'NO_OFFSET', message: 'The answer does not say how much of the file has arrived.' });
  }
}
