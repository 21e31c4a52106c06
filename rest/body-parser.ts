import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MAX_JSON_DEPTH } from '../src/kernel/constraints.ts';
import { ApiError } from '../src/kernel/errors.ts';
import { JsonBudget, MAX_JSON_VALUES, type Overload, VALUES_PER_KEY } from '../src/kernel/json-shape.ts';
import { ValidationFailure } from './errors.ts';
import type { ValidationItem } from './issues.ts';
import { jsonFault } from './json-fault.ts';

const JSON_TYPE = /^application\/(?:[\w!#$&^.+-]+\+)?json(?:\s*;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * For routes with a body: accepts only JSON in UTF-8, and reports every fault in the shape of the spec.
 */
export function acceptJson(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(JSON_TYPE, { parseAs: 'buffer' }, (request, body, done) => {
    try {
      done(null, parseBody(request, body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** For routes without a body: ignores any body that is sent. */
export function ignoreBody(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

function parseBody(request: FastifyRequest, body: Buffer): unknown {
  const charset = CHARSET.exec(request.headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (!/^utf-?8$/i.test(charset) || encoding.toLowerCase() !== 'identity') {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', { expected: 'application/json' });
  }
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw malformed(0, 'The body is not valid UTF-8');
  const maxValues = request.routeOptions.config.maxValues ?? MAX_JSON_VALUES;
  return jsonOf(body.toString('utf8'), budgetOfRequest(maxValues), maxValues);
}

/** What the JSON of one request may hold. */
export const budgetOfRequest = (maxValues = MAX_JSON_VALUES): JsonBudget =>
  new JsonBudget({ maxDepth: MAX_PARSED_DEPTH, maxValues });

/**
 * The value of a JSON text.
 * @param budget of the request; by default the text is all that it sends
 * @param maxValues what the budget had at first
 * @throws ValidationFailure for a syntax error, for what is dangerous in it, and for more than the budget has left
 */
export function jsonOf(text: string, budget = budgetOfRequest(), maxValues = MAX_JSON_VALUES): unknown {
  expectWithin(budget.take(text), maxValues);
  const value = parseJson(text);
  const refusal = hostility(value);
  if (refusal) throw new ValidationFailure([refusal]);
  return value;
}

/** @throws ValidationFailure for an overload */
export function expectWithin(overload: Overload | null, maxValues = MAX_JSON_VALUES): void {
  if (overload) throw new ValidationFailure([overload === 'depth' ? tooDeep() : tooMany(maxValues)]);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { position, reason } = jsonFault(text);
    throw malformed(position, reason);
  }
}

const malformed = (position: number, reason: string) =>
  new ValidationFailure([
    { type: 'json_invalid', loc: ['body', position], msg: 'JSON decode error', input: {}, ctx: { error: reason } },
  ]);

const item = (type: string, msg: string, ctx?: Record<string, unknown>): ValidationItem => ({
  type,
  loc: ['body'],
  msg,
  input: {},
  ...(ctx ? { ctx } : {}),
});

/** Deeper bodies are not parsed: parsing alone would take too long. */
const MAX_PARSED_DEPTH = 1_000;

const tooDeep = () =>
  item('recursion_loop', `JSON should be nested at most ${MAX_JSON_DEPTH} levels deep`, { max_depth: MAX_JSON_DEPTH });

const tooMany = (maxValues: number) =>
  item(
    'too_many_values',
    `JSON should have at most ${maxValues} values, where each key counts as ${VALUES_PER_KEY} more`,
    {
      max_values: maxValues,
    },
  );

/**
 * Finds what is dangerous anywhere in a parsed body: nesting that overflows the stack of later code, and keys that
 * reach a prototype. Iterative, because the body may be ten thousand levels deep.
 */
function hostility(body: unknown): ValidationItem | null {
  if (typeof body !== 'object' || body === null) return null;
  let level: object[] = [body];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_JSON_DEPTH) return tooDeep();
    const next: object[] = [];
    for (const value of level) {
      for (const key of Object.keys(value)) {
        const child = (value as Record<string, unknown>)[key];
        if (key === '__proto__' || (key === 'constructor' && isObject(child) && Object.hasOwn(child, 'prototype'))) {
          return item('invalid_key', `Keys should be valid strings, ${key} is not allowed`);
        }
        if (isObject(child)) next.push(child);
      }
    }
    level = next;
  }
  return null;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
