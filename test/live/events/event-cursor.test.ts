import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { cursorOfWritten, insertEvent } from '../../support/late-writers.ts';
import { type Person, registerProven } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { type EventSource, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
let url: string;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await registerProven(app);
  // A position before every stored event counts as lost. The position now is before the oldest transaction that still
  // runs, so one event has to be older than that.
  await insertEvent(app.database.pool, ann, 'evt_first');
  await cursorOfWritten(app.database.pool, 'evt_first');
});
afterAll(() => app.close());

const ask = <Answer>(authorization: string) =>
  app.server.inject(graphqlRequest('{ eventCursor }', {}, authorization)).then((answer) => answer.json<Answer>());

async function cursorNow(): Promise<string> {
  const { data } = await ask<{ data: { eventCursor: string } }>(ann.headers.authorization);
  return data.eventCursor;
}

/** A stream over SSE that begins now, after a position. */
async function streamAfter(after: string, field: string): Promise<EventSource> {
  const query = `subscription ($after: String) { ${field} { id type resourceId } }`;
  const stream = await openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: { ...ann.headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query, variables: { after } }),
  });
  onTestFinished(() => stream.close());
  return stream;
}
const ofWorkspace = () => `workspaceEvents(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", after: $after)`;
const ofOrganization = () => `organizationEvents(orgId: "${ann.orgId}", after: $after)`;

/** Waits for an event that has some texts in it, and expects that the stream has not lost its position. */
async function expectShown(stream: EventSource, ...texts: string[]): Promise<void> {
  await stream.next(({ data }) => texts.every((text) => data.includes(text)));
  expect(stream.events.filter(({ data }) => data.includes('"resync"'))).toEqual([]);
}

test('what happens after the cursor comes on streams that begin later', async () => {
  const after = await cursorNow();
  const namespace = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'later' });
  const invitation = { email: 'later@example.test', role: 'member' };
  const invited = await ann.call<{ invitation_id: string }>('POST', `/v1/orgs/${ann.orgId}/invitations`, invitation);
  expect([namespace.status, invited.status]).toEqual([201, 201]);
  await expectShown(await streamAfter(after, ofWorkspace()), 'namespace.created', namespace.body.namespace_id);
  await expectShown(await streamAfter(after, ofOrganization()), 'invitation.created', invited.body.invitation_id);
});

test('what a transaction commits after the cursor comes, also what it wrote before it', async () => {
  const older = await app.database.pool.connect();
  onTestFinished(() => older.release(true));
  await older.query('begin');
  await insertEvent(older, ann, 'evt_begun-before');
  const after = await cursorNow();
  await older.query('commit');
  await expectShown(await streamAfter(after, ofWorkspace()), 'evt_begun-before');
});

test('a token asks for the cursor if it may follow streams', async () => {
  interface Refusal {
    data: null;
    errors: { extensions: { code: string } }[];
  }
  const codeFor = async (authorization: string) => (await ask<Refusal>(authorization)).errors[0]!.extensions.code;
  const reader = await issueToken(app, ann, { permissions: ['workspace:read'] });
  expect(await codeFor(reader.headers.authorization)).toBe('FORBIDDEN');
  expect(await codeFor('Bearer nobody')).toBe('AUTHENTICATION_FAILED');
  const follower = await issueToken(app, ann, { permissions: ['sync:subscribe'] });
  const { data } = await ask<{ data: { eventCursor: string } }>(follower.headers.authorization);
  expect(data.eventCursor).toMatch(/^[\da-f]{6}-\d+-0$/);
});
