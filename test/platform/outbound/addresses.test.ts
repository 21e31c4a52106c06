import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { embedded, isNeverCalled, isPublic } from '../../../src/platform/outbound/addresses.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { parseUrl, TargetRules, targetOf } from '../../../src/platform/outbound/target-rules.ts';

const dotted = (bytes: readonly number[]): string => bytes.join('.');
const v4 = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 });
const v6 = fc
  .array(fc.nat(255), { minLength: 16, maxLength: 16 })
  .map((bytes) => ipaddr.fromByteArray(bytes).toString());

describe('isPublic', () => {
  it('says so of nothing that another list of special addresses has', () => {
    const isUnicast = (address: string) => !isPublic(address) || ipaddr.parse(address).range() === 'unicast';
    fc.assert(fc.property(v4.map(dotted), isUnicast), { numRuns: 3_000 });
    fc.assert(fc.property(v6, isUnicast), { numRuns: 3_000 });
    // most random addresses are in none of the small ranges: half of the bytes come from one
    const special = fc.constantFrom(
      '2001::',
      '2001:db8::',
      '2002::',
      '64:ff9b::',
      '::ffff:0:0',
      '::',
      'fe80::',
      'fc00::',
    );
    const near = fc.tuple(special, fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }), fc.nat(12));
    const address = near.map(([start, bytes, at]) => {
      const all = ipaddr.parse(start).toByteArray();
      all.splice(at, 4, ...bytes);
      return ipaddr.fromByteArray(all).toString();
    });
    fc.assert(fc.property(address, isUnicast), { numRuns: 3_000 });
  });

  it.each([
    ['9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0'],
    ['100.63.255.255', '100.64.0.0', '100.127.255.255', '100.128.0.0'],
    ['126.255.255.255', '127.0.0.0', '127.255.255.255', '128.0.0.0'],
    ['169.253.255.255', '169.254.0.0', '169.254.255.255', '169.255.0.0'],
    ['172.15.255.255', '172.16.0.0', '172.31.255.255', '172.32.0.0'],
    ['191.255.255.255', '192.0.0.0', '192.0.0.255', '192.0.1.0'],
    ['192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
    ['192.88.98.255', '192.88.99.0', '192.88.99.255', '192.88.100.0'],
    ['192.167.255.255', '192.168.0.0', '192.168.255.255', '192.169.0.0'],
    ['198.17.255.255', '198.18.0.0', '198.19.255.255', '198.20.0.0'],
    ['198.51.99.255', '198.51.100.0', '198.51.100.255', '198.51.101.0'],
    ['203.0.112.255', '203.0.113.0', '203.0.113.255', '203.0.114.0'],
    ['2a00::1', '2002::', '2002:ffff:ffff::', '2003::1'],
    ['2001:200::1', '2001::', '2001:1ff:ffff:ffff::', '2001:200::'],
    ['2001:db7::1', '2001:db8::', '2001:db8:ffff::', '2001:db9::'],
    ['2000::1', '1fff:ffff::', '4000::', '3ffe::1'],
  ])('knows where ranges begin and end: %s, %s to %s, %s', (before, first, last, after) => {
    expect([before, first, last, after].map(isPublic)).toEqual([true, false, false, true]);
  });

  it.each(['', 'localhost', '127.1', '1.2.3.4.5', '1.2.3.4/8', ':::', 'fe80::1%lo'])('refuses %j', (text) => {
    expect([isPublic(text), isNeverCalled(text)]).toEqual([false, true]);
  });
});

describe('embedded', () => {
  it.each([
    ['::ffff:1.2.3.4', ['1.2.3.4']],
    ['::1.2.3.4', ['1.2.3.4']],
    ['::ffff:0:1.2.3.4', ['1.2.3.4']],
    ['64:ff9b::1.2.3.4', ['1.2.3.4']],
    ['64:ff9b:1:2::1.2.3.4', ['1.2.3.4']],
    ['2002:102:304::9', ['1.2.3.4']],
    ['2001:0:102:304:0:0:fafb:fcfd', ['1.2.3.4', '5.4.3.2']],
    ['::1', []],
    ['::', []],
    ['2606:4700::1', []],
    ['1.2.3.4', []],
  ])('finds the IPv4 addresses in %s', (address, found) => {
    expect(embedded(address)).toEqual(found);
  });
});

describe('spellings', () => {
  /** One number of an address as decimal, octal or hexadecimal. */
  const spelled = (value: number) =>
    fc.constantFrom(value.toString(), `0${value.toString(8)}`, `0x${value.toString(16)}`, `0X000${value.toString(16)}`);
  const inside = v4.filter((bytes) => !isPublic(dotted(bytes)));
  const spelling = inside.chain((bytes) =>
    fc.integer({ min: 1, max: 4 }).chain((parts) => {
      const rest = bytes.slice(parts - 1).reduce((sum, byte) => sum * 256 + byte, 0);
      const numbers = [...bytes.slice(0, parts - 1), rest];
      const dot = fc.constantFrom('.', '。', '．', '｡', '%2e');
      return fc.tuple(fc.tuple(...numbers.map(spelled)), dot, fc.constantFrom('', '.'));
    }),
  );

  it('of an address are the address', () => {
    const rules = new TargetRules([]);
    fc.assert(
      fc.property(spelling, fc.constantFrom('http', 'https'), ([numbers, dot, end], scheme) => {
        const target = targetOf(parseUrl(`${scheme}://${numbers.join(dot)}${end}/`));
        expect(() => rules.check(target, [target.host])).toThrow(new OutboundError('blocked_address'));
      }),
      { numRuns: 1_000 },
    );
  });
});
