import { isIP } from 'node:net';
import { z } from 'zod';
import { isAddressRange, type SettingKind } from '../../setting.ts';
import { isNeverRange, NEVER_NAMES, parseRange } from './addresses.ts';

/** An entry of `OUTBOUND_ALLOW`. */
export interface AllowedTarget {
  /** A host name in lower case, or a range of addresses like `10.0.0.0/8`. */
  kind: 'name' | 'range';
  value: string;
  /** The only port that the entry opens; null opens all. */
  port: number | null;
}

const WITH_PORT = /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^:[\]]+))(?::(?<port>\d{1,5}))?$/;

/** Reads one entry; null if it is none, or would open what is never called. */
function parseTarget(text: string): AllowedTarget | null {
  if (isAddressRange(text)) return rangeTarget(text, null);
  const { bracketed, plain, port: digits } = WITH_PORT.exec(text)?.groups ?? {};
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535)) return null;
  const value = (bracketed ?? plain ?? '').toLowerCase();
  if (isAddressRange(value)) return rangeTarget(value, port);
  return bracketed === undefined && isHostName(value) ? { kind: 'name', value, port } : null;
}

function rangeTarget(value: string, port: number | null): AllowedTarget | null {
  return isNeverRange(parseRange(value)) ? null : { kind: 'range', value, port };
}

/** A name as it stands in a URL after parsing; names of metadata services are none. */
function isHostName(value: string): boolean {
  if (!/^[a-z0-9_.-]{1,253}$/.test(value) || NEVER_NAMES.has(value) || !URL.canParse(`http://${value}`)) return false;
  const { hostname } = new URL(`http://${value}`);
  return hostname === value && isIP(hostname) === 0 && !value.endsWith('.');
}

/** `localhost:9000, 10.0.0.0/8`: hosts and ranges of addresses, each with a port if it opens only that. */
export const allowedTargets: SettingKind<AllowedTarget[]> = {
  mustBe:
    'hosts, addresses or CIDR ranges between commas, each with a port if wanted, ' +
    'and no metadata, link-local, multicast or unspecified address',
  schema: z.string().transform((value, context) => {
    const texts = value.split(',').map((item) => item.trim());
    const targets = texts.filter((item) => item !== '').map(parseTarget);
    if (targets.includes(null)) context.addIssue('not a list of targets');
    return targets.filter((target) => target !== null);
  }),
};

/** `192.0.2.53`, `192.0.2.53:5353` or `[2001:db8::53]:53`: where a DNS server listens. */
export function isServerAddress(item: string): boolean {
  const { bracketed, plain, port } = WITH_PORT.exec(item)?.groups ?? {};
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false;
  return isIP(item) !== 0 || (bracketed === undefined ? isIP(plain ?? '') === 4 : isIP(bracketed) === 6);
}
