// own process: starts processes, which is slow from a large process
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { projectRoot } from '../../../src/paths.ts';
import { ROOT_KEYS } from '../../support/app.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startService } from '../../support/service.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let dataDir: string;
let collector: TargetServer;
beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'traced-'));
  collector = await startTarget((_request, response) => response.end());
});
afterAll(async () => {
  await collector.close();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const folder = path.join(projectRoot, 'dist', 'service');

it('has the SDK in one file, which only an import at run time leads to', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const codeOf = (name: string) => readFileSync(path.join(folder, name), 'utf8');
  const withSdk = files.filter((name) => codeOf(name).includes('OTEL_BSP_MAX_QUEUE_SIZE'));
  expect(withSdk).toHaveLength(1);
  const leading = files.flatMap((name) =>
    [...codeOf(name).matchAll(new RegExp(String.raw`(\w{0,20}\(|[^\s(]) ?["']\./${withSdk[0]}["']`, 'g'))].map(
      ([, before]) => before,
    ),
  );
  expect([...new Set(leading)]).toEqual(['import(']);
});

it('sends its last spans when it stops: as protobuf, by the variables of the environment', async () => {
  const service = startService({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    ROOT_KEYS,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
    OTEL_TRACES_SAMPLER: 'always_on',
    OTEL_SERVICE_NAME: 'named-by-a-variable',
    OTEL_BSP_SCHEDULE_DELAY: '600000',
  });
  const url = await service.url();
  const traced = await fetch(`${url}/v1/auth/config?token=never-in-a-trace`);
  expect(traced.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
  service.child.kill('SIGTERM');
  expect(await service.exited(), service.output()).toBe(0);
  expect(collector.requests.length).toBeGreaterThan(0);
  const [{ path: at, headers }] = collector.requests as [TargetServer['requests'][0]];
  expect([at, headers['content-type']]).toEqual(['/v1/traces', 'application/x-protobuf']);
  const sent = collector.requests.map(({ body }) => body).join('');
  for (const said of ['GET /v1/auth/config', 'named-by-a-variable', 'query '])
    expect(sent.includes(said), said).toBe(true);
  expect(sent.includes('never-in-a-trace')).toBe(false);
});

it('stops in time when the collector takes connections and answers nothing', async () => {
  const silent = await startTarget(() => undefined);
  const service = startService({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    ROOT_KEYS,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${silent.port}`,
    OTEL_TRACES_SAMPLER: 'always_on',
    OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
  });
  await fetch(`${await service.url()}/v1/auth/config`);
  service.child.kill('SIGTERM');
  expect(await service.exited(), service.output()).toBe(0);
  await silent.close();
});
