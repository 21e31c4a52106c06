import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOwnApp, type TestApp } from '../support/app.ts';

let app: TestApp;
let url: string;
beforeAll(async () => {
  app = await startOwnApp();
  url = await app.listen();
});
afterAll(() => app.close());

/** Keeps the turns of the event loop long until the work is done, as those of a service that has much to do. */
async function whileBusy<T>(work: () => Promise<T>): Promise<T> {
  let isOver = false;
  const keepBusy = () => {
    for (const until = performance.now() + 1; performance.now() < until; );
    if (!isOver) setImmediate(keepBusy);
  };
  keepBusy();
  try {
    return await work();
  } finally {
    isOver = true;
  }
}

test('requests that arrive while the server has not closed yet are answered as any other', async () => {
  const paths = ['/v1/auth/config', '/v1/auth/me', `/graphql?query=${encodeURIComponent('{ __typename }')}`];
  let closed: Promise<unknown> | undefined;
  const answers = await whileBusy(async () => {
    closed = app.server.close();
    // once an answer says that its connection ends, the server is closing
    while ((await fetch(`${url}/healthz`)).headers.get('connection') !== 'close');
    return Promise.all(paths.map((path) => fetch(url + path)));
  });
  expect(answers.map(({ status, headers }) => [status, headers.get('connection')])).toEqual([
    [200, 'close'],
    [401, 'close'],
    [200, 'close'],
  ]);
  expect(await answers[1]!.json()).toMatchObject({ error: 'AUTHENTICATION_FAILED' });
  expect(await answers[2]!.json()).toEqual({ data: { __typename: 'Query' } });
  await closed;
  await expect(fetch(`${url}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});
