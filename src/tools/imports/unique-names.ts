/** A name that placeholders may have. */
export function plainName(text: string): string {
  const plain = text.replaceAll(/[^A-Za-z0-9_.-]+/g, '_').slice(0, 100);
  return /^[A-Za-z_]/.test(plain) ? plain : `_${plain}`;
}

/** Plain names that no other has. A document may give all of its thousands of things one name. */
export class UniqueNames {
  readonly #taken: Set<string>;
  /** The number that is tried next after a name: what was found taken is not tried again. */
  readonly #next = new Map<string, number>();

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken);
  }

  has(name: string): boolean {
    return this.#taken.has(name);
  }

  add(name: string): void {
    this.#taken.add(name);
  }

  /** The plain name of a text, with a number if another has it. */
  take(text: string): string {
    const name = plainName(text);
    let found = name;
    let number = this.#next.get(name) ?? 2;
    while (this.#taken.has(found)) found = `${name}_${number++}`;
    if (found !== name) this.#next.set(name, number);
    this.#taken.add(found);
    return found;
  }
}
