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
/** The search of the engine is linear for texts up to this length, and quadratic for some longer ones. */
const LONGEST_PLAIN = 64;
/** What JSON and JavaScript write where no escape is needed. */
const ESCAPE = /\\(?:\/|u([0-9a-f]{4}))/gi;

/** Removes secrets from what is shown, in all spellings in which a request or an answer may have them. */
export class Redactor {
  /** `null` for too many to look for: then nothing is shown. */
  readonly #spellings: readonly string[] | null;
  readonly #numbers = new Set<number>();

  constructor(given: Iterable<string>) {
    const secrets = new Set([...given].filter((text) => text.length >= SHORTEST));
    if (secrets.size > MAX_SECRETS) {
      this.#spellings = null;
      return;
    }
    const all = new Set<string>();
    for (const secret of secrets) {
      for (const spelling of spellingsOf(secret)) all.add(spelling);
      const number = Number(secret);
      if (Number.isFinite(number) && String(number).length >= SHORTEST) this.#numbers.add(number);
    }
    // one that contains another comes first
    this.#spellings = [...all].sort((a, b) => b.length - a.length);
  }

  /** A text with a mask in place of each secret. One with an escaped secret is shown without its escapes. */
  clean(text: string): string {
    const spellings = this.#spellings;
    if (!spellings) return MASK;
    const masked = (from: string) => spellings.reduce((cleaned, secret) => withMask(cleaned, secret), from);
    const cleaned = masked(text);
    const plain = cleaned.replaceAll(ESCAPE, (_whole, code?: string) =>
      code === undefined ? '/' : String.fromCharCode(Number.parseInt(code, 16)),
    );
    if (plain === cleaned) return cleaned;
    const found = masked(plain);
    return found === plain ? cleaned : found;
  }

  /** Whether bytes that are no text have a secret, in one of the usual ways to write text as bytes. */
  isIn(bytes: Buffer): boolean {
    const readings: (() => string)[] = [
      () => bytes.toString('latin1'),
      () => bytes.toString('utf8'),
      // a text of two bytes for each character may begin at any byte
      ...[0, 1].flatMap((from) => {
        const end = bytes.length - ((bytes.length - from) % 2);
        return [
          () => bytes.toString('utf16le', from, end),
          () => Buffer.from(bytes.subarray(from, end)).swap16().toString('utf16le'),
        ];
      }),
    ];
    return readings.some((reading) => {
      const text = reading();
      return this.clean(text) !== text;
    });
  }

  /** JSON with a mask in place of each secret, in keys and for numbers too. All texts are looked through at once. */
  cleanJson(value: unknown): unknown {
    const texts: string[] = [];
    const hides = (number: number) => !this.#spellings || this.#numbers.has(number);
    let hasHidden = false;
    withTexts(
      value,
      (text) => {
        texts.push(text);
        return text;
      },
      (number) => {
        hasHidden ||= hides(number);
        return number;
      },
    );
    const maskOf = (number: number) => (hides(number) ? MASK : number);
    if (!this.#spellings) return withTexts(value, () => MASK, maskOf);
    const joined = texts.join(BETWEEN);
    const cleaned = this.clean(joined);
    if (cleaned === joined && !hasHidden) return value;
    const parts = cleaned.split(BETWEEN);
    let at = 0;
    return withTexts(value, () => parts[at++]!, maskOf);
  }
}

/** A text with a mask in place of one secret, in time that grows only with the sum of their lengths. */
export function withMask(text: string, secret: string): string {
  if (secret.length <= LONGEST_PLAIN) return text.replaceAll(secret, MASK);
  const first = text.indexOf(secret.slice(0, LONGEST_PLAIN));
  if (first < 0) return text;
  // Knuth, Morris and Pratt
  const borders = bordersOf(secret);
  let shown = '';
  let from = 0;
  for (let at = first, matched = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (matched > 0 && secret.charCodeAt(matched) !== code) matched = borders[matched - 1]!;
    if (secret.charCodeAt(matched) === code) matched++;
    if (matched < secret.length) continue;
    shown += text.slice(from, at + 1 - secret.length) + MASK;
    from = at + 1;
    matched = 0;
  }
  return shown + text.slice(from);
}

/** For each beginning of a text, the length of its longest proper beginning that is its end, too. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  for (let at = 1, length = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (length > 0 && text.charCodeAt(length) !== code) length = borders[length - 1]!;
    if (text.charCodeAt(length) === code) length++;
    borders[at] = length;
  }
  return borders;
}

function spellingsOf(secret: string): string[] {
  const text = secret.toWellFormed();
  const bytes = Buffer.from(text);
  const encoded = encodeURIComponent(text);
  const lower = encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  return [
    text,
    encoded,
    lower,
    // as in the path of a request
    encoded.replaceAll('%2F', '/'),
    lower.replaceAll('%2f', '/'),
    new URLSearchParams({ k: text }).toString().slice(2),
    JSON.stringify(text).slice(1, -1),
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
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
