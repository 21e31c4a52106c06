import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { SsoRefusal } from '../sso-refusal.ts';

/** Bytes of a message. Honest ones have a few thousand. */
const MAX_MESSAGE = 1024 * 1024;

const inflate = promisify(inflateRaw);

/** The XML of a message that was posted. @throws SsoRefusal */
export const decoded = (message: string): string => textOf(bytesOf(message));

/** The XML of a message that came in an address. @throws SsoRefusal */
export async function inflated(message: string): Promise<string> {
  const bytes = await inflate(bytesOf(message), { maxOutputLength: MAX_MESSAGE }).catch(() => {
    throw new SsoRefusal('the message cannot be unpacked, or is too long');
  });
  return textOf(bytes);
}

/** The bytes behind a base64 text that may be wrapped. @throws SsoRefusal */
export function bytesOf(message: string): Buffer {
  const text = message.replaceAll(/\s+/g, '');
  if (text.length > (MAX_MESSAGE / 3) * 4 + 4) throw new SsoRefusal('the message is too long');
  if (text === '' || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw new SsoRefusal('the message is not base64');
  return Buffer.from(text, 'base64');
}

/** The text of a message. @throws SsoRefusal */
export function textOf(bytes: Uint8Array): string {
  if (bytes.length > MAX_MESSAGE) throw new SsoRefusal('the message is too long');
  if (!isUtf8(bytes)) throw new SsoRefusal('the message is not UTF-8');
  return Buffer.from(bytes).toString('utf8');
}
