import http from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { keptLog } from '../../support/log-lines.ts';
import { type Person, register } from '../../support/person.ts';
import { waitUntil } from '../../support/wait.ts';

const { logger, lines } = keptLog();
let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp({ logger });
  await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const form = formOf([
  ['name', 'x'],
  ['file', { content: Buffer.alloc(2_000_000, 1) }],
]);
const address = async () => {
  const { body } = await ann.call<{ url: string }>('POST', `${ann.home}/namespaces/default/uploads`, {
    file_name: 'a',
  });
  return new URL(body.url).pathname;
};

test.each<[string, () => Promise<{ path: string; method: string; headers: Record<string, string> }>]>([
  [
    'a form',
    async () => ({
      path: `${ann.home}/namespaces/default/artifacts/upload`,
      method: 'POST',
      headers: { ...ann.headers, 'content-type': FORM_TYPE },
    }),
  ],
  ['a file', async () => ({ path: await address(), method: 'PUT', headers: {} })],
  [
    'a piece of a file',
    async () => ({
      path: await address(),
      method: 'PATCH',
      headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    }),
  ],
])('a client that breaks off %s is no error and no warning', async (_what, requestOf) => {
  const { path, method, headers } = await requestOf();
  const bytes = Buffer.concat([form, Buffer.alloc(1_000)]);
  const request = http.request(`${app.url}${path}`, {
    method,
    headers: { ...headers, 'content-length': String(bytes.length) },
  });
  const closed = new Promise((resolve) => request.on('error', resolve).on('close', resolve));
  await new Promise<void>((resolve) => request.write(bytes.subarray(0, 1_000_000), () => resolve()));
  const state = async () =>
    (await app.database.pool.query<{ count: number }>(`select count(*)::int from files where state = 'receiving'`))
      .rows[0]!.count;
  const before = method === 'PATCH' ? 2 : 1;
  await waitUntil(async () => (await state()) === before);
  request.destroy();
  await closed;
  // the service has noticed: nothing of it is left, or the piece counts
  await waitUntil(async () => {
    const { rows } = await app.database.pool.query(
      'select 1 from files where size_bytes is null and received_bytes is null',
    );
    return rows.length === 0;
  });
  // what it would have to say, it has said by the time it has answered something else
  expect((await ann.call('GET', ann.home)).status).toBe(200);
  expect(lines).toEqual([]);
});
