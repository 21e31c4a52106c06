/** Texts as a parameter of type `text[]`, written once for many executions: the driver writes an array each time. */
export class TextArray {
  readonly #literal: string;

  constructor(texts: readonly (string | null)[]) {
    this.#literal = `{${texts.map(element).join(',')}}`;
  }

  /** What the driver sends. */
  toPostgres(): string {
    return this.#literal;
  }
}

const element = (text: string | null): string => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`);
