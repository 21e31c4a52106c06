// own process: counts the connections that the process opens
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import os from 'node:os';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { isPublic } from '../../../src/platform/outbound/addresses.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { type DnsServer, type DnsZone, startDnsServer } from '../../support/dns-server.ts';
import { hostileTargets, loopbackHosts, zone } from '../../support/hostile-targets.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';

/** Listens on every address of this machine. */
let everywhere: Sentinel;
/** Listens on 127.0.0.1 and ::1 only, so that 127.0.0.2 can be the outside on the same port. */
let inside: Sentinel[];
/** Every attempt of this process to connect, wherever it goes. */
let attempts: { mock: { calls: unknown[][] } };
const closers: (() => Promise<unknown>)[] = [];

/** Counts who comes. */
interface Sentinel {
  port: number;
  seen: number;
  close(): Promise<unknown>;
}

async function startSentinel(host: string, port = 0): Promise<Sentinel> {
  const server = net.createServer((socket) => {
    sentinel.seen += 1;
    socket.on('error', () => socket.destroy()).destroy();
  });
  server.listen(port, host);
  await once(server, 'listening');
  const sentinel: Sentinel = {
    port: (server.address() as AddressInfo).port,
    seen: 0,
    close: () => once(server.close(), 'close'),
  };
  return sentinel;
}

/** Some containers have no IPv6, not even for themselves. */
const hasIpv6 = Object.values(os.networkInterfaces()).some((entries) =>
  entries?.some(({ address }) => address === '::1'),
);

beforeAll(async () => {
  everywhere = await startSentinel(hasIpv6 ? '::' : '0.0.0.0');
  const first = await startSentinel('127.0.0.1');
  inside = hasIpv6 ? [first, await startSentinel('::1', first.port)] : [first];
});

afterAll(() => Promise.all([everywhere, ...inside].map((sentinel) => sentinel.close())));

beforeEach(() => {
  for (const sentinel of [everywhere, ...inside]) sentinel.seen = 0;
  attempts = vi.spyOn(net.Socket.prototype, 'connect');
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closers.splice(0).reverse()) await close();
});

async function dns(answers: DnsZone): Promise<DnsServer> {
  const server = await startDnsServer(answers);
  closers.push(() => server.close());
  return server;
}

function client(server: DnsServer, allow = ''): Outbound {
  const config = loadConfig({ OUTBOUND_ALLOW: allow, OUTBOUND_DNS: server.address });
  const outbound = new Outbound({ config, logger: quietLogger });
  closers.push(() => outbound.close());
  return outbound;
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => 'answered',
    (reason: unknown) => reason,
  );
  return error instanceof OutboundError ? error.code : String(error);
}

/** The same by a call whose bodies pass through. */
const streamed = (outbound: Outbound, url: string) =>
  outbound.open({
    method: 'GET',
    url: new URL(url),
    headers: {},
    body: null,
    contentLength: null,
    signal: new AbortController().signal,
    limits: { headMs: 10_000, idleMs: 10_000, wholeMs: 10_000, maxBytes: 1_000 },
  });

/** A server that may be called: it stands for the outside. */
async function outside(...given: Parameters<typeof startTarget>): Promise<TargetServer> {
  const server = await startTarget(...given);
  closers.push(() => server.close());
  return server;
}

/**
 * How many connections the sentinels have seen since they were asked last. They accept in order, so that one of our
 * own, which is not counted, comes after all others.
 */
async function seenBySentinels(): Promise<number> {
  let seen = 0;
  for (const sentinel of [everywhere, ...inside]) {
    await once(net.connect(sentinel.port, sentinel === inside[1] ? '::1' : '127.0.0.1'), 'close');
    seen += sentinel.seen - 1;
    sentinel.seen = 0;
  }
  return seen;
}

describe('hostile targets', () => {
  it('are refused, each for its reason, and nothing connects anywhere', async () => {
    const targets = hostileTargets(everywhere.port);
    expect(new Set(targets.map(({ url }) => url)).size).toBeGreaterThanOrEqual(120);
    const outbound = client(await dns(zone));
    const codes: Record<string, string> = {};
    for (const { url } of targets) codes[url] = await codeOf(outbound.request({ url }));
    expect(codes).toEqual(Object.fromEntries(targets.map(({ url, code }) => [url, code])));
    // calls whose bodies pass through; what is no URL never comes to them
    for (const { url, code } of targets)
      if (URL.canParse(url)) expect([url, await codeOf(streamed(outbound, url))]).toEqual([url, code]);
    expect(attempts.mock.calls).toEqual([]);
    expect(await seenBySentinels()).toBe(0);
  });

  it('are refused in redirects, whatever the status', async () => {
    // relative ones stay within the server that redirects
    const targets = hostileTargets(everywhere.port).filter(({ url }) => /^\s*[a-z+\n]+:|^\/\//i.test(url));
    const statuses = [301, 302, 303, 307, 308];
    const server = await outside((request, response) => {
      const [, index, status] = request.url!.split('/');
      // bytes, as a server would send them
      const location = Buffer.from(targets[Number(index)]!.url.replaceAll(/[\t\n]/g, '')).toString('latin1');
      response.writeHead(Number(status), { location }).end();
    });
    const outbound = client(await dns(zone), `127.0.0.1:${server.port}`);
    const codes = new Set<string>();
    for (const index of targets.keys()) {
      const path = `${index}/${statuses[index % statuses.length]}`;
      const code = await codeOf(outbound.request({ url: `http://127.0.0.1:${server.port}/${path}`, method: 'POST' }));
      codes.add(`${code}`);
    }
    expect([...codes].sort()).toEqual(['blocked_address', 'redirect']);
    expect(await seenBySentinels()).toBe(0);
  });

  it('would be reached without the rules: each way to write loopback connects once all is opened', async () => {
    const outbound = client(await dns(zone), '0.0.0.0/0, ::/0');
    for (const host of loopbackHosts.filter((spelling) => hasIpv6 || !spelling.startsWith('['))) {
      await codeOf(outbound.request({ url: `http://${host}:${everywhere.port}/` }));
      expect([host, await seenBySentinels()]).toEqual([host, 1]);
    }
  });

  it('includes this machine under its own addresses', async () => {
    const own = Object.values(os.networkInterfaces()).flatMap((entries) => entries ?? []);
    const outbound = client(await dns(zone));
    for (const { address, family } of own) {
      const host = family === 'IPv6' ? `[${address}]` : address;
      expect(await codeOf(outbound.request({ url: `https://${host}:${everywhere.port}` }))).toBe('blocked_address');
    }
    vi.spyOn(os, 'networkInterfaces').mockReturnValue({
      eth0: [{ ...own[0]!, family: 'IPv4', address: '93.184.215.14' } as os.NetworkInterfaceInfo],
    });
    expect(isPublic('93.184.215.14')).toBe(false);
    expect(isPublic('93.184.215.15')).toBe(true);
    expect(await seenBySentinels()).toBe(0);
  });
});

describe('metadata services', () => {
  it('stay closed when everything is opened', async () => {
    const names = ['metadata.google.internal', 'metadata.test', 'metadata6.test', 'alias-of-metadata.test'];
    const outbound = client(await dns(zone), `0.0.0.0/0, ::/0, ${names.slice(1).join()}`);
    for (const host of [
      ...names,
      '169.254.169.254',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::a9fe:a9fe]',
      '[2002:a9fe:a9fe::]',
      '[fd00:ec2::254]',
      '100.100.100.200',
      '168.63.129.16',
      '0.0.0.0',
      '[::]',
    ])
      expect([host, await codeOf(outbound.request({ url: `http://${host}:${everywhere.port}` }))]).toEqual([
        host,
        'blocked_address',
      ]);
    expect(attempts.mock.calls).toEqual([]);
  });
});

describe('rebinding', () => {
  let port: number;

  beforeAll(() => {
    port = inside[0]!.port;
  });

  /** The first answers lead to the outside, which is 127.0.0.2 here; all later ones to the sentinel. */
  const rebinding =
    (good: number): DnsZone =>
    ({ type, earlier }) =>
      type === 'A' ? [{ address: earlier < good ? '127.0.0.2' : '127.0.0.1', ttl: 0 }] : [];

  it('between two calls is refused', async () => {
    const server = await outside((_request, response) => response.end(), { host: '127.0.0.2', port });
    const names = await dns(rebinding(1));
    const outbound = client(names, '127.0.0.2');
    const codes = [];
    for (let i = 0; i < 3; i++) codes.push(await codeOf(outbound.request({ url: `http://rebinding.test:${port}/` })));
    expect(codes).toEqual(['answered', 'blocked_address', 'blocked_address']);
    expect(server.connections).toBe(1);
    expect(await seenBySentinels()).toBe(0);
  });

  it('between the check and the connection does nothing: a call asks once', async () => {
    const server = await outside((_request, response) => response.end(), { host: '127.0.0.2', port });
    const names = await dns(rebinding(1));
    await client(names, '127.0.0.2').request({ url: `http://rebinding.test:${port}/` });
    expect(names.questions.map(({ type }) => type).sort()).toEqual(['A', 'AAAA']);
    expect([server.connections, await seenBySentinels()]).toEqual([1, 0]);
  });

  it('does nothing to a call whose bodies pass through', async () => {
    const server = await outside((_request, response) => response.end(), { host: '127.0.0.2', port });
    const outbound = client(await dns(rebinding(1)), '127.0.0.2');
    const codes = [];
    for (let i = 0; i < 2; i++) {
      const answer = streamed(outbound, `http://rebinding.test:${port}/`);
      codes.push(await codeOf(answer));
      await answer.then(({ body }) => body.resume()).catch(() => undefined);
    }
    expect(codes).toEqual(['answered', 'blocked_address']);
    expect([server.connections, await seenBySentinels()]).toEqual([1, 0]);
  });

  it('defeats a client that checks and then connects by name, which shows that this server can do it', async () => {
    const names = await dns(rebinding(1));
    const resolver = new Resolver();
    resolver.setServers([names.address]);
    expect(await resolver.resolve4('rebinding.test')).toEqual(['127.0.0.2']); // the check
    const socket = net.connect({
      host: 'rebinding.test',
      port,
      family: 4,
      lookup: (host, _options, done) => {
        void resolver.resolve4(host).then(([address]) => done(null, address!, 4));
      },
    });
    await once(socket, 'close');
    expect(await seenBySentinels()).toBe(1);
  });

  it('between the hops of a redirect is refused', async () => {
    const server = await outside((_request, response) => response.writeHead(307, { location: '/next' }).end(), {
      host: '127.0.0.2',
      port,
    });
    const outbound = client(await dns(rebinding(2)), '127.0.0.2');
    expect(await codeOf(outbound.request({ url: `http://rebinding.test:${port}/` }))).toBe('blocked_address');
    expect([server.connections, await seenBySentinels()]).toEqual([2, 0]);
  });
});
