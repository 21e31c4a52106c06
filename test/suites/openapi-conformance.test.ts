import type { ErrorObject } from 'ajv';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildOpenApi } from '../../rest/openapi.ts';
import type { CompiledOperation } from '../../rest/operation.ts';
import { readReference } from '../../rest/reference.ts';
import type { JsonSchema } from '../../rest/schema-parts.ts';
import { operationsDir } from '../../src/paths.ts';
import { arbitraryJson } from '../support/arbitrary-json.ts';
import { judgeOf, within } from '../support/documented.ts';
import { operations, routeOf } from '../support/operations.ts';
import { thinned } from '../support/thinned.ts';

const info = { title: 'Platform', version: '1', description: '' };
const document = buildOpenApi(operations, readReference(operationsDir, operations), { info });
const judge = judgeOf(document);

interface Item {
  type: string;
  loc: (string | number)[];
  msg: string;
}

/** What the service says of a body before it does anything. */
function refusals(operation: CompiledOperation, body: unknown): Item[] {
  const params = Object.fromEntries(operation.parameters.map(({ name }) => [name, 'x']));
  const { issues } = operation.read({ params, query: {}, headers: {}, body });
  return issues.items.filter(({ loc }) => loc[0] === 'body');
}

/** What stands for the file of a form, once it is stored, is no content that a client sends. */
function withFile({ body }: CompiledOperation, value: unknown): unknown {
  const { fileField } = body!;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return fileField && isObject && fileField in value ? { ...value, [fileField]: 'a stored file' } : value;
}

/**
 * Where the service takes more than the document promises, on purpose: texts for numbers and booleans and the other way
 * round, and points in time in more forms (pydantic's lax mode).
 */
const isLenience = ({ keyword, params }: ErrorObject): boolean =>
  (keyword === 'type' && /integer|number|boolean/.test(String(params.type))) ||
  keyword === 'anyOf' ||
  keyword === 'format';

/** Beyond JSON Schema: bytes, and what is not to be stored: half of a surrogate pair, and NUL in free JSON. */
const isBeyond = ({ type, msg }: Item, body: unknown): boolean =>
  (type === 'too_long' && msg.includes('bytes')) ||
  (/^(string_unicode|invalid_key)$/.test(type) && /\\(?:ud[89a-f]|u0000)/i.test(JSON.stringify(body)));

/** Where the made-up bodies begin: 50 are made from each. */
const seeds = [20_260_102, 20_260_103, 20_260_104];

const withBody = operations.filter(({ body }) => body !== null);

describe('the document and the service agree on the body of', () => {
  test.each(withBody.map((operation) => [routeOf(operation), operation] as const))('%s', (route, operation) => {
    const { type, fileField } = operation.body!;
    const name = fileField === null ? type.name : `${type.name}Form`;
    const schema = document.components.schemas[name] as JsonSchema;
    const validate = judge.compile(within({ $ref: `#/components/schemas/${name}` }));
    let accepted = 0;
    const property = fc.property(arbitraryJson(schema, document.components.schemas), (made) => {
      const body = withFile(operation, JSON.parse(JSON.stringify(made) ?? 'null'));
      const isDocumented = validate(body);
      const refused = refusals(operation, body);
      if (isDocumented) {
        accepted += 1;
        const surprising = refused.filter((item) => !isBeyond(item, body));
        expect(surprising, `the document allows ${JSON.stringify(body).slice(0, 400)}`).toEqual([]);
      } else if (refused.length === 0) {
        const strict = validate.errors!.filter((error) => !isLenience(error));
        expect(strict, `the document forbids ${JSON.stringify(body).slice(0, 400)}`).toEqual([]);
      }
    });
    const chosen = thinned(seeds, route);
    for (const seed of chosen) fc.assert(property, { numRuns: 50, seed });
    // a large document seldom fits as a whole: it is tried more often
    for (let again = 1; again <= 10 && accepted < 3 * chosen.length; again++)
      fc.assert(property, { numRuns: 50, seed: seeds[0]! + 1_000 * again });
    expect(accepted).toBeGreaterThanOrEqual(3 * chosen.length);
  });
});
