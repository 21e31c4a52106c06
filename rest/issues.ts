/** The location of a value in the request: `["body", "tags", 3]`. */
export type Location = readonly (string | number)[];

/** One item of a validation error, with its keys in wire order. */
export interface ValidationItem {
  type: string;
  loc: (string | number)[];
  msg: string;
  input: unknown;
  ctx?: Record<string, unknown>;
}

/** A location as a linked list, so that valid input builds no arrays. */
export interface At {
  readonly up: At | null;
  readonly key: string | number;
}

export const at = (up: At | null, key: string | number): At => ({ up, key });

function locationOf(where: At | null): (string | number)[] {
  const loc: (string | number)[] = [];
  for (let step = where; step; step = step.up) loc.unshift(step.key);
  return loc;
}

const MAX_ITEMS = 100;

/** Collects the failures of one request. Keeps the first hundred: a hostile list may have a million. */
export class Issues {
  readonly items: ValidationItem[] = [];
  readonly #echo: Echo;

  constructor(echo: Echo) {
    this.#echo = echo;
  }

  add(where: At, type: string, msg: string, input: unknown, ctx?: Record<string, unknown>, more: Location = []): void {
    this.addAt([...locationOf(where), ...more], type, msg, input, ctx);
  }

  addAt(loc: (string | number)[], type: string, msg: string, input: unknown, ctx?: Record<string, unknown>): void {
    if (this.items.length >= MAX_ITEMS) return;
    // for a missing value the enclosing object is shown: it is not a secret itself, but may contain some
    const shown = this.#echo(input, type === 'missing' ? loc.slice(0, -1) : loc);
    this.items.push({ type, loc, msg, input: shown, ...(ctx ? { ctx } : {}) });
  }
}

/** Gives the form of an input that may be shown to the caller. */
export type Echo = (input: unknown, loc: Location) => unknown;

/** Names whose values are never shown (defaults §0.2). */
const SECRET = ['password', 'new_password', 'token', 'refresh_token', 'value', 'api_key', 'code', 'state'];
const REDACTED = '[redacted]';
const MAX_TEXT = 256;
const MAX_NODES = 200;
const MAX_DEPTH = 6;

/**
 * Returns the function that prepares `input` for an answer: it redacts secrets, also inside objects, and shortens long,
 * wide or deep values. `sensitive` has further names, which the schema marks.
 */
export function echoOf(sensitive: Iterable<string> = []): Echo {
  const secret = new Set<string | number>([...SECRET, ...sensitive]);
  // each missing field shows the same object, which may have thousands of keys
  const known = new WeakMap<object, unknown>();
  const shownOf = (input: unknown) => {
    if (typeof input !== 'object' || input === null) return copy(input, { nodes: MAX_NODES }, MAX_DEPTH, secret);
    const shown = known.get(input) ?? copy(input, { nodes: MAX_NODES }, MAX_DEPTH, secret);
    known.set(input, shown);
    return shown;
  };
  return (input, loc) => {
    // null reveals nothing, and the caller should see that it was null
    if (input === null || input === undefined) return null;
    return loc.slice(1).some((part) => secret.has(part)) ? REDACTED : shownOf(input);
  };
}

function copy(value: unknown, budget: { nodes: number }, depth: number, secret: ReadonlySet<string | number>): unknown {
  budget.nodes -= 1;
  if (typeof value === 'string') return shorten(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  const shown: Record<string, unknown> = {};
  const list: unknown[] = [];
  for (const key of Object.keys(value)) {
    const child = (value as Record<string, unknown>)[key];
    if (budget.nodes <= 0) {
      if (Array.isArray(value)) list.push('…');
      else shown['…'] = '…';
      break;
    }
    const hidden = !Array.isArray(value) && secret.has(key) && child !== null;
    const visible = hidden ? REDACTED : copy(child, budget, depth - 1, secret);
    if (Array.isArray(value)) list.push(visible);
    else shown[shorten(key)] = visible;
  }
  return Array.isArray(value) ? list : shown;
}

/** Shortened and well-formed: the client's parser would refuse half of a surrogate pair. */
function shorten(text: string): string {
  return (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text).toWellFormed();
}

/**
 * Reads one present value into the form that graphql-js takes for a variable. Adds failures to `issues`; the result
 * must not be used then.
 */
export type ValueReader = (value: unknown, where: At, issues: Issues) => unknown;
