// own process: measures the memory of the process
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { waitFor } from '../../support/wait.ts';

const DOCUMENTS = 2_000;
const MAX_BYTES = 64 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const filler = 'x'.repeat(40 * 1024);

test.each([
  ['documents that are good', (i: number) => `{ authConfig { __typename } } # ${i} ${filler}`],
  ['documents that are none', (i: number) => `{ authConfig { __typename } # ${i} ${filler}`],
  ['documents that do not fit the schema', (i: number) => `{ a${i} { b } } # ${filler}`],
])(
  `memory does not grow with 2,000 distinct %s`,
  async (_what, documentOf) => {
    const held = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
      return process.memoryUsage().heapUsed + process.memoryUsage().external;
    };
    const send = (i: number) => app.server.inject(graphqlRequest(documentOf(i)));
    for (let i = 0; i < 20; i++) await send(i);
    const before = await held();
    for (let i = 0; i < DOCUMENTS; i++) await send(i);
    // what answers are still being let go of is not kept
    await waitFor(async () => expect((await held()) - before).toBeLessThan(MAX_BYTES));
  },
  120_000,
);
