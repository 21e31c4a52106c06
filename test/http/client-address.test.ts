import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ClientAddress } from '../../src/http/client-address.ts';
import { shownAddress } from '../../src/kernel/shown-address.ts';

const request = (peer: string, forwarded?: string | string[]) =>
  ({
    socket: { remoteAddress: peer },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

describe('without trusted proxies', () => {
  const clients = new ClientAddress([]);
  it.each(['198.51.100.1', '127.0.0.1', '::1', 'unknown', ''])('never believes X-Forwarded-For: %j', (forwarded) => {
    expect(clients.of(request('203.0.113.9', forwarded))).toBe('203.0.113.9');
  });
});

describe('with trusted proxies', () => {
  const clients = new ClientAddress(['10.0.0.0/8', '192.0.2.1', 'fd00::/8']);
  it.each([
    ['no header', '10.0.0.1', undefined, '10.0.0.1'],
    ['one hop', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['a forged hop left of the real one', '10.0.0.1', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['a chain of proxies of ours', '10.0.0.1', '198.51.100.1, 192.0.2.1, 10.2.3.4', '198.51.100.1'],
    ['a forged hop that looks like a proxy of ours', '10.0.0.1', '10.9.9.9, 198.51.100.1', '198.51.100.1'],
    ['several headers', '10.0.0.1', ['1.1.1.1', '198.51.100.1'], '198.51.100.1'],
    ['tabs and blanks', '10.0.0.1', '1.1.1.1,\t198.51.100.1 ', '198.51.100.1'],
    ['a hop that is no address', '10.0.0.1', '198.51.100.1, nonsense', '10.0.0.1'],
    ['nonsense left of a real hop', '10.0.0.1', 'nonsense, 198.51.100.1', '198.51.100.1'],
    ['an IPv4 address written as IPv6', '::ffff:10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
    ['an IPv6 client', 'fd00::1', '2001:db8::1', '2001:db8::1'],
    ['a peer that is no proxy of ours', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['nothing but proxies of ours', '10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
  ])('finds the client behind %s', (_what, peer, forwarded, client) => {
    expect(clients.of(request(peer, forwarded))).toBe(client);
  });

  it('does not look at other headers', () => {
    const forged = request('10.0.0.1');
    Object.assign(forged.headers, { forwarded: 'for=1.1.1.1', 'x-real-ip': '1.1.1.1', 'true-client-ip': '1.1.1.1' });
    expect(clients.of(forged)).toBe('10.0.0.1');
  });
});

describe('the key that limits count by', () => {
  it('is one for a whole /64 of IPv6, and each address of IPv4', () => {
    expect(ClientAddress.limitKey('2001:db8:1:2::1')).toBe(ClientAddress.limitKey('2001:db8:1:2:ffff:ffff:ffff:ffff'));
    expect(ClientAddress.limitKey('2001:db8:1:2::1')).not.toBe(ClientAddress.limitKey('2001:db8:1:3::1'));
    expect(ClientAddress.limitKey('198.51.100.1')).not.toBe(ClientAddress.limitKey('198.51.100.2'));
  });
});

it.each([
  ['2001:db8:1:2::5', '2001:db8:1:2::/64'],
  ['2001:db8::5', '2001:db8::/64'],
  ['2001:0:0:2::5', '2001:0:0:2::/64'],
  ['::1', '::/64'],
  ['203.0.113.9', '203.0.113.9'],
  ['unknown', 'unknown'],
])('is shown to people as they write it: %s', (address, shown) => {
  expect(shownAddress(ClientAddress.limitKey(address))).toBe(shown);
});
