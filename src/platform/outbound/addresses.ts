import { BlockList, isIP } from 'node:net';
import os from 'node:os';
import ipaddr from 'ipaddr.js';

/** `10.0.0.0/8` or a single address, as {@link BlockList} reads it. */
export function rangesOf(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', bits] = text.split('/');
    list.addSubnet(address, Number(bits ?? (isIP(address) === 4 ? 32 : 128)), familyOf(address));
  }
  return list;
}

/**
 * What no setting opens: metadata services of clouds with their credentials, and addresses that name no single machine.
 * Link-local addresses are here as a whole, since metadata services keep appearing in them.
 */
export const NEVER_RANGES = [
  '0.0.0.0/8',
  '169.254.0.0/16',
  '100.100.100.200', // Alibaba
  '168.63.129.16', // Azure, a public address that is only answered inside
  '192.0.0.192', // Oracle
  '224.0.0.0/4',
  '255.255.255.255',
  '::',
  'fe80::/10',
  'ff00::/8',
  'fd00:ec2::/32', // Amazon
  'fd20:ce::254', // Google
  'fd00:42::42', // Scaleway
];

/** Names of metadata services, whatever they resolve to. */
export const NEVER_NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** IPv4 that is not globally reachable unicast (IANA's registry of special-purpose addresses). */
const SPECIAL_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** All of IPv6 that is assigned as global unicast … */
const GLOBAL_V6 = ['2000::/3'];
/** … except protocol assignments with Teredo, documentation and 6to4. */
const SPECIAL_V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const never = rangesOf(NEVER_RANGES);
const special = rangesOf([...SPECIAL_V4, ...SPECIAL_V6]);
const global6 = rangesOf(GLOBAL_V6);

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6';
}

/** Whether a list has an address. What is no address is in no list. */
export function isIn(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && list.check(address, familyOf(address));
}

/** Whether no setting may open an address; also true for what is no address. */
export function isNeverCalled(address: string): boolean {
  return isIP(address) === 0 || [address, ...embedded(address)].some((part) => isIn(never, part));
}

/** Whether a range lies wholly within what is never called. */
export function isNeverRange([address, bits]: [ipaddr.IPv4 | ipaddr.IPv6, number]): boolean {
  return NEVER_RANGES.some((text) => {
    const [outer, outerBits] = parseRange(text);
    return outer.kind() === address.kind() && outerBits <= bits && address.match([outer, outerBits] as never);
  });
}

/** Reads `10.0.0.0/8`, or an address as a range of one. */
export function parseRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  return ipaddr.parseCIDR(text.includes('/') ? text : `${text}/${isIP(text) === 4 ? 32 : 128}`);
}

/** Whether an address is globally reachable, and is not one of this machine's own. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 0 || isIn(special, address) || isOwn(address)) return false;
  return isIP(address) === 4 || isIn(global6, address);
}

/** A machine reaches itself under its public address as well, past the firewall in front of it. */
function isOwn(address: string): boolean {
  const wanted = ipaddr.parse(address).toNormalizedString();
  return Object.values(os.networkInterfaces()).some((entries) =>
    entries?.some((entry) => ipaddr.parse(entry.address).toNormalizedString() === wanted),
  );
}

/** Forms of IPv6 that carry an IPv4 address, and where its bytes are. */
const CARRIERS: readonly { range: BlockList; offset: number; invert?: boolean }[] = [
  { range: rangesOf(['::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48']), offset: 12 },
  { range: rangesOf(['2002::/16']), offset: 2 },
  { range: rangesOf(['2001::/32']), offset: 4 },
  { range: rangesOf(['2001::/32']), offset: 12, invert: true },
];

/** The IPv4 addresses that a gateway or the kernel would take out of an IPv6 address. */
export function embedded(address: string): string[] {
  if (isIP(address) !== 6) return [];
  const bytes = ipaddr.parse(address).toByteArray();
  if (bytes.slice(0, 15).every((byte) => byte === 0)) return []; // `::` and `::1` are addresses of their own
  return CARRIERS.filter(({ range }) => isIn(range, address)).map(({ offset, invert }) =>
    bytes
      .slice(offset, offset + 4)
      .map((byte) => (invert ? byte ^ 0xff : byte))
      .join('.'),
  );
}
