import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let app: TestApp;
let user: Person;
beforeAll(async () => {
  database = await createTestDatabase();
  app = await startTestApp({ databaseUrl: database.url });
  user = await register(app);
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

const upload = () =>
  app.server.inject({
    method: 'POST',
    url: `${user.home}/namespaces/default/artifacts/upload`,
    headers: { ...user.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['name', 'notes'],
      ['file', { name: 'notes.txt', content: 'some words', type: 'text/plain' }],
    ]),
  });

it('answers 503 to uploads while the database is away, and takes them again afterwards', async () => {
  await database.outage(async () => {
    const refused = await upload();
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(refused.json()).toMatchObject({ error: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } });
  });
  // a pooler tries again after a moment
  await waitFor(async () => expect((await upload()).statusCode).toBe(201));
});
