import { badRequest } from './scim-error.ts';

/** What a filter compares with. */
export type FilterValue = string | number | boolean | null;

export type Operator = (typeof operators)[number];

/** A filter. Attributes are in lower case, those of an attribute with the name of it: `emails.value`. */
export type ScimFilter =
  | { kind: 'and' | 'or'; parts: ScimFilter[] }
  | { kind: 'not'; part: ScimFilter }
  | { kind: 'compare'; attribute: string; operator: Operator; value: FilterValue };

const operators = ['eq', 'ne', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le', 'pr'] as const;

/** What strangers send decides how long it takes: all of it is bounded. */
const MAX_LENGTH = 2_000;
const MAX_DEPTH = 10;
const MAX_COMPARISONS = 30;

const TOKEN = /\s*(?:([()[\]])|("(?:[^"\\]|\\.)*")|([^\s()[\]"]+))/y;
const ATTRIBUTE = /^[a-z][\w$-]*(?:\.[a-z$][\w$-]*)?$/;
const NUMBER = /^-?\d{1,15}(?:\.\d{1,10})?$/;
const CORE = /^urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):/;

const invalid = (detail: string) => badRequest('invalidFilter', detail);

/** The name of an attribute in lower case, without the schema that it is of. */
export const attributeKey = (name: string): string => name.toLowerCase().replace(CORE, '');

/** Reads a filter of RFC 7644, 3.4.2.2. @throws ScimError `invalidFilter` */
export function parseFilter(text: string, within = ''): ScimFilter {
  return new Parser(tokensOf(text)).whole(within);
}

function tokensOf(text: string): string[] {
  if (text.length > MAX_LENGTH) throw invalid(`A filter has at most ${MAX_LENGTH} characters.`);
  const tokens: string[] = [];
  const trimmed = text.trimEnd();
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < trimmed.length; ) {
    const found = TOKEN.exec(trimmed);
    if (!found) throw invalid('The filter cannot be read: is a quotation mark missing?');
    tokens.push(found[1] ?? found[2] ?? found[3]!);
  }
  return tokens;
}

/** By recursive descent: `or` binds less than `and`, and `and` less than `not`. */
class Parser {
  readonly #tokens: readonly string[];
  #at = 0;
  #depth = 0;
  #comparisons = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  whole(within: string): ScimFilter {
    const filter = this.#or(within);
    if (this.#at < this.#tokens.length) throw invalid(`The filter ends too early, before '${this.#shown()}'.`);
    return filter;
  }

  #or(within: string): ScimFilter {
    return this.#joined('or', () => this.#joined('and', () => this.#factor(within)));
  }

  #joined(kind: 'and' | 'or', next: () => ScimFilter): ScimFilter {
    const parts = [next()];
    while (this.#takes(kind)) parts.push(next());
    return parts.length === 1 ? parts[0]! : { kind, parts };
  }

  #factor(within: string): ScimFilter {
    if (this.#takes('not')) {
      if (this.#tokens[this.#at] !== '(') throw invalid("'not' is followed by '('.");
      return { kind: 'not', part: this.#factor(within) };
    }
    if (this.#takes('(')) return this.#nested(')', within);
    return this.#comparison(within);
  }

  #nested(end: string, within: string): ScimFilter {
    if (++this.#depth > MAX_DEPTH) throw invalid(`A filter is nested at most ${MAX_DEPTH} times.`);
    const filter = this.#or(within);
    if (!this.#takes(end)) throw invalid(`The filter lacks '${end}'.`);
    this.#depth -= 1;
    return filter;
  }

  #comparison(within: string): ScimFilter {
    if (++this.#comparisons > MAX_COMPARISONS) throw invalid(`A filter has at most ${MAX_COMPARISONS} comparisons.`);
    const name = attributeKey(this.#next('the name of an attribute'));
    if (!ATTRIBUTE.test(name)) throw invalid('A comparison begins with the name of an attribute.');
    if (within === '' && this.#takes('[')) return this.#nested(']', `${name}.`);
    const attribute = `${within}${name}`;
    const word = this.#next('an operator').toLowerCase();
    const operator = operators.find((known) => known === word);
    if (!operator) throw invalid(`An operator is one of ${operators.join(', ')}.`);
    if (operator === 'pr') return { kind: 'compare', attribute, operator, value: null };
    return { kind: 'compare', attribute, operator, value: readValue(this.#next('a value')) };
  }

  #next(what: string): string {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw invalid(`The filter ends where ${what} is missing.`);
    this.#at += 1;
    return token;
  }

  #takes(word: string): boolean {
    if (this.#tokens[this.#at]?.toLowerCase() !== word) return false;
    this.#at += 1;
    return true;
  }

  #shown(): string {
    return (this.#tokens[this.#at] ?? '').slice(0, 40);
  }
}

function readValue(token: string): FilterValue {
  const word = token.toLowerCase();
  if (word === 'true' || word === 'false') return word === 'true';
  if (word === 'null') return null;
  if (NUMBER.test(token)) return Number(token);
  if (!token.startsWith('"')) throw invalid('A value is a text in quotation marks, a number, true, false or null.');
  try {
    return JSON.parse(token) as string;
  } catch {
    throw invalid('A text has an escape that JSON does not know.');
  }
}
