import { ApiError, apiError, errorOf } from './errors.ts';
import type { components, paths } from './generated/rest.ts';
import { isPassing, pause } from './resilient-fetch.ts';
import type { Rest } from './rest.ts';

type Uploads = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/uploads';
type Finish = paths[`${Uploads}/finish`]['post'];
type FinishInput = NonNullable<Finish['requestBody']>['content']['application/json'];
export type Artifact = components['schemas']['Artifact'];

/** Where an artifact is. `default` names the namespace that each workspace has. */
export interface NamespacePlace {
  org_id: string;
  workspace_id: string;
  namespace_id: string;
}

export type UploadOptions = Omit<FinishInput, 'file'> & {
  fileName: string;
  mimeType?: string;
  /** Called after each piece. */
  onProgress?: (sent: number, total: number) => void;
  /** Bytes of a piece. Default 4 MiB. */
  pieceBytes?: number;
  signal?: AbortSignal;
};

const PIECE_BYTES = 4 * 1024 * 1024;
const MOST_FAILURES = 5;
const PAUSE_MS = 500;

/**
 * Sends a file in pieces and makes it an artifact. Each piece carries its checksum; after a broken connection the
 * upload goes on where the service has it.
 */
export async function upload(
  rest: Rest,
  send: typeof fetch,
  place: NamespacePlace,
  file: Blob,
  options: UploadOptions,
): Promise<Artifact> {
  const { fileName, mimeType, onProgress, pieceBytes = PIECE_BYTES, signal, ...artifact } = options;
  const params = { path: place };
  const announced = { file_name: fileName, size_bytes: file.size, ...(mimeType && { mime_type: mimeType }) };
  const given = signal ? { signal } : {};
  const { data: ticket } = await rest.POST(
    '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/uploads',
    { params, body: announced, ...given },
  );
  await sendPieces(new UploadTarget(ticket.url, send, signal), file, pieceBytes, onProgress);
  const { data } = await rest.POST(
    '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/uploads/finish',
    { params, body: { ...artifact, file: ticket.file }, ...given },
  );
  return data;
}

/** Sends the pieces in turn. After a failure it goes on with what the service has of the file. */
async function sendPieces(
  target: UploadTarget,
  file: Blob,
  pieceBytes: number,
  onProgress: UploadOptions['onProgress'],
): Promise<void> {
  let sent = 0;
  let failures = 0;
  while (sent < file.size) {
    try {
      if (failures > 0) sent = await target.offset();
      if (sent < file.size) sent = await target.send(await file.slice(sent, sent + pieceBytes).arrayBuffer(), sent);
      failures = 0;
    } catch (error) {
      if (target.isAborted || !isPassing(error) || ++failures > MOST_FAILURES) throw error;
      await target.pause(error, failures);
      continue;
    }
    onProgress?.(sent, file.size);
  }
}

/** The address of an upload: it speaks tus 1.0.0, and is itself the authorization. */
class UploadTarget {
  readonly #url: string;
  readonly #send: typeof fetch;
  readonly #signal: AbortSignal | undefined;

  constructor(url: string, send: typeof fetch, signal: AbortSignal | undefined) {
    this.#url = url;
    this.#send = send;
    this.#signal = signal;
  }

  get isAborted(): boolean {
    return this.#signal?.aborted ?? false;
  }

  /** How much of the file has arrived. */
  async offset(): Promise<number> {
    return offsetIn(await this.#request('HEAD', { 'tus-resumable': '1.0.0' }));
  }

  /** @returns how much of the file has arrived then */
  async send(bytes: ArrayBuffer, offset: number): Promise<number> {
    const headers = {
      'tus-resumable': '1.0.0',
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(offset),
      ...(await digestOf(bytes)),
    };
    return offsetIn(await this.#request('PATCH', headers, bytes));
  }

  /** Waits as long as the service says, or longer with each failure. */
  pause(error: unknown, failures: number): Promise<void> {
    const seconds = error instanceof ApiError ? error.retryAfterSeconds : null;
    return pause(seconds === null ? PAUSE_MS * 2 ** failures : seconds * 1_000, this.#signal);
  }

  async #request(method: string, headers: Record<string, string>, body?: ArrayBuffer): Promise<Response> {
    const signal = this.#signal ? { signal: this.#signal } : {};
    const response = await this.#send(this.#url, { method, headers, ...(body && { body }), ...signal });
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

/** @throws ApiError for an answer that does not say it */
function offsetIn({ status, headers }: Response): number {
  const offset = headers.get('upload-offset');
  if (offset !== null && /^\d+$/.test(offset)) return Number(offset);
  throw apiError({ status, code: 'NO_OFFSET', message: 'The answer does not say how much of the file has arrived.' });
}

/** Pages that are not from https have no `crypto.subtle`: TCP's own checksum has to do. */
async function digestOf(bytes: ArrayBuffer): Promise<Record<string, string>> {
  if (!globalThis.crypto?.subtle) return {};
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { 'content-digest': `sha-256=:${btoa(String.fromCharCode(...hash))}:` };
}

/** A part of a file; both ends count, as in `Range`. Without `to` up to its end. */
export interface ByteRange {
  from: number;
  to?: number;
}

/** Reads a file from the address that the service gives for it, which is itself the authorization. */
export async function download(
  rest: Rest,
  send: typeof fetch,
  place: NamespacePlace & { artifact_id: string },
  range?: ByteRange,
  signal?: AbortSignal,
): Promise<Response> {
  const given = signal ? { signal } : {};
  const { data } = await rest.GET(
    '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts/{artifact_id}/download',
    { params: { path: place }, ...given },
  );
  const headers = range && { range: `bytes=${range.from}-${range.to ?? ''}` };
  const response = await send(data.download_url, { ...(headers && { headers }), ...given });
  if (!response.ok) throw await errorOf(response);
  return response;
}
