import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { gate } from '../../support/gate.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { hurryTimers } from '../../support/passing-time.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { startRawTarget, startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';
import { instancesOf, type Json } from '../tool-instances/instances.ts';
import { connect, exchange, initiate, rowOf, shownBy, startConnectingApp } from './connecting.ts';
import { newOAuthInstance } from './oauth-instances.ts';

let app: TestApp;
let server: OAuthServer;
/** An API that answers 401 whatever it is given. */
let refusing: TargetServer;
let ann: Person;
beforeAll(async () => {
  [app, server, refusing] = await Promise.all([
    startConnectingApp(),
    startOAuthServer(),
    startTarget((_request, response) => response.writeHead(401).end('no')),
  ]);
});
// nobody tests or starts more than 30 in a minute
beforeEach(async () => {
  server.misbehave.length = 0;
  server.grants = {};
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await Promise.all([server.close(), refusing.close()]);
});

interface Tested {
  success: boolean;
  message: string;
  details: Json;
  latency_ms: number;
}

const base = () => `${ann.home}/connections`;
const client = () => ({ id: server.clientId, secret: server.clientSecret });
const tryIt = async (id: string): Promise<Tested> => {
  const { status, body } = await ann.call<Tested>('POST', `${instancesOf(ann)}/${id}/test`, {});
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
};

/** An instance that is connected for the workspace. */
async function connectedOne(apiUrl = `${server.url}/api`, action: Json = {}) {
  const { instance_id: id } = await newOAuthInstance(ann, server.service, client(), apiUrl, action);
  const { connection_id: connectionId } = await connect(ann, server, base(), id);
  return { id, connectionId };
}
/** Requests of the API that the server got for an instance since `from`. */
const apiCalls = (from: number) => server.requests.slice(from).filter(({ path }) => path === '/api').length;

describe('an API that answers 401', () => {
  test('causes exactly one refresh, and the second call is the result', async () => {
    const { id, connectionId } = await connectedOne();
    server.accessTokens.clear();
    const from = server.requests.length;
    expect(await tryIt(id)).toEqual({
      success: true,
      message: 'Tracker answered 200.',
      details: { code: 'ok', action: 'me', method: 'GET', host: `127.0.0.1:${server.port}`, status: 200 },
      latency_ms: expect.any(Number),
    });
    expect([server.grants.refresh_token, apiCalls(from)]).toEqual([1, 2]);
    expect(await rowOf(app, connectionId)).toMatchObject({ status: 'connected', lastError: null });
    const { body } = await ann.call<Json>('GET', `${instancesOf(ann)}/${id}`);
    expect(body).toMatchObject({ usage_count: 1, connection_status: 'connected', has_credentials: true });
  });

  test('to the new token too is the result, and is asked for no third token', async () => {
    const { id, connectionId } = await connectedOne(`http://127.0.0.1:${refusing.port}/`);
    const seen = refusing.requests.length;
    for (const calls of [2, 3]) {
      expect(await tryIt(id)).toMatchObject({
        success: false,
        message: 'Tracker answered 401: it does not accept the credentials.',
        details: { code: 'http_401', status: 401 },
      });
      expect([server.grants.refresh_token, refusing.requests.length - seen]).toEqual([1, calls]);
    }
    // the authorization server still vouches for it: nobody is asked to authorize again
    expect(await rowOf(app, connectionId)).toMatchObject({
      status: 'error',
      lastError: 'The provider answered 401: it does not accept the access token.',
    });
    expect(await shownBy(app, id)).toBe('error');
    const told = (await eventsOf(app, connectionId)).filter((type) => type !== 'connection.created');
    expect(told).toEqual(['connection.updated', 'connection.updated']);
  });

  test('while the refresh token is dead too: it must be authorized again', async () => {
    const { id, connectionId } = await connectedOne();
    server.accessTokens.clear();
    server.refreshTokens.clear();
    const from = server.requests.length;
    const result = await tryIt(id);
    expect(result).toMatchObject({
      success: false,
      message:
        'The connection must be authorized again. ' +
        "The provider 'tracker' answered invalid_grant: invalid_grant it is",
      details: { code: 'needs_reauth', action: 'me' },
    });
    expect([server.grants.refresh_token, apiCalls(from)]).toEqual([1, 1]);
    expect(await rowOf(app, connectionId)).toMatchObject({ status: 'needs_reauth', refreshAt: null });
    expect(await shownBy(app, id)).toBe('needs_reauth');
    expect((await eventsOf(app, connectionId)).at(-1)).toBe('connection.needs_reauth');
    // and then works again
    await connect(ann, server, base(), id);
    expect(await tryIt(id)).toMatchObject({ success: true });
    expect(await shownBy(app, id)).toBe('connected');
  });

  test('while the authorization server is in trouble: its 401 is the result, and the connection stays', async () => {
    const { id, connectionId } = await connectedOne();
    server.accessTokens.clear();
    server.misbehave.push({ status: 503 });
    expect(await tryIt(id)).toMatchObject({ success: false, details: { code: 'http_401', status: 401 } });
    expect(await rowOf(app, connectionId)).toMatchObject({ status: 'connected', refreshFailures: 1 });
  });

  test('while the authorization server takes its time: a timeout, and the refresh goes on', async () => {
    const { id, connectionId } = await connectedOne(undefined, { timeout_seconds: 8 });
    server.accessTokens.clear();
    const { opened: later, open: answer } = gate();
    server.misbehave.push({ until: () => later });
    const time = hurryTimers();
    const tried = tryIt(id);
    await waitUntil(() => server.grants.refresh_token === 1);
    time.pass(8_000);
    expect(await tried).toMatchObject({
      success: false,
      message: 'The target did not answer in time.',
      details: { code: 'timeout' },
    });
    answer();
    await waitFor(async () => expect((await rowOf(app, connectionId)).lastRefreshedAt).not.toBeNull());
    expect(await tryIt(id)).toMatchObject({ success: true });
    expect(server.grants.refresh_token).toBe(1);
  });
});

describe.each([
  ['refuses connections', async () => closed(await startTarget(() => undefined))],
  ['breaks connections off', async () => startRawTarget((socket) => void socket.resetAndDestroy())],
  ['closes without a word', async () => startRawTarget((socket) => void socket.end())],
])('a provider that %s', (_title, start) => {
  let dead: TargetServer;
  beforeAll(async () => {
    dead = await start();
  });
  afterAll(() => dead.close());
  const service = () => {
    const url = `http://127.0.0.1:${dead.port}`;
    return { ...server.service, authorization_url: `${url}/auth`, token_url: `${url}/token` };
  };

  test('initiate needs no answer of it; the exchange is 502, keeps nothing and can be started again', async () => {
    const { instance_id: id } = await newOAuthInstance(ann, service(), client(), `${server.url}/api`);
    const begun = await initiate(ann, base(), id);
    const answer = await exchange(ann, 'any-code', begun.state);
    expect(answer).toEqual({
      status: 502,
      body: {
        error: 'UPSTREAM_ERROR',
        message:
          "The provider 'tracker' could not be reached. The target could not be reached, or the connection broke.",
        details: { upstream: 'tracker' },
        status_code: 502,
        timestamp: expect.any(String),
      },
    });
    const { prisma } = app.database;
    const connectionId = begun.connection_id;
    expect(await prisma.credential.findUnique({ where: { connectionId } })).toBeNull();
    expect((await exchange(ann, 'any-code', begun.state)).status).toBe(422);
    expect((await initiate(ann, base(), id)).connection_id).toBe(connectionId);
    // nobody finished it within ten minutes
    await prisma.connection.update({ where: { id: connectionId }, data: { refreshAt: new Date(0) } });
    await app.services.connectionRefresh.refreshDue({ signal: new AbortController().signal });
    await waitFor(async () => expect(await prisma.connection.findUnique({ where: { id: connectionId } })).toBeNull());
    expect(await shownBy(app, id)).toBe('not_connected');
  });

  test('a test call is a result with a code, and the connection stays', async () => {
    const { id, connectionId } = await connectedOne(`http://127.0.0.1:${dead.port}/me`);
    const before = await rowOf(app, connectionId);
    expect(await tryIt(id)).toEqual({
      success: false,
      message: 'The target could not be reached, or the connection broke.',
      details: { code: 'network', action: 'me', method: 'GET', host: `127.0.0.1:${dead.port}` },
      latency_ms: expect.any(Number),
    });
    expect(await rowOf(app, connectionId)).toEqual(before);
  });
});

test('an API that never answers is a timeout, with the connection as it was', async () => {
  const silent = await startTarget(() => undefined);
  const { id, connectionId } = await connectedOne(`http://127.0.0.1:${silent.port}/`, { timeout_seconds: 1 });
  const before = await rowOf(app, connectionId);
  expect(await tryIt(id)).toMatchObject({ success: false, details: { code: 'timeout' } });
  expect(await rowOf(app, connectionId)).toEqual(before);
  await silent.close();
});

/** A server that nobody answers at any more. */
async function closed(target: TargetServer): Promise<TargetServer> {
  await target.close();
  return { ...target, close: async () => undefined };
}
