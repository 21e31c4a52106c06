import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { type Account, call } from '../api.ts';
import { compare, type Question, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';
import { downloadPath } from '../servers/pg-files.ts';

const MIB = 1024 * 1024;
const CONNECTIONS = 8;
const AT_ONCE = 20;
const LARGE = 50 * MIB;
const BOUNDARY = 'boundary-of-the-bench';
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A form with a file of random bytes. */
function formOf(bytes: number): Buffer {
  const head =
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="name"\r\n\r\nBench\r\n` +
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="bench.bin"\r\n` +
    'content-type: application/octet-stream\r\n\r\n';
  return Buffer.concat([Buffer.from(head), randomBytes(bytes), Buffer.from(`\r\n--${BOUNDARY}--\r\n`)]);
}

/** Uploads and downloads, each compared with a hand-written one. `BENCH_ONLY=files npm run bench` runs these alone. */
export async function files(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const { orgId, workspaceId, token, userId } = account;
  const workspace = `/v1/orgs/${orgId}/workspaces/${workspaceId}`;
  const { namespaces } = await call<{ namespaces: { namespace_id: string }[] }>(
    product,
    token,
    'GET',
    `${workspace}/namespaces`,
  );
  const artifacts = `${workspace}/namespaces/${namespaces[0]!.namespace_id}/artifacts`;
  const body = formOf(MIB);
  const settings = { ...rounds, connections: CONNECTIONS };
  const upload: Question = { method: 'POST', path: `${artifacts}/upload`, body, type: TYPE };
  print('upload 1 MiB', await compare(servers, upload, token, settings));

  const { artifact_id: id } = (await send(product, `${artifacts}/upload`, token, body)) as { artifact_id: string };
  const link = await call<{ download_url: string }>(product, token, 'GET', `${artifacts}/${id}/download`);
  const own = new URL(link.download_url);
  const paths = new Map(servers.map(({ name }) => [name, downloadPath(orgId, id, userId)]));
  paths.set(product.name, own.pathname + own.search);
  print('download 1 MiB', await compare(servers, (server) => paths.get(server.name)!, token, settings));
}

async function send(server: ServerProcess, path: string, token: string, body: Buffer): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': TYPE };
  const response = await fetch(server.url + path, { method: 'POST', headers, body: new Uint8Array(body) });
  if (!response.ok) throw new Error(`an upload answered ${response.status}: ${await response.text()}`);
  return response.json();
}

/** How much memory many large uploads take at once. @param store what the service keeps its files in */
export async function uploadsAtOnce(product: ServerProcess, account: Account, store: string): Promise<void> {
  const { orgId, workspaceId, token } = account;
  const path = `/v1/orgs/${orgId}/workspaces/${workspaceId}/namespaces/default/artifacts/upload`;
  const body = formOf(LARGE - 1);
  const before = product.residentMiB();
  let most = before;
  const uploads = Promise.all(Array.from({ length: AT_ONCE }, () => send(product, path, token, body)));
  let isDone = false;
  const watched = (async () => {
    while (!isDone) {
      most = Math.max(most, product.residentMiB());
      await setTimeout(20);
    }
  })();
  await uploads.finally(() => {
    isDone = true;
  });
  await watched;
  console.log(
    `\n${AT_ONCE} uploads of 50 MiB at once to ${store}: resident memory grew by ${(most - before).toFixed(0)} MiB ` +
      `(${before.toFixed(0)} before)`,
  );
}
