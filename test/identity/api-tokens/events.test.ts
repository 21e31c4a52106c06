import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
let url: string;
/** Two of each: `n1`, `n2`, `e1`, `e2`, `a1`, `a2`. */
const ids: Record<string, string> = {};

const made = async (path: string, body: object, key: string) => {
  const answer = await callsOf(app).post(path, body, owner.headers);
  if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${answer.body}`);
  const json = answer.json();
  return (json.environment ?? json)[key] as string;
};
const home = () => `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;

beforeAll(async () => {
  app = await startTestApp();
  await register(app);
  owner = await register(app);
  url = await app.listen();
  // the bucket's readiness is an event of the workspace, which would be taken for the last one below
  while ((await app.services.buckets.provisionPending()) > 0);
  for (const n of [1, 2]) {
    ids[`n${n}`] = await made(`${home()}/namespaces`, { name: `namespace ${n}` }, 'namespace_id');
    ids[`e${n}`] = await made(`${home()}/environments`, { name: `environment ${n}`, slug: `e${n}` }, 'environment_id');
    ids[`a${n}`] = await made(`${home()}/apps`, { name: `app ${n}` }, 'app_id');
  }
});
afterAll(() => app.close());

const subscription = () =>
  `subscription { workspaceEvents(orgId: "${owner.orgId}", workspaceId: "${owner.workspaceId}") {
    cursor type resourceId namespaceId environmentId appId } }`;
const streams = (count: number) => waitFor(() => expect(app.services.tail.size).toBe(count));

/** Reads everything, tokens too. */
const all = { permissions: ['sync:subscribe', '*:read'] };

let runs = 0;
/** Changes in both of each place, and in none. @returns what was changed, by the places that it lies in */
async function changeEverything(): Promise<Record<string, string>> {
  const changed: Record<string, string> = {};
  const run = ++runs;
  const secrets = `/v1/orgs/${owner.orgId}/secrets`;
  const secret = (name: string, place: object) =>
    made(
      secrets,
      { name: `${name}-${run}`, secret_type: 'token', value: { a: 1 }, workspace_id: owner.workspaceId, ...place },
      'secret_id',
    );
  const { put, delete: remove } = callsOf(app);
  for (const n of [1, 2]) {
    const [namespace_id, environment_id, app_id] = [ids[`n${n}`]!, ids[`e${n}`]!, ids[`a${n}`]!];
    changed[`thread in n${n}`] = await made(`${home()}/namespaces/${namespace_id}/threads`, {}, 'thread_id');
    changed[`secret in n${n}`] = await secret(`n${n}`, { scope: 'namespace', namespace_id });
    changed[`secret in e${n}`] = await secret(`e${n}`, { scope: 'environment', environment_id });
    const release_id = await made(`${home()}/apps/${app_id}/releases`, {}, 'release_id');
    changed[`release in a${n}`] = release_id;
    const deployed = await callsOf(app).post(
      `${home()}/environments/${environment_id}/deploy`,
      { app_id, release_id },
      owner.headers,
    );
    expect(deployed.statusCode).toBe(200);
    const { id } = await app.database.prisma.deployment.findFirstOrThrow({ where: { releaseId: release_id } });
    changed[`deployment in e${n} a${n}`] = id;
    changed[`app_token in a${n}`] = (await issueToken(app, owner, { app_id })).id;
    await put(`${home()}/namespaces/${namespace_id}`, { description: 'x' }, owner.headers);
    changed[`namespace in n${n}`] = namespace_id;
    await put(`${home()}/environments/${environment_id}`, { description: 'x' }, owner.headers);
    changed[`environment in e${n}`] = environment_id;
    await put(`${home()}/apps/${app_id}`, { description: 'x' }, owner.headers);
    changed[`app in a${n}`] = app_id;
  }
  changed.secret = await secret('w', { scope: 'workspace' });
  const short = await made(`${home()}/namespaces`, { name: 'short' }, 'namespace_id');
  changed['secret in n3'] = await secret('n3', { scope: 'namespace', namespace_id: short });
  await remove(`${home()}/namespaces/${short}`, owner.headers);
  await put(home(), { description: 'the end' }, owner.headers);
  changed.workspace = owner.workspaceId;
  return changed;
}

interface Heard {
  cursor: string;
  type: string;
  resourceId: string;
  namespaceId: string | null;
  environmentId: string | null;
  appId: string | null;
}

describe('a stream of a token that is confined', () => {
  it('tells what lies in its places and in none, and nothing of others, over WebSocket and SSE', async () => {
    const confined: Record<string, { headers: { authorization: string }; hidden: RegExp }> = {
      nothing: { ...(await issueToken(app, owner, all)), hidden: /^$/ },
      namespaces: { ...(await issueToken(app, owner, { ...all, namespace_ids: [ids.n1] })), hidden: / n[23]/ },
      environments: { ...(await issueToken(app, owner, { ...all, environment_ids: [ids.e1] })), hidden: / e2/ },
      both: {
        ...(await issueToken(app, owner, { ...all, namespace_ids: [ids.n1], environment_ids: [ids.e1] })),
        hidden: / (?:n[23]|e2)/,
      },
      app: { ...(await issueToken(app, owner, { ...all, app_id: ids.a1 })), hidden: / a2/ },
      session: { headers: owner.headers, hidden: /^$/ },
    };
    const open = await Promise.all(
      Object.entries(confined).map(async ([what, { headers, hidden }]) => {
        const socket = await openAcknowledged(url, headers.authorization);
        socket.send({ id: '1', type: 'subscribe', payload: { query: subscription() } });
        const stream =
          what === 'namespaces'
            ? await openEvents(`${url}/graphql`, {
                method: 'POST',
                headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
                body: JSON.stringify({ query: subscription() }),
              })
            : null;
        return { what, hidden, socket, stream };
      }),
    );
    await streams(open.length + 1);
    const changed = await changeEverything();
    for (const { what, hidden, socket, stream } of open) {
      await socket.next(({ payload }) => JSON.stringify(payload ?? '').includes('workspace.updated'));
      const heard = socket.messages.flatMap(({ type, payload }) =>
        type === 'next' ? [(payload as { data: { workspaceEvents: Heard } }).data.workspaceEvents] : [],
      );
      const places = Object.entries(changed).filter(([, id]) => heard.some(({ resourceId }) => resourceId === id));
      const expected = Object.keys(changed).filter((place) => !hidden.test(place));
      expect([what, places.map(([place]) => place)]).toEqual([what, expected]);
      if (hidden.source !== '^$')
        for (const [place, id] of Object.entries(ids))
          if (hidden.test(` ${place}`)) expect([what, JSON.stringify(heard).includes(id)]).toEqual([what, false]);
      if (stream) {
        await stream.next(({ data }) => data.includes('workspace.updated'));
        expect(JSON.stringify(stream.events)).not.toContain(ids.n2);
        expect(JSON.stringify(stream.events)).not.toContain(changed['thread in n2']);
        stream.close();
      }
      socket.close();
    }
    await streams(0);
  });

  it('tells it nothing of what must lie in a place but does not say in which', async () => {
    const token = await issueToken(app, owner, { ...all, namespace_ids: [ids.n1] });
    const socket = await openAcknowledged(url, token.headers.authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query: subscription() } });
    await streams(1);
    await app.database.pool.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id)
       values ('evt_old', $1, $2, 'thread.created', '{}', 'thread', 'thr_old')`,
      [owner.orgId, owner.workspaceId],
    );
    await callsOf(app).put(home(), { description: 'after it' }, owner.headers);
    await socket.next(({ payload }) => JSON.stringify(payload ?? '').includes('workspace.updated'));
    expect(JSON.stringify(socket.messages)).not.toContain('thr_old');
    socket.close();
    await streams(0);
  });

  it('after a reconnect gets exactly those missed events that it would have received live', async () => {
    const everything = await openAcknowledged(url, owner.headers.authorization);
    everything.send({ id: '1', type: 'subscribe', payload: { query: subscription() } });
    await streams(1);
    await callsOf(app).put(home(), { description: 'from here' }, owner.headers);
    const { payload } = await everything.next(({ type }) => type === 'next');
    const { cursor } = (payload as { data: { workspaceEvents: Heard } }).data.workspaceEvents;
    everything.close();
    await streams(0);
    const changed = await changeEverything();
    const again = subscription().replace(') {', `, after: "${cursor}") {`);
    for (const [hidden, token] of [
      [/ n[23]/, await issueToken(app, owner, { ...all, namespace_ids: [ids.n1] })],
      [/ e2/, await issueToken(app, owner, { ...all, environment_ids: [ids.e1] })],
      [/ a2/, await issueToken(app, owner, { ...all, app_id: ids.a1 })],
    ] as const) {
      const socket = await openAcknowledged(url, token.headers.authorization);
      socket.send({ id: '1', type: 'subscribe', payload: { query: again } });
      await socket.next(({ payload: sent }) => JSON.stringify(sent ?? '').includes('workspace.updated'));
      const text = JSON.stringify(socket.messages);
      for (const [place, id] of Object.entries(changed))
        expect([place, text.includes(id)]).toEqual([place, !hidden.test(` ${place}`)]);
      socket.close();
    }
    await streams(0);
  });
});
