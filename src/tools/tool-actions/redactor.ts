import { randomUUID } from 'node:crypto';
import { withTexts } from './json-values.ts';

/** Stands in place of a secret. */
export const MASK = '********';
/** A shorter text is found everywhere, and is no secret. */
const SHORTEST = 4;
/** More secrets cost the process too much to look for. */
const MAX_SECRETS = 32;
/** Stands between texts that are cleaned together. */
const BETWEEN = `\0${randomUUID()}\0`;

/** Removes secrets from what is shown, in all spellings in which a request or an answer may have them. */
export class Redactor {
  /** `null` for too many to look for: then nothing is shown. */
  readonly #spellings: readonly string[] | null;

  constructor(given: Iterable<string>) {
    const secrets = new Set([...given].filter((text) => text.length >= SHORTEST));
    if (secrets.size > MAX_SECRETS) {
      this.#spellings = null;
      return;
    }
    const all = new Set<string>();
    for (const secret of secrets) for (const spelling of spellingsOf(secret)) all.add(spelling);
    // one that contains another comes first
    this.#spellings = [...all].sort((a, b) => b.length - a.length);
  }

  /** A text with a mask in place of each secret. */
  clean(text: string): string {
    if (!this.#spellings) return MASK;
    return this.#spellings.reduce((cleaned, secret) => cleaned.replaceAll(secret, MASK), text);
  }

  /** JSON with a mask in place of each secret, in keys too. All texts are looked through at once. */
  cleanJson(value: unknown): unknown {
    const texts: string[] = [];
    withTexts(value, (text) => {
      texts.push(text);
      return text;
    });
    if (!this.#spellings) return withTexts(value, () => MASK);
    const joined = texts.join(BETWEEN);
    const cleaned = this.clean(joined);
    if (cleaned === joined) return value;
    const parts = cleaned.split(BETWEEN);
    let at = 0;
    return withTexts(value, () => parts[at++]!);
  }
}

function spellingsOf(secret: string): string[] {
  const text = secret.toWellFormed();
  const bytes = Buffer.from(text);
  const encoded = encodeURIComponent(text);
  return [
    text,
    encoded,
    encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    new URLSearchParams({ k: text }).toString().slice(2),
    JSON.stringify(text).slice(1, -1),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
  ];
}

/** All texts in what is secret, numbers too. */
export function textsIn(values: Iterable<unknown>): string[] {
  const texts: string[] = [];
  const open = [...values];
  for (let value = open.pop(); value !== undefined || open.length > 0; value = open.pop()) {
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'number' || typeof value === 'bigint') texts.push(String(value));
    else if (typeof value === 'object' && value !== null) open.push(...(Object.values(value) as unknown[]));
  }
  return texts;
}
