import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Person, register } from '../../support/person.ts';
import { openAcknowledged, openSocket } from '../../support/sockets.ts';
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

const query = 'query ($orgId: ID!) { workspaces(orgId: $orgId) { nodes { id } } }';

it('keeps the sockets that are open while the database is away, and tells others to come back', async () => {
  const url = await app.listen();
  const open = await openAcknowledged(url, user.headers.authorization);
  const ask = (id: string) =>
    open.send({ id, type: 'subscribe', payload: { query, variables: { orgId: user.orgId } } });
  await database.outage(async () => {
    // sessions are remembered for less than a second
    app.services.authentication.sessionsChanged();
    ask('1');
    const refused = await open.next(({ id }) => id === '1');
    expect(refused).toMatchObject({ type: 'error', payload: [{ extensions: { code: 'SERVICE_UNAVAILABLE' } }] });
    const other = await openSocket(url);
    other.send({ type: 'connection_init', payload: user.headers });
    // clients of the protocol give up for good at 4500
    expect(await other.closed()).toBe(1013);
    expect(other.closeReason).toBe('The service is not able to answer now. Try again later.');
  });
  // a pooler tries again after a moment
  let tries = 1;
  await waitFor(async () => {
    const id = String(++tries);
    ask(id);
    expect(await open.next((message) => message.id === id)).toMatchObject({
      type: 'next',
      payload: { data: { workspaces: { nodes: [{ id: expect.any(String) }] } } },
    });
  });
  open.close();
});
