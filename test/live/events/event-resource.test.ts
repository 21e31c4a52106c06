import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let url: string;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  ann = await register(app);
  // that its bucket is ready is an event of the workspace, too
  await waitFor(async () => expect(await ann.call('GET', home())).toMatchObject({ body: { bucket_status: 'ready' } }));
});
afterAll(() => app.close());

const opened: { close(): void }[] = [];
afterEach(async () => {
  for (const reader of opened.splice(0)) reader.close();
  await waitFor(() => expect(app.services.tail.size).toBe(0));
});

interface Shown {
  type: string;
  resourceId: string;
  resource: { __typename: string; id: string; name?: string; username?: string } | null;
}
type Payload = { data: Record<string, Shown>; errors?: unknown };
type Read = () => Shown[];

const RESOURCE = `resource { __typename id ... on Secret { name scope } ... on Workspace { name }
  ... on User { username } ... on Organization { name } }`;
const inWorkspace = (types: string[], selection = RESOURCE) => ({
  query: `subscription ($orgId: ID!, $workspaceId: ID!, $types: [String!], $join: Boolean) {
    workspaceEvents(orgId: $orgId, workspaceId: $workspaceId, types: $types, join: $join) {
      type resourceId ${selection} } }`,
  variables: { orgId: ann.orgId, workspaceId: ann.workspaceId, types, join: false },
});
const shownOf = (payloads: unknown[]): Shown[] =>
  (payloads as Payload[]).map(({ data, errors }) => {
    expect(errors).toBeUndefined();
    return Object.values(data)[0]!;
  });

async function overSse(reader: { headers: { authorization: string } }, operation: object): Promise<Read> {
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', ...reader.headers };
  const source = await openEvents(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify(operation) });
  opened.push(source);
  return () =>
    shownOf(source.events.filter(({ event }) => event === 'next').map(({ data }) => JSON.parse(data) as unknown));
}
async function overWs(reader: { headers: { authorization: string } }, operation: object): Promise<Read> {
  const socket = await openAcknowledged(url, reader.headers.authorization);
  opened.push(socket);
  socket.send({ id: '1', type: 'subscribe', payload: operation });
  return () => shownOf(socket.messages.filter(({ type }) => type === 'next').map(({ payload }) => payload));
}
const readers = (count: number) => waitFor(() => expect(app.services.tail.size).toBe(count));
const seen = (read: Read, count: number) => waitFor(() => expect(read()).toHaveLength(count));

let made = 0;
async function createSecret(): Promise<{ id: string; name: string }> {
  made += 1;
  const input = { workspaceId: ann.workspaceId, name: `KEY_${made}`, secretType: 'token', value: { token: 'x' } };
  const { data } = await ann.ask<{ createSecret: { id: string; name: string } }>(
    `mutation ($orgId: ID!, $input: CreateSecretInput!) { createSecret(orgId: $orgId, input: $input) { id name } }`,
    { orgId: ann.orgId, input },
  );
  return data.createSecret;
}
const home = () => `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
const rename = (name: string) => ann.call('PUT', home(), { name });

it.each([
  ['server-sent events', overSse],
  ['a WebSocket', overWs],
])('over %s, an event gives its resource as it is; `null` once it is deleted', async (_title, open) => {
  const read = await open(ann, inWorkspace(['secret.*', 'workspace.*']));
  await readers(1);
  const { id, name } = await createSecret();
  await seen(read, 1);
  await rename('Renamed');
  await seen(read, 2);
  expect(await ann.call('DELETE', `/v1/orgs/${ann.orgId}/secrets/${id}`)).toMatchObject({ status: 204 });
  await seen(read, 3);
  expect(read()).toEqual([
    { type: 'secret.created', resourceId: id, resource: { __typename: 'Secret', id, name, scope: 'workspace' } },
    {
      type: 'workspace.updated',
      resourceId: ann.workspaceId,
      resource: { __typename: 'Workspace', id: ann.workspaceId, name: 'Renamed' },
    },
    { type: 'secret.deleted', resourceId: id, resource: null },
  ]);
});

it('the events of an organization have theirs', async () => {
  const query = `subscription ($orgId: ID!) { organizationEvents(orgId: $orgId, types: ["organization.*"]) {
    type resourceId ${RESOURCE} } }`;
  const read = await overSse(ann, { query, variables: { orgId: ann.orgId } });
  await readers(1);
  await ann.ask('mutation ($id: ID!) { updateOrganization(id: $id, input: { name: "Lab" }) { id } }', {
    id: ann.orgId,
  });
  await seen(read, 1);
  expect(read()[0]!.resource).toEqual({ __typename: 'Organization', id: ann.orgId, name: 'Lab' });
});

describe('a reader sees of it what they may see', () => {
  it('a viewer hears nothing of secrets, and of the workspace as others do', async () => {
    const viewer = await colleague(app, ann, 'viewer');
    const read = await overSse(viewer, inWorkspace(['secret.*', 'workspace.*']));
    await readers(1);
    await createSecret();
    await rename('Shown to all');
    await seen(read, 1);
    expect(read()[0]!.resource).toMatchObject({ __typename: 'Workspace', name: 'Shown to all' });
  });

  it('a token gets `null`, without an error, for what it may not read', async () => {
    const token = await issueToken(app, ann, { permissions: ['sync:subscribe'] });
    const read = await overSse(token, inWorkspace(['presence.*']));
    const own = await overSse(ann, inWorkspace(['presence.*']));
    await readers(2);
    await ann.call('POST', `${home()}/sync/presence/join`);
    await Promise.all([seen(read, 1), seen(own, 1)]);
    expect(read()).toEqual([{ type: 'presence.joined', resourceId: ann.userId, resource: null }]);
    expect(own()[0]!.resource).toEqual({ __typename: 'User', id: ann.userId, username: ann.username });
  });
});

describe('reads', () => {
  /** The statements that read secrets for the readers of events. */
  const readsDuring = async (work: () => Promise<unknown>): Promise<number> => {
    const sent = await logQueries(app.database.pool).during(work);
    return sent.filter((text) => /from secrets t\b/.test(text)).length;
  };

  it.each([2, 20])('%i events are as many statements', async (count) => {
    const read = await overSse(ann, inWorkspace(['secret.created']));
    await readers(1);
    const statements = await readsDuring(async () => {
      for (let n = 1; n <= count; n++) {
        await createSecret();
        await seen(read, n);
      }
    });
    expect(read().every(({ resource }) => resource?.__typename === 'Secret')).toBe(true);
    expect(statements).toBe(count);
  });

  it('an event is one statement for all its readers', async () => {
    const admin = await colleague(app, ann, 'admin');
    const reads = await Promise.all(
      Array.from({ length: 20 }, (_, n) => overSse(n % 2 === 0 ? ann : admin, inWorkspace(['secret.created']))),
    );
    await readers(20);
    // their rights are known from here on: a busy machine renews them too late to be sure of that
    stopAges();
    await createSecret();
    await Promise.all(reads.map((read) => seen(read, 1)));
    const statements = await readsDuring(async () => {
      await createSecret();
      await Promise.all(reads.map((read) => seen(read, 2)));
    });
    expect(statements).toBe(1);
  });

  it('without the field there is none', async () => {
    const read = await overSse(ann, inWorkspace(['secret.created'], ''));
    await readers(1);
    const statements = await readsDuring(async () => {
      await createSecret();
      await seen(read, 1);
    });
    expect(statements).toBe(0);
  });
});
