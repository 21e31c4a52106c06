// own process: is the parent of workers
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WorkerProcesses } from '../../../src/platform/nodes/workers.ts';
import { freePort } from '../../support/free-port.ts';
import { quietLogger } from '../../support/quiet-logger.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'workers-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the parent has no share of the socket when its workers close it: nothing waits there in vain', async () => {
  const file = path.join(folder, 'seen');
  const gone: string[] = [];
  const workers = new WorkerProcesses({
    count: 2,
    database: { url: 'postgresql://unused' },
    program: {
      file: path.join(import.meta.dirname, 'sharing-worker.fixture.ts'),
      execArgv: ['--import', 'tsx'],
      args: [String(await freePort()), file],
    },
    logger: quietLogger,
    onGone: (reason) => void gone.push(reason),
  });
  await workers.start();
  await workers.stop(60_000);
  const seen = readFileSync(file, 'utf8').trim().split('\n');
  expect(seen).toEqual(Array(2).fill('[true,false]'));
  expect(gone).toEqual([]);
});
