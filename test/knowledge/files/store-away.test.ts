import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { keptLog } from '../../support/log-lines.ts';
import { type Person, register } from '../../support/person.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';
import { waitFor } from '../../support/wait.ts';

const { logger, lines } = keptLog();
let s3: S3Server;
let app: TestApp;
let ann: Person;
beforeAll(async () => {
  s3 = await startS3();
  app = await startTestApp({ env: s3.env, logger });
  ann = await register(app, { name: 'ann' });
  // the first file of a new store is its marker
  await waitFor(async () => expect(await app.services.storage.marker()).not.toBeNull());
});
afterAll(async () => {
  await app.close();
  await s3.stop();
});

const artifacts = () => `${ann.home}/namespaces/default/artifacts`;
const upload = () =>
  app.server.inject({
    method: 'POST',
    url: `${artifacts()}/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['name', 'a'],
      ['file', { name: 'a.txt', content: 'hello', type: 'text/plain' }],
    ]),
  });
const away = {
  error: 'SERVICE_UNAVAILABLE',
  message: 'The store of files does not answer, or refuses the service. Nothing was changed; try again.',
  details: { retry_after: 30, reason: 'file_store_away' },
  status_code: 503,
};
const loggedReasons = () =>
  lines.filter((line) => line.includes('the store of files refused')).map((line) => JSON.parse(line).err.type);

test('a store that refuses a file is a 503 and a line of the log, and leaves nothing', async () => {
  s3.failNext('PUT', 1, 403);
  const refused = await upload();
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '30']);
  expect(refused.json()).toMatchObject(away);
  expect(loggedReasons()).toHaveLength(1);
  const list = await ann.call<{ total: number }>('GET', artifacts());
  expect(list.body.total).toBe(0);
  expect((await upload()).statusCode).toBe(201);
});

test('a store that fails is no fault of the database: a 503 for who fetches a file', async () => {
  const { artifact_id: id } = (await upload()).json<{ artifact_id: string }>();
  const { body } = await ann.call<{ download_url: string }>('GET', `${artifacts()}/${id}/download`);
  // the service looks at the store meanwhile, too
  s3.failNext('GET', 1_000, 500);
  const refused = await app.server.inject({ method: 'GET', url: body.download_url });
  expect([refused.statusCode, refused.json()]).toMatchObject([503, away]);
  // its text is indexed meanwhile, which may fail as well
  expect(loggedReasons().length).toBeGreaterThan(1);
  expect(lines.join('')).not.toContain('the database is unavailable');
});
