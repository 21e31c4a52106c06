/** Stands in place of a secret. */
export const MASK = '********';
/** A shorter text is found everywhere, and is no secret. */
const SHORTEST = 4;

/** Removes secrets from what is shown, in all spellings in which a request or an answer may have them. */
export class Redactor {
  readonly #spellings: readonly string[];

  constructor(secrets: Iterable<string>) {
    const all = new Set<string>();
    for (const secret of secrets) for (const spelling of spellingsOf(secret)) all.add(spelling);
    // one that contains another comes first
    this.#spellings = [...all].filter((text) => text.length >= SHORTEST).sort((a, b) => b.length - a.length);
  }

  /** A text with a mask in place of each secret. */
  clean(text: string): string {
    return this.#spellings.reduce((cleaned, secret) => cleaned.replaceAll(secret, MASK), text);
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
    else if (typeof value === 'object' && value !== null) open.push(...Object.values(value));
  }
  return texts;
}
