import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import S3rver from 's3rver';

const BUCKET = 'files';

/** A server that speaks S3, with an empty bucket. */
export interface S3Server {
  /** For `S3_ENDPOINT`. */
  readonly url: string;
  /** The variables of a service that keeps its files here. */
  readonly env: Record<string, string>;
  /** `METHOD key?query` of every request so far. */
  readonly requests: readonly string[];
  /** Answers the next requests of a method with this status, unread. */
  failNext(method: string, times: number, status: number): void;
  /** Identifiers of uploads in parts that were neither completed nor aborted. */
  openUploads(): string[];
  /** Makes them older by this many milliseconds. */
  age(byMs: number): void;
  stop(): Promise<void>;
}

/**
 * Listens on the loopback interface. Uploads in parts can be aborted and listed, which s3rver cannot do.
 */
export async function startS3(): Promise<S3Server> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 's3-'));
  const store = new S3rver({ directory, silent: true, configureBuckets: [{ name: BUCKET, configs: [] }] });
  await store.configureBuckets();
  const handle = store.callback();
  const uploads = path.join(directory, BUCKET, '._S3rver_uploads');
  const requests: string[] = [];
  const failures: { method: string; status: number }[] = [];
  const openUploads = () => (existsSync(uploads) ? readdirSync(uploads) : []);
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { method = '' } = request;
    const url = new URL(request.url ?? '', 'http://s3');
    requests.push(`${method} ${url.pathname.replace(`/${BUCKET}/`, '')}${url.search}`);
    const failure = failures.findIndex((planned) => planned.method === method);
    if (failure >= 0) {
      const [planned] = failures.splice(failure, 1);
      request.resume();
      request.on('end', () => response.writeHead(planned!.status).end());
    } else if (method === 'DELETE' && url.searchParams.has('uploadId')) {
      rmSync(path.join(uploads, url.searchParams.get('uploadId') ?? ''), { recursive: true });
      response.writeHead(204).end();
    } else if (method === 'GET' && url.searchParams.has('uploads')) {
      response.writeHead(200, { 'content-type': 'application/xml' }).end(listOf(uploads, openUploads()));
    } else handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    env: { S3_ENDPOINT: url, S3_BUCKET: BUCKET, S3_ACCESS_KEY_ID: 'S3RVER', S3_SECRET_ACCESS_KEY: 'S3RVER' },
    requests,
    failNext: (method, times, status) => failures.push(...Array.from({ length: times }, () => ({ method, status }))),
    openUploads,
    age(byMs) {
      for (const id of openUploads()) {
        const time = new Date(Date.now() - byMs);
        utimesSync(path.join(uploads, id, 'key'), time, time);
      }
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true });
    },
  };
}

function listOf(folder: string, ids: readonly string[]): string {
  const items = ids.map((id) => {
    const file = path.join(folder, id, 'key');
    const initiated = statSync(file).mtime.toISOString();
    const key = readFileSync(file, 'utf8');
    return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated}</Initiated></Upload>`;
  });
  return `<ListMultipartUploadsResult>${items.join('')}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`;
}
