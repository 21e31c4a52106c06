import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { StreamedAnswer } from '../../../src/platform/outbound/streamed-exchange.ts';
import { ToolProxy } from '../../../src/tools/tool-proxy/tool-proxy.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { waitUntil } from '../../support/wait.ts';

type Deps = ConstructorParameters<typeof ToolProxy>[0];
type Given = { orgId?: string; connection?: object | null };

const answered = (): StreamedAnswer => ({
  status: 200,
  headers: {},
  body: Readable.from(['ok']),
  takeWhole: () => null,
  sizes: { sent: 0, received: 0 },
  ended: Promise.resolve(null),
});

/** A proxy without a database: its instances are of the organization that their name begins with. */
function proxyWith(open: (url: URL) => Promise<StreamedAnswer>, more: object = {}, given: Given = {}) {
  const instance = (id: string) => ({
    id,
    orgId: id.split('.')[0],
    workspaceId: 'w',
    namespaceId: null,
    ownNamespaceId: null,
    endUserId: null,
    isActive: true,
    authMode: 'none',
    configuration: {},
    actions: [{ name: 'run', url_template: 'https://api.test/x' }],
    tool: { id: 't', name: 'T', status: 'active', credentialSchema: [] },
    secrets: {},
    connection: null,
    ...given,
  });
  const proxy = new ToolProxy({
    access: { requireWorkspace: async () => undefined },
    instances: { get: async (_place: unknown, id: string) => instance(id) },
    connections: {},
    outbound: { open: ({ url }: { url: URL }) => open(url) },
    limits: { demand: async () => undefined, pause: () => undefined },
    activity: { record: () => undefined },
    logger: quietLogger,
    ...more,
  } as unknown as Deps);
  const { signal } = new AbortController();
  const request = { method: 'GET', query: '', headers: {}, body: null, contentLength: null, signal };
  /** By a user of the organization, unless another is said. */
  const call = (id: string, path = 'x', userId = `user-of-${id.split('.')[0]!}`) =>
    proxy.call(
      { principal: { userId }, request: { traceId: 't' } } as Parameters<ToolProxy['call']>[0],
      { orgId: 'o', workspaceId: 'w' } as Parameters<ToolProxy['call']>[1],
      id,
      { ...request, path },
    );
  return { proxy, call };
}

test('organizations whose providers hang hold up nobody else', async () => {
  let hanging = 0;
  const { proxy, call } = proxyWith((url) => {
    if (url.pathname === '/good') return Promise.resolve(answered());
    hanging++;
    return new Promise(() => undefined);
  });
  const others = Array.from({ length: 8 }, (_none, index) => `org${index}`);
  for (const orgId of others)
    for (let i = 0; i < 48; i++) void call(`${orgId}.instance${i % 6}`).catch(() => undefined);
  await waitUntil(() => hanging === 8 * 16);
  expect(proxy.running).toBe(hanging);
  expect((await call('another.instance', 'good')).status).toBe(200);
});

/** A proxy whose calls hang until they are ended. */
function hangingProxy() {
  const ends: (() => void)[] = [];
  const open = (): Promise<StreamedAnswer> => new Promise((resolve) => ends.push(() => resolve(answered())));
  return { ...proxyWith(open), ends };
}

test('nobody fills it with many organizations', async () => {
  const { proxy, call, ends } = hangingProxy();
  for (let org = 0; org < 20; org++)
    for (let at = 0; at < 16; at++) void call(`org${org}.instance${at % 2}`, 'x', 'eve').catch(() => undefined);
  await waitUntil(() => ends.length === 32);
  const others = call('org19.instance', 'x', 'ann');
  await waitUntil(() => ends.length === 33);
  expect(proxy.running).toBe(33);
  ends.pop()!();
  expect((await others).status).toBe(200);
});

test('the last places are for organizations of which nothing runs', async () => {
  const { call, ends } = hangingProxy();
  const fill = (org: string, calls: number) => {
    for (let at = 0; at < calls; at++) void call(`${org}.instance${at % 2}`).catch(() => undefined);
  };
  for (let org = 0; org < 16; org++) fill(`org${org}`, 16);
  await waitUntil(() => ends.length === 256);
  fill('another', 2);
  fill('a-third', 2);
  await waitUntil(() => ends.length === 258);
});

test('a connection that was replaced while the call waited is not used: nobody allowed that', async () => {
  const connection = {
    connectionId: 'con_own',
    authType: 'oauth2',
    secret: 'own',
    status: 'connected',
    namespaceId: 'ns_1',
    expiresAt: new Date(0),
  };
  const other = { ...connection, connectionId: 'con_of_all', secret: 'of all' };
  let asked = 0;
  const connections = {
    freshFor: async () => other,
    callWith: async (_use: unknown, sent: object, ask: (sent: object) => Promise<unknown>) => ask(sent),
  };
  const open = async () => {
    asked++;
    return answered();
  };
  const { call, proxy } = proxyWith(open, { connections }, { connection });
  await expect(call('a.b')).rejects.toMatchObject({
    code: 'RESOURCE_CONFLICT',
    details: { reason: 'connection_changed' },
  });
  const afterRefusal = {
    freshFor: async () => connection,
    callWith: async (_use: unknown, sent: object, ask: (sent: object) => Promise<unknown>) => {
      await ask(sent);
      return ask(other);
    },
  };
  const second = proxyWith(open, { connections: afterRefusal }, { connection });
  await expect(second.call('a.b')).rejects.toMatchObject({ details: { reason: 'connection_changed' } });
  expect([asked, proxy.running, second.proxy.running]).toEqual([1, 0, 0]);
});
