import { domainToASCII } from 'node:url';

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_LENGTH = 253;

/**
 * A mail domain as it is compared: in lower case, without a dot at the end, international names in their ASCII form.
 * `null` for a text that names no domain, such as an address of the internet protocol or a name without a dot.
 */
export function domainKey(text: string): string | null {
  const name = domainToASCII(text.trim().replace(/\.$/, '')).toLowerCase();
  const labels = name.split('.');
  if (name.length > MAX_LENGTH || labels.length < 2 || !labels.every((label) => LABEL.test(label))) return null;
  return /^\d+$/.test(labels.at(-1)!) ? null : name;
}

/** The domain of an e-mail address, as it is compared; `null` if it has none. */
export function domainOfEmail(email: string): string | null {
  const at = email.lastIndexOf('@');
  return at > 0 ? domainKey(email.slice(at + 1)) : null;
}
