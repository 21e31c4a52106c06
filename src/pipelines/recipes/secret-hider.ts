import type { SecretWriter } from '../../kernel/plain-secrets.ts';
import { mapTexts } from './recipe-parameters.ts';
import { SECRET } from './recipe-uses.ts';

/** Keys that a placeholder can name. */
const NAMEABLE = /^[^{}]{1,250}$/;

/** The names of the secrets that texts of a value refer to. */
export function secretsNamedIn(value: object): Set<string> {
  const names = new Set<string>();
  mapTexts(value, (text) => {
    for (const [, name] of text.matchAll(SECRET)) names.add(name!);
    return text;
  });
  return names;
}

/** Puts placeholders in place of secrets: one for each secret, wherever it stands, and another for another one. */
export class SecretHider implements SecretWriter {
  /** The names of placeholders, by secret. */
  readonly #names = new Map<string, string>();
  readonly #taken: Set<string>;
  readonly #next = new Map<string, number>();
  readonly #warnings: Set<string>;

  /** @param taken names that stand for secrets of the vault already */
  constructor(warnings: Set<string>, taken: Iterable<string>) {
    this.#warnings = warnings;
    this.#taken = new Set(taken);
  }

  readonly write = (key: string, secret: string): string => {
    const name = this.#names.get(secret) ?? this.#newName(key);
    this.#names.set(secret, name);
    this.#warnings.add(`The text of '${key}' may be a secret. {{secret.${name}}} replaces it.`);
    return `{{secret.${name}}}`;
  };

  readonly doubt = (key: string): void => {
    this.#warnings.add(`The text of '${key}' has a random word that may be a secret. It was not replaced.`);
  };

  #newName(key: string): string {
    const base = NAMEABLE.test(key) ? key : 'secret';
    let name = base;
    for (let n = this.#next.get(base) ?? 2; this.#taken.has(name); n++) {
      name = `${base}_${n}`;
      this.#next.set(base, n + 1);
    }
    this.#taken.add(name);
    return name;
  }
}
